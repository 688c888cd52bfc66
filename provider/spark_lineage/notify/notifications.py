"""Notify the listeners of one task, from the submission of its job to its end; none of them delays or fails it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import Struct, structs

from spark_lineage.merge.lineage import JobType, TaskLineage, TaskState
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.notify.context import listener_context
from spark_lineage.notify.delivery import Delivery, DeliveryCounts, make_listener, source_name
from spark_lineage.notify.events import CatalogModificationEvent, JobStatusChangedEvent
from spark_lineage.notify.job_events import JobEvents

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Log
    from spark_lineage.notify.context import ListenerContext
    from spark_lineage.settings import Settings
    from spark_lineage.settings.places import TaskSettings

Given = TypeVar("Given", bound=Struct)


class Notifications:
    """The listeners of one try of a task, each with a queue and a thread.

    One that cannot be made is logged, and the others continue.

    :param settings: name the listeners (class paths, factories, or listeners themselves), and how long :meth:`close`
        waits for all of them together
    """

    def __init__(self, context: ListenerContext, events: JobEvents, settings: Settings) -> None:
        self._log = context.logger
        self._events = events
        self._timeout_seconds = settings.brief_seconds
        self._deliveries = list(_deliveries(settings.lineage_listeners, context))
        self._has_ended = False
        self._job_type: JobType | None = None
        self._is_streaming = False
        self._counts: tuple[DeliveryCounts, ...] | None = None

    @classmethod
    def of_task(
        cls,
        context: Context,
        task: TaskSettings,
        configuration: Mapping[str, str],
        declared: TaskLineage | None,
        logger: Log,
        *,
        job_type: JobType | None = None,
    ) -> Self:
        """Start the listeners that the settings name, and report that the job is created.

        :param configuration: the Spark properties that the job is submitted with, as they are
        :param declared: the task's inlets and outlets with the datasets of its last run, None where it has none
        :param job_type: of its last run, or of each job of its operator
        """
        from airflow.providers.openlineage import conf
        from airflow.providers.openlineage.plugins.macros import lineage_job_name

        for_listeners = listener_context(context, configuration=configuration, options=task.options, logger=logger)
        events = JobEvents(for_listeners.task, conf.namespace(), lineage_job_name(context["ti"]))
        notifications = cls(for_listeners, events, task.settings)
        notifications._job_type = job_type
        notifications.put(events.created(configuration, lineage=declared, job_type=job_type))
        return notifications

    def put(self, event: JobStatusChangedEvent | CatalogModificationEvent) -> None:
        """Queue an event of the job, or of a catalog, for each listener."""
        for delivery in self._deliveries:
            delivery.put(_own(event))

    def changed(self, transition: StatusTransition) -> None:
        """Report a change of status; from any thread."""
        if transition.subject == "STREAMING_QUERY":
            self._job_type, self._is_streaming = "STREAMING", True
        self.put(self._events.changed(transition, job_type=self._job_type))

    def ended(self, state: TaskState, lineage: TaskLineage | None, exception: str) -> None:
        """Report the changes of catalogs, and the end of the task with its final lineage; once.

        :param state: as the event of the task says it; its application may have succeeded where the task fails
        """
        if self._has_ended:
            return
        for event in () if lineage is None else self._events.catalog(lineage):
            self.put(event)
        job_type: JobType = "STREAMING" if self._is_streaming else "BATCH"
        self.put(self._events.ended(state, lineage, job_type=job_type, exception=exception))
        # Only now: what goes wrong before leaves the end to the next call.
        self._has_ended = True

    def close(self, timeout_seconds: float | None = None) -> tuple[DeliveryCounts, ...]:
        """Deliver what is left, as long as there is time, then log what was lost.

        :param timeout_seconds: another time than that of the setting, for a task that is being killed
        :return: the counts of each listener; the same when it is called again
        """
        if self._counts is not None:
            return self._counts
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        for delivery in self._deliveries:
            delivery.stop(seconds)
        self._counts = tuple(delivery.join() for delivery in self._deliveries)
        for counts in self._counts:
            self._report(counts, seconds)
        return self._counts

    def _report(self, counts: DeliveryCounts, seconds: float) -> None:
        limit = f"within {seconds:g} seconds (a twelfth of lineage_timeout)"
        if counts.lost:
            self._log.warning(
                "Listener %s has taken %d events and lost %d: it raised for %d, its queue had no room for %d, "
                "there was no time for %d %s.",
                *(counts.listener, counts.delivered, counts.lost, counts.failed, counts.dropped, counts.undelivered),
                limit,
            )
        elif counts.is_late:
            text = "Listener %s has taken all %d events, and has not closed %s."
            self._log.warning(text, counts.listener, counts.delivered, limit)
        else:
            self._log.debug("Listener %s has taken all %d events.", counts.listener, counts.delivered)


def _deliveries(sources: Iterable[Any], context: ListenerContext) -> Iterator[Delivery]:
    for source in sources:
        name = source_name(source)
        try:
            yield Delivery(name, partial(make_listener, source, _own(context)), context.logger)
        except RuntimeError as error:
            # The host gives no more threads.
            context.logger.warning("Listener %s gets no events: %s", name, error)


def _own(given: Given) -> Given:
    """Return what one listener is given: a mapping that it changes is not that of the others."""
    mappings = {name: dict(value) for name, value in structs.asdict(given).items() if isinstance(value, Mapping)}
    return structs.replace(given, **mappings) if mappings else given
