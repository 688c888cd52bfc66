"""Notify the listeners of one task from submission to end; there is always an end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_lineage.merge.lineage import TaskLineage, TaskState
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.notify.context import listener_context, task_run
from spark_lineage.notify.events import JobExecutionStatusEvent, JobType
from spark_lineage.notify.job_events import JobEvents
from spark_lineage.notify.notifications import Notifications

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Log
    from spark_lineage.settings import Settings


class TaskNotifications:
    """The listeners that the settings name, from the submission of the job to the end of the task.

    :param configuration: the Spark properties that the job is submitted with, as they are
    :param declared: the task's inlets and outlets, None where it has none
    :param options: the section ``[spark_lineage]`` and, above it, the extra of the Spark connection
    """

    def __init__(
        self,
        context: Context,
        settings: Settings,
        *,
        configuration: Mapping[str, str],
        options: Mapping[str, Any],
        declared: TaskLineage | None,
        logger: Log,
    ) -> None:
        from airflow.providers.openlineage import conf
        from airflow.providers.openlineage.plugins.macros import lineage_job_name

        self._notifications = Notifications.open(
            job_status=settings.job_status_listeners,
            catalog_modification=settings.catalog_modification_listeners,
            context=listener_context(context, configuration=configuration, options=options, logger=logger),
            timeout_seconds=settings.listener_timeout_seconds,
            logger=logger,
        )
        task_instance = context["ti"]
        self._events = JobEvents(task_run(task_instance), conf.namespace(), lineage_job_name(task_instance))
        self._has_ended = False
        self._job_type: JobType | None = None
        if self._notifications.has_listeners:
            self._notifications.job(self._events.created(configuration, lineage=declared))

    def changed(self, transition: StatusTransition) -> None:
        """Report a change of status; from any thread."""
        if transition.subject == "STREAMING_QUERY":
            self._job_type = "STREAMING"
        if self._notifications.has_listeners:
            self._notifications.job(self._events.changed(transition, job_type=self._job_type))

    def ended(self, lineage: TaskLineage, end: TaskState, exception: str) -> None:
        """Report the changes of catalogs, and the end of the task with its final lineage.

        :param end: as the event of the task says it; its application may have succeeded where the task fails
        """
        if self._notifications.has_listeners:
            for event in self._events.catalog(lineage):
                self._notifications.catalog(event)
            self._notifications.job(self._end(end, lineage, exception))
        self._has_ended = True

    def close(self, state: TaskState, exception: str, seconds: float | None) -> None:
        """Report the end if that is still to do, and wait for the listeners, as long as there is time.

        :param seconds: that are left, None for those of the setting
        """
        if self._notifications.has_listeners and not self._has_ended:
            self._notifications.job(self._end(state, None, exception))
        self._notifications.close(seconds)

    def _end(self, state: TaskState, lineage: TaskLineage | None, exception: str) -> JobExecutionStatusEvent:
        return self._events.ended(state, lineage, job_type=self._job_type or "BATCH", exception=exception)
