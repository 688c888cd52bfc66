"""The fold: a state that grows with distinct runs and datasets, never with events.

``LineageState`` is a commutative, idempotent monoid. Each part of a run is joined by itself (earliest and latest time,
the set of event types, the union of datasets), so any order, repetition and split into shards give the same state.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct, structs

from spark_lineage.merge.event import ApplicationFacet, EngineFacet, EventType, Job, JobTypeFacet, RunEvent, RunFacets
from spark_lineage.merge.execution import Execution, join_executions
from spark_lineage.merge.lineage import Application, ParentRun
from spark_lineage.merge.observed import Observed, join
from spark_lineage.merge.transition import StatusTransition

STARTED, COMPLETED, FAILED, RAN = 1, 2, 4, 8
_SEEN: Mapping[EventType | None, int] = {
    "START": STARTED,
    "RUNNING": STARTED | RAN,
    "COMPLETE": COMPLETED,
    "FAIL": FAILED,
    "ABORT": FAILED,
    "OTHER": 0,
    None: 0,
}
_STREAMING = "STREAMING"
_APPLICATION = "APPLICATION"
# The job type of what the program or the DAG says itself.
_DECLARED = "DECLARED"
_NO_KIND = JobTypeFacet()

# How many contents are kept for sharing; they are only forgotten, never lost, when there are more.
_SHARED_MAX = 4096


def application_run_id(event: RunEvent) -> str:
    """Return the run id of the Spark application that an event is of; of what has no parent, its own run id."""
    facets, job = event.run.facets, event.job.facets
    is_application = job is not None and job.jobType is not None and job.jobType.jobType == _APPLICATION
    if is_application or facets is None or facets.parent is None:
        return event.run.runId
    return facets.parent.run.runId


class RunContent(Struct, frozen=True, gc=False):
    """What a run's events say but for their times: shared by all runs that say the same, which are most."""

    parent_run_id: str
    job_type: str | None
    job_namespace: str
    job_name: str
    is_streaming: bool
    inputs: tuple[Observed, ...]
    outputs: tuple[Observed, ...]

    @property
    def is_declared(self) -> bool:
        """Whether the program or the DAG says this, and not a listener."""
        return self.job_type == _DECLARED


class RunState(Struct, gc=False):
    """One run of the Spark listener; ``seen`` holds the event types, ``first`` and ``last`` are epoch seconds."""

    first: float
    last: float
    seen: int
    content: RunContent


class LineageState:
    """All that the events folded so far say.

    ``applications`` holds what is known of a Spark application by its run id, ``parents`` what an application's run
    names as its own parent, ``executions`` what its event log says, by application id and execution id, and
    ``transitions`` what is kept beside the lineage of a launch of how it went.
    """

    def __init__(self) -> None:
        self.runs: dict[str, RunState] = {}
        self.applications: dict[str, Application] = {}
        self.parents: dict[str, ParentRun] = {}
        self.executions: dict[tuple[str, int], Execution] = {}
        self.transitions: set[StatusTransition] = set()
        self._shared: dict[tuple[object, ...], RunContent] = {}
        self._same_datasets: dict[tuple[Observed, ...], tuple[Observed, ...]] = {}
        self._described: RunFacets | None = None

    def add(self, event: RunEvent, inputs: tuple[Observed, ...], outputs: tuple[Observed, ...]) -> None:
        """Fold one event and its datasets."""
        job = event.job
        run_id = event.run.runId
        facets = event.run.facets
        parent_run_id = facets.parent.run.runId if facets is not None and facets.parent is not None else ""
        kind = (job.facets.jobType if job.facets is not None else None) or _NO_KIND
        job_type = kind.jobType
        if job_type == _APPLICATION:
            self._add_application(event, run_id, is_application=True)
        elif (
            # Half of the events describe their application, all in the same words.
            facets is not None and facets.spark_applicationDetails is not None and facets != self._described
        ):
            self._described = facets
            self._add_application(event, parent_run_id, is_application=False)

        if event.eventType == "START":
            outputs = _before_alter(outputs)
        time = event.eventTime.timestamp()
        run = self.runs.get(run_id)
        if run is None:
            content = self._content(parent_run_id, job, inputs, outputs)
            self.runs[run_id] = RunState(time, time, _SEEN[event.eventType], content)
            return
        if time > run.last:
            run.last = time
        elif time < run.first:
            run.first = time
        run.seen |= _SEEN[event.eventType]
        content = run.content
        if not (
            content.inputs is inputs
            and content.outputs is outputs
            and content.job_name == job.name
            and content.parent_run_id == parent_run_id
            and content.job_type == job_type
            and content.job_namespace == job.namespace
            and content.is_streaming == (kind.processingType == _STREAMING)
        ):
            run.content = _joined(content, self._content(parent_run_id, job, inputs, outputs))

    def add_execution(self, execution: Execution) -> None:
        """Fold what an event log says of one SQL execution."""
        # The micro-batches of a stream read and write the same.
        execution = structs.replace(
            execution, inputs=self._same(execution.inputs), outputs=self._same(execution.outputs)
        )
        key = (execution.application_id, execution.execution_id)
        known = self.executions.get(key)
        self.executions[key] = execution if known is None else join_executions(known, execution)

    def merge(self, other: LineageState) -> None:
        """Fold another state, as of another shard, into this one."""
        for run_id, theirs in other.runs.items():
            run = self.runs.get(run_id)
            if run is None:
                self.runs[run_id] = RunState(theirs.first, theirs.last, theirs.seen, theirs.content)
                continue
            run.first = min(run.first, theirs.first)
            run.last = max(run.last, theirs.last)
            run.seen |= theirs.seen
            run.content = _joined(run.content, theirs.content)
        for application in other.applications.values():
            self._join_application(application)
        for run_id, parent in other.parents.items():
            self._join_parent(run_id, parent)
        for execution in other.executions.values():
            self.add_execution(execution)
        self.transitions |= other.transitions

    def _content(
        self,
        parent_run_id: str,
        job: Job,
        inputs: tuple[Observed, ...],
        outputs: tuple[Observed, ...],
    ) -> RunContent:
        # Datasets by identity: equal ones are mostly identical, and hashing them whole would cost more than it saves.
        kind = (job.facets.jobType if job.facets is not None else None) or _NO_KIND
        is_streaming = kind.processingType == _STREAMING
        key = (parent_run_id, kind.jobType, job.namespace, job.name, is_streaming, id(inputs), id(outputs))
        content = self._shared.get(key)
        if content is None:
            if len(self._shared) >= _SHARED_MAX:
                self._shared.clear()
            content = RunContent(parent_run_id, kind.jobType, job.namespace, job.name, is_streaming, inputs, outputs)
            self._shared[key] = content
        return content

    def _same(self, observed: tuple[Observed, ...]) -> tuple[Observed, ...]:
        if len(self._same_datasets) >= _SHARED_MAX:
            self._same_datasets.clear()
        return self._same_datasets.setdefault(observed, observed)

    def _add_application(self, event: RunEvent, application_run_id: str, *, is_application: bool) -> None:
        facets = event.run.facets or RunFacets()
        details = facets.spark_applicationDetails or ApplicationFacet()
        engine = facets.processing_engine or EngineFacet()
        self._join_application(
            Application(
                run_id=application_run_id,
                job_namespace=event.job.namespace if is_application else "",
                job_name=event.job.name if is_application else "",
                application_id=details.applicationId,
                spark_version=engine.version,
                adapter_version=engine.openlineageAdapterVersion,
                master=details.master,
                deploy_mode=details.deployMode,
                ui_url=details.uiWebUrl,
                is_ended=is_application and bool(_SEEN[event.eventType] & (COMPLETED | FAILED)),
            )
        )
        if is_application and facets.parent is not None:
            parent = facets.parent
            self._join_parent(application_run_id, ParentRun(parent.run.runId, parent.job.namespace, parent.job.name))

    def _join_application(self, new: Application) -> None:
        known = self.applications.get(new.run_id)
        if known == new:
            return
        self.applications[new.run_id] = new if known is None else _join_application(known, new)

    def _join_parent(self, run_id: str, parent: ParentRun) -> None:
        known = self.parents.get(run_id)
        self.parents[run_id] = parent if known is None else max(known, parent, key=_parent_key)


def _before_alter(outputs: tuple[Observed, ...]) -> tuple[Observed, ...]:
    """Return the outputs of a START without the schema of a table that an ALTER is about to change."""
    if not any("ALTER" in output.lifecycles for output in outputs):
        return outputs
    return tuple(structs.replace(one, schema=()) if "ALTER" in one.lifecycles else one for one in outputs)


def _joined(left: RunContent, right: RunContent) -> RunContent:
    if left is right:
        return left
    return RunContent(
        max(left.parent_run_id, right.parent_run_id),
        _later(left.job_type, right.job_type),
        max(left.job_namespace, right.job_namespace),
        max(left.job_name, right.job_name),
        left.is_streaming or right.is_streaming,
        join(left.inputs, right.inputs),
        join(left.outputs, right.outputs),
    )


def _join_application(left: Application, right: Application) -> Application:
    return Application(
        run_id=left.run_id,
        job_namespace=max(left.job_namespace, right.job_namespace),
        job_name=max(left.job_name, right.job_name),
        application_id=_later(left.application_id, right.application_id),
        spark_version=_later(left.spark_version, right.spark_version),
        adapter_version=_later(left.adapter_version, right.adapter_version),
        master=_later(left.master, right.master),
        deploy_mode=_later(left.deploy_mode, right.deploy_mode),
        ui_url=_later(left.ui_url, right.ui_url),
        is_ended=left.is_ended or right.is_ended,
    )


def _later(left: str | None, right: str | None) -> str | None:
    return max(left or "", right or "") or None


def _parent_key(parent: ParentRun) -> tuple[str, str, str]:
    return parent.run_id, parent.job_namespace, parent.job_name


def utc(epoch_seconds: float) -> datetime:
    """Return the time of a run as an aware UTC datetime; what an offset moves out of all years stays at their edge."""
    earliest, latest = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    if epoch_seconds <= earliest.timestamp():
        return earliest
    return latest if epoch_seconds >= latest.timestamp() else datetime.fromtimestamp(epoch_seconds, UTC)
