"""What an event log says of an application, its SparkJobs, SQL executions and streaming queries, as status reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_lineage.merge.state import utc
from spark_lineage.merge.transition import Status, StatusReport, Subject
from spark_lineage.plans.event_log_events import (
    ApplicationEnd,
    ApplicationStart,
    ExecutionEnd,
    ExecutionStart,
    JobEnd,
    JobStart,
    QueryStarted,
    QueryTerminated,
)

SOURCE = "event log"
# Of the message of an exception, which goes on with the stack trace; what is told of it is redacted, then cut.
_MESSAGE_LENGTH = 64_000


class LoggedStatus:
    """Tells the status of what the events of one log are about, with Spark's own times.

    :param tell: called with each report; what is told twice is for the one who keeps it to see
    """

    def __init__(self, tell: Callable[[StatusReport], object]) -> None:
        self._tell = tell
        self._application_id = ""
        # The application's id, and its attempt where it has several, as Spark's REST API names what is inside.
        self._whole_id = ""
        self._latest = 0

    def add(self, event: Any) -> None:
        """Tell what an event of ``event_log_events`` says, if anything."""
        match event:
            case ApplicationStart():
                self._application_id = event.id or ""
                self._whole_id = "/".join(part for part in (event.id, event.attempt_id) if part)
                self._say("APPLICATION", self._application_id, "RUNNING", event.millis)
            case ApplicationEnd():
                # Also of programs that failed, so that it is no more than an end.
                self._say("APPLICATION", self._application_id, "FINISHED", event.timestamp, detail="context stopped")
            case JobStart():
                self._say("SPARK_JOB", str(event.id), "RUNNING", event.submitted)
            case JobEnd():
                status: Status = "FINISHED" if event.result.result == "JobSucceeded" else "FAILED"
                text = event.result.exception.message if event.result.exception else ""
                self._say("SPARK_JOB", str(event.id), status, event.completed, exception=text)
            case ExecutionStart():
                self._say("SQL_EXECUTION", str(event.executionId), "RUNNING", event.time)
            case ExecutionEnd():
                text = event.errorMessage or ""
                status = "FAILED" if text else "FINISHED"
                self._say("SQL_EXECUTION", str(event.executionId), status, event.time, exception=text)
            case QueryStarted():
                millis = None if event.timestamp is None else int(event.timestamp.timestamp() * 1000)
                self._say("STREAMING_QUERY", event.runId, "RUNNING", millis, detail=event.name or "")
            case QueryTerminated():
                # The event has no time of its own.
                status = "FAILED" if event.exception else "FINISHED"
                self._say("STREAMING_QUERY", event.runId, status, None, exception=event.exception or "")

    def _say(
        self,
        subject: Subject,
        subject_id: str,
        status: Status,
        millis: int | None,
        *,
        detail: str = "",
        exception: str = "",
    ) -> None:
        self._latest = max(self._latest, millis or 0)
        self._tell(
            StatusReport(
                subject=subject,
                subject_id=subject_id,
                status=status,
                time=utc((millis or self._latest) / 1000),
                source=SOURCE,
                application_id="" if subject == "APPLICATION" else self._whole_id,
                detail=detail,
                exception=exception[:_MESSAGE_LENGTH],
            )
        )
