"""Makes the launch of a job before anything is injected into it, and keeps it: what marks or ends it needs no jar."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from spark_lineage.inject.airflow_task import lineage_properties, task_run_id
from spark_lineage.inject.preparation import user_properties
from spark_lineage.inject.properties import LineageProperties
from spark_lineage.inject.properties_file import PropertiesFileError
from spark_lineage.launch.launch import Launch, find_launch, store_launch, without_login

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.guard import Guard
    from spark_lineage.settings import Settings
    from spark_lineage.submit.hook import HookAdapter


@dataclass(frozen=True)
class NewLaunch:
    """A launch that is about to be submitted, and what its driver is to be told, if it can be."""

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
    if deploy_mode == "client":
        adapter.mark(lineage.application_run_id)
    launch = Launch(
        directory=str(Path(lineage.events_file).parent),
        application_run_id=lineage.application_run_id,
        conn_id=conn_id,
        master=without_login(adapter.submitter.master),
        deploy_mode=deploy_mode,
        try_number=context["ti"].try_number,
        run_id=lineage.parent.get("spark.openlineage.parentRunId", ""),
        host=socket.gethostname(),
        openlineage_conn_id=settings.openlineage_conn_id,
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
    """The handle of the launch that one try has to tell the end of: its own, or that of an earlier try.

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
        """Change the launch, and keep it for whoever comes after the try; None where there is none."""
        if self.launch is not None:
            self.launch = structs.replace(self.launch, **changes)
            with self._guard("A retry will not find the lineage of this job", can_fail=False):
                store_launch(self._context.get("task_state_store"), self.launch)
        return self.launch

    def take_over(self, openlineage_conn_id: tuple[str, ...]) -> Launch | None:
        """Return the launch of the job that the Spark provider re-attached to, None where there is none of that job.

        From now on it is this try that has to tell its end.
        """
        launch = find_launch(self._context.get("task_state_store"), self._external_id_key)
        if launch is not None:
            task_instance = self._context["ti"]
            self.launch = structs.replace(
                launch,
                try_number=task_instance.try_number,
                run_id=task_run_id(task_instance),
                is_closed=False,
                openlineage_conn_id=openlineage_conn_id,
            )
        return self.launch
