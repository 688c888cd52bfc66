"""Counts what no evidence names: the commands whose targets are unknown, and the parts of plans that were not read."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

from spark_lineage.merge.accounting import PlanPart, left_over
from spark_lineage.merge.correction import LEAVING
from spark_lineage.merge.entity import RESTORE
from spark_lineage.merge.evidence import Evidence, is_named
from spark_lineage.merge.lineage import DatasetLineage, TaskState, UnknownDatasets, UnreadPart
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.outcome import is_silent, run_outcome
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.timeline import Timeline
from spark_lineage.naming.identity import DatasetName

# Commands after which rows of the table are as they were, so that each column comes from itself as well.
_LEAVING_ROWS = LEAVING | {"DeleteCommand", RESTORE}
# The rows of an RDD have columns that code made.
_RDD = "Scan ExistingRDD"
_ITS_DATABASE = ": its database"
_ITS_CATALOG = ": its catalog"
_WITH_VERSIONS = frozenset({"delta", "iceberg"})


class Counts:
    """What is counted of one task.

    :param timeline: the replay of its runs
    :param is_logged: whether the event log of a running stream goes on
    """

    def __init__(
        self,
        state: LineageState,
        evidence: Evidence,
        task_state: TaskState,
        *,
        timeline: Timeline,
        inputs: Collection[DatasetLineage],
        is_logged: bool,
    ) -> None:
        self._state = state
        self._unseen = timeline.unseen
        self._mixed = sorted(one.name.name for one in timeline.entities if one.has_others_versions)
        self._left_unknown = sorted(
            one.name.name for one in timeline.entities if one.has_unknown_rest or one.may_have_left
        )
        unnamed = {one.name.name for one in timeline.entities if not all(map(is_named, one.read_versions))}
        lacking = {one.dataset.name for one in inputs if _lacks_version(one)} if state.executions else set()
        self._versionless = sorted(unnamed | lacking)
        self._evidence = evidence
        self._is_over = task_state == "COMPLETE" and not is_logged
        self._silent = list(self._silent_runs())
        self._left = dict(self._left_over()) if evidence.executions else {}

    def unknown(self) -> tuple[UnknownDatasets, ...]:
        """Return the commands that wrote something that neither the listener nor an event log names."""
        runs = self._evidence.runs
        commands = Counter(runs[run_id].content.job_name for run_id in self._silent)
        silent = set(self._silent)
        for run_id in self._left.keys() - silent:
            parts = (part.name for part in self._left[run_id] if part.needs == "output")
            commands.update(f"{name} to an unknown sink" for name in parts)
        return tuple(UnknownDatasets(command, commands[command]) for command in sorted(commands))

    def unread(self) -> tuple[UnreadPart, ...]:
        """Return what was not understood of plans, the leaves that nothing names, and the ends that are missing."""
        executions = self._evidence.executions
        runs = self._evidence.runs
        # The listener names a table whose catalog the plan does not name.
        named = {run_id for run_id in executions if runs[run_id].content.outputs}
        unread = ((run_id, part) for run_id, one in executions.items() for part in one.unread)
        parts = Counter(part for run_id, part in unread if run_id not in named or not part.endswith(_ITS_CATALOG))
        parts.update((*self._evidence.unnamed_files, *self._evidence.unnamed_tables))
        counted = {part.removesuffix(_ITS_DATABASE) for part in parts}
        for left in self._left.values():
            parts.update(part.name for part in left if part.needs != "output" and counted.isdisjoint(part.sources))
        parts.update(self._in_doubt() if executions else ())
        parts.update(f"{name}: whether it was written" for name in self._unseen)
        parts.update(f"{name}: its version" for name in self._versionless)
        parts.update(f"{name}: which of its versions the task wrote" for name in self._mixed)
        parts.update(f"{name}: what an overwrite left of it" for name in self._left_unknown)
        return tuple(UnreadPart(part, parts[part]) for part in sorted(parts))

    def _silent_runs(self) -> Iterator[str]:
        """Return the runs that wrote something without a name.

        A micro-batch is none whose function wrote something that is known.
        """
        runs = self._evidence.runs
        known = sorted((run.first, run.last) for run in runs.values() if run.content.outputs)
        for run_id, run in runs.items():
            if (
                run_outcome(run, self._state) == "succeeded"
                and is_silent(run, self._evidence.execution(run_id))
                and not any(last <= run.last for _, last in known[bisect(known, (run.first,)) :][:1])
            ):
                yield run_id

    def _left_over(self) -> Iterator[tuple[str, list[PlanPart]]]:
        """Return the leaves and writes of each execution that no dataset of its run, or of those around it, is."""
        executions = self._evidence.executions
        around: dict[tuple[str, str, int], list[str]] = defaultdict(list)
        for run_id, one in executions.items():
            around[one.root_key].append(run_id)
        for run_id, one in executions.items():
            if one.unnamed:
                yield run_id, self._unaccounted(run_id, around[one.root_key])

    def _unaccounted(self, run_id: str, group: Iterable[str]) -> list[PlanPart]:
        execution = self._evidence.execution(run_id)
        contents = [self._evidence.runs[each].content for each in group]
        read = _named(one for content in contents for one in content.inputs)
        written = _named(one for content in contents for one in content.outputs)
        # A leaf of which only the node is known is none of the datasets that the plan names for other leaves.
        logged = {one.dataset for one in execution.inputs}
        fresh = [one for one in read if one.dataset not in logged]
        is_listened = run_id in self._state.runs
        known, own = (left_over(execution.unnamed, each, written, is_listened=is_listened) for each in (read, fresh))
        left = [part for part in execution.unnamed if part in (own if part.is_own else known)]
        # The listener may name a dataset that the plan does not, and no column of it.
        sources = {edge[1] for one in written for edge in one.edges}
        if written and sources.isdisjoint(one.dataset for one in fresh):
            named = (part for part in execution.unnamed if part.is_own and part not in left and part.name != _RDD)
            left += [PlanPart(f"{part.name}: its columns", "nothing") for part in named]
        return left

    def _in_doubt(self) -> Iterator[str]:
        """Return what neither source says of executions: their ends, columns of rows that they leave, and writes."""
        runs = self._evidence.runs
        described = {one.dataset for run in runs.values() for one in run.content.outputs if one.schema}
        for run_id, one in self._evidence.executions.items():
            is_of_data = one.execution_id >= 0 and bool(one.inputs or one.outputs or one.unnamed)
            if self._is_over and is_of_data and run_outcome(runs[run_id], self._state) == "open":
                yield f"{one.command or 'query'}: its end"
            is_leaving = one.command in _LEAVING_ROWS and not one.is_failed
            # The columns that a table had in a version are not those that others have written.
            known = () if one.command == RESTORE else described
            if is_leaving and any(_lacks_columns(output, known) for output in runs[run_id].content.outputs):
                yield f"{one.command}: the columns that it leaves"
            # With mode ``ignore`` a job may have run that wrote nothing.
            is_alone = run_id not in self._state.runs and one.mode == "Ignore" and one.has_jobs
            if is_alone and any(output.statistics is None for output in one.outputs):
                yield f"{one.command}: whether it wrote"


def _named(observed: Iterable[Observed]) -> list[Observed]:
    return [one for one in observed if one.dataset.namespace]


def _lacks_columns(output: Observed, described: Collection[DatasetName]) -> bool:
    """Whether a column of a table whose rows are kept does not come from itself, as far as is known.

    :param described: the tables that something in the task has written with their columns
    """
    if not output.schema:
        return output.dataset not in described
    copied = {column for column, source, field, _ in output.edges if source == output.dataset and field == column}
    return any(field.name not in copied for field in output.schema)


def _lacks_version(dataset: DatasetLineage) -> bool:
    """Whether a table of a format that keeps versions was read, and nothing says in which."""
    kept = {dataset.storage and dataset.storage.storage_layer, dataset.catalog and dataset.catalog.framework}
    return not dataset.versions and not kept.isdisjoint(_WITH_VERSIONS)
