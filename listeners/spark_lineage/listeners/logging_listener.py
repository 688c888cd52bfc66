"""Logs what happens to a job and to catalogs, a line an event, in the log of the task."""

from __future__ import annotations

from spark_lineage.listeners.listener import (
    CatalogModificationEvent,
    Event,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    TaskListener,
)


class LoggingListener(TaskListener):
    """SparkJobs and SQL executions, of which there are many, are logged for developers only."""

    def on_event(self, event: Event) -> None:
        """Log the event; a failure as a warning."""
        log = self.context.logger
        match event:
            case JobCreatedEvent():
                log.info("Job %s was created", event.job_name)
            case JobExecutionStatusEvent():
                write = log.warning if event.new_status == "FAILED" else log.info
                if event.subject in {"SPARK_JOB", "SQL_EXECUTION"}:
                    write = log.debug
                why = "; ".join(text for text in (event.detail, event.exception) if text)
                write("%s %s is %s%s", event.subject, event.subject_id, event.new_status, why and f": {why}")
            case CatalogModificationEvent():
                remark = " (ignored: nothing was to be done)" if event.is_ignored else ""
                if not event.is_ignored and not event.is_certain:
                    remark = " (perhaps)"
                log.info("%s %s %s%s", event.change, event.object_type, event.name, remark)
