"""Makes the lineage of one task out of a folded state and the evidence about the task's end."""

from __future__ import annotations

from spark_lineage.merge.entity import Entity
from spark_lineage.merge.lineage import (
    Application,
    Attempt,
    ColumnLineage,
    DatasetLineage,
    ParentRun,
    SchemaField,
    TaskLineage,
    TaskState,
    Transformation,
)
from spark_lineage.merge.observed import Observed, input_fields
from spark_lineage.merge.state import LineageState, utc
from spark_lineage.merge.timeline import Timeline
from spark_lineage.naming.identity import DatasetName, directories_above


def task_lineage(state: LineageState, task_state: TaskState) -> TaskLineage:
    """Give the lineage of the task whose events were folded into ``state``.

    :param state: the fold of all events of one Spark application (or of several that one task started)
    :param task_state: how the task ended, from :func:`spark_lineage.merge.outcome.task_state`
    """
    timeline = Timeline()
    timeline.replay(state, task_state)
    outputs = [entity for entity in timeline.entities if entity.is_written and not entity.is_dropped]
    runs = state.runs.values()
    return TaskLineage(
        state=task_state,
        inputs=_inputs(timeline.entities),
        outputs=tuple(sorted((_output(entity) for entity in outputs), key=_by_name)),
        attempted=tuple(
            sorted(
                Attempt(entity.name, entity.attempt)
                for entity in timeline.entities
                if entity.attempt is not None and not entity.is_dropped
            )
        ),
        unconfirmed=tuple(sorted(entity.name for entity in outputs if entity.is_unconfirmed)),
        applications=_applications(state),
        parent=_parent(state),
        started_at=utc(min(run.first for run in runs)) if runs else None,
        ended_at=utc(max(run.last for run in runs)) if runs else None,
        run_count=len(state.runs),
    )


def _by_name(lineage: DatasetLineage) -> DatasetName:
    return lineage.dataset


def _inputs(entities: list[Entity]) -> tuple[DatasetLineage, ...]:
    """Give what existed before the task and was read by it (M6), without noise (M10)."""
    touched = {
        directory
        for entity in entities
        if entity.read or entity.glimpsed or entity.is_written
        for name in entity.names
        for directory in directories_above(name)
    }
    bare = {entity.input_name for entity in entities if entity.read and entity.read.is_bare}
    inputs = []
    for entity in entities:
        if entity.read is not None:
            if not (entity.read.is_bare and entity.input_name in touched):
                inputs.append(_input(entity.input_name, entity.read, entity.read.schema))
        elif entity.glimpsed is not None and not bare.isdisjoint(directories_above(entity.glimpsed.dataset)):
            # An RDD named only the directory; the schema reading tells which file was meant, not what it holds.
            inputs.append(_input(entity.glimpsed.dataset, entity.glimpsed, ()))
    return tuple(sorted(inputs, key=_by_name))


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


def _output(entity: Entity) -> DatasetLineage:
    return DatasetLineage(
        dataset=entity.name,
        schema=entity.schema,
        symlinks=tuple(sorted(entity.symlinks)),
        storage=entity.storage,
        catalog=entity.catalog,
        version=entity.version,
        statistics=entity.statistics if entity.is_counted else None,
        column_lineage=_column_lineage(entity),
        lifecycle=entity.lifecycle,
        previous_name=entity.previous_name,
    )


def _column_lineage(entity: Entity) -> ColumnLineage | None:
    """Give the union of the edges of all that wrote the dataset (M7), under the last names of their sources."""
    whole: list[tuple[DatasetName, str, Transformation]] = []
    by_column: dict[str, list[tuple[DatasetName, str, Transformation]]] = {}
    for column, source, field, how in entity.edges:
        edges = whole if column is None else by_column.setdefault(column, [])
        edges.append((_last_name(source), field, how))
    if not entity.edges:
        return None
    return ColumnLineage(
        fields=tuple((column, input_fields(by_column[column])) for column in sorted(by_column)),
        dataset=input_fields(whole),
    )


def _last_name(source: Entity | DatasetName) -> DatasetName:
    if isinstance(source, DatasetName):
        return source
    entity = source.current
    if entity.is_written and not entity.is_dropped:
        return entity.name
    return entity.input_name


def _applications(state: LineageState) -> tuple[Application, ...]:
    known = [application for run_id, application in state.applications.items() if run_id]
    return tuple(sorted(known, key=lambda application: application.run_id))


def _parent(state: LineageState) -> ParentRun | None:
    """Give the Airflow task's run; of several applications of a task that of the last one by run id."""
    return state.parents[max(state.parents)] if state.parents else None
