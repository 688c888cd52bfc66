"""A task whose job is not submitted yet: all that is looked up once, and what makes it run."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from spark_lineage.adapters.adapter import adapter_name
from spark_lineage.emit.run_event import PRODUCER
from spark_lineage.inject.installation import PropertiesFileError
from spark_lineage.inject.preparation import user_properties
from spark_lineage.inject.properties import APP_RUN_ID, TRANSPORT_TYPE, LineageProperties
from spark_lineage.inject.task_injection import (
    NO_DIRECTORY,
    NoEvidenceError,
    TaskInjection,
    inject_session,
    inject_task,
)
from spark_lineage.launch.directory import EVENTS_FILE, check_root, launch_directory, remote_directory
from spark_lineage.launch.launch import Launch, TaskKey, find_launch, indexed, launches_below, without_login
from spark_lineage.launch.log import Guard, error_text
from spark_lineage.launch.retention import remove_submitted
from spark_lineage.merge.transition import StatusTransition, report_of
from spark_lineage.settings.places import DEFAULT_JAR, lineage_directory
from spark_lineage.submission.declared import declared_lineage
from spark_lineage.submission.event_channel import route_of
from spark_lineage.submission.log_mirror import why_not_copied
from spark_lineage.submission.stored_event_log import is_missing
from spark_lineage.task.running import Running, notifications_of
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.sources import managers_of

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.adapters.adapter import OperatorAdapter
    from spark_lineage.inject.preparation import Submitter
    from spark_lineage.launch.bounded_run import Kill
    from spark_lineage.merge.lineage import JobType, TaskLineage
    from spark_lineage.settings import Settings
    from spark_lineage.settings.places import TaskSettings
    from spark_lineage.task.links import TaskLinks
    from spark_lineage.task.task_events import TaskEvents
    from spark_lineage.watch.endpoints import Endpoints

NOTHING_RETURNS = (
    "No lineage can come back from YARN: no event log is read (%s), and the listener's events stay on the driver's "
    "host. Set yarn_resourcemanager_webapp_address in the extra of the Spark connection, and "
    "the events are read from the driver's log. Or set spark.eventLog.enabled=true and a spark.eventLog.dir that "
    "webhdfs_url or history_server_url in the extra leads to, or receiver_conn_id."
)
_PARENT_JOB = "spark.openlineage.parentJobName"


@dataclass(eq=False)
class Prepared:
    """A task with its settings and the adapter of its operator. One of the methods makes it ``Running``.

    :param external_id_key: by which the provider of the operator stores the id of the job
    :param started: when the task began, aware
    """

    context: Context
    task: TaskSettings
    adapter: OperatorAdapter
    events: TaskEvents
    links: TaskLinks
    kill: Kill
    guard: Guard
    external_id_key: str
    started: datetime

    @cached_property
    def declared(self) -> TaskLineage | None:
        """The lineage that the DAG declares, which is all that is known at first; None for nothing."""
        return declared_lineage(self.context, self.started, self.guard)

    @property
    def expected(self) -> TaskLineage | None:
        """The lineage that the DAG declares, with that of the last run of the same program; None for nothing."""
        earlier = self.events.last_end
        sides = {} if earlier is None else {"inputs": earlier.inputs, "outputs": earlier.outputs}
        return declared_lineage(self.context, self.started, self.guard, task_state="COMPLETE", **sides)

    @cached_property
    def made_with(self) -> str:
        """The versions of Spark, of the listener and of this package, as far as they are known here."""
        spark = self.adapter.submitter.known_installation
        jar = self.task.settings.openlineage_jar or DEFAULT_JAR
        return f"{spark.spark_version if spark else 'Spark'} {jar} {PRODUCER}"

    @property
    def job_type(self) -> JobType | None:
        """The type of the operator's job, else of the program's last run; None where neither is known."""
        if self.adapter.job_type is not None or self.events.last_end is None:
            return self.adapter.job_type
        return "STREAMING" if self.events.last_end.is_streaming else "BATCH"

    def lacking(self) -> str:
        """Return the reason, as it is counted, why no event log of the job is read; empty where one is."""
        with self.guard("The event does not count what has no log", can_fail=False):
            return self.adapter.lacking
        return ""

    def submit(self, earlier: Running | None = None) -> Running:
        """Inject lineage into a job that is about to be submitted, and follow it.

        :param earlier: the job that the same execution has submitted before: both are one
        :raises Exception: when that cannot be done: the job runs without lineage
        """
        submitter = self.adapter.submitter
        launch, lineage, properties = self._new_launch(submitter)
        endpoints = endpoints_of(launch, self.task.places, self.guard)
        route = route_of(
            launch,
            self.task.settings,
            properties.get(TRANSPORT_TYPE, "").strip(),
            self.guard,
            has_log_server=lambda: bool(managers_of(endpoints)),
        )
        if route is not None:
            launch = structs.replace(
                launch,
                events_from=route.events_from,
                receiver=route.receiver,
                own_run_id=properties.get(APP_RUN_ID, ""),
            )
            lineage = replace(lineage, instead=route.transport)
        injection, lacking = None, ""
        try:
            with self.guard("The job runs without lineage"):
                try:
                    injection = self._injected(launch, lineage, submitter, endpoints)
                except NoEvidenceError as error:
                    lacking = error.lacking
                    raise
        except BaseException as error:
            with suppress(OSError):
                remove_submitted(Path(launch.directory))
            if (listeners := notifications_of(self, properties)) is not None:
                listeners.ended("FAIL", None, error_text(error))
                listeners.close(self.task.settings.brief_seconds)
            raise
        if injection is not None and not injection.prepared.has_listener:
            # A driver without the listener has no events.
            route, launch = None, structs.replace(launch, events_from="", receiver="")
        log = injection.event_log if injection is not None else None
        places = (*(log.places if log is not None else ()), *self.adapter.log_places)
        launch = structs.replace(launch, event_logs=tuple(dict.fromkeys(places)))
        configuration = properties if injection is None else injection.prepared.conf
        running = Running(self, launch, endpoints, configuration, injection=injection, is_new=True)
        if earlier is not None:
            earlier.hand_over(running.submission)
        if lacking:
            running.submission.collector.counts.add(lacking)
        where = f"the driver sends its events to {route.place}" if route is not None else ""
        running.follow("" if injection is None else injection.evidence, where)
        running.keep()
        return running

    def reattach(self) -> Running | None:
        """Take over the job of an earlier try, with the lineage that it has written; None where there is none of it.

        From now on this try has to report its end.
        """
        from airflow.providers.openlineage.plugins.macros import lineage_run_id

        launch = find_launch(self.context.get("task_state_store"), self.external_id_key) or self._launch_in_files()
        if launch is None:
            return None
        ti = self.context["ti"]
        ours = {"try_number": ti.try_number, "run_id": str(lineage_run_id(ti)), "is_closed": False}
        launch = structs.replace(launch, **ours, event_conn_ids=self.task.settings.lineage_conn_id)
        # The properties of the job are stored nowhere: the operator's own are the only ones known.
        self.adapter.remember_secrets()
        endpoints = endpoints_of(launch, self.task.places, self.guard)
        running = Running(self, launch, endpoints, self._submitted_with(self.adapter.submitter)[0])
        with self.guard("The timeline begins with this try", can_fail=False):
            running.submission.monitor.reattached(launch.external_id or "", launch.try_number)
        running.follow("the job of an earlier try")
        running.keep()
        return running

    def _launch_in_files(self) -> Launch | None:
        """Return the launch of a driver that the operator has found by itself; Airflow before 3.3 has no store."""
        driver_id = self.adapter.driver.driver_id
        if driver_id is None:
            return None
        task, root = TaskKey.of(self.context["ti"]), Path(lineage_directory(self.task.settings))
        found = launches_below(root, task.dag_id, task.run_id, task.task_id, str(task.map_index))
        return next((one for one in found if one.external_id == driver_id), None)

    def resume(self, handover: Mapping[str, Any], seen: Sequence[Any]) -> Running:
        """Go on with the job of a task that was deferred.

        :param handover: what ``LineageSession.handover`` has returned
        :param seen: the transitions that the trigger has seen, as JSON
        """
        launch = msgspec.convert(handover["launch"], Launch)
        self.adapter.remember_secrets()
        self.adapter.driver.is_submitted, self.adapter.driver.driver_id = True, launch.external_id
        endpoints = endpoints_of(launch, self.task.places, self.guard)
        running = Running(self, launch, endpoints, self._submitted_with(self.adapter.submitter)[0])
        earlier, new = (msgspec.convert(one, list[StatusTransition]) for one in (handover["transitions"], seen))
        running.submission.monitor.resume(launch.external_id or "", earlier)
        running.follow("the deferred job (resumed)")
        for one in new:
            running.submission.monitor.report(report_of(one))
        return running

    def _new_launch(self, submitter: Submitter) -> tuple[Launch, LineageProperties, Mapping[str, str]]:
        """Return a launch of this try, what is injected for it, and the user's own Spark properties.

        Where the lineage directory is one that cannot be used, its own is below the default one, and is never made. The
        processes of a launch that is going to run on this machine are marked with its id.
        """
        context, settings, adapter = self.context, self.task.settings, self.adapter
        properties, deploy_mode = self._submitted_with(submitter)
        try:
            lineage = lineage_properties(context, settings)
        except ValueError:
            # The injection raises the same error again, and reports it.
            lineage = lineage_properties(context, replace(settings, lineage_dir=""))
        master, env = submitter.master, submitter.env
        is_of_yarn, event_log = master.startswith("yarn"), properties.get("spark.eventLog.dir", "")
        servers: dict[str, Any] = {}
        if is_of_yarn or event_log.startswith("hdfs:"):
            from spark_lineage.settings.hadoop import history_server, name_nodes, resource_managers

            servers = {"webhdfs_urls": name_nodes(env, event_log), "history_url": history_server(env, properties)}
            servers["yarn_urls"] = resource_managers(env) if is_of_yarn else ()
        adapter.mark(lineage.application_run_id, deploy_mode, properties.get("spark.yarn.tags", ""))
        launch = Launch(
            directory=str(Path(lineage.events_file).parent),
            application_run_id=lineage.application_run_id,
            conn_id=self.task.conn_id,
            master=without_login(master),
            deploy_mode=deploy_mode,
            try_number=context["ti"].try_number,
            run_id=lineage.parent.get("spark.openlineage.parentRunId", ""),
            host=socket.gethostname(),
            event_conn_ids=settings.lineage_conn_id,
            session_id=adapter.session_id,
            service=adapter_name(type(adapter)) if adapter.is_service else "",
            parent=tuple(lineage.parent.items()) if adapter.child else (),
            log_delay=adapter.log_delay,
            **servers,
        )
        return launch, lineage, properties

    def _submitted_with(self, submitter: Submitter) -> tuple[Mapping[str, str], str]:
        """Return the user's own Spark properties, and the deploy mode; of a file that cannot be read, nothing."""
        arguments = self.adapter.arguments
        try:
            found = user_properties(arguments, submitter)
        except PropertiesFileError:
            return arguments.conf, submitter.deploy_mode({})
        return found.properties, found.deploy_mode

    def _injected(
        self, launch: Launch, lineage: LineageProperties, submitter: Submitter, endpoints: Endpoints
    ) -> TaskInjection:
        settings, has_history = self.task.settings, bool(endpoints.history_server_url)

        def why_not(url: str) -> str:
            urls, is_shared = endpoints.webhdfs_urls, url == remote_directory(settings.event_log_dir)
            if why := why_not_copied(url, settings.event_log_from, urls, has_history=has_history):
                return why
            return f"event_log_dir {NO_DIRECTORY}" if is_shared and is_missing(url, urls) else ""

        if launch.session_id:
            injection = inject_session(lineage, submitter)
            self.adapter.inject(injection.prepared)
            return injection
        injection = inject_task(
            lineage,
            settings,
            self.adapter.arguments,
            submitter,
            why_not_copied=why_not,
            guard=self.guard,
            why_alone=need.why_alone(self.made_with) if (need := self.events.listener_need) is not None else "",
        )
        self.adapter.inject(injection.prepared)
        # YARN removes the files that a driver leaves in its container.
        is_in_container = launch.deploy_mode == "cluster" and launch.master.startswith("yarn")
        if is_in_container and not (injection.has_event_log or launch.events_from or settings.lineage_dir):
            log = injection.event_log
            self.guard.log.warning(NOTHING_RETURNS, log.reason if log is not None else "evidence=listener")
        return injection


def lineage_properties(context: Context, settings: Settings) -> LineageProperties:
    """Return a new application run of this try, with parent and root as the Airflow OpenLineage provider builds them.

    :raises ValueError: for a lineage directory that the listener cannot write to
    """
    # The import is here, because Airflow takes seconds to import, and the command line does without it.
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
