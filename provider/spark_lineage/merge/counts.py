"""Counts what no evidence names: the commands whose targets are unknown, and the parts of plans that were not read."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from spark_lineage.merge.accounting import PlanPart, left_over
from spark_lineage.merge.evidence import Evidence
from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import TaskState, UnknownDatasets, UnreadPart
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.outcome import is_silent, run_outcome
from spark_lineage.merge.state import LineageState

_ITS_DATABASE = ": its database"


class Counts:
    """What is counted of one task.

    :param is_logged: whether the event log of a running stream goes on
    """

    def __init__(self, state: LineageState, evidence: Evidence, task_state: TaskState, *, is_logged: bool) -> None:
        self._state = state
        self._evidence = evidence
        self._is_over = task_state == "COMPLETE" and not is_logged
        self._silent = list(self._silent_runs())
        self._left = dict(self._left_over())

    def unknown(self) -> tuple[UnknownDatasets, ...]:
        """Return the commands that wrote something that neither the listener nor an event log names."""
        runs = self._evidence.runs
        commands = Counter(runs[run_id].content.job_name for run_id in self._silent)
        silent = set(self._silent)
        for run_id in self._left.keys() - silent:
            commands.update(f"{part.name} to an unknown sink" for part in self._left[run_id] if part.is_write)
        return tuple(UnknownDatasets(command, commands[command]) for command in sorted(commands))

    def unread(self) -> tuple[UnreadPart, ...]:
        """Return what was not understood of plans, the leaves that nothing names, and the ends that are missing."""
        executions = self._evidence.executions
        parts = Counter(part for one in executions.values() for part in one.unread)
        for run_id, left in self._left.items():
            counted = {part.removesuffix(_ITS_DATABASE) for part in executions[run_id].unread}
            parts.update(part.name for part in left if not part.is_write and counted.isdisjoint(part.sources))
        parts.update(self._without_end())
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
                yield run_id, self._unaccounted(one, around[one.root_key])

    def _unaccounted(self, execution: Execution, group: Iterable[str]) -> list[PlanPart]:
        contents = [self._evidence.runs[run_id].content for run_id in group]
        read = _named(one for content in contents for one in content.inputs)
        written = _named(one for content in contents for one in content.outputs)
        # A leaf of which only the node is known is none of the datasets that the plan names for other leaves.
        logged = {one.dataset for one in execution.inputs}
        fresh = [one for one in read if one.dataset not in logged]
        known, others = (left_over(execution.unnamed, each, written) for each in (read, fresh))
        return [part for part in execution.unnamed if part in (others if part.is_of_any else known)]

    def _without_end(self) -> Iterator[str]:
        """Return the SQL executions of a task that has succeeded that neither source saw the end of."""
        for run_id, one in self._evidence.executions.items() if self._is_over else ():
            is_of_data = one.execution_id >= 0 and bool(one.inputs or one.outputs or one.unnamed)
            if is_of_data and run_outcome(self._evidence.runs[run_id], self._state) == "open":
                yield f"{one.command or 'query'}: its end"


def _named(observed: Iterable[Observed]) -> list[Observed]:
    return [one for one in observed if one.dataset.namespace]
