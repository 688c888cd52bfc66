"""The lines of Spark's event logs: the events on them, as far as they are read (``JsonProtocol``)."""

# ruff: noqa: D101, N815 - names are those of Spark's events and of their fields
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from spark_lineage.launch.line import LineError
from spark_lineage.merge.execution import LoggedApplication, logged_run_id
from spark_lineage.merge.lineage import Application, ParentRun
from spark_lineage.merge.transition import AwareTime

_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
_DRIVER = "org.apache.spark.sql.execution.ui.SparkListenerDriver"
_CONNECT = "org.apache.spark.sql.connect.service.SparkListenerConnect"
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"
_OPENLINEAGE = "spark.openlineage."
_EVENT = re.compile(rb'\{"Event":"([^"]+)"')
# Spark's own accumulators are internal, those of SQL too (``JsonProtocol.accumulableInfoToJson``).
_OWN_ACCUMULATOR = b'"Internal":false'
# So many bytes of a line are looked at to know its event.
_HEAD_BYTES = 200

# A write of files posts these metrics from the driver after the commit (``BasicWriteJobStatsTracker``).
_FILES = "number of written files"
_WRITTEN = {"number of output rows": "row_count", "written output": "size", _FILES: "file_count"}
# A scan of files posts these (``FileSourceScanLike``).
_FOUND = {"size of files read": "size", "number of files read": "file_count"}
# Milliseconds from 1970 to the end of the year 9999, which is all that a ``datetime`` can hold.
Millis = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
# Java's ``long``, as SQL executions are numbered, and its text, as SparkJobs name theirs; negative ones are ours.
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
NumberText = Annotated[str, Meta(pattern=r"^[0-9]{0,18}\Z")]
# These methods of SparkContext name the RDDs that they make by the paths that these read.
_READING_FILES = re.compile(
    r'"name":"(?:textFile|wholeTextFiles|binaryFiles|(?:newAPIH|h)adoopFile|sequenceFile|objectFile)"'
)
_WHOLE_TEXT_FILES = '"name":"wholeTextFiles"'
# These methods of RDD write files, of which no event has the path.
_SAVING_FILES = re.compile(r'"name":"(?P<method>saveAs\w+)"')
# An RDD without a name is called by its class.
_CLASS_NAME = re.compile(r"\w+RDD\Z")
_millis: msgspec.json.Decoder[int | None] = msgspec.json.Decoder(Millis | None)
_text = msgspec.json.Decoder(str)


class _Event(Struct, gc=False, tag_field="Event"):
    """An event of those that are read, by the name that it has on its line."""


class Environment(_Event, gc=False, tag="SparkListenerEnvironmentUpdate"):
    spark: dict[str, str] = msgspec.field(name="Spark Properties", default_factory=dict)
    system: dict[str, str] = msgspec.field(name="System Properties", default_factory=dict)

    @property
    def openlineage(self) -> dict[str, str]:
        """What the application was submitted with for lineage, by what follows ``spark.openlineage.``."""
        return {key.removeprefix(_OPENLINEAGE): self.spark[key] for key in self.spark if key.startswith(_OPENLINEAGE)}


class LogStart(_Event, gc=False, tag="SparkListenerLogStart"):
    version: str = msgspec.field(name="Spark Version", default="")


class ApplicationStart(_Event, gc=False, tag="SparkListenerApplicationStart"):
    name: str = msgspec.field(name="App Name", default="")
    id: str | None = msgspec.field(name="App ID", default=None)
    timestamp: Raw = msgspec.field(name="Timestamp", default=Raw(b"null"))
    attempt_id: str | None = msgspec.field(name="App Attempt ID", default=None)

    @property
    def millis(self) -> int | None:
        """When it started, None for what is no time: the whole log needs the id, and only the status the time."""
        try:
            return _millis.decode(self.timestamp)
        except msgspec.DecodeError:
            return None


class ApplicationEnd(_Event, gc=False, tag="SparkListenerApplicationEnd"):
    timestamp: Millis | None = msgspec.field(name="Timestamp", default=None)


class Metric(Struct, gc=False):
    name: str
    accumulatorId: int


class PlanMetadata(Struct, frozen=True, gc=False):
    location: str = msgspec.field(name="Location", default="")


class PlanInfo(Struct, gc=False):
    nodeName: str = ""
    simpleString: Raw = Raw(b'""')
    children: list[PlanInfo] = []
    metrics: list[Metric] = []
    metadata: PlanMetadata = PlanMetadata()

    @property
    def described(self) -> str:
        """The node as one line (``simpleString``), decoded where it is looked at: some have thousands of columns."""
        return _text.decode(self.simpleString)

    def walk(self) -> Iterator[PlanInfo]:
        """Return the nodes of the plan, parents before their children."""
        yield self
        for child in self.children:
            yield from child.walk()

    def written(self) -> dict[int, str]:
        """Return which number each accumulator of the first node from the root that writes files holds."""
        metrics = ({metric.name: metric.accumulatorId for metric in node.metrics} for node in self.walk())
        writing = next((found for found in metrics if _FILES in found), {})
        return {writing[name]: number for name, number in _WRITTEN.items() if name in writing}

    def found(self) -> dict[int, tuple[str, str]]:
        """Return by each accumulator of a scan of files where the scan reads and which number it holds."""
        return {
            metric.accumulatorId: (node.metadata.location, _FOUND[metric.name])
            for node in self.walk()
            for metric in node.metrics
            if node.metadata.location and metric.name in _FOUND
        }


class ExecutionStart(_Event, gc=False, tag=f"{_SQL}ExecutionStart"):
    executionId: Number
    time: Millis
    sparkPlanInfo: PlanInfo | None = None
    physicalPlanDescription: str = ""
    description: str = ""
    rootExecutionId: Number | None = None
    modifiedConfigs: dict[str, str] = {}
    jobTags: list[str] = []


class AdaptiveUpdate(_Event, gc=False, tag=f"{_SQL}AdaptiveExecutionUpdate"):
    executionId: Number
    sparkPlanInfo: PlanInfo


class DriverUpdates(_Event, gc=False, tag=f"{_DRIVER}AccumUpdates"):
    executionId: Number
    accumUpdates: list[tuple[int, int]] = []


class ExecutionEnd(_Event, gc=False, tag=f"{_SQL}ExecutionEnd"):
    executionId: Number
    time: Millis
    errorMessage: str | None = None


class JobProperties(Struct, gc=False):
    execution: NumberText | None = msgspec.field(name="spark.sql.execution.id", default=None)
    description: str | None = msgspec.field(name="spark.job.description", default=None)
    scope: str | None = msgspec.field(name="spark.rdd.scope", default=None)
    stream: str | None = msgspec.field(name="sql.streaming.queryId", default=None)
    tags: str | None = msgspec.field(name="spark.job.tags", default=None)


class Scope(Struct, gc=False):
    name: str = ""


_scope = msgspec.json.Decoder(Scope)


class Rdd(Struct, gc=False):
    id: int = msgspec.field(name="RDD ID", default=0)
    name: str | None = msgspec.field(name="Name", default=None)
    scope: str | None = msgspec.field(name="Scope", default=None)
    parents: list[int] = msgspec.field(name="Parent IDs", default_factory=list)

    @property
    def is_named_by_path(self) -> bool:
        """Whether its name is the path that it reads, and none that the program gave it (``setName``).

        ``HadoopRDD``, ``NewHadoopRDD`` and ``BinaryFileRDD`` have it, which a program never holds: it is given what is
        made from them. Of ``wholeTextFiles`` that alone has it.
        """
        scope = self.scope or ""
        if not self.name or not _READING_FILES.search(scope) or _CLASS_NAME.fullmatch(self.name):
            return False
        return bool(self.parents) == (_WHOLE_TEXT_FILES in scope)

    @property
    def paths(self) -> list[str]:
        """The paths of one that is named by them."""
        return [path.strip() for path in (self.name or "").split(",")]

    @property
    def method(self) -> str:
        """The method or the operator that has made it (``textFile``, ``Scan csv ``), empty where none is known."""
        try:
            return _scope.decode(self.scope).name if self.scope else ""
        except msgspec.DecodeError:
            return ""


class Stage(Struct, gc=False):
    name: str = msgspec.field(name="Stage Name", default="")
    rdds: list[Rdd] = msgspec.field(name="RDD Info", default_factory=list)


class JobStart(_Event, gc=False, tag="SparkListenerJobStart"):
    id: Number = msgspec.field(name="Job ID")
    submitted: Millis = msgspec.field(name="Submission Time", default=0)
    stage_infos: list[Stage] | None = msgspec.field(name="Stage Infos", default=None)
    properties: JobProperties | None = msgspec.field(name="Properties", default=None)

    @property
    def stages(self) -> list[Stage]:
        """Its stages, none where it has none and where they are not known: the driver's UI has no RDDs."""
        return self.stage_infos or []

    @property
    def paths(self) -> set[str]:
        """The files that its RDDs read, as far as they are named by them."""
        return {path for stage in self.stages for rdd in stage.rdds if rdd.is_named_by_path for path in rdd.paths}

    @property
    def is_of_stream(self) -> bool:
        """Whether a streaming query runs it."""
        return bool(self.properties and self.properties.stream)

    @property
    def saving(self) -> str:
        """The method of the RDD that saves files (``saveAsTextFile``), empty without one."""
        saving = _SAVING_FILES.search((self.properties and self.properties.scope) or "")
        return saving["method"] if saving else ""


class JobException(Struct, gc=False):
    message: str = msgspec.field(name="Message", default="")


class JobResult(Struct, gc=False):
    result: str = msgspec.field(name="Result", default="")
    exception: JobException | None = msgspec.field(name="Exception", default=None)


class JobEnd(_Event, gc=False, tag="SparkListenerJobEnd"):
    id: Number = msgspec.field(name="Job ID")
    completed: Millis = msgspec.field(name="Completion Time", default=0)
    result: JobResult = msgspec.field(name="Job Result", default_factory=JobResult)


class Accumulable(Struct, gc=False):
    id: Number = msgspec.field(name="ID")
    name: str | None = msgspec.field(name="Name", default=None)
    value: Any = msgspec.field(name="Value", default=None)
    update: Any = msgspec.field(name="Update", default=None)
    is_internal: bool = msgspec.field(name="Internal", default=True)


_accumulables = msgspec.json.Decoder(list[Accumulable])


class TaskInfo(Struct, gc=False):
    accumulables: Raw = msgspec.field(name="Accumulables", default=Raw(b"[]"))

    def named(self) -> list[Accumulable]:
        """Return the program's own accumulators, as far as they have names: each task has dozens of Spark's."""
        if _OWN_ACCUMULATOR not in bytes(self.accumulables):
            return []
        try:
            return [one for one in _accumulables.decode(self.accumulables) if one.name and not one.is_internal]
        except (msgspec.DecodeError, UnicodeDecodeError):
            return []


class DataMetrics(Struct, gc=False):
    bytes_read: Number = msgspec.field(name="Bytes Read", default=0)
    bytes_written: Number = msgspec.field(name="Bytes Written", default=0)


class TaskMetrics(Struct, gc=False):
    run_millis: Number = msgspec.field(name="Executor Run Time", default=0)
    gc_millis: Number = msgspec.field(name="JVM GC Time", default=0)
    memory_bytes_spilled: Number = msgspec.field(name="Memory Bytes Spilled", default=0)
    disk_bytes_spilled: Number = msgspec.field(name="Disk Bytes Spilled", default=0)
    input: DataMetrics = msgspec.field(name="Input Metrics", default_factory=DataMetrics)
    output: DataMetrics = msgspec.field(name="Output Metrics", default_factory=DataMetrics)

    def summed(self) -> dict[str, int]:
        """Return what is added up, by the names of ``TaskNumbers``."""
        return {
            "bytes_read": self.input.bytes_read,
            "bytes_written": self.output.bytes_written,
            "memory_bytes_spilled": self.memory_bytes_spilled,
            "disk_bytes_spilled": self.disk_bytes_spilled,
            "run_millis": self.run_millis,
            "gc_millis": self.gc_millis,
        }


class TaskEndReason(Struct, gc=False):
    reason: str = msgspec.field(name="Reason", default="")


class TaskEnd(_Event, gc=False, tag="SparkListenerTaskEnd"):
    end: TaskEndReason = msgspec.field(name="Task End Reason", default_factory=TaskEndReason)
    info: TaskInfo = msgspec.field(name="Task Info", default_factory=TaskInfo)
    metrics: TaskMetrics | None = msgspec.field(name="Task Metrics", default=None)


class QueryStarted(_Event, gc=False, tag=f"{_STREAMING}QueryStartedEvent"):
    runId: str
    name: str | None = None
    timestamp: AwareTime | None = None


class QueryTerminated(_Event, gc=False, tag=f"{_STREAMING}QueryTerminatedEvent"):
    runId: str
    exception: str | None = None


class Source(Struct, gc=False):
    description: str = ""
    startOffset: Any = None
    endOffset: Any = None


class Progress(Struct, gc=False):
    runId: str
    id: str = ""
    sources: list[Source] = []
    sink: Source | None = None


class QueryProgress(_Event, gc=False, tag=f"{_STREAMING}QueryProgressEvent"):
    progress: Progress


class SessionClosed(_Event, gc=False, tag=f"{_CONNECT}SessionClosed"):
    sessionId: str = ""


class OperationStarted(_Event, gc=False, tag=f"{_CONNECT}OperationStarted"):
    jobTag: str = ""
    statementText: str = ""


class OperationClosed(_Event, gc=False, tag=f"{_CONNECT}OperationClosed"):
    jobTag: str = ""


_DECODERS: dict[bytes, msgspec.json.Decoder[Any]] = {
    str(kind.__struct_config__.tag).encode(): msgspec.json.Decoder(kind) for kind in _Event.__subclasses__()
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


def logged_application(start: ApplicationStart, environment: Environment, version: str) -> LoggedApplication | None:
    """Return an application by its start and its properties, None for one without an id or a time.

    :param version: that of Spark, empty where the log does not say it
    """
    if not start.id or start.millis is None:
        return None
    submitted, properties = environment.openlineage, environment.spark
    application = Application(
        run_id=submitted.get("applicationRunId") or logged_run_id(start.id, start.millis),
        job_namespace=submitted.get("namespace") or "default",
        job_name=submitted.get("appName") or start.name,
        application_id=start.id,
        spark_version=version or None,
        master=properties.get("spark.master"),
        deploy_mode=properties.get("spark.submit.deployMode"),
    )
    parent = None
    if parent_id := submitted.get("parentRunId"):
        parent = ParentRun(parent_id, submitted.get("parentJobNamespace", ""), submitted.get("parentJobName", ""))
    return LoggedApplication(application, start.millis / 1000, parent=parent, attempt_id=start.attempt_id or "")
