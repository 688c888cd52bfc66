"""A listener of one's own: it keeps a line for each task that failed, with the reason and what had been written."""

from __future__ import annotations

from pathlib import Path

from spark_lineage.listeners.listener import Event, JobExecutionStatusEvent, TaskListener


class FailureReport(TaskListener):
    """Appends to the file ``failure_report_path``, which ``[spark_lineage]`` or the connection's extra names."""

    def on_event(self, event: Event) -> None:
        """Take the last event of a task that failed."""
        if not isinstance(event, JobExecutionStatusEvent) or not event.is_end or event.new_status != "FAILED":
            return
        outputs = event.lineage.outputs if event.lineage is not None else ()
        written = ", ".join(output.dataset.name for output in outputs) or "nothing"
        reason = event.exception.partition("\n")[0]
        with Path(self.context.options["failure_report_path"]).open("a", encoding="utf-8") as report:
            report.write(f"{event.time:%Y-%m-%d %H:%M} {event.job_name}: {reason}; had written {written}\n")
        self.context.metrics.incr("example.failures", tags={"dag_id": event.task.dag_id})
