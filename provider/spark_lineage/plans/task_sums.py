"""Adds up what the tasks of an application did, as Spark's UI does (``AppStatusListener.onTaskEnd``)."""

from __future__ import annotations

from collections import Counter

from spark_lineage.merge.task_numbers import MAX_ACCUMULATORS, TaskNumbers, accumulators_of, own_accumulator
from spark_lineage.plans.event_log_lines import TaskEnd

# All others are failures: also a task whose output went with its executor, and that is run again.
_ENDS = {"Success": "finished", "TaskKilled": "killed", "TaskCommitDenied": "killed"}


class TaskSums:
    """The sums over all tasks that have ended; they grow with nothing but the names of accumulators."""

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        # By name: the id and the value of the latest accumulator, and what those before it came to.
        self._accumulators: dict[str, tuple[int, float, float]] = {}

    def add(self, event: TaskEnd) -> None:
        """Count one task."""
        self._sums[_ENDS.get(event.end.reason, "failed")] += 1
        if event.metrics is not None:
            self._sums.update(event.metrics.summed())
        for one in event.info.named():
            if total := own_accumulator(one.name, one.value):
                _, update = own_accumulator(one.name, one.update) or ("", 0)
                self._set(one.id, *total, update)

    def _set(self, identity: int, name: str, value: float, update: float) -> None:
        """Take the value that an accumulator has had since a task; a program may make a new one for each batch."""
        if name not in self._accumulators and len(self._accumulators) >= MAX_ACCUMULATORS:
            return
        latest, last, earlier = self._accumulators.get(name, (identity, 0, 0))
        if identity < latest:
            value, earlier = last, earlier + update
        elif identity > latest:
            earlier += last
        self._accumulators[name] = (max(latest, identity), value, earlier)

    def numbers(self, application_id: str, attempt_id: str, source: str) -> TaskNumbers:
        """Return what the tasks come to so far."""
        sums = {name: last + earlier for name, (_, last, earlier) in self._accumulators.items()}
        return TaskNumbers(application_id, attempt_id, source, **self._sums, accumulators=accumulators_of(sums))
