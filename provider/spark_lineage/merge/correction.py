"""Corrects what the listener says of SQL runs by what Spark's event log says of the same executions.

The listener stamps START and COMPLETE of a SQL run with the very milliseconds of the execution's start and end, which
is how the two are recognised as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import structs

from spark_lineage.merge.execution import PUSHED_JOIN, CatalogStatement, Execution, is_hidden, topic_of, unnamed_part
from spark_lineage.merge.lineage import IDENTITY, SchemaField
from spark_lineage.merge.observed import (
    Edge,
    Observed,
    by_name,
    combine,
    in_partition,
    join,
    keep_edges,
    renamed,
    with_sources,
)
from spark_lineage.merge.partitions import column_value, joined
from spark_lineage.merge.query_tables import UNREAD_QUERY, with_queries
from spark_lineage.merge.state import COMPLETED, FAILED, RAN, RDD_JOB, STARTED, LineageState, RunContent, RunState
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace

# These commands of v2 tables write the rows that they keep anew.
_ROW_COMMANDS = frozenset({"ReplaceData", "WriteDelta"})
_MERGE = "MergeIntoCommand"
# These commands leave rows of the table as they are.
LEAVING = frozenset({"DeleteFromTable", "WriteDelta", _MERGE, "UpdateHoodieTableCommand", "DeleteHoodieTableCommand"})
# Hudi adds columns of this prefix to a table.
_HUDI_COLUMNS = "_hoodie_"
_KAFKA = "kafka://"
_Key = tuple[str, str, int]


def corrected(run: RunState, execution: Execution) -> RunState:
    """Return a run as its execution corrects it: a failure sticks, an end that was seen counts, silence is filled."""
    is_of_rdds = run.content.job_type == RDD_JOB or execution.has_rdds
    execution = with_names(_whole(execution) if is_of_rdds else execution, run.content.inputs)
    names = _same_tables(run.content.inputs, execution.inputs)
    content = _of_partitions(run.content, [renamed(read, names).dataset for read in execution.inputs])
    known = {read.dataset for read in content.inputs}
    if is_of_rdds:
        listened_inputs, logged = _of_rdds(content, execution)
    else:
        # A plan names the first of many files, whose directory is the listener's input.
        logged = [renamed(read, names) for read in execution.inputs]
        logged = [read for read in logged if known.isdisjoint(directories_above(read.dataset))]
        listened_inputs = content.inputs
    inputs = join(_without_versions(listened_inputs, logged), by_name(logged))
    listened = content.outputs
    if execution.mode == "Append":
        # The plan appends, though the listener may say OVERWRITE: it does for Hudi.
        listened = tuple(structs.replace(one, lifecycles=one.lifecycles - {"OVERWRITE"}) for one in listened)
    logged_outputs = tuple(with_sources(output, names) for output in execution.outputs)
    if not listened and execution.command in LEAVING:
        logged_outputs = _left(logged_outputs, listened_inputs)
    outputs = _filled(listened, logged_outputs, execution, known)
    if execution.command == _MERGE:
        outputs = tuple(_without_new_columns(output, listened_inputs) for output in outputs)
    content = structs.replace(content, inputs=inputs, outputs=_in_partition(outputs, execution))
    # The listener's START may be lost.
    first, last = min(run.first, execution.started), max(run.last, execution.ended or run.last)
    return RunState(first, last, run.seen | _seen(execution), content)


def _without_versions(listened: tuple[Observed, ...], logged: Iterable[Observed]) -> tuple[Observed, ...]:
    """Return the listener's inputs without the version of a table whose version the log has: that was read."""
    known = {read.dataset.whole for read in logged if read.versions}
    return tuple(
        structs.replace(read, versions=frozenset(), scanned=frozenset()) if read.dataset.whole in known else read
        for read in listened
    )


def _whole(execution: Execution) -> Execution:
    """Return an execution whose tables are read as a whole: what an RDD reads of them the listener does not say."""
    wholes = {read.dataset: read.dataset.whole for read in execution.inputs}
    return structs.replace(
        execution,
        inputs=by_name(renamed(read, wholes) for read in execution.inputs),
        outputs=tuple(with_sources(output, wholes) for output in execution.outputs),
    )


def _of_partitions(content: RunContent, logged: Collection[DatasetName]) -> RunContent:
    """Return what the listener says of a run by the partitions that the log names, where it has the whole of them."""
    partitions: dict[DatasetName, list[DatasetName]] = {}
    for name in logged:
        if name.partition and name.whole not in logged:
            partitions.setdefault(name.whole, []).append(name)
    if not partitions:
        return content
    alone = {whole: found[0] for whole, found in partitions.items() if len(found) == 1}
    inputs = by_name(
        structs.replace(read, dataset=name)
        for read in content.inputs
        for name in partitions.get(read.dataset, [read.dataset])
    )
    outputs = tuple(with_sources(one, alone) for one in content.outputs)
    return structs.replace(content, inputs=inputs, outputs=outputs)


def _of_rdds(content: RunContent, execution: Execution) -> tuple[tuple[Observed, ...], list[Observed]]:
    """Return what the listener and the log name as inputs of a run that reads RDDs.

    Of files that an RDD reads the listener has the directories around them, without columns, and a table by its
    directory; the log has the files, and a table by its place where it knows that, else by its name.
    """
    bare = {read.dataset for read in content.inputs if read.is_bare and is_path_namespace(read.dataset.namespace)}
    whole = {read.dataset for read in content.inputs} - bare
    names = _same_tables(content.inputs, execution.inputs) | _same_directories(bare, execution)
    logged = [renamed(read, names) for read in execution.inputs]
    logged = [read for read in logged if whole.isdisjoint(directories_above(read.dataset))]
    if content.job_type == RDD_JOB and bare:
        # A name that a program gave its RDD may look like a path, but lies in no directory that was read.
        logged = [read for read in logged if _is_named_alone(read) or not bare.isdisjoint(with_above(read.dataset))]
    found = {read.dataset for read in logged}
    around = {above for name in found for above in directories_above(name)}
    replaced = {name for name in bare - found if name in around or not found.isdisjoint(directories_above(name))}
    return tuple(read for read in content.inputs if read.dataset not in replaced), logged


def with_above(name: DatasetName) -> tuple[DatasetName, ...]:
    """Return a path and the directories that it lies in."""
    return name, *directories_above(name)


def _is_named_alone(read: Observed) -> bool:
    """Whether a table is known by its name in the catalog, and not by its place."""
    return not is_path_namespace(read.dataset.namespace) or any(link.dataset == read.dataset for link in read.tables)


def _same_directories(bare: set[DatasetName], execution: Execution) -> dict[DatasetName, DatasetName]:
    """Return the directories of tables that the scans of RDDs name without a place: by their names, else the only one.

    The files of a table that is partitioned lie in directories below its own.
    """
    nameless = [read for read in execution.inputs if read.tables and _is_named_alone(read)]
    found: dict[DatasetName, DatasetName] = {}
    for read in nameless:
        lasts = {link.name.rpartition(".")[2].casefold() for link in read.tables}
        places = {
            above for name in bare for above in with_above(name) if above.name.rpartition("/")[2].casefold() in lasts
        }
        if len(places) == 1:
            (found[read.dataset],) = places
    placed = {*found.values(), *(read.dataset for read in execution.inputs if read not in nameless)}
    around = {above for name in placed for above in directories_above(name)}
    left = [name for name in bare - around if placed.isdisjoint(with_above(name))]
    missing = [read.dataset for read in nameless if read.dataset not in found]
    if len(left) == len(missing) == 1 and not execution.unread_files:
        found[missing[0]] = left[0]
    return found


def run_of(execution: Execution) -> RunState:
    """Return the run of an execution that has no event of the listener, and that has its names."""
    inputs = execution.inputs
    outputs = _in_partition(_filled((), execution.outputs, execution, set()), execution)
    job_type = RDD_JOB if execution.execution_id < 0 else "SQL_JOB"
    content = RunContent("", job_type, "", execution.job_name, bool(execution.query_id), inputs, outputs)
    ended = execution.started if execution.ended is None else execution.ended
    return RunState(execution.started, ended, _seen(execution), content)


def _in_partition(outputs: tuple[Observed, ...], execution: Execution) -> tuple[Observed, ...]:
    """Return outputs as the static partition that a command writes."""
    partition = written_partition(execution)
    return tuple(in_partition(one, joined(one.dataset.partition, partition)) for one in outputs)


def written_partition(execution: Execution) -> str:
    """Return the static partition that a command writes, as a path: ``day=1/region=eu``."""
    columns = (each.partition("=") for each in execution.partition)
    return joined(*(column_value(column, value) for column, _, value in columns))


def with_declared_names(execution: Execution, declared: tuple[Observed, ...]) -> Execution:
    """Return an execution without events of the listener, with the names that are declared for its tables.

    What a plan reads without a name that fits is unread, and columns of a table that neither it nor others name:
    """
    execution = with_queries(execution, declared)
    names = _fitting((*execution.inputs, *execution.outputs), declared)
    named = with_names(execution, declared)
    nameless = [one.dataset for one in execution.inputs if not (one.dataset.namespace or one.dataset in names)]
    unread = sorted(f"{one.name}: its database" for one in nameless if not one.name.startswith("("))
    is_refused = execution.is_failed and not execution.has_jobs
    # A name of its own kind is counted with the names that were given.
    is_nameless = any(not unnamed_part(one) for one in nameless)
    if execution.outputs and is_nameless and not (unread or named.inputs or is_refused):
        # A logical relation has no name, and no execution inside of the command says what it reads. One that failed
        # before its first job has read nothing.
        unread = [f"{execution.command}: its inputs"]
    if execution.statement is not None and execution.statement.has_unnamed_columns:
        unread.append(f"{execution.command}: a column that it renames or drops")
    outputs = tuple(renamed(output, names) for output in named.outputs)
    return structs.replace(named, outputs=outputs, unread=(*named.unread, *unread))


def with_names(execution: Execution, listened: tuple[Observed, ...]) -> Execution:
    """Return an execution with the names that the listener has for what its plan leaves unnamed.

    What fits none of the listener's inputs, or several, goes; the plan was then not read as a whole. Tables and topics
    that a scan does not name are then unread.
    """
    nameless = {one.dataset for one in execution.inputs if not one.dataset.namespace}
    if not nameless:
        return execution
    known = {one.dataset for one in execution.inputs}
    others = [one for one in listened if one.dataset not in known]
    hidden = [one for one in execution.inputs if is_hidden(one.dataset)]
    names = _fitting(execution.inputs, others)
    # A count has no columns: no edge needs its table, and the listener has that as an input.
    counted = {one.dataset for one in hidden if others and not one.schema}
    unread = [unnamed_part(name) for name in sorted(nameless - names.keys() - counted)]
    inputs = by_name(
        structs.replace(renamed(one, names), schema=())
        for one in execution.inputs
        if one.dataset in names or one.dataset.namespace
    )
    outputs = tuple(
        keep_edges(with_sources(output, names), lambda edge: bool(edge[1].namespace)) for output in execution.outputs
    )
    is_whole = execution.is_whole and names.keys() | counted == nameless
    lost = {edge[1] for output in execution.outputs for edge in output.edges} & nameless - names.keys()
    if any(name.name.startswith("(") and not unnamed_part(name) for name in lost):
        unread.append(f"{execution.command}: its inputs")
    unread = [*execution.unread, *filter(None, unread)]
    return structs.replace(execution, inputs=inputs, outputs=outputs, is_whole=is_whole, unread=tuple(unread))


def _fitting(observed: Iterable[Observed], others: Collection[Observed]) -> dict[DatasetName, DatasetName]:
    """Return the names of what a plan leaves unnamed, where just one of the others fits."""
    nameless = [one for one in observed if not one.dataset.namespace]
    fitting = {one.dataset: [other.dataset for other in others if _fits(one, other)] for one in nameless}
    return {name: found[0] for name, found in fitting.items() if len(found) == 1}


def _fits(one: Observed, other: Observed) -> bool:
    """Whether an input of the listener may be what a plan reads: by the name of a table, or else by its columns."""
    if (topic := topic_of(one.dataset)) is not None:
        return other.dataset.namespace.startswith(_KAFKA) and other.dataset.name == topic
    name = one.dataset.name
    if name.startswith("("):
        columns = {field.name for field in one.schema}
        return bool(columns) and columns <= {field.name for field in other.schema}
    parts, others = (each.replace('"', "").replace("`", "").split(".") for each in (name, other.dataset.name))
    return not is_path_namespace(other.dataset.namespace) and others[-len(parts) :] == parts


def _same_tables(listened: tuple[Observed, ...], logged: tuple[Observed, ...]) -> dict[DatasetName, DatasetName]:
    """Return the listener's names of tables that a plan names without telling where they are (Hive's).

    Two catalogs may have tables of one name: one whose catalog the listener names is no table of another.
    """
    known = {read.dataset for read in listened}
    places = {link.dataset: read.dataset for read in listened for link in read.tables}
    exact = {place for read in logged for link in read.tables if (place := places.get(link.dataset))}
    # The listener and the log may spell a catalog in two ways, as that of a metastore.
    left = {link.name: read.dataset for read in listened if read.dataset not in exact for link in read.tables}
    # A dataset that has a table's name is no other table whose name ends alike.
    left |= {f"/{last_part(read)}": read.dataset for read in listened if not read.tables}
    found: dict[DatasetName, DatasetName] = {}
    for read in logged:
        if read.dataset.whole not in known:
            ways = (
                places.get(link.dataset) or left.get(link.name) or left.get(f"/{link.name.rpartition('.')[2]}")
                for link in read.tables
            )
            if place := next(filter(None, ways), None):
                found[read.dataset] = structs.replace(place, partition=read.dataset.partition)
    missing = [read for read in logged if read.dataset not in known | found.keys() and _is_named_alone(read)]
    named = {name for read in logged for name in with_above(read.dataset)} | {*found.values()}
    unmatched = [read for read in listened if not (read.tables or read.is_bare) and read.dataset not in named]
    if len(missing) == len(unmatched) == 1 and missing[0].tables and is_path_namespace(unmatched[0].dataset.namespace):
        # The only one that is left: an external table of Hive, which the listener names by its place alone.
        found[missing[0].dataset] = unmatched[0].dataset
    return found


def _without_new_columns(output: Observed, inputs: tuple[Observed, ...]) -> Observed:
    """Return a table without edges from columns of its own that a MERGE adds to it (schema evolution)."""
    former = {field.name.casefold() for one in inputs if one.dataset == output.dataset for field in one.schema}
    return keep_edges(output, lambda edge: not former or edge[1] != output.dataset or edge[2].casefold() in former)


def _seen(execution: Execution) -> int:
    end = FAILED if execution.is_failed else 0 if execution.ended is None else COMPLETED
    return STARTED | (RAN if execution.has_jobs else 0) | end


def _left(logged: tuple[Observed, ...], inputs: tuple[Observed, ...]) -> tuple[Observed, ...]:
    """Return what a command changes rows of with the columns of the rows that it leaves, as the listener read them."""
    read = {
        one.dataset: tuple(field for field in one.schema if not field.name.startswith(_HUDI_COLUMNS)) for one in inputs
    }
    return tuple(with_columns_left(one, read.get(one.dataset, ())) for one in logged)


def with_columns_left(one: Observed, schema: tuple[SchemaField, ...]) -> Observed:
    """Return a table of which rows are left, with its columns, where they are known, and the edges that they copy."""
    return structs.replace(one, schema=schema, edges=one.edges | _copies(one.dataset, schema)) if schema else one


def _copies(table: DatasetName, schema: Iterable[SchemaField]) -> frozenset[Edge]:
    return frozenset((field.name, table, field.name, IDENTITY) for field in schema)


def _filled(
    listened: tuple[Observed, ...], logged: tuple[Observed, ...], execution: Execution, read: set[DatasetName]
) -> tuple[Observed, ...]:
    """Return the listener's outputs with the edges of both and columns, or where it names no output those of the log.

    ``read`` are the inputs by the listener's names. The listener loses columns that go through Python functions,
    subqueries, and what stands above a union; for rows that are changed in place it names columns that were not read.
    """
    if not listened:
        # A JDBC table has no place in the log, where Spark redacts its URL.
        return tuple(output for output in logged if output.dataset.namespace)
    if len(listened) == len(logged) == 1:
        listened = (in_partition(listened[0], logged[0].dataset.partition),)
        logged = (structs.replace(logged[0], dataset=listened[0].dataset),)
    found = {output.dataset: output for output in logged}
    return tuple(
        structs.replace(
            output,
            schema=output.schema or same.schema,
            edges=_edges(output, same, execution, read),
            # The listener does not count all files of a write in partitions.
            statistics=combine(same.statistics, output.statistics, lambda logged, _: logged),
        )
        if (same := found.get(output.dataset))
        else output
        for output in listened
    )


def _edges(listened: Observed, logged: Observed, execution: Execution, read: set[DatasetName]) -> frozenset[Edge]:
    # A plan that is cut names no schema, and not all columns.
    is_known = bool(execution.command in _ROW_COMMANDS and logged.edges and logged.schema)
    # Two names of one dataset would be two sources.
    is_known |= execution.is_whole and (
        all(edge[1] in read for edge in logged.edges) or read <= {one.dataset for one in execution.inputs}
    )
    # The listener calls DIRECT what only decides, where an alias or a function is between the two.
    edges = logged.edges
    if not is_known:
        # The listener gives all columns to the first table of a join of the database.
        is_joined = any(part == PUSHED_JOIN or part.startswith(UNREAD_QUERY) for part in execution.unread)
        edges |= {edge for edge in listened.edges if not is_joined or is_path_namespace(edge[1].namespace)}
    return edges | (_copies(listened.dataset, listened.schema) if execution.command in LEAVING else frozenset())


def last_part(output: Observed) -> str:
    """Return what is the same in all spellings of a name."""
    return output.dataset.name.rstrip("/").rpartition("/")[2]


def places_of(state: LineageState, executions: Iterable[Execution]) -> dict[DatasetName, DatasetName]:
    """Return the absolute paths of datasets that the listener names by relative ones, where the log knows just one."""
    relative = {
        one.dataset
        for run in state.runs.values()
        for one in (*run.content.inputs, *run.content.outputs)
        if one.dataset.namespace == "file" and one.dataset.name[:1] != "/"
    }
    if not relative:
        return {}
    logged = {one.dataset for execution in executions for one in (*execution.inputs, *execution.outputs)}
    found: dict[DatasetName, DatasetName] = {}
    for name in relative:
        fitting = [place for place in logged if place.name.endswith(f"/{name.name}")]
        if len(wholes := {place.whole for place in fitting}) == 1:
            found |= {structs.replace(name, partition=place.partition): place for place in fitting}
            found[name] = wholes.pop()
    return found


def said_once(runs: Mapping[str, RunState], executions: Mapping[str, Execution]) -> dict[str, Execution]:
    """Return each statement once: a command may run within another execution, whose plan repeats it.

    The run that names what was written has it, the inner one of two.
    """
    first: dict[tuple[_Key, CatalogStatement], str] = {}
    for run_id in sorted(executions, key=lambda each: (not runs[each].content.outputs, runs[each].last, each)):
        one = executions[run_id]
        if one.statement is not None:
            first.setdefault((one.root_key, one.statement), run_id)
    kept = set(first.values())
    return {
        run_id: one if one.statement is None or run_id in kept else structs.replace(one, statement=None)
        for run_id, one in executions.items()
    }


def matched(state: LineageState, logged: Mapping[_Key, Execution]) -> dict[str, Execution]:
    """Return the execution of each SQL run, by the moment of its start; a run without a START is known by its end."""
    moments: dict[tuple[str, bool, int], list[Execution]] = {}
    for _, one in sorted(logged.items()):
        for is_start, time in ((True, one.started), (False, one.ended)):
            if time is not None:
                moments.setdefault((one.application_id, is_start, _milliseconds(time)), []).append(one)
    # Events may keep silent about their application's id.
    logs = {one.application_id for one in logged.values()}
    the_only = min(logs) if len(logs) == 1 else ""
    known: dict[str, list[str]] = {}
    for run_id, application_id in sorted(state.own_applications()):
        known.setdefault(run_id, []).append(application_id)
    found: dict[str, Execution] = {}
    taken: set[_Key] = set()
    for run_id, run in sorted(state.runs.items()):
        if run.content.job_type == "APPLICATION" or run.content.is_declared:
            continue
        is_rdd = run.content.job_type == RDD_JOB
        is_started = bool(run.seen & STARTED)
        moment = _milliseconds(run.first if is_started else run.last)
        candidates = [
            one
            for application_id in known.get(run.content.parent_run_id, [the_only])
            for one in moments.get((application_id, is_started, moment), ())
            if one.key not in taken and (one.execution_id < 0) == is_rdd
        ]
        if candidates:
            found[run_id] = max(candidates, key=lambda one: (_likeness(run, one), -one.execution_id))
            taken.add(found[run_id].key)
    return found


def _milliseconds(epoch_seconds: float) -> int:
    return round(epoch_seconds * 1000)


def _likeness(run: RunState, execution: Execution) -> tuple[bool, bool, bool]:
    """Return how well an execution of the same moment fits: by what it wrote, by its end, by its command."""
    ours, theirs = ({last_part(output) for output in outputs} for outputs in (run.content.outputs, execution.outputs))
    is_same_end = execution.ended is not None and _milliseconds(execution.ended) == _milliseconds(run.last)
    is_same_command = execution.command.casefold() in run.content.job_name.replace("_", "")
    return bool(ours & theirs) or not (ours or theirs), is_same_end, is_same_command
