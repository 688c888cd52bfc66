"""Makes the launch of a job before anything is injected into it, and keeps it."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from spark_lineage.inject.installation import PropertiesFileError
from spark_lineage.inject.preparation import user_properties
from spark_lineage.inject.properties import LineageProperties
from spark_lineage.launch.directory import EVENTS_FILE, check_root, launch_directory
from spark_lineage.launch.launch import (
    STORE_KEY,
    Launch,
    find_launch,
    indexed,
    store_launch,
    stored_launch,
    without_login,
)
from spark_lineage.settings.hadoop import resource_managers
from spark_lineage.settings.places import lineage_directory
from spark_lineage.submit.hook import is_yarn_cluster, master_of
from spark_lineage.watch.dialect import Known, get_json
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.sources import Sources

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Guard
    from spark_lineage.settings import Settings
    from spark_lineage.settings.places import Places
    from spark_lineage.submit.hook import HookAdapter

_PARENT_JOB = "spark.openlineage.parentJobName"


@dataclass(frozen=True)
class NewLaunch:
    """A launch that is about to be submitted, and what is injected for its driver, if it can be."""

    launch: Launch
    lineage: LineageProperties
    properties: Mapping[str, str]
    """The user's own Spark properties, as they are."""


def new_launch(context: Context, settings: Settings, conn_id: str, adapter: HookAdapter) -> NewLaunch:
    """Return a launch of this try; marks its processes where they are going to run on this machine.

    Where the lineage directory is one that cannot be used, its own is below the default one, and is never made.
    """
    properties, deploy_mode = submitted_with(adapter)
    try:
        lineage = lineage_properties(context, settings)
    except ValueError:
        # Whoever injects says so.
        lineage = lineage_properties(context, replace(settings, lineage_dir=""))
    master, env = adapter.submitter.master, adapter.submitter.env
    is_of_yarn = master.startswith("yarn")
    if deploy_mode == "client" or is_of_yarn:
        adapter.launch_id = lineage.application_run_id
    if deploy_mode == "cluster" and is_of_yarn:
        adapter.tag(lineage.application_run_id, properties.get("spark.yarn.tags", ""))
    launch = Launch(
        directory=str(Path(lineage.events_file).parent),
        application_run_id=lineage.application_run_id,
        conn_id=conn_id,
        master=without_login(master),
        deploy_mode=deploy_mode,
        try_number=context["ti"].try_number,
        run_id=lineage.parent.get("spark.openlineage.parentRunId", ""),
        host=socket.gethostname(),
        event_conn_ids=settings.lineage_conn_id,
        yarn_urls=resource_managers(env) if is_of_yarn else (),
    )
    return NewLaunch(launch, lineage, properties)


def submitted_with(adapter: HookAdapter) -> tuple[Mapping[str, str], str]:
    """Return the user's own Spark properties, and the deploy mode; of a file that cannot be read, nothing."""
    arguments, submitter = adapter.arguments, adapter.submitter
    try:
        found = user_properties(arguments, submitter)
    except PropertiesFileError:
        return arguments.conf, submitter.deploy_mode({})
    return found.properties, found.deploy_mode


class LaunchHandle:
    """The handle of the launch whose end one try has to report: its own, or that of an earlier try.

    :param external_id_key: by which the Spark provider stores the id of the job
    """

    def __init__(self, context: Context, external_id_key: str, guard: Guard) -> None:
        self.launch: Launch | None = None
        self._context = context
        self._external_id_key = external_id_key
        self._guard = guard

    @property
    def is_client(self) -> bool:
        """Whether the driver runs on this machine, which it does as long as nothing else is known."""
        return self.launch is None or self.launch.deploy_mode == "client"

    @property
    def directory(self) -> Path | None:
        """That of the launch; it may not be there."""
        return Path(self.launch.directory) if self.launch is not None else None

    def keep(self, **changes: Any) -> Launch | None:
        """Change the launch, and keep it for a later process; None where there is none."""
        if self.launch is not None:
            self.launch = structs.replace(self.launch, **changes)
            with self._guard("A retry will not find the lineage of this job", can_fail=False):
                store_launch(self._context.get("task_state_store"), self.launch)
        return self.launch

    def track(self, operator: Any, hook: SparkSubmitHook, places: Places) -> None:
        """Have the Spark provider follow an application of YARN or a pod of Kubernetes.

        ``track_on_yarn`` and ``follow_pod`` say which faults of it that works around.
        """
        if getattr(operator, "deferrable", False):
            from spark_lineage.submit.deferral import waits_elsewhere

            if not waits_elsewhere(operator, hook):
                text = "deferrable has no effect: the driver runs on the worker, or no server reports its end."
                self._guard.log.warning(text)

        def sources(**known: Any) -> Sources:
            launch = Launch("", "", master=master_of(hook), deploy_mode="cluster", **known)
            return Sources(endpoints_of(launch, places, self._guard), Known())

        if master_of(hook).startswith("k8s"):
            from spark_lineage.submit.kubernetes import follow_pod

            follow_pod(hook, lambda driver_id: sources().kill(driver_id))
        if not is_yarn_cluster(hook):
            return
        from spark_lineage.submit.yarn import ResourceManagers, application_of, track_on_yarn

        def find(env: Mapping[str, str]) -> ResourceManagers:
            found = sources(yarn_urls=resource_managers(env))
            get, endpoints = partial(get_json, found.client), found.endpoints
            return ResourceManagers(endpoints.yarn_urls, get, found.kill, endpoints.access.is_anonymous)

        store = self._context.get("task_state_store")
        has_earlier_job = store is not None and bool(store.get(self._external_id_key))
        managers = track_on_yarn(operator, hook, find, has_earlier_job=has_earlier_job, log=self._guard.log)
        if store is None or managers is None or not getattr(operator, "durable", False):
            return
        earlier, known = stored_launch(store.get(STORE_KEY)), store.get(self._external_id_key)
        # The provider stores the id when spark-submit has ended: the worker of the earlier try was lost before.
        if earlier is None or earlier.deploy_mode != "cluster" or (known and earlier.external_id == known):
            return
        if external_id := application_of(managers, earlier.application_run_id):
            self._guard.log.info("%s was submitted by an earlier try, whose worker was lost.", external_id)
            store.set(self._external_id_key, external_id)
            store_launch(store, structs.replace(earlier, external_id=external_id))

    def take_over(self, event_conn_ids: tuple[str, ...]) -> Launch | None:
        """Return the launch of the job that the Spark provider re-attached to, None where there is none of that job.

        From now on this try has to report its end.
        """
        from airflow.providers.openlineage.plugins.macros import lineage_run_id

        launch = find_launch(self._context.get("task_state_store"), self._external_id_key)
        if launch is not None:
            ti = self._context["ti"]
            ours = {"try_number": ti.try_number, "run_id": str(lineage_run_id(ti)), "is_closed": False}
            self.launch = structs.replace(launch, **ours, event_conn_ids=event_conn_ids)
        return self.launch


def lineage_properties(context: Context, settings: Settings) -> LineageProperties:
    """Return a new application run of this try, with parent and root as the Airflow OpenLineage provider builds them.

    :raises ValueError: for a lineage directory that the listener cannot write to
    """
    # On purpose here: Airflow takes seconds to import, and the command line does without it.
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.macros import lineage_job_name
    from airflow.providers.openlineage.utils.spark import inject_parent_job_information_into_spark_properties
    from openlineage.client.uuid import generate_new_uuid

    ti = context["ti"]
    parent = inject_parent_job_information_into_spark_properties({}, context)
    if settings.map_index_in_job_name:
        parent[_PARENT_JOB] = indexed(parent[_PARENT_JOB], ti.map_index)
    application_run_id = str(generate_new_uuid())
    directory = launch_directory(
        check_root(lineage_directory(settings)),
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task_id=ti.task_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        try_number=ti.try_number,
        application_run_id=application_run_id,
    )
    return LineageProperties(
        events_file=str(directory / EVENTS_FILE),
        namespace=conf.namespace(),
        # Not the task's own job name: the application is another job, and would overwrite the task's in a backend.
        application_name=f"{lineage_job_name(ti)}.spark",
        application_run_id=application_run_id,
        parent=parent,
        tags=settings.lineage_tags,
    )
