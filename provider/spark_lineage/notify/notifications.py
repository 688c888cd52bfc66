"""Notify all listeners of a task of changes to its job and to catalogs; none of them delays or fails it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from spark_lineage.notify.catalog_events import CatalogModificationEvent
from spark_lineage.notify.delivery import Delivery, DeliveryCounts
from spark_lineage.notify.events import JobStatusChangedEvent
from spark_lineage.notify.loading import ListenerError, listener_sources, make_listener, source_name
from spark_lineage.secrets.redaction import redact, redact_error

if TYPE_CHECKING:
    from spark_lineage.launch.log import Log
    from spark_lineage.notify.context import ListenerContext

DEFAULT_TIMEOUT_SECONDS = 5.0


class Notifications:
    """The listeners of one try of a task, each with a queue and a thread; without listeners there is no thread.

    :param job_status: what gets the events of the job
    :param catalog_modification: what gets the events of catalogs
    :param timeout_seconds: how long :meth:`close` waits, for all of them together
    """

    def __init__(
        self,
        job_status: Sequence[Delivery],
        catalog_modification: Sequence[Delivery],
        *,
        context: ListenerContext,
        timeout_seconds: float,
        logger: Log,
    ) -> None:
        self._job_status = job_status
        self._catalog_modification = catalog_modification
        self._context = context
        self._timeout_seconds = timeout_seconds
        self._log = logger
        self._counts: tuple[DeliveryCounts, ...] | None = None

    @classmethod
    def open(
        cls,
        *,
        job_status: Any,
        catalog_modification: Any,
        context: ListenerContext,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        logger: Log,
    ) -> Self:
        """Start the listeners; one that cannot be had is logged, and the others go on.

        :param job_status: what names listeners, as :func:`~spark_lineage.notify.loading.listener_sources` takes it
        :param catalog_modification: the same
        """
        return cls(
            list(_deliveries("job_status_listeners", job_status, context, logger)),
            list(_deliveries("catalog_modification_listeners", catalog_modification, context, logger)),
            context=context,
            timeout_seconds=timeout_seconds,
            logger=logger,
        )

    @property
    def has_listeners(self) -> bool:
        """Whether events are needed at all."""
        return bool(self._job_status or self._catalog_modification)

    def job(self, event: JobStatusChangedEvent) -> None:
        """Queue an event of the job."""
        for delivery in self._job_status:
            delivery.put(event)

    def catalog(self, event: CatalogModificationEvent) -> None:
        """Queue an event of a catalog."""
        for delivery in self._catalog_modification:
            delivery.put(event)

    def close(self, timeout_seconds: float | None = None) -> tuple[DeliveryCounts, ...]:
        """Deliver what is left, as long as there is time, then log what was lost, and give Airflow its asset events.

        For the task's own thread. What is not delivered then never will be.

        :param timeout_seconds: another time than that of the setting, for a task that is being killed
        :return: what became of the events, by listener; the same when it is called again
        """
        if self._counts is None:
            seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
            deliveries = [*self._job_status, *self._catalog_modification]
            for delivery in deliveries:
                delivery.stop(seconds)
            self._counts = tuple(delivery.join() for delivery in deliveries)
            for counts in self._counts:
                self._report(counts, seconds)
            if deliveries:
                self._hand_over()
        return self._counts

    def _hand_over(self) -> None:
        try:
            count = self._context.outlets.hand_over()
        except Exception as error:
            redact_error(error)
            self._log.warning("No asset events: %s", redact(f"{type(error).__name__}: {error}"))
        else:
            if count:
                self._log.info("Asset events if the task succeeds: %d", count)

    def _report(self, counts: DeliveryCounts, seconds: float) -> None:
        if counts.lost:
            self._log.warning(
                "Listener %s has taken %d events and lost %d: it raised for %d, its queue had no room for %d, "
                "there was no time for %d within %g seconds (listener_timeout_seconds).",
                counts.listener,
                counts.delivered,
                counts.lost,
                counts.failed,
                counts.dropped,
                counts.undelivered,
                seconds,
            )
        elif counts.is_late:
            self._log.warning(
                "Listener %s has taken all %d events, and has not closed within %g seconds (listener_timeout_seconds).",
                counts.listener,
                counts.delivered,
                seconds,
            )
        else:
            self._log.debug("Listener %s has taken all %d events.", counts.listener, counts.delivered)


def _deliveries(setting: str, named: Any, context: ListenerContext, logger: Log) -> Iterator[Delivery]:
    try:
        sources = listener_sources(named)
    except ListenerError as error:
        logger.warning("%s: %s", setting, redact(str(error)))
        return
    for source in sources:
        name = redact(source_name(source))
        try:
            yield Delivery(name, partial(make_listener, source, context, where=setting), logger)
        except RuntimeError as error:
            # The host gives no more threads.
            logger.warning("Listener %s is told nothing: %s", name, error)
