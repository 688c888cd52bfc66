"""Corrects what the listener says of a SQL run by what Spark's event log says of the same execution."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import IDENTITY, SchemaField
from spark_lineage.merge.observed import Edge, Observed, by_name, join, with_sources
from spark_lineage.merge.state import COMPLETED, FAILED, RAN, STARTED, RunContent, RunState
from spark_lineage.merge.unnamed_datasets import with_names
from spark_lineage.naming.identity import DatasetName, directories_above

# Commands of v2 tables that write the rows that they keep anew.
_ROW_COMMANDS = frozenset({"ReplaceData", "WriteDelta"})
_MERGE = "MergeIntoCommand"
RDD_JOB = "RDD_JOB"
# They leave rows of the table as they are.
_LEAVING = frozenset({"DeleteFromTable", "WriteDelta", _MERGE, "UpdateHoodieTableCommand", "DeleteHoodieTableCommand"})
# What Hudi adds to the columns of a table.
_HUDI_COLUMNS = "_hoodie_"


def corrected(run: RunState, execution: Execution) -> RunState:
    """Return a run as its execution corrects it: a failure sticks, an end that was seen counts, silence is filled."""
    seen = run.seen | _seen(execution)
    content = run.content
    execution = with_names(execution, content.inputs)
    names = _same_tables(content.inputs, execution.inputs)
    known = {read.dataset for read in content.inputs}
    logged = [structs.replace(read, dataset=names.get(read.dataset, read.dataset)) for read in execution.inputs]
    # A plan names the first of many files, whose directory is the listener's input.
    logged = [read for read in logged if known.isdisjoint(directories_above(read.dataset))]
    if content.job_type == RDD_JOB:
        # An RDD's run names the directories around its files.
        # A name that a program gave its RDD may look like a path, but lies in no directory that was read.
        logged = [
            read
            for read in execution.inputs
            if not known or not known.isdisjoint((read.dataset, *directories_above(read.dataset)))
        ]
        around = {above for read in logged for above in directories_above(read.dataset)}
        kept = tuple(read for read in content.inputs if not (read.is_bare and read.dataset in around))
        content = structs.replace(content, inputs=kept)
    inputs = join(content.inputs, by_name(logged))
    listened = _appending(content.outputs) if execution.mode == "Append" else content.outputs
    logged_outputs = tuple(with_sources(output, names) for output in execution.outputs)
    if not listened and execution.command in _LEAVING:
        logged_outputs = _left(logged_outputs, content.inputs)
    outputs = _filled(listened, logged_outputs, execution, known)
    if execution.command == _MERGE:
        outputs = tuple(_without_new_columns(output, content.inputs) for output in outputs)
    return RunState(
        run.first,
        max(run.last, execution.ended or run.last),
        seen,
        structs.replace(content, inputs=inputs, outputs=outputs),
    )


def _appending(listened: tuple[Observed, ...]) -> tuple[Observed, ...]:
    """Return the outputs of a write whose plan appends, though the listener may say OVERWRITE: it does for Hudi."""
    return tuple(structs.replace(output, lifecycles=output.lifecycles - {"OVERWRITE"}) for output in listened)


def _same_tables(listened: tuple[Observed, ...], logged: tuple[Observed, ...]) -> dict[DatasetName, DatasetName]:
    """Return the listener's names of tables that a plan names without telling where they are (Hive's)."""
    places = {link.name: read.dataset for read in listened for link in read.symlinks if link.type == "TABLE"}
    # One that has a table's name is no other table whose name ends alike.
    places |= {f"/{last_part(read)}": read.dataset for read in listened if not _table_names(read)}
    known = {read.dataset for read in listened}
    return {
        read.dataset: places[name]
        for read in logged
        if read.dataset not in known
        for link in read.symlinks
        for name in (link.name, f"/{last_part(read)}")
        if link.type == "TABLE" and name in places
    }


def _without_new_columns(output: Observed, inputs: tuple[Observed, ...]) -> Observed:
    """Return a table without edges from columns of its own that a MERGE adds to it (schema evolution)."""
    former = {field.name.casefold() for one in inputs if one.dataset == output.dataset for field in one.schema}
    if not former:
        return output
    edges = (edge for edge in output.edges if edge[1] != output.dataset or edge[2].casefold() in former)
    return structs.replace(output, edges=frozenset(edges))


def _table_names(one: Observed) -> list[str]:
    return [link.name for link in one.symlinks if link.type == "TABLE"]


def _seen(execution: Execution) -> int:
    seen = STARTED | (RAN if execution.has_jobs else 0)
    if execution.is_failed:
        return seen | FAILED
    return seen if execution.ended is None else seen | COMPLETED


def _left(logged: tuple[Observed, ...], inputs: tuple[Observed, ...]) -> tuple[Observed, ...]:
    """Return what a command changes rows of with the columns of the rows that it leaves, as the listener read them."""
    read = {
        one.dataset: tuple(field for field in one.schema if not field.name.startswith(_HUDI_COLUMNS)) for one in inputs
    }
    return tuple(
        structs.replace(one, schema=schema, edges=one.edges | _copies(one.dataset, schema))
        if (schema := read.get(one.dataset))
        else one
        for one in logged
    )


def _copies(table: DatasetName, schema: Iterable[SchemaField]) -> frozenset[Edge]:
    """Return the edges of what stays: rows of the table itself."""
    return frozenset((field.name, table, field.name, IDENTITY) for field in schema)


def _edges(listened: Observed, logged: Observed, execution: Execution, read: set[DatasetName]) -> frozenset[Edge]:
    edges = listened.edges | logged.edges
    if execution.command in _ROW_COMMANDS and logged.edges and logged.schema:
        # A plan that is cut names no schema, and not all columns.
        edges = logged.edges
    # Two names of one dataset would be two sources.
    if execution.is_whole and (
        all(edge[1] in read for edge in logged.edges) or read <= {one.dataset for one in execution.inputs}
    ):
        # The listener calls DIRECT what only decides, where an alias or a function is between the two. A plan does not
        # tell the sorts that are the user's from those that Spark puts in.
        known = {(*edge[:3], edge[3].type) for edge in logged.edges}
        edges = frozenset(
            edge
            for edge in edges
            if (*edge[:3], edge[3].type) in known or (edge[0] is None and edge[3].subtype == "SORT")
        )
    if execution.command in _LEAVING:
        edges |= _copies(listened.dataset, listened.schema)
    return edges


def _filled(
    listened: tuple[Observed, ...], logged: tuple[Observed, ...], execution: Execution, read: set[DatasetName]
) -> tuple[Observed, ...]:
    """Return the listener's outputs with the edges of both and columns, or where it names no output those of the log.

    ``read`` are the inputs by the listener's names. The listener loses columns that go through Python functions,
    subqueries, and what stands above a union; of rows that are changed in place it tells columns that were not read.
    """
    if not listened:
        # A JDBC table has no place in the log, where Spark redacts its URL.
        return tuple(output for output in logged if output.dataset.namespace)
    by_name = {output.dataset: output for output in logged}
    if len(listened) == len(logged) == 1:
        by_name = {listened[0].dataset: logged[0]}
    return tuple(
        structs.replace(
            output,
            schema=output.schema or by_name[output.dataset].schema,
            edges=_edges(output, by_name[output.dataset], execution, read),
        )
        if output.dataset in by_name
        else output
        for output in listened
    )


def run_of(execution: Execution) -> RunState:
    """Return the run of an execution that the listener kept silent about."""
    execution = with_names(execution, ())
    ended = execution.started if execution.ended is None else execution.ended
    content = RunContent(
        parent_run_id="",
        job_type="SQL_JOB",
        job_namespace="",
        job_name=execution.command,
        is_streaming=bool(execution.query_id),
        inputs=execution.inputs,
        outputs=tuple(output for output in execution.outputs if output.dataset.namespace),
    )
    return RunState(execution.started, ended, _seen(execution), content)


def last_part(output: Observed) -> str:
    """Return what is the same in all spellings of a name."""
    return output.dataset.name.rstrip("/").rpartition("/")[2]
