"""The events of Spark's event log that are read, as far as they are read: the JSON of ``JsonProtocol``."""

# ruff: noqa: D101, N815 - names are those of Spark's events and of their fields
from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from spark_lineage.launch.line import LineError
from spark_lineage.merge.event import AwareTime

_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"
_EVENT = re.compile(rb'\{"Event":"([^"]+)"')
# How many bytes of a line are looked at to know its event.
_HEAD_BYTES = 200

# Milliseconds from 1970 to the end of the year 9999, which is all that a ``datetime`` can hold.
Millis = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
# Java's ``long``, as SQL executions are numbered, and its text, as SparkJobs name theirs; negative ones are ours.
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
NumberText = Annotated[str, Meta(pattern=r"^[0-9]{0,18}\Z")]
_millis: msgspec.json.Decoder[int | None] = msgspec.json.Decoder(Millis | None)


class Environment(Struct, gc=False, rename={"spark": "Spark Properties", "system": "System Properties"}):
    spark: dict[str, str] = {}
    system: dict[str, str] = {}


class ApplicationStart(
    Struct, gc=False, rename={"id": "App ID", "timestamp": "Timestamp", "attempt_id": "App Attempt ID"}
):
    id: str | None = None
    timestamp: Raw = Raw(b"null")
    attempt_id: str | None = None

    @property
    def millis(self) -> int | None:
        """When it started, None for what is no time: the whole log needs the id, and only the status the time."""
        try:
            return _millis.decode(self.timestamp)
        except msgspec.DecodeError:
            return None


class ApplicationEnd(Struct, gc=False, rename={"timestamp": "Timestamp"}):
    timestamp: Millis | None = None


class ExecutionStart(Struct, gc=False):
    executionId: Number
    time: Millis
    physicalPlanDescription: str = ""
    description: str = ""
    rootExecutionId: Number | None = None
    modifiedConfigs: dict[str, str] = {}


class ExecutionEnd(Struct, gc=False):
    executionId: Number
    time: Millis
    errorMessage: str | None = None


class JobProperties(
    Struct, gc=False, rename={"execution": "spark.sql.execution.id", "description": "spark.job.description"}
):
    execution: NumberText | None = None
    description: str | None = None


class Rdd(Struct, gc=False, rename={"name": "Name", "scope": "Scope", "parents": "Parent IDs"}):
    name: str | None = None
    scope: str | None = None
    parents: list[int] = []


class Stage(Struct, gc=False, rename={"rdds": "RDD Info"}):
    rdds: list[Rdd] = []


_JOB_START = {"id": "Job ID", "submitted": "Submission Time", "stages": "Stage Infos", "properties": "Properties"}


class JobStart(Struct, gc=False, rename=_JOB_START):
    id: Number
    submitted: Millis = 0
    stages: list[Stage] = []
    properties: JobProperties | None = None


class JobException(Struct, gc=False, rename="pascal"):
    message: str = ""


class JobResult(Struct, gc=False, rename="pascal"):
    result: str = ""
    exception: JobException | None = None


class JobEnd(Struct, gc=False, rename={"id": "Job ID", "completed": "Completion Time", "result": "Job Result"}):
    id: Number
    completed: Millis = 0
    result: JobResult = msgspec.field(default_factory=JobResult)


class QueryStarted(Struct, gc=False):
    runId: str
    name: str | None = None
    timestamp: AwareTime | None = None


class QueryTerminated(Struct, gc=False):
    runId: str
    exception: str | None = None


class Described(Struct, gc=False):
    description: str = ""


class Progress(Struct, gc=False):
    runId: str
    id: str = ""
    sources: list[Described] = []
    sink: Described | None = None


class QueryProgress(Struct, gc=False):
    progress: Progress


_DECODERS: dict[bytes, msgspec.json.Decoder[Any]] = {
    name.encode(): msgspec.json.Decoder(struct)
    for name, struct in (
        ("SparkListenerEnvironmentUpdate", Environment),
        ("SparkListenerApplicationStart", ApplicationStart),
        ("SparkListenerApplicationEnd", ApplicationEnd),
        ("SparkListenerJobStart", JobStart),
        ("SparkListenerJobEnd", JobEnd),
        (f"{_SQL}ExecutionStart", ExecutionStart),
        (f"{_SQL}ExecutionEnd", ExecutionEnd),
        (f"{_STREAMING}QueryStartedEvent", QueryStarted),
        (f"{_STREAMING}QueryProgressEvent", QueryProgress),
        (f"{_STREAMING}QueryTerminatedEvent", QueryTerminated),
    )
}


def decoded(line: bytes | LineError) -> Any:
    """Return the event on a line, None for one that nothing is read of."""
    if isinstance(line, LineError):
        raise line
    head = _EVENT.match(line, 0, _HEAD_BYTES)
    if head is None:
        raise LineError("not an event", "the line is torn or was never an event of Spark's")
    decoder = _DECODERS.get(head[1])
    if decoder is None:
        return None
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LineError("not an event", f"{type(error).__name__} in a {head[1].decode()}") from None
