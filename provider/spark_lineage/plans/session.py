"""What one session of Spark Connect did, out of the log of a server that runs many (``SparkListenerConnect…``)."""

from __future__ import annotations

import re
from typing import Any

from spark_lineage.plans import event_log_lines as events

# Large, and told apart by their text alone before they are decoded.
_STARTS = re.compile(rb'\{"Event":"(?:SparkListenerJobStart|[\w.]*SparkListenerSQLExecutionStart)"')


class ConnectSession:
    """Passes the events of one session by the tag of its operations (``ExecuteHolder.jobTag``), and what follows them.

    :param session_id: a UUID, as the client has it
    :param since: when it may have begun, in epoch seconds
    """

    def __init__(self, session_id: str, since: float = 0.0) -> None:
        self.since = since
        self.is_closed = False
        """Whether the client has ended it, so that nothing more comes."""
        self._id = session_id
        self._mark = f"_Session_{session_id}_"
        self._mark_bytes = self._mark.encode()
        self._executions: set[int] = set()
        self._jobs: set[int] = set()
        self._queries: set[str] = set()

    def may_pass(self, line: bytes) -> bool:
        """Whether a line may be of the session; false for most lines of others."""
        return self._mark_bytes in line or not _STARTS.match(line)

    def passes(self, event: Any) -> bool:
        """Whether an event is of the session, or of the server itself; all events are shown in their order.

        Tasks of executors are of none.
        """
        match event:
            case events.ExecutionStart():
                is_own = self._keep(self._executions, event.executionId, event.jobTags)
            case events.JobStart(properties=properties):
                tags = (properties.tags or "").split(",") if properties is not None else []
                if properties is not None and properties.stream:
                    self._keep(self._queries, properties.stream, tags)
                is_own = self._keep(self._jobs, event.id, tags)
            case events.JobEnd():
                is_own = event.id in self._jobs
            case events.AdaptiveUpdate() | events.DriverUpdates() | events.ExecutionEnd():
                is_own = event.executionId in self._executions
            case events.QueryProgress():
                is_own = {event.progress.id, event.progress.runId} & self._queries != set()
            case events.QueryStarted() | events.QueryTerminated() | events.TaskEnd():
                is_own = False
            case events.SessionClosed():
                self.is_closed = self.is_closed or event.sessionId == self._id
                is_own = False
            case events.ApplicationEnd():
                self.is_closed = is_own = True
            case _:
                is_own = True
        return is_own

    def _keep(self, known: set[Any], identity: Any, tags: list[str]) -> bool:
        is_own = any(self._mark in tag for tag in tags)
        if is_own:
            known.add(identity)
        return is_own
