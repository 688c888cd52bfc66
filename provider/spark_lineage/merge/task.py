"""Makes the lineage of one task out of a folded state and the evidence about the task's end."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import cache
from operator import attrgetter

from msgspec import structs

from spark_lineage.merge.conclusion import EndFacts, conclude, is_kill_asked
from spark_lineage.merge.counts import Counts
from spark_lineage.merge.entity import Entity, Source, Sources
from spark_lineage.merge.event import ForeignFacets
from spark_lineage.merge.evidence import Evidence, is_named
from spark_lineage.merge.lineage import (
    IDENTITY,
    Action,
    Attempt,
    ColumnLineage,
    DatasetLineage,
    InputField,
    ParentRun,
    SchemaField,
    Statistics,
    TaskLineage,
    TaskState,
    Transformation,
)
from spark_lineage.merge.observed import NO_TRANSFORMATION, Observed
from spark_lineage.merge.outcome import run_outcome
from spark_lineage.merge.state import LineageState, utc
from spark_lineage.merge.timeline import Timeline
from spark_lineage.merge.transition import ENDED, StatusLedger, StatusSummary, StatusTransition, report_of, sort_key
from spark_lineage.naming.identity import DatasetName, directories_above
from spark_lineage.naming.options import DEFAULT_NAMING, Naming

_UNKNOWN = "unknown"
_by_name = attrgetter("dataset")


def task_lineage(
    state: LineageState,
    task_state: TaskState,
    *,
    naming: Naming = DEFAULT_NAMING,
    has_actions: bool = False,
    is_logged: bool = False,
) -> TaskLineage:
    """Return the lineage of the task whose events were folded into ``state``.

    :param state: the fold of all events of one Spark application (or of several that one task started)
    :param task_state: how the task ended, from :func:`spark_lineage.merge.conclusion.conclude`
    :param naming: gives each dataset its one name
    :param has_actions: whether ``actions`` is wanted, which grows with the number of runs
    :param is_logged: whether the event log of a running stream is going to be in ``state``, too, so that what the
        listener alone says of it waits for that
    """
    evidence = Evidence(state, naming, is_logged=is_logged)
    timeline = Timeline(state, evidence, task_state, is_each=has_actions)
    outputs = [entity for entity in timeline.entities if entity.is_left]
    left = {entity.name for entity in outputs}
    is_silent = task_state == "COMPLETE" and not is_logged and not state.executions
    referred: dict[Entity, set[str]] = {}
    for source, field, _ in (one for entity in outputs for found in entity.content.sources.values() for one in found):
        referred.setdefault(source.current, set()).add(field)
    foreign = state.foreign.named(naming)
    inputs = _inputs(timeline.entities, referred, foreign, is_silent=is_silent)
    names = {lineage.dataset for lineage in inputs}
    counts = Counts(state, evidence, task_state, timeline=timeline, inputs=inputs, is_logged=is_logged)
    return structs.replace(
        _of_applications(state, evidence, task_state),
        inputs=inputs,
        outputs=tuple(sorted((_output(entity, names, foreign) for entity in outputs), key=_by_name)),
        attempted=tuple(
            sorted(
                Attempt(entity.name, entity.attempt, entity.attempt_error)
                for entity in timeline.entities
                if entity.attempt is not None and not entity.is_dropped and entity.name not in left
            )
        ),
        unconfirmed=tuple(sorted(entity.name for entity in outputs if entity.is_unconfirmed)),
        catalog_changes=tuple(timeline.journal.changes),
        unknown=counts.unknown(),
        unread=counts.unread(),
        actions=_actions(evidence, timeline, state, task_state, names) if has_actions else (),
        foreign=foreign.of("run"),
        foreign_of_job=foreign.of("job"),
    )


def _of_applications(state: LineageState, evidence: Evidence, task_state: TaskState) -> TaskLineage:
    """Return a lineage with its applications, times and sources of evidence alone."""
    runs = evidence.runs.values()
    reported = state.application_ids
    own = {application_id for _, application_id in state.own_applications()}
    # The event log alone knows applications without an event of the listener.
    logged = [one for one in state.logged_by_start() if not own or one.key[0] in own - reported]
    # The last of several attempts says whether the application has ended.
    ends = {one.key[0]: structs.replace(one.application, is_ended=one.ended is not None) for one in logged}
    parents = state.parents | {one.application.run_id: one.parent for one in logged if one.parent is not None}
    times = [time for run in runs for time in (run.first, run.last)]
    times += [time for one in logged for time in (one.started, one.ended) if time is not None]
    logs = {key[0] for key in (*state.executions, *state.logged)}
    sources = {
        "listener": any(not run.content.is_declared for run in state.runs.values()),
        # The log of another application is no evidence of this one.
        state.log_name: bool(logs & own if own else logs),
    }
    return TaskLineage(
        task_state,
        applications=tuple(sorted((*state.described(), *ends.values()), key=attrgetter("run_id"))),
        # The last application by run id has the parent.
        parent=parents[max(parents)] if parents else None,
        started_at=utc(min(times)) if times else None,
        ended_at=utc(max(times)) if times else None,
        is_streaming=any(run.content.is_streaming for run in runs),
        run_count=len(runs) if logged else len(state.runs),
        evidence=tuple(name for name, is_source in sources.items() if is_source),
    )


def _inputs(
    entities: list[Entity], referred: dict[Entity, set[str]], foreign: ForeignFacets, *, is_silent: bool
) -> tuple[DatasetLineage, ...]:
    """Return what existed before the task and was read by it (M6), without noise (M10).

    :param referred: the columns of each source that column lineage names
    :param is_silent: whether the task succeeded without an action that is in an event log, or is going to be; one that
        failed may have done so before it read anything
    """
    # The listener is silent about actions such as count(), which then explain a read that nothing else does.
    is_unexplained = is_silent and not any(entity.is_seen or entity.attempt for entity in entities)
    touched = {
        directory
        for entity in entities
        if entity.read or entity.glimpsed or entity.is_written
        for name in entity.names
        for directory in directories_above(name)
    }
    bare = {entity.input_name for entity in entities if entity.read and entity.read.is_bare}
    declared = {name for entity in entities if entity.is_read_declared for name in entity.names}
    inputs = []
    for entity in entities:
        # The task made none of one at least of several versions that others have.
        read, glimpsed = entity.read or (entity.own_read if entity.has_others_versions else None), entity.glimpsed
        if read is not None:
            name = entity.input_name
            is_meant = name not in touched and declared.isdisjoint(directories_above(name))
            if is_meant or entity.is_read_declared or entity.is_read_logged or not read.is_bare:
                # Backends show no columns but those of the schema (M7).
                missing = referred.get(entity, set()) - {field.name for field in read.schema}
                schema = read.schema + tuple(map(SchemaField, sorted(missing)))
                inputs.append(_input(structs.replace(read, dataset=name, schema=schema), entity, foreign))
        elif glimpsed is not None:
            around = set(directories_above(glimpsed.dataset))
            if is_unexplained or (not bare.isdisjoint(around) and declared.isdisjoint(around)):
                # An RDD named only the directory; the schema reading names the file that was meant, not what it holds.
                inputs.append(_input(structs.replace(glimpsed, schema=(), statistics=None), Entity(), foreign))
    return tuple(sorted(inputs, key=_by_name))


def _input(read: Observed, entity: Entity, foreign: ForeignFacets) -> DatasetLineage:
    own = entity.own_read.versions if entity.own_read is not None else ()
    names = entity.names | {read.dataset}
    return DatasetLineage(
        dataset=read.dataset,
        schema=read.schema,
        symlinks=tuple(sorted(read.symlinks)),
        storage=read.storage,
        catalog=read.catalog,
        # The versions that the task made itself come last.
        versions=tuple(
            filter(is_named, dict.fromkeys((*entity.read_versions, *sorted(own, key=lambda v: (len(v), v)))))
        ),
        statistics=_known(read.statistics),
        foreign=foreign.of("inputs", names),
        foreign_of_use=foreign.of("inputFacets", names),
        partition_keys=entity.partition_keys,
        subscription=entity.subscription,
    )


def _output(entity: Entity, inputs: set[DatasetName], foreign: ForeignFacets) -> DatasetLineage:
    content, described = entity.content, entity.described
    return DatasetLineage(
        dataset=entity.name,
        schema=tuple(
            _typed(field, content.sources.get(field.name, ()))
            for field in _with_named(described.schema, content.sources)
        ),
        symlinks=tuple(sorted(entity.symlinks)),
        storage=described.storage,
        catalog=described.catalog,
        versions=tuple(sorted(described.versions)),
        statistics=_known(content.statistics) if content.is_counted else None,
        column_lineage=_column_lineage(content.sources),
        lifecycle=entity.lifecycle,
        previous_name=entity.previous_name,
        fed_by=tuple(sorted({source.current.input_name for source in content.fed_by} & inputs)),
        writes=content.writes,
        foreign=foreign.of("outputs", entity.names | {entity.name}),
        foreign_of_use=foreign.of("outputFacets", entity.names | {entity.name}),
        partition_keys=entity.partition_keys,
    )


def _known(statistics: Statistics | None) -> Statistics | None:
    """Leave out the zeros that Spark says of rows whose bytes it does not count, as over JDBC."""
    if statistics is not None and statistics.row_count and statistics.size == 0:
        return Statistics(statistics.row_count)
    return statistics


def _with_named(schema: tuple[SchemaField, ...], named: Iterable[str | None]) -> tuple[SchemaField, ...]:
    """Return a schema with the columns that a write has named and no evidence of the schema has, as MERGE adds some."""
    known = {field.name.casefold() for field in schema}
    new = (name for name in named if name and known.isdisjoint({name.casefold(), name.casefold().partition(".")[0]}))
    return (*schema, *map(SchemaField, sorted(new))) if schema else schema


def _typed(field: SchemaField, sources: Iterable[Source]) -> SchemaField:
    """Return a column of which no type is known that of the columns that it is a copy of, if they agree."""
    if field.type is not None or any(how.subtype != IDENTITY.subtype for _, _, how in sources):
        return field
    copied = {
        SchemaField(field.name, one.type, fields=one.fields)
        for source, name, _ in sources
        for one in (source.read.schema if source.read is not None else ())
        if one.name == name
    }
    return copied.pop() if len(copied) == 1 else field


def _column_lineage(sources: Sources) -> ColumnLineage | None:
    """Return what the columns come from (M7), by the names that the sources had when the task read them."""
    if not sources:
        return None
    name_of = cache(lambda source: source.current.input_name)

    def edges(column: str | None) -> tuple[InputField, ...]:
        hows: dict[tuple[DatasetName, str], set[Transformation]] = {}
        for source, field, how in sources.get(column, ()):
            hows.setdefault((name_of(source), field), set()).add(how)
        return tuple(InputField(*at, tuple(sorted(hows[at] - {NO_TRANSFORMATION}))) for at in sorted(hows))

    return ColumnLineage(tuple((column, edges(column)) for column in sorted(filter(None, sources))), edges(None))


def _actions(
    evidence: Evidence, timeline: Timeline, state: LineageState, task_state: TaskState, inputs: set[DatasetName]
) -> tuple[Action, ...]:
    """Return the runs that touched datasets, by their starts; what is no input of the task is noise (M10)."""
    # A run without a known end ended with its task.
    states: dict[str, TaskState] = {"open": task_state, "succeeded": "COMPLETE", "failed": "FAIL", "cut off": "FAIL"}
    noise = {one for one in timeline.entities if one.read is not None and one.input_name not in inputs}
    found = []
    for run_id, (reads, writes) in timeline.touched.items():
        read = {entity.current.last_name for entity in reads if entity.current not in noise}
        written = {entity.current.name for entity in writes}
        if read or written:
            run = evidence.runs[run_id]
            one = Action(
                run_id=run_id,
                job_namespace=run.content.job_namespace,
                job_name=run.content.job_name if run_id in state.runs else evidence.execution(run_id).command,
                state=states[run_outcome(run, state)],
                started_at=utc(run.first),
                ended_at=utc(run.last),
                is_streaming=run.content.is_streaming,
                inputs=tuple(sorted(read)),
                outputs=tuple(sorted(written)),
            )
            found.append(one)
    return tuple(sorted(found, key=attrgetter("started_at", "run_id")))


def kept_lineage(
    state: LineageState,
    task_state: TaskState | None = None,
    *,
    naming: Naming = DEFAULT_NAMING,
    has_actions: bool = False,
) -> TaskLineage:
    """Return the lineage of a task with its status, as far as that was kept.

    :param task_state: how the task ended, where that is known; else the status says it, or the task is taken to have
        succeeded: lineage files do not show it
    """
    status = summary_of(state.transitions) if state.transitions else None
    by_status = state_of(status) if status is not None else None
    lineage = task_lineage(state, task_state or by_status or "COMPLETE", naming=naming, has_actions=has_actions)
    return structs.replace(lineage, status=status)


def identity_of(lineage: TaskLineage, state: LineageState) -> ParentRun:
    """Return run and job of the task: what the application names as its parent, else the application itself.

    Where the files hold no event of the application, its run is what their runs have as parent.
    """
    if lineage.parent is not None:
        return lineage.parent
    if lineage.applications:
        last = lineage.applications[-1]
        return ParentRun(last.run_id, last.job_namespace or _UNKNOWN, last.job_name or _UNKNOWN)
    run_ids = (run.content.parent_run_id or run_id for run_id, run in state.runs.items())
    return ParentRun(max(run_ids, default=str(uuid.UUID(int=0))), _UNKNOWN, _UNKNOWN)


def summary_of(transitions: Iterable[StatusTransition]) -> StatusSummary:
    """Return the timeline of a launch by its transitions in any order, with why its driver failed, where it did."""
    ledger = StatusLedger()
    for one in sorted(transitions, key=sort_key):
        ledger.add(report_of(one))
    drivers = [one for one in ledger.transitions if one.subject == "DRIVER"]
    errors = ["", *(one.exception for one in drivers if one.new_status in {"FAILED", "KILLED"})]
    return StatusSummary(tuple(ledger.transitions), ledger.summed(), " ".join(errors[-1].split()))


def state_of(summary: StatusSummary) -> TaskState | None:
    """Return how the task ended (M4), None where its driver's end was not seen."""
    statuses = [one.new_status for one in summary.transitions if one.subject == "DRIVER"]
    is_killed = is_kill_asked(summary.transitions)
    is_known = is_killed or not ENDED.isdisjoint(statuses)
    return conclude(EndFacts(is_killed, statuses[-1])) if is_known else None
