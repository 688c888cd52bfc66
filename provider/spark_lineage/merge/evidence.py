"""Lays evidence beyond the listener over its runs: what Spark's event log says of the same SQL executions.

The listener stamps START and COMPLETE of a SQL run with the very milliseconds of the execution's start and end, which
is how the two are recognised as one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec import structs

from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import Transformation
from spark_lineage.merge.model_directories import by_model, model_directories
from spark_lineage.merge.noise import is_compaction, is_internal
from spark_lineage.merge.observed import Edge, Observed, by_name, join, named
from spark_lineage.merge.state import COMPLETED, FAILED, RAN, STARTED, LineageState, RunContent, RunState
from spark_lineage.merge.unnamed_datasets import with_names
from spark_lineage.naming.chain import Naming
from spark_lineage.naming.identity import DatasetName, directories_above

# Commands of v2 tables that write the rows that they keep anew.
_ROW_COMMANDS = frozenset({"ReplaceData", "WriteDelta"})
_RDD_JOB = "RDD_JOB"
# They leave rows of the table as they are.
_LEAVING = frozenset({"DeleteFromTable", "WriteDelta"})
# Where a row came from: a column that every source of files has, and no file.
_METADATA = "_metadata"
_COPY = Transformation("DIRECT", "IDENTITY")


class Evidence:
    """The runs of a state as all evidence together has them, by the names that a naming gives.

    While a stream runs, what its event log has not told yet is left out, where it is going to (``is_logged``): only the
    log knows which directory the files belong to that the listener names, and which run writes for which query.

    ``runs`` are the listener's, and one for each execution that the listener kept silent about; ``executions`` tells by
    run id what the event log says, and ``roots`` the run that a nested run is part of.
    """

    def __init__(self, state: LineageState, naming: Naming, *, is_logged: bool = False) -> None:
        self.runs: Mapping[str, RunState] = state.runs
        self.executions: Mapping[str, Execution] = {}
        self._naming = naming
        self._contents: dict[int, RunContent] = {}
        self._places: Mapping[DatasetName, DatasetName] = {}
        self._models: frozenset[DatasetName] = frozenset()
        if state.executions:
            self._add_executions(state)
        if any(run.content.is_streaming for run in self.runs.values()):
            self._read_streams(is_logged=is_logged)
        contents = {id(run.content): run.content for run in self.runs.values()}
        self._models = model_directories(
            one for content in contents.values() for one in (*content.inputs, *content.outputs)
        )
        self.roots = _roots(self)

    def content(self, run_id: str) -> RunContent:
        """Give what a run did; runs that did the same share it."""
        content = self.runs[run_id].content
        known = self._contents.get(id(content))
        if known is None and is_compaction(content):
            known = self._contents[id(content)] = structs.replace(content, inputs=(), outputs=())
        if known is None:
            inputs = self._named(content.inputs)
            outputs = tuple(_from_inputs(one, inputs) for one in self._named(content.outputs))
            known = structs.replace(content, inputs=inputs, outputs=outputs)
            self._contents[id(content)] = known
        return known

    def _named(self, observed: tuple[Observed, ...]) -> tuple[Observed, ...]:
        if self._places:
            observed = by_name(map(self._placed, observed))
        renamed = tuple(_from_outside(one) for one in named(observed, self._naming) if not is_internal(one.dataset))
        return by_model(renamed, self._models) if self._models else renamed

    def _placed(self, one: Observed) -> Observed:
        """Give a dataset, which the listener may name by a relative path, the path that the log has for it."""
        if one.dataset not in self._places and not any(source in self._places for _, source, _, _ in one.edges):
            return one
        edges = frozenset((column, self._places.get(name, name), field, how) for column, name, field, how in one.edges)
        return structs.replace(one, dataset=self._places.get(one.dataset, one.dataset), edges=edges)

    def inputs(self, run_id: str) -> tuple[Observed, ...]:
        """Give what a run read; of one inside a micro-batch that names nothing, what the micro-batch read."""
        content = self.content(run_id)
        if content.inputs or not content.outputs:
            return content.inputs
        root = self.roots.get(run_id)
        return self.content(root).inputs if root is not None else ()

    def _add_executions(self, state: LineageState) -> None:
        logged = _logged(state)
        executions = _matched(state, logged)
        self._places = _places(state, logged.values())
        runs = dict(state.runs)
        for run_id, one in executions.items():
            runs[run_id] = _corrected(runs[run_id], one)
        silent = logged.keys() - {_key(one) for one in executions.values()}
        for one in (logged[key] for key in sorted(silent)):
            run_id = f"{one.application_id}/{one.execution_id}"
            runs[run_id] = _run_of(one)
            executions[run_id] = one
        self.runs, self.executions = runs, executions

    def _read_streams(self, *, is_logged: bool) -> None:
        """Give what micro-batches, and runs inside of them, read by the directories that their query reads.

        Of a query that is not known it may be the directory of any.
        """
        runs = {run_id: run for run_id, run in self.runs.items() if not is_logged or self._is_told(run_id, run.content)}
        watched: dict[str, set[DatasetName]] = {"": set()}
        for run_id, run in runs.items():
            if run.content.is_streaming:
                for query_id in {"", self._query_id(run_id)}:
                    watched.setdefault(query_id, set()).update(read.dataset for read in run.content.inputs)
        for run_id, run in runs.items():
            query_id = self._query_id(run_id)
            if query_id or run.content.is_streaming:
                folded = _folded(run.content.inputs, watched.get(query_id, set()))
                if folded is not run.content.inputs:
                    runs[run_id] = structs.replace(run, content=structs.replace(run.content, inputs=folded))
        self.runs = runs

    def _is_told(self, run_id: str, content: RunContent) -> bool:
        """Whether the log has told a run, or has nothing to tell of it."""
        is_empty = not (content.inputs or content.outputs or content.is_streaming)
        return run_id in self.executions or content.is_declared or is_empty

    def _query_id(self, run_id: str) -> str:
        execution = self.executions.get(run_id)
        return execution.query_id if execution is not None else ""


def _from_inputs(one: Observed, inputs: tuple[Observed, ...]) -> Observed:
    """Give a dataset with the columns of an input where its edges name the folder around it, as the listener cut it."""
    read = {each.dataset for each in inputs}
    inside: dict[DatasetName, list[DatasetName]] = {}
    for name in read:
        for folder in islice(directories_above(name), 1):
            inside.setdefault(folder, []).append(name)
    cut = {folder: names[0] for folder, names in inside.items() if folder not in read and len(names) == 1}
    if not any(source in cut for _, source, _, _ in one.edges):
        return one
    edges = frozenset((column, cut.get(name, name), field, how) for column, name, field, how in one.edges)
    return structs.replace(one, edges=edges)


def _from_outside(one: Observed) -> Observed:
    """Give a dataset without the columns that it has from bookkeeping."""
    kept = frozenset(edge for edge in one.edges if edge[2] != _METADATA and not is_internal(edge[1]))
    return one if len(kept) == len(one.edges) else structs.replace(one, edges=kept)


def _places(state: LineageState, executions: Iterable[Execution]) -> dict[DatasetName, DatasetName]:
    """Give the absolute paths of datasets that the listener names by relative ones, where the log knows just one."""
    relative = {
        one.dataset
        for run in state.runs.values()
        for one in (*run.content.inputs, *run.content.outputs)
        if one.dataset.namespace == "file" and one.dataset.name[:1] != "/"
    }
    if not relative:
        return {}
    logged = {one.dataset for execution in executions for one in (*execution.inputs, *execution.outputs)}
    found = {name: [place for place in logged if place.name.endswith(f"/{name.name}")] for name in relative}
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _key(execution: Execution) -> tuple[str, int]:
    return execution.application_id, execution.execution_id


def _milliseconds(epoch_seconds: float) -> int:
    return round(epoch_seconds * 1000)


def _logged(state: LineageState) -> dict[tuple[str, int], Execution]:
    """Give the executions of the applications whose events came; the jobs of a nested one are its root's as well."""
    known = {application.application_id for application in state.applications.values()} - {None}
    working = {(one.application_id, one.root_execution_id) for one in state.executions.values() if one.has_jobs}
    return {
        key: structs.replace(one, has_jobs=True) if key in working and not one.has_jobs else one
        for key, one in state.executions.items()
        if not known or one.application_id in known
    }


def _matched(state: LineageState, logged: Mapping[tuple[str, int], Execution]) -> dict[str, Execution]:
    """Give the execution of each SQL run, by the moment of its start; a run without a START is known by its end."""
    starts: dict[tuple[str, int], list[Execution]] = {}
    ends: dict[tuple[str, int], list[Execution]] = {}
    for _, execution in sorted(logged.items()):
        starts.setdefault((execution.application_id, _milliseconds(execution.started)), []).append(execution)
        if execution.ended is not None:
            ends.setdefault((execution.application_id, _milliseconds(execution.ended)), []).append(execution)
    # Events may keep silent about their application's id.
    logs = {one.application_id for one in logged.values()}
    the_only = min(logs) if len(logs) == 1 else ""
    matched: dict[str, Execution] = {}
    taken: set[tuple[str, int]] = set()
    for run_id, run in sorted(state.runs.items()):
        if run.content.job_type == "APPLICATION" or run.content.is_declared:
            continue
        is_rdd = run.content.job_type == _RDD_JOB
        application = state.applications.get(run.content.parent_run_id)
        application_id = (application and application.application_id) or the_only
        is_started = bool(run.seen & STARTED)
        moments, moment = (starts, run.first) if is_started else (ends, run.last)
        candidates = [
            one
            for one in moments.get((application_id, _milliseconds(moment)), ())
            if _key(one) not in taken and (one.execution_id < 0) == is_rdd
        ]
        if candidates:
            best = max(candidates, key=lambda one: (_likeness(run, one), -one.execution_id))
            matched[run_id] = best
            taken.add(_key(best))
    return matched


def _likeness(run: RunState, execution: Execution) -> tuple[bool, bool, bool]:
    """How well an execution of the same moment fits: by what it wrote, by its end, by its command."""
    ours = {_last_part(output) for output in run.content.outputs}
    theirs = {_last_part(output) for output in execution.outputs}
    is_same_end = execution.ended is not None and _milliseconds(execution.ended) == _milliseconds(run.last)
    command = execution.command.casefold()
    return bool(ours & theirs) or not (ours or theirs), is_same_end, command in run.content.job_name.replace("_", "")


def _last_part(output: Observed) -> str:
    """Give what is the same in all spellings of a name."""
    return output.dataset.name.rstrip("/").rpartition("/")[2]


def _corrected(run: RunState, execution: Execution) -> RunState:
    """Give a run as its execution corrects it: a failure sticks, an end that was seen counts, silence is filled."""
    seen = run.seen | _seen(execution)
    content = run.content
    execution = with_names(execution, content.inputs)
    names = _same_tables(content.inputs, execution.inputs)
    known = {read.dataset for read in content.inputs}
    logged = [structs.replace(read, dataset=names.get(read.dataset, read.dataset)) for read in execution.inputs]
    # A plan names the first of many files, whose directory is the listener's input.
    logged = [read for read in logged if known.isdisjoint(directories_above(read.dataset))]
    if content.job_type == _RDD_JOB:
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
    outputs = _filled(listened, _renamed(execution.outputs, names), execution, known)
    return RunState(
        run.first,
        max(run.last, execution.ended or run.last),
        seen,
        structs.replace(content, inputs=inputs, outputs=outputs),
    )


def _appending(listened: tuple[Observed, ...]) -> tuple[Observed, ...]:
    """Give the outputs of a write whose plan appends, though the listener may say OVERWRITE: it does for Hudi."""
    return tuple(structs.replace(output, lifecycles=output.lifecycles - {"OVERWRITE"}) for output in listened)


def _same_tables(listened: tuple[Observed, ...], logged: tuple[Observed, ...]) -> dict[DatasetName, DatasetName]:
    """Give the listener's names of tables that a plan names without telling where they are (Hive's)."""
    places = {link.name: read.dataset for read in listened for link in read.symlinks if link.type == "TABLE"}
    # One that has a table's name is no other table whose name ends alike.
    places |= {f"/{_last_part(read)}": read.dataset for read in listened if not _table_names(read)}
    known = {read.dataset for read in listened}
    return {
        read.dataset: places[name]
        for read in logged
        if read.dataset not in known
        for link in read.symlinks
        for name in (link.name, f"/{_last_part(read)}")
        if link.type == "TABLE" and name in places
    }


def _table_names(one: Observed) -> list[str]:
    return [link.name for link in one.symlinks if link.type == "TABLE"]


def _renamed(outputs: tuple[Observed, ...], names: Mapping[DatasetName, DatasetName]) -> tuple[Observed, ...]:
    return tuple(
        structs.replace(
            output,
            edges=frozenset((column, names.get(name, name), field, how) for column, name, field, how in output.edges),
        )
        for output in outputs
    )


def _folded(inputs: tuple[Observed, ...], watched: set[DatasetName]) -> tuple[Observed, ...]:
    """Give what a micro-batch read by the directory that its query watches: a batch of one file names that file."""
    around = {read.dataset: [above for above in directories_above(read.dataset) if above in watched] for read in inputs}
    if not any(around.values()):
        return inputs
    return by_name(
        structs.replace(read, dataset=around[read.dataset][-1]) if around[read.dataset] else read for read in inputs
    )


def _seen(execution: Execution) -> int:
    seen = STARTED | (RAN if execution.has_jobs else 0)
    if execution.is_failed:
        return seen | FAILED
    return seen if execution.ended is None else seen | COMPLETED


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
        # What stays are rows of the table itself.
        edges |= {(field.name, listened.dataset, field.name, _COPY) for field in listened.schema}
    return edges


def _filled(
    listened: tuple[Observed, ...], logged: tuple[Observed, ...], execution: Execution, read: set[DatasetName]
) -> tuple[Observed, ...]:
    """Give the listener's outputs with the edges of both and columns, or where it names no output those of the log.

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


def _run_of(execution: Execution) -> RunState:
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


def _roots(evidence: Evidence) -> dict[str, str]:
    """Give the run that each nested one is part of: as the log says, else the only micro-batch that it lies within."""
    runs, executions = evidence.runs, evidence.executions
    by_execution = {_key(one): run_id for run_id, one in executions.items()}
    roots: dict[str, str] = {}
    for run_id, one in executions.items():
        root = by_execution.get((one.application_id, one.root_execution_id))
        if root is not None and root != run_id:
            roots[run_id] = root
    batches = sorted(
        (run.first, run.last, run_id) for run_id, run in runs.items() if run.content.is_streaming and run.content.inputs
    )
    starts = [first for first, _, _ in batches]
    for run_id, run in runs.items() if batches else ():
        content = run.content
        if run_id in executions or content.is_streaming or content.inputs or not content.outputs:
            continue
        around = [batch for _, last, batch in batches[: bisect_right(starts, run.first)] if run.last <= last]
        if len({tuple(read.dataset for read in evidence.content(batch).inputs) for batch in around}) == 1:
            roots[run_id] = min(around)
    return roots
