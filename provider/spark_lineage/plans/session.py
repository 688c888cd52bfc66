"""What one session of Spark Connect did, out of the log of a server that runs many (``SparkListenerConnect…``)."""

from __future__ import annotations

import re
from typing import Any

from spark_lineage.launch.line import LineError
from spark_lineage.plans import event_log_lines as events

# Spark calls an execution or a job of a pipeline's flow so, and the operation that runs the flows.
_PIPELINE, _RUN = "pipeline_command", re.compile(r"pipeline_command \{\s+start_run\b")
# A session of Connect has one session of Spark's own, of this tag (``SparkSession.sessionUUID``).
_OWN_TAG = re.compile(r"spark-session-[0-9a-f-]{36}")
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
        # The tag of Spark's session by that of the operation, empty as long as it is not known.
        self._runs: dict[str, str] = {}
        self._others: set[str] = set()

    def may_pass(self, line: bytes) -> bool:
        """Whether a line may be of the session; false for most lines of others."""
        return self._mark_bytes in line or _PIPELINE.encode() in line or not _STARTS.match(line)

    def passes(self, event: Any) -> bool:
        """Whether an event is of the session, or of the server itself; all events are shown in their order.

        Tasks of executors are of none.

        :raises LineError: for a flow of which nobody can know whose it is
        """
        match event:
            case events.ExecutionStart():
                tags = self._runs_of(event.jobTags) if _PIPELINE in event.description else event.jobTags
                is_own = self._keep(self._executions, event.executionId, tags)
            case events.JobStart():
                is_own = self._starts(event)
            case events.JobEnd():
                is_own = event.id in self._jobs
            case events.AdaptiveUpdate() | events.DriverUpdates() | events.ExecutionEnd():
                is_own = event.executionId in self._executions
            case events.QueryProgress():
                is_own = {event.progress.id, event.progress.runId} & self._queries != set()
            case events.OperationStarted() | events.OperationClosed():
                is_own = self._note(event)
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

    def _starts(self, job: events.JobStart) -> bool:
        properties = job.properties or events.JobProperties()
        tags = (properties.tags or "").split(",")
        if properties.stream:
            self._keep(self._queries, properties.stream, tags)
        if properties.execution and _PIPELINE in (properties.description or ""):
            tags = [self._mark] if int(properties.execution) in self._executions else []
        return self._keep(self._jobs, job.id, tags)

    def _note(self, operation: events.OperationStarted | events.OperationClosed) -> bool:
        self._runs.pop(operation.jobTag, None)
        if isinstance(operation, events.OperationStarted) and _RUN.match(operation.statementText):
            self._runs[operation.jobTag] = ""
        return False

    def _runs_of(self, tags: list[str]) -> list[str]:
        """Return the tag of the run of a pipeline that a flow is of.

        Threads of a server that run the flows of all its pipelines keep the tags of the first one (Spark 4.2). The
        session of Spark's own is right; the first time that it is seen, it is that of the only run without one.
        """
        own = next(filter(_OWN_TAG.fullmatch, tags), "")
        if not own or own not in {*self._others, *self._runs.values()}:
            waiting = [run for run, known in self._runs.items() if not known]
            if len(waiting) == 1:
                self._runs[waiting[0]] = own
            elif any(self._mark in run for run in waiting):
                raise LineError("flows of pipelines at once", "several pipelines of the server began at once")
            else:
                self._others.add(own)
        return [run for run, known in self._runs.items() if known == own]

    def _keep(self, known: set[Any], identity: Any, tags: list[str]) -> bool:
        is_own = any(self._mark in tag for tag in tags)
        if is_own:
            known.add(identity)
        return is_own
