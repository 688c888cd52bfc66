"""Lays evidence beyond the listener over its runs: what Spark's event log says of the same SQL executions.

The listener stamps START and COMPLETE of a SQL run with the very milliseconds of the execution's start and end, which
is how the two are recognised as one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec import structs

from spark_lineage.merge.correction import RDD_JOB, corrected, last_part, run_of
from spark_lineage.merge.execution import CatalogStatement, Execution
from spark_lineage.merge.metadata_tables import by_model, metadata_tables, model_directories, real_tables, without
from spark_lineage.merge.noise import is_compaction, is_internal
from spark_lineage.merge.observed import Observed, by_name, named, with_sources
from spark_lineage.merge.rdd_files import with_files
from spark_lineage.merge.state import STARTED, LineageState, RunContent, RunState
from spark_lineage.naming.chain import Naming
from spark_lineage.naming.identity import DatasetName, directories_above

# Where a row came from: a column that every source of files has, and no file.
_METADATA = "_metadata"


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
        self._metadata: frozenset[DatasetName] = frozenset()
        if state.executions:
            self._add_executions(state)
        if any(run.content.is_streaming for run in self.runs.values()):
            self._read_streams(is_logged=is_logged)
        self.runs = with_files(self.runs)
        contents = {id(run.content): run.content for run in self.runs.values()}
        observed = [one for content in contents.values() for one in (*content.inputs, *content.outputs)]
        self._models = model_directories(observed)
        self._metadata = metadata_tables(observed, real_tables(state))
        self.roots = _roots(self)

    def content(self, run_id: str) -> RunContent:
        """Return what a run did; runs that did the same share it."""
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
        if self._metadata:
            observed = without(observed, self._metadata)
        if self._places:
            observed = by_name(map(self._placed, observed))
        renamed = tuple(_from_outside(one) for one in named(observed, self._naming) if not is_internal(one.dataset))
        return by_model(renamed, self._models) if self._models else renamed

    def _placed(self, one: Observed) -> Observed:
        """Return a dataset, which the listener may name by a relative path, the path that the log has for it."""
        if one.dataset not in self._places and not any(source in self._places for _, source, _, _ in one.edges):
            return one
        return structs.replace(with_sources(one, self._places), dataset=self._places.get(one.dataset, one.dataset))

    def inputs(self, run_id: str) -> tuple[Observed, ...]:
        """Return what a run read; of one inside a micro-batch that names nothing, what the micro-batch read."""
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
            runs[run_id] = corrected(runs[run_id], one)
        silent = logged.keys() - {_key(one) for one in executions.values()}
        for one in (logged[key] for key in sorted(silent)):
            run_id = f"{one.application_id}/{one.execution_id}"
            executions[run_id] = one
            runs[run_id] = run_of(one)
        self.runs, self.executions = runs, _told_once(runs, executions)

    def _read_streams(self, *, is_logged: bool) -> None:
        """Return what micro-batches, and runs inside of them, read by the directories that their query reads.

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
    """A dataset with the columns of an input where its edges name the folder around it, as the listener cut it."""
    read = {each.dataset for each in inputs}
    inside: dict[DatasetName, list[DatasetName]] = {}
    for name in read:
        for folder in islice(directories_above(name), 1):
            inside.setdefault(folder, []).append(name)
    cut = {folder: names[0] for folder, names in inside.items() if folder not in read and len(names) == 1}
    if not any(source in cut for _, source, _, _ in one.edges):
        return one
    return with_sources(one, cut)


def _from_outside(one: Observed) -> Observed:
    """Return a dataset without the columns that it has from bookkeeping."""
    kept = frozenset(edge for edge in one.edges if edge[2] != _METADATA and not is_internal(edge[1]))
    return one if len(kept) == len(one.edges) else structs.replace(one, edges=kept)


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


def _key(execution: Execution) -> tuple[str, int]:
    return execution.application_id, execution.execution_id


def _told_once(runs: Mapping[str, RunState], executions: Mapping[str, Execution]) -> dict[str, Execution]:
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


def _milliseconds(epoch_seconds: float) -> int:
    return round(epoch_seconds * 1000)


def _logged(state: LineageState) -> dict[tuple[str, int], Execution]:
    """Return the executions of the applications whose events came; the jobs of a nested one are its root's as well."""
    known = {application.application_id for application in state.applications.values()} - {None}
    working = {(one.application_id, one.root_execution_id) for one in state.executions.values() if one.has_jobs}
    return {
        key: structs.replace(one, has_jobs=True) if key in working and not one.has_jobs else one
        for key, one in state.executions.items()
        if not known or one.application_id in known
    }


def _matched(state: LineageState, logged: Mapping[tuple[str, int], Execution]) -> dict[str, Execution]:
    """Return the execution of each SQL run, by the moment of its start; a run without a START is known by its end."""
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
        is_rdd = run.content.job_type == RDD_JOB
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
    ours = {last_part(output) for output in run.content.outputs}
    theirs = {last_part(output) for output in execution.outputs}
    is_same_end = execution.ended is not None and _milliseconds(execution.ended) == _milliseconds(run.last)
    command = execution.command.casefold()
    return bool(ours & theirs) or not (ours or theirs), is_same_end, command in run.content.job_name.replace("_", "")


def _folded(inputs: tuple[Observed, ...], watched: set[DatasetName]) -> tuple[Observed, ...]:
    """Return what a micro-batch read by the directory that its query watches: a batch of one file names that file."""
    around = {read.dataset: [above for above in directories_above(read.dataset) if above in watched] for read in inputs}
    if not any(around.values()):
        return inputs
    return by_name(
        structs.replace(read, dataset=around[read.dataset][-1]) if around[read.dataset] else read for read in inputs
    )


def _roots(evidence: Evidence) -> dict[str, str]:
    """The run that each nested one is part of: as the log says, else the only micro-batch that it lies within."""
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
