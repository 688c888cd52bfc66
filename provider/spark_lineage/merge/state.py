"""The fold: a state that grows with distinct runs and datasets, never with events.

``LineageState`` is a commutative, idempotent monoid. Each part of a run is joined by itself (earliest and latest time,
the set of event types, the union of datasets), so any order, repetition and split into shards give the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec
from msgspec import Struct, structs

from spark_lineage.merge.event import (
    ApplicationFacet,
    EngineFacet,
    EventType,
    ForeignFacet,
    ForeignFacets,
    Job,
    JobTypeFacet,
    RunEvent,
    RunFacets,
)
from spark_lineage.merge.execution import Execution, LoggedApplication, join_executions
from spark_lineage.merge.lineage import Application, ParentRun
from spark_lineage.merge.observed import Observed, join, join_fields
from spark_lineage.merge.transition import StatusTransition

STARTED, COMPLETED, FAILED, RAN, CUT_OFF = 1, 2, 4, 8, 16
_SEEN: Mapping[EventType | None, int] = {
    "START": STARTED,
    "RUNNING": STARTED | RAN,
    "COMPLETE": COMPLETED,
    "FAIL": FAILED,
    "ABORT": FAILED,
}
_APPLICATION = "APPLICATION"
RDD_JOB = "RDD_JOB"
# The job type of what the program or the DAG says itself.
_DECLARED = "DECLARED"
_NO_KIND, _NO_FACETS = JobTypeFacet(), RunFacets()
_NO_JOB = Job("", "")
# So many contents are kept for sharing; they are only forgotten, never lost, when there are more.
_SHARED_MAX = 4096
FORMAT = 8
"""Count this up when a state of the same events is written in other bytes, or says something else."""


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


def _as_told(one: Observed, *, is_before: bool) -> Observed:
    """Return a dataset without its version; before a run that alters it, its schema is about to change."""
    one = structs.replace(one, versions=frozenset()) if one.versions else one
    return structs.replace(one, schema=(), former=one.schema) if is_before and "ALTER" in one.lifecycles else one


class LineageState:
    """All that the events folded so far say.

    ``applications`` holds what is known of a Spark application by its run id and its own id, empty where events do not
    give it: two contexts of one program may share a run. ``parents`` holds what an application's run names as its own
    parent, ``executions`` what its event log says, by ``Execution.key``, ``logged`` what that says of the application
    itself, by application id and attempt, and ``transitions`` what is kept beside the lineage of a launch of how it
    went. ``foreign`` are facets that pass through.
    """

    def __init__(self) -> None:
        self.runs: dict[str, RunState] = {}
        self.applications: dict[tuple[str, str], Application] = {}
        self.parents: dict[str, ParentRun] = {}
        self.executions: dict[tuple[str, str, int], Execution] = {}
        self.logged: dict[tuple[str, str], LoggedApplication] = {}
        self.transitions: set[StatusTransition] = set()
        self.foreign = ForeignFacets()
        self.is_torn = False
        """Whether some of what the driver said is known to be lost."""
        self.log_name = "event_log"
        """What stands for the event log, as evidence of a lineage."""
        self._shared: dict[tuple[object, ...], RunContent] = {}
        self._same_datasets: dict[tuple[Observed, ...], tuple[Observed, ...]] = {}
        self._changes: dict[tuple[bool, int], tuple[tuple[Observed, ...], tuple[Observed, ...]]] = {}
        self._described: tuple[object, ...] = ()

    def add(
        self,
        event: RunEvent,
        inputs: tuple[Observed, ...],
        outputs: tuple[Observed, ...],
        foreign: tuple[ForeignFacet, ...] = (),
    ) -> None:
        """Fold one event, its datasets and the facets that pass through."""
        run_id, facets, job = event.run.runId, event.run.facets or _NO_FACETS, event.job
        kind = (job.facets and job.facets.jobType) or _NO_KIND
        parent_run_id = facets.parent.run.runId if facets.parent is not None else ""
        if kind.jobType == _APPLICATION:
            self._add_application(event, facets, run_id, is_application=True)
        # Half of the events describe their application, all in the same words.
        elif facets.spark_applicationDetails is not None:
            described = facets.parent, facets.processing_engine, facets.spark_applicationDetails
            if described != self._described:
                self._described = described
                self._add_application(event, facets, parent_run_id, is_application=False)
        # START has the version that is read, COMPLETE that of now; what is written has its own at the end.
        if event.eventType == "START":
            outputs = self._without_versions(outputs, is_before=True)
        else:
            inputs = self._without_versions(inputs, is_before=False)
        is_streaming = kind.processingType == "STREAMING"
        # Datasets are known by identity: equal ones are mostly identical, and hashing them whole would cost too much.
        key = (parent_run_id, kind.jobType, job.namespace, job.name, is_streaming, id(inputs), id(outputs))
        content = self._shared.get(key)
        if content is None:
            if len(self._shared) >= _SHARED_MAX:
                self._shared.clear()
            content = RunContent(parent_run_id, kind.jobType, job.namespace, job.name, is_streaming, inputs, outputs)
            self._shared[key] = content
        time = event.eventTime.timestamp()
        if foreign:
            self.foreign.add(time, foreign)
        self._add_run(run_id, time, time, _SEEN.get(event.eventType, 0), content)

    def _without_versions(self, observed: tuple[Observed, ...], *, is_before: bool) -> tuple[Observed, ...]:
        """Return datasets as ``_as_told`` does; the same tuple for the same one."""
        key = is_before, id(observed)
        known = self._changes.get(key)
        if known is None:
            if len(self._changes) >= _SHARED_MAX:
                self._changes.clear()
            changed = tuple(_as_told(one, is_before=is_before) for one in observed)
            # The key is an identity: the tuple is kept, so that no other one gets its address.
            known = self._changes[key] = observed, observed if changed == observed else changed
        return known[1]

    def add_execution(self, execution: Execution) -> None:
        """Fold what an event log says of one SQL execution."""
        if len(self._same_datasets) >= _SHARED_MAX:
            self._same_datasets.clear()
        # The micro-batches of a stream read and write the same.
        inputs, outputs = (self._same_datasets.setdefault(one, one) for one in (execution.inputs, execution.outputs))
        execution = structs.replace(execution, inputs=inputs, outputs=outputs)
        known = self.executions.get(execution.key)
        self.executions[execution.key] = execution if known is None else join_executions(known, execution)

    def add_application(self, logged: LoggedApplication) -> None:
        """Fold what an event log says of its application."""
        known = self.logged.get(logged.key, logged)
        application = join_fields(known.application, logged.application)
        started = min(known.started, logged.started)
        self.logged[logged.key] = join_fields(known, logged, application=application, started=started)

    def superseded(self) -> set[tuple[str, str]]:
        """Return the attempts that another one of the same application has followed, by ``LoggedApplication.key``."""
        last = dict(one.key for one in self.logged_by_start())
        return self.logged.keys() - last.items()

    def logged_by_start(self) -> list[LoggedApplication]:
        """Return what event logs say of applications; of several attempts of one, the last comes last."""
        return sorted(self.logged.values(), key=lambda one: (one.started, one.key))

    @property
    def application_ids(self) -> set[str]:
        """The ids of the Spark applications that a listener reported."""
        return {application_id for _, application_id in self.applications if application_id}

    def own_applications(self) -> set[tuple[str, str]]:
        """Return the runs and ids of the task's applications, empty where a listener reported none.

        A listener may keep silent about one: its event log has it, submitted as the same run or by the same parent.
        """
        reported = {key for key in self.applications if key[1]}
        run_ids = {run_id for run_id, _ in reported}
        parents = {parent.run_id for parent in self.parents.values()}
        logged = {
            (one.application.run_id, one.key[0])
            for one in self.logged.values()
            if one.application.run_id in run_ids or (one.parent is not None and one.parent.run_id in parents)
        }
        return reported | logged if reported else set()

    def described(self) -> list[Application]:
        """Return the applications in the order of their keys, with what events of their runs without an id say."""
        named = {run_id for run_id, application_id in self.applications if application_id}
        found = []
        for run_id, application_id in sorted(self.applications):
            one, unnamed = self.applications[run_id, application_id], self.applications.get((run_id, ""))
            if run_id and application_id:
                found.append(one if unnamed is None else join_fields(one, unnamed))
            elif run_id and run_id not in named:
                found.append(one)
        return found

    def without_listener(self) -> LineageState:
        """Return what would be known had no listener been there: the event log, and what is declared."""
        other = LineageState()
        other.runs = {run_id: run for run_id, run in self.runs.items() if run.content.is_declared}
        other.executions, other.logged, other.transitions = self.executions, self.logged, self.transitions
        return other

    @property
    def has_lost_ends(self) -> bool:
        """Whether runs may have ended that are open here; an event log with its end has the ends of all."""
        return self.is_torn and all(one.ended is None for one in self.logged.values())

    def merge(self, other: LineageState) -> None:
        """Fold another state, as of another shard, into this one."""
        self.is_torn |= other.is_torn
        for run_id, run in other.runs.items():
            self._add_run(run_id, run.first, run.last, run.seen, run.content)
        for application in other.applications.values():
            self._join_application(application)
        for run_id, parent in other.parents.items():
            self.parents[run_id] = max(self.parents.get(run_id, parent), parent)
        for execution in other.executions.values():
            self.add_execution(execution)
        for logged in other.logged.values():
            self.add_application(logged)
        self.transitions |= other.transitions
        for time, facet in other.foreign:
            self.foreign.add(time, (facet,))

    def _add_run(self, run_id: str, first: float, last: float, seen: int, content: RunContent) -> None:
        run = self.runs.get(run_id)
        if run is None:
            self.runs[run_id] = RunState(first, last, seen, content)
            return
        run.seen |= seen
        # Comparing is cheaper than min() and max(), and this runs for each event.
        if last > run.last:  # noqa: PLR1730
            run.last = last
        if first < run.first:  # noqa: PLR1730
            run.first = first
        known = run.content
        if known is not content:
            inputs, outputs = join(known.inputs, content.inputs), join(known.outputs, content.outputs)
            run.content = join_fields(known, content, inputs=inputs, outputs=outputs)

    def _add_application(self, event: RunEvent, facets: RunFacets, run_id: str, *, is_application: bool) -> None:
        details = facets.spark_applicationDetails or ApplicationFacet()
        engine = facets.processing_engine or EngineFacet()
        job = event.job
        if not is_application:
            # The parent of an action is its application.
            job = facets.parent.job if facets.parent is not None else _NO_JOB
        self._join_application(
            Application(
                run_id=run_id,
                job_namespace=job.namespace,
                job_name=job.name,
                application_id=details.applicationId,
                spark_version=engine.version,
                adapter_version=engine.openlineageAdapterVersion,
                master=details.master,
                deploy_mode=details.deployMode,
                ui_url=details.uiWebUrl,
                is_ended=is_application and bool(_SEEN.get(event.eventType, 0) & (COMPLETED | FAILED)),
            )
        )
        if is_application and facets.parent is not None:
            named = facets.parent
            parent = ParentRun(named.run.runId, named.job.namespace, named.job.name)
            self.parents[run_id] = max(self.parents.get(run_id, parent), parent)

    def _join_application(self, new: Application) -> None:
        key = (new.run_id, new.application_id or "")
        known = self.applications.get(key, new)
        self.applications[key] = new if known == new else join_fields(known, new)


def with_contents(runs: Mapping[str, RunState], change: Callable[[RunContent], RunContent]) -> dict[str, RunState]:
    """Return runs with changed contents; those that did the same still share one."""
    changed = {id(run.content): change(run.content) for run in runs.values()}
    return {run_id: structs.replace(run, content=changed[id(run.content)]) for run_id, run in runs.items()}


def utc(epoch_seconds: float) -> datetime:
    """Return the time of a run as an aware UTC datetime; what an offset moves out of all years stays at their edge."""
    earliest, latest = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    if epoch_seconds <= earliest.timestamp():
        return earliest
    return latest if epoch_seconds >= latest.timestamp() else datetime.fromtimestamp(epoch_seconds, UTC)


class StateFormatError(ValueError):
    """The bytes are no state, or of another version of this package; the text says which."""


class _Format(Struct, array_like=True):
    """The first of a state, which is there in every version."""

    format: int


class _State(_Format, array_like=True):
    """All of a state, with places in ``datasets`` and ``contents``; a run is (run id, first, last, seen, content)."""

    datasets: list[tuple[Observed, ...]]
    contents: list[tuple[str, str | None, str, str, bool, int, int]]
    runs: list[tuple[str, float, float, int, int]]
    applications: list[Application]
    parents: dict[str, ParentRun]
    executions: list[Execution]
    logged: list[LoggedApplication]
    transitions: list[StatusTransition]
    foreign: list[tuple[float, ForeignFacet]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_State).decode
_decode_format = msgspec.msgpack.Decoder(_Format).decode


def encode_state(state: LineageState) -> bytes:
    """Return a state as MessagePack."""
    # Contents are known by identity, as the state shares them: finding equal ones would cost more than it saves.
    contents = {id(run.content): run.content for run in state.runs.values()}
    datasets = {id(one): one for content in contents.values() for one in (content.inputs, content.outputs)}
    places = {key: place for shared in (contents, datasets) for place, key in enumerate(shared)}
    return _encode(
        _State(
            FORMAT,
            list(datasets.values()),
            [
                (*structs.astuple(one)[:-2], places[id(one.inputs)], places[id(one.outputs)])
                for one in contents.values()
            ],
            [(run_id, run.first, run.last, run.seen, places[id(run.content)]) for run_id, run in state.runs.items()],
            list(state.applications.values()),
            state.parents,
            list(state.executions.values()),
            list(state.logged.values()),
            list(state.transitions),
            list(state.foreign),
        )
    )


def decode_state(content: bytes) -> LineageState:
    """Return the state of its bytes; raises ``StateFormatError`` for other bytes."""
    try:
        written = _decode_format(content).format
        if written != FORMAT:
            raise StateFormatError(f"a state of format {written}; this version reads format {FORMAT}")
        stored = _decode(content)
    except msgspec.DecodeError as error:
        raise StateFormatError(f"no state: {error}") from None
    contents = [
        RunContent(parent, job_type, namespace, name, is_streaming, stored.datasets[inputs], stored.datasets[outputs])
        for parent, job_type, namespace, name, is_streaming, inputs, outputs in stored.contents
    ]
    state = LineageState()
    state.runs = {
        run_id: RunState(first, last, seen, contents[place]) for run_id, first, last, seen, place in stored.runs
    }
    state.applications = {(one.run_id, one.application_id or ""): one for one in stored.applications}
    state.parents = stored.parents
    state.executions = {one.key: one for one in stored.executions}
    state.logged = {one.key: one for one in stored.logged}
    state.transitions = set(stored.transitions)
    state.foreign = ForeignFacets(stored.foreign)
    return state
