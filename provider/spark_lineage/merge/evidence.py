"""Lays evidence beyond the listener over its runs: what Spark's event log says of the same SQL executions.

The listener stamps START and COMPLETE of a SQL run with the very milliseconds of the execution's start and end, which
is how the two are recognised as one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec import structs

from spark_lineage.merge.correction import corrected, last_part, run_of
from spark_lineage.merge.execution import NO_EXECUTION, CatalogStatement, Execution
from spark_lineage.merge.noise import (
    RDD_JOB,
    by_model,
    is_compaction,
    is_internal,
    is_schema_reading,
    metadata_tables,
    model_directories,
    real_tables,
    without,
)
from spark_lineage.merge.observed import Observed, by_name, keep_edges, named, renamed, with_sources
from spark_lineage.merge.state import STARTED, LineageState, RunContent, RunState
from spark_lineage.naming.chain import Naming
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace

# Where a row came from: a column that every source of files has, and no file.
_METADATA = "_metadata"
# What the listener calls a ``FileScanRDD`` in the name of a job.
_FILE_SCAN = "file_scan"

_Key = tuple[str, int]


class Evidence:
    """The runs of a state as all evidence together has them, by the names that a naming gives.

    While a stream runs, what its event log has not told yet is left out, where it is going to (``is_logged``): only the
    log knows which directory the files belong to that the listener names, and which run writes for which query.

    ``runs`` are the listener's, and one for each execution that the listener kept silent about; ``executions`` has by
    run id what the event log says, and ``roots`` the run that a nested run is part of.
    """

    def __init__(self, state: LineageState, naming: Naming, *, is_logged: bool = False) -> None:
        self.runs: Mapping[str, RunState] = state.runs
        self.executions: Mapping[str, Execution] = {}
        self._naming = naming
        self._contents: dict[int, RunContent] = {}
        self._places: Mapping[DatasetName, DatasetName] = {}
        self._models: frozenset[DatasetName] = frozenset()
        self._metadata: frozenset[DatasetName] = frozenset()
        if state.executions:
            self._add_executions(state)
        if any(run.content.is_streaming for run in self.runs.values()):
            self._read_streams(is_logged=is_logged)
        self.runs = _with_files(self.runs)
        contents = {id(run.content): run.content for run in self.runs.values()}
        observed = [one for content in contents.values() for one in (*content.inputs, *content.outputs)]
        self._models = model_directories(observed)
        self._metadata = metadata_tables(observed, real_tables(state))
        self.roots = self._roots()

    def execution(self, run_id: str) -> Execution:
        """Return what the event log says of a run."""
        return self.executions.get(run_id, NO_EXECUTION)

    def content(self, run_id: str) -> RunContent:
        """Return what a run did; runs that did the same share it."""
        content = self.runs[run_id].content
        if id(content) not in self._contents:
            is_nothing = is_compaction(content)
            inputs = () if is_nothing else self._named(content.inputs)
            outputs = () if is_nothing else tuple(_from_inputs(one, inputs) for one in self._named(content.outputs))
            self._contents[id(content)] = structs.replace(content, inputs=inputs, outputs=outputs)
        return self._contents[id(content)]

    def inputs(self, run_id: str) -> tuple[Observed, ...]:
        """Return what a run read; of one inside a micro-batch that names nothing, what the micro-batch read."""
        content = self.content(run_id)
        is_nested = run_id in self.roots and content.outputs and not content.inputs
        return self.content(self.roots[run_id]).inputs if is_nested else content.inputs

    def _named(self, observed: tuple[Observed, ...]) -> tuple[Observed, ...]:
        observed = without(observed, self._metadata) if self._metadata else observed
        if self._places:
            observed = by_name(renamed(with_sources(one, self._places), self._places) for one in observed)
        known = tuple(
            keep_edges(one, lambda edge: edge[2] != _METADATA and not is_internal(edge[1]))
            for one in named(observed, self._naming)
            if not is_internal(one.dataset)
        )
        return by_model(known, self._models) if self._models else known

    def _add_executions(self, state: LineageState) -> None:
        logged = _logged(state)
        executions = _matched(state, logged)
        self._places = _places(state, logged.values())
        runs = dict(state.runs)
        for run_id, one in executions.items():
            runs[run_id] = corrected(runs[run_id], one)
        for key in sorted(logged.keys() - {one.key for one in executions.values()}):
            run_id = f"{key[0]}/{key[1]}"
            executions[run_id] = logged[key]
            runs[run_id] = run_of(logged[key])
        self.runs, self.executions = runs, _said_once(runs, executions)

    def _read_streams(self, *, is_logged: bool) -> None:
        """Name what micro-batches, and runs inside of them, read by the directories that their query reads.

        Of a query that is not known it may be the directory of any.
        """
        runs = {run_id: run for run_id, run in self.runs.items() if not is_logged or self._is_logged(run_id, run)}
        watched: dict[str, set[DatasetName]] = {"": set()}
        for run_id, run in runs.items():
            if run.content.is_streaming:
                for query_id in ("", self.execution(run_id).query_id):
                    watched.setdefault(query_id, set()).update(read.dataset for read in run.content.inputs)
        for run_id, run in runs.items():
            query_id = self.execution(run_id).query_id
            if query_id or run.content.is_streaming:
                directories = watched.get(query_id, set())
                around = {
                    read.dataset: above
                    for read in run.content.inputs
                    for above in directories_above(read.dataset)
                    if above in directories
                }
                runs[run_id] = _reading(run, around)
        self.runs = runs

    def _is_logged(self, run_id: str, run: RunState) -> bool:
        """Whether the log has told a run, or has nothing to tell of it."""
        content = run.content
        is_empty = not (content.inputs or content.outputs or content.is_streaming)
        return run_id in self.executions or content.is_declared or is_empty

    def _roots(self) -> dict[str, str]:
        """Return the run that each nested one is part of: as the log says, else the only micro-batch around it."""
        by_execution = {one.key: run_id for run_id, one in self.executions.items()}
        roots: dict[str, str] = {}
        for run_id, one in self.executions.items():
            root = by_execution.get((one.application_id, one.root_execution_id), run_id)
            if root != run_id:
                roots[run_id] = root
        batches = sorted(
            (run.first, run.last, run_id)
            for run_id, run in self.runs.items()
            if run.content.is_streaming and run.content.inputs
        )
        starts = [first for first, _, _ in batches]
        for run_id, run in self.runs.items() if batches else ():
            content = run.content
            if run_id in self.executions or content.is_streaming or content.inputs or not content.outputs:
                continue
            around = [batch for _, last, batch in batches[: bisect_right(starts, run.first)] if run.last <= last]
            if len({tuple(read.dataset for read in self.content(batch).inputs) for batch in around}) == 1:
                roots[run_id] = min(around)
        return roots


def _reading(run: RunState, names: Mapping[DatasetName, DatasetName]) -> RunState:
    """Return a run with what it read by other names."""
    if not names:
        return run
    inputs = by_name(renamed(read, names) for read in run.content.inputs)
    return structs.replace(run, content=structs.replace(run.content, inputs=inputs))


def _with_files(runs: Mapping[str, RunState]) -> Mapping[str, RunState]:
    """Return runs by the file that they read, where they name a directory of which runs before named one file.

    The rows of ``df.rdd`` come from a ``FileScanRDD``, of which neither the listener nor the event log names the path.
    ``sc.textFile`` and its like read what they name.
    """
    inside: dict[DatasetName, set[DatasetName]] = {}
    found: dict[str, RunState] = {}
    for run_id in sorted(runs, key=lambda each: (runs[each].first, each)):
        content = runs[run_id].content
        is_scan = not content.is_declared and (content.job_type != RDD_JOB or _FILE_SCAN in content.job_name)
        files = {
            read.dataset: min(inside[read.dataset])
            for read in content.inputs
            if is_scan and read.is_bare and len(inside.get(read.dataset, ())) == 1
            if not is_schema_reading(content, read)
        }
        found[run_id] = _reading(runs[run_id], files)
        for read in found[run_id].content.inputs:
            if not read.is_bare and is_path_namespace(read.dataset.namespace):
                for directory in islice(directories_above(read.dataset), 1):
                    inside.setdefault(directory, set()).add(read.dataset)
    return found


def _from_inputs(one: Observed, inputs: tuple[Observed, ...]) -> Observed:
    """Return a dataset with the columns of an input where its edges name the folder around it."""
    read = {each.dataset for each in inputs}
    inside: dict[DatasetName, list[DatasetName]] = {}
    for name in read:
        for folder in islice(directories_above(name), 1):
            inside.setdefault(folder, []).append(name)
    cut = {folder: names[0] for folder, names in inside.items() if folder not in read and len(names) == 1}
    return with_sources(one, cut)


def _places(state: LineageState, executions: Iterable[Execution]) -> dict[DatasetName, DatasetName]:
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
    found = {name: [place for place in logged if place.name.endswith(f"/{name.name}")] for name in relative}
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _said_once(runs: Mapping[str, RunState], executions: Mapping[str, Execution]) -> dict[str, Execution]:
    """Return each statement once: a command may run within another execution, whose plan repeats it.

    The run that names what was written has it, the inner one of two.
    """
    first: dict[tuple[str, int, CatalogStatement], str] = {}
    for run_id in sorted(executions, key=lambda each: (not runs[each].content.outputs, runs[each].last, each)):
        one = executions[run_id]
        if one.statement is not None:
            first.setdefault((one.application_id, one.root_execution_id, one.statement), run_id)
    kept = set(first.values())
    return {
        run_id: one if one.statement is None or run_id in kept else structs.replace(one, statement=None)
        for run_id, one in executions.items()
    }


def _logged(state: LineageState) -> dict[_Key, Execution]:
    """Return the executions of the applications whose events came; the jobs of a nested one are its root's as well."""
    known = {application.application_id for application in state.applications.values()} - {None}
    working = {(one.application_id, one.root_execution_id) for one in state.executions.values() if one.has_jobs}
    return {
        key: structs.replace(one, has_jobs=True) if key in working and not one.has_jobs else one
        for key, one in state.executions.items()
        if not known or one.application_id in known
    }


def _matched(state: LineageState, logged: Mapping[_Key, Execution]) -> dict[str, Execution]:
    """Return the execution of each SQL run, by the moment of its start; a run without a START is known by its end."""
    moments: dict[tuple[str, bool, int], list[Execution]] = {}
    for _, one in sorted(logged.items()):
        for is_start, time in ((True, one.started), (False, one.ended)):
            if time is not None:
                moments.setdefault((one.application_id, is_start, _milliseconds(time)), []).append(one)
    # Events may keep silent about their application's id.
    logs = {one.application_id for one in logged.values()}
    the_only = min(logs) if len(logs) == 1 else ""
    matched: dict[str, Execution] = {}
    taken: set[_Key] = set()
    for run_id, run in sorted(state.runs.items()):
        if run.content.job_type == "APPLICATION" or run.content.is_declared:
            continue
        is_rdd = run.content.job_type == RDD_JOB
        application = state.applications.get(run.content.parent_run_id)
        application_id = (application and application.application_id) or the_only
        is_started = bool(run.seen & STARTED)
        moment = _milliseconds(run.first if is_started else run.last)
        candidates = [
            one
            for one in moments.get((application_id, is_started, moment), ())
            if one.key not in taken and (one.execution_id < 0) == is_rdd
        ]
        if candidates:
            best = max(candidates, key=lambda one: (_likeness(run, one), -one.execution_id))
            matched[run_id] = best
            taken.add(best.key)
    return matched


def _milliseconds(epoch_seconds: float) -> int:
    return round(epoch_seconds * 1000)


def _likeness(run: RunState, execution: Execution) -> tuple[bool, bool, bool]:
    """Return how well an execution of the same moment fits: by what it wrote, by its end, by its command."""
    ours, theirs = ({last_part(output) for output in outputs} for outputs in (run.content.outputs, execution.outputs))
    is_same_end = execution.ended is not None and _milliseconds(execution.ended) == _milliseconds(run.last)
    is_same_command = execution.command.casefold() in run.content.job_name.replace("_", "")
    return bool(ours & theirs) or not (ours or theirs), is_same_end, is_same_command
