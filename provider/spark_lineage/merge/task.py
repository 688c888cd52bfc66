"""Makes the lineage of one task out of a folded state and the evidence about the task's end."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from msgspec import structs

from spark_lineage.merge.entity import Entity, Source
from spark_lineage.merge.evidence import Evidence
from spark_lineage.merge.lineage import (
    IDENTITY,
    Action,
    Attempt,
    ColumnLineage,
    DatasetLineage,
    InputField,
    SchemaField,
    TaskLineage,
    TaskState,
    UnknownDatasets,
    UnreadPart,
)
from spark_lineage.merge.observed import Observed, input_fields
from spark_lineage.merge.outcome import is_silent, run_outcome
from spark_lineage.merge.state import LineageState, utc
from spark_lineage.merge.timeline import Timeline
from spark_lineage.naming.chain import Naming
from spark_lineage.naming.identity import DatasetName, directories_above
from spark_lineage.naming.options import DEFAULT_NAMING

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
    :param task_state: how the task ended, from :func:`spark_lineage.merge.outcome.task_state`
    :param naming: gives each dataset its one name
    :param has_actions: whether ``actions`` is wanted, which grows with the number of runs
    :param is_logged: whether the event log of a running stream is going to be in ``state``, too, so that what the
        listener alone says of it waits for that
    """
    evidence = Evidence(state, naming, is_logged=is_logged)
    timeline = Timeline(state, evidence, task_state)
    timeline.replay(is_each=has_actions)
    outputs = [entity for entity in timeline.entities if entity.is_left]
    is_silent = task_state == "COMPLETE" and not is_logged and not state.executions
    inputs = _inputs(timeline.entities, _referred(outputs), is_silent=is_silent)
    names = {lineage.dataset for lineage in inputs}
    left = {entity.name for entity in outputs}
    runs = evidence.runs.values()
    applications = [application for run_id, application in state.applications.items() if run_id]
    return TaskLineage(
        state=task_state,
        inputs=inputs,
        outputs=tuple(sorted((_output(entity, names) for entity in outputs), key=_by_name)),
        attempted=tuple(
            sorted(
                Attempt(entity.name, entity.attempt)
                for entity in timeline.entities
                if entity.attempt is not None and not entity.is_dropped and entity.name not in left
            )
        ),
        unconfirmed=tuple(sorted(entity.name for entity in outputs if entity.is_unconfirmed)),
        catalog_changes=tuple(timeline.journal.changes),
        unknown=_unknown(state, evidence),
        unread=_unread(evidence),
        actions=_actions(evidence, timeline, state, task_state, names) if has_actions else (),
        applications=tuple(sorted(applications, key=attrgetter("run_id"))),
        # Of several applications of a task, that of the last one by run id.
        parent=state.parents[max(state.parents)] if state.parents else None,
        started_at=utc(min(run.first for run in runs)) if runs else None,
        ended_at=utc(max(run.last for run in runs)) if runs else None,
        is_streaming=any(run.content.is_streaming for run in runs),
        run_count=len(state.runs),
    )


def _referred(outputs: Iterable[Entity]) -> dict[Entity, set[str]]:
    """Return the columns of each source that column lineage names."""
    columns: dict[Entity, set[str]] = {}
    for output in outputs:
        for source, field, _ in (one for sources in output.content.sources.values() for one in sources):
            columns.setdefault(source.current, set()).add(field)
    return columns


def _inputs(entities: list[Entity], referred: dict[Entity, set[str]], *, is_silent: bool) -> tuple[DatasetLineage, ...]:
    """Return what existed before the task and was read by it (M6), without noise (M10).

    :param is_silent: whether the task succeeded without an action that an event log tells, or is going to; one that
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
        if entity.read is not None:
            name = entity.input_name
            is_meant = name not in touched and declared.isdisjoint(directories_above(name))
            if is_meant or entity.is_read_declared or not entity.read.is_bare:
                # Backends show no columns but those of the schema (M7).
                missing = referred.get(entity, set()) - {field.name for field in entity.read.schema}
                schema = entity.read.schema + tuple(map(SchemaField, sorted(missing)))
                inputs.append(_input(name, structs.replace(entity.read, schema=schema)))
        elif entity.glimpsed is not None:
            around = set(directories_above(entity.glimpsed.dataset))
            if is_unexplained or (not bare.isdisjoint(around) and declared.isdisjoint(around)):
                # An RDD named only the directory; the schema reading tells which file was meant, not what it holds.
                inputs.append(
                    _input(entity.glimpsed.dataset, structs.replace(entity.glimpsed, schema=(), statistics=None))
                )
    return tuple(sorted(inputs, key=_by_name))


def _input(name: DatasetName, read: Observed) -> DatasetLineage:
    return DatasetLineage(
        dataset=name,
        schema=read.schema,
        symlinks=tuple(sorted(read.symlinks)),
        storage=read.storage,
        catalog=read.catalog,
        version=read.version,
        statistics=read.statistics,
    )


def _output(entity: Entity, inputs: set[DatasetName]) -> DatasetLineage:
    content, described = entity.content, entity.described
    return DatasetLineage(
        dataset=entity.name,
        schema=tuple(_typed(field, content.sources.get(field.name, ())) for field in described.schema),
        symlinks=tuple(sorted(entity.symlinks)),
        storage=described.storage,
        catalog=described.catalog,
        version=described.version,
        statistics=content.statistics if content.is_counted else None,
        column_lineage=_column_lineage(entity),
        lifecycle=entity.lifecycle,
        previous_name=entity.previous_name,
        fed_by=tuple(sorted({source.current.input_name for source in content.fed_by} & inputs)),
        writes=content.writes,
    )


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


def _column_lineage(entity: Entity) -> ColumnLineage | None:
    """Return what the columns come from (M7), by the names that the sources had when the task read them."""
    sources = entity.content.sources
    if not sources:
        return None
    return ColumnLineage(
        fields=tuple((column, _input_fields(sources[column])) for column in sorted(set(filter(None, sources)))),
        dataset=_input_fields(sources.get(None, set())),
    )


def _input_fields(sources: Iterable[Source]) -> tuple[InputField, ...]:
    return input_fields((source.current.input_name, field, how) for source, field, how in sources)


def _unknown(state: LineageState, evidence: Evidence) -> tuple[UnknownDatasets, ...]:
    """Return the commands that wrote something, of which neither the listener nor an event log tells what.

    A micro-batch whose function wrote something has told what it did.
    """
    known = sorted((run.first, run.last) for run in evidence.runs.values() if run.content.outputs)
    commands = Counter(
        run.content.job_name
        for run_id, run in evidence.runs.items()
        if run_outcome(run, state) == "succeeded"
        and is_silent(run, evidence.execution(run_id))
        and not any(last <= run.last for _, last in known[bisect(known, (run.first,)) :][:1])
    )
    return tuple(UnknownDatasets(command, commands[command]) for command in sorted(commands))


def _unread(evidence: Evidence) -> tuple[UnreadPart, ...]:
    parts = Counter(part for execution in evidence.executions.values() for part in execution.unread)
    return tuple(UnreadPart(part, parts[part]) for part in sorted(parts))


def _actions(
    evidence: Evidence, timeline: Timeline, state: LineageState, task_state: TaskState, inputs: set[DatasetName]
) -> tuple[Action, ...]:
    """Return the runs that touched datasets, in the order of their starts.

    :param inputs: those of the task: what else was read is noise (M10)
    """
    # A run whose end nobody saw ended with its task.
    states: dict[str, TaskState] = {"open": task_state, "succeeded": "COMPLETE", "failed": "FAIL"}
    noise = {one for one in timeline.entities if one.read is not None and one.input_name not in inputs}
    found = []
    for run_id, (reads, writes) in timeline.touched.items():
        read = {entity.current.last_name for entity in reads if entity.current not in noise}
        written = {entity.current.name for entity in writes}
        if not (read or written):
            continue
        run = evidence.runs[run_id]
        found.append(
            Action(
                run_id=run_id,
                job_namespace=run.content.job_namespace,
                job_name=run.content.job_name,
                state=states[run_outcome(run, state)],
                started_at=utc(run.first),
                ended_at=utc(run.last),
                is_streaming=run.content.is_streaming,
                inputs=tuple(sorted(read)),
                outputs=tuple(sorted(written)),
            )
        )
    return tuple(sorted(found, key=attrgetter("started_at", "run_id")))
