"""Makes the lineage of one task out of a folded state and the evidence about the task's end."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.actions import actions
from spark_lineage.merge.entity import Entity, Source
from spark_lineage.merge.evidence import Evidence
from spark_lineage.merge.lineage import (
    Application,
    Attempt,
    ColumnLineage,
    DatasetLineage,
    InputField,
    ParentRun,
    SchemaField,
    TaskLineage,
    TaskState,
    Transformation,
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

_COPY = "IDENTITY"


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
    :param is_logged: whether what a running stream does is going to be in ``state`` from its event log, too, so that
        what the listener alone says of it waits for that
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
        actions=actions(evidence, timeline.touched, state, task_state, _noise(timeline.entities, names))
        if has_actions
        else (),
        applications=_applications(state),
        parent=_parent(state),
        started_at=utc(min(run.first for run in runs)) if runs else None,
        ended_at=utc(max(run.last for run in runs)) if runs else None,
        is_streaming=any(run.content.is_streaming for run in evidence.runs.values()),
        run_count=len(state.runs),
    )


def _by_name(lineage: DatasetLineage) -> DatasetName:
    return lineage.dataset


def _noise(entities: Iterable[Entity], inputs: set[DatasetName]) -> set[Entity]:
    return {entity for entity in entities if entity.read is not None and entity.input_name not in inputs}


def _referred(outputs: Iterable[Entity]) -> dict[Entity, set[str]]:
    """Return the columns of each source that column lineage names."""
    columns: dict[Entity, set[str]] = {}
    for output in outputs:
        for sources in output.content.sources.values():
            for source, field, _ in sources:
                columns.setdefault(source.current, set()).add(field)
    return columns


def _inputs(entities: list[Entity], referred: dict[Entity, set[str]], *, is_silent: bool) -> tuple[DatasetLineage, ...]:
    """Return what existed before the task and was read by it (M6), without noise (M10).

    :param is_silent: whether the task succeeded without an action that an event log tells, or is going to; one that
        failed may have done so before it read anything
    """
    # The listener is silent about actions such as count(): somebody read what nothing else explains.
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
            if (
                not entity.read.is_bare
                or entity.is_read_declared
                or (name not in touched and declared.isdisjoint(directories_above(name)))
            ):
                schema = _with_referred(entity.read.schema, referred.get(entity, set()))
                inputs.append(_input(name, entity.read, schema))
        elif entity.glimpsed is not None:
            around = set(directories_above(entity.glimpsed.dataset))
            if is_unexplained or (not bare.isdisjoint(around) and declared.isdisjoint(around)):
                # An RDD named only the directory; the schema reading tells which file was meant, not what it holds.
                glimpsed = structs.replace(entity.glimpsed, statistics=None)
                inputs.append(_input(glimpsed.dataset, glimpsed, ()))
    return tuple(sorted(inputs, key=_by_name))


def _with_referred(schema: tuple[SchemaField, ...], referred: set[str]) -> tuple[SchemaField, ...]:
    """Return a schema that has the columns that column lineage names: backends show no others (M7)."""
    missing = referred - {field.name for field in schema}
    return schema + tuple(SchemaField(name) for name in sorted(missing))


def _input(name: DatasetName, read: Observed, schema: tuple[SchemaField, ...]) -> DatasetLineage:
    return DatasetLineage(
        dataset=name,
        schema=schema,
        symlinks=tuple(sorted(read.symlinks)),
        storage=read.storage,
        catalog=read.catalog,
        version=read.version,
        statistics=read.statistics,
    )


def _output(entity: Entity, inputs: set[DatasetName]) -> DatasetLineage:
    content = entity.content
    return DatasetLineage(
        dataset=entity.name,
        schema=tuple(_typed(field, content.sources.get(field.name, ())) for field in entity.schema),
        symlinks=tuple(sorted(entity.symlinks)),
        storage=entity.storage,
        catalog=entity.catalog,
        version=entity.version,
        statistics=content.statistics if content.is_counted else None,
        column_lineage=_column_lineage(entity),
        lifecycle=entity.lifecycle,
        previous_name=entity.previous_name,
        fed_by=tuple(sorted({source.current.input_name for source in content.fed_by} & inputs)),
        writes=content.writes,
    )


def _typed(field: SchemaField, sources: Iterable[Source]) -> SchemaField:
    """Return a column of which no type is known that of the columns that it is a copy of, if they agree."""
    if field.type is not None:
        return field
    copied = {
        SchemaField(field.name, one.type, fields=one.fields)
        for source, name, how in sources
        for one in (source.read.schema if source.read is not None and how.subtype == _COPY else ())
        if one.name == name
    }
    is_copy = all(how.subtype == _COPY for _, _, how in sources)
    return copied.pop() if is_copy and len(copied) == 1 else field


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
    edges: list[tuple[DatasetName, str, Transformation]] = [
        (source.current.input_name, field, how) for source, field, how in sources
    ]
    return input_fields(edges)


def _unknown(state: LineageState, evidence: Evidence) -> tuple[UnknownDatasets, ...]:
    """Return the commands that wrote something, of which neither the listener nor an event log tells what.

    A micro-batch whose function wrote something has told what it did.
    """
    told = sorted((run.first, run.last) for run in evidence.runs.values() if run.content.outputs)
    commands = Counter(
        run.content.job_name
        for run_id, run in evidence.runs.items()
        if run_outcome(run, state) == "succeeded"
        and is_silent(run, evidence.executions.get(run_id))
        and not any(last <= run.last for _, last in told[bisect(told, (run.first,)) :][:1])
    )
    return tuple(UnknownDatasets(command, commands[command]) for command in sorted(commands))


def _unread(evidence: Evidence) -> tuple[UnreadPart, ...]:
    parts = Counter(part for execution in evidence.executions.values() for part in execution.unread)
    return tuple(UnreadPart(part, parts[part]) for part in sorted(parts))


def _applications(state: LineageState) -> tuple[Application, ...]:
    known = [application for run_id, application in state.applications.items() if run_id]
    return tuple(sorted(known, key=lambda application: application.run_id))


def _parent(state: LineageState) -> ParentRun | None:
    """Return the Airflow task's run; of several applications of a task that of the last one by run id."""
    return state.parents[max(state.parents)] if state.parents else None
