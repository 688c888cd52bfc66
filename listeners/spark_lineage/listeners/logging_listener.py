"""Logs what happens to a job and to catalogs, a line an event, in the log of the task."""

from __future__ import annotations

from spark_lineage.listeners.catalog_modification import CatalogModificationEvent, CatalogModificationListener
from spark_lineage.listeners.job_status import (
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobStatusChangedEvent,
    JobStatusChangedListener,
)


class LoggingListener(JobStatusChangedListener, CatalogModificationListener):
    """For both settings. SparkJobs and SQL executions, of which there are many, are logged for developers only."""

    def on_event(self, event: JobStatusChangedEvent | CatalogModificationEvent) -> None:
        """Log the event; a failure as a warning."""
        log = self.context.logger
        match event:
            case JobCreatedEvent():
                log.info("Job %s was created", event.job_name)
            case JobExecutionStatusEvent():
                tell = log.warning if event.new_status == "FAILED" else log.info
                if event.subject in {"SPARK_JOB", "SQL_EXECUTION"}:
                    tell = log.debug
                tell("%s %s is %s%s", *_status(event))
            case CatalogModificationEvent():
                log.info("%s: %s%s", type(event).__name__.removesuffix("Event"), event.name, _remark(event))


def _status(event: JobExecutionStatusEvent) -> tuple[str, str, str, str]:
    why = "; ".join(text for text in (event.detail, event.exception) if text)
    return event.subject, event.subject_id, event.new_status, f": {why}" if why else ""


def _remark(event: CatalogModificationEvent) -> str:
    if event.is_ignored:
        return " (ignored: nothing was to be done)"
    return "" if event.is_certain else " (perhaps)"
