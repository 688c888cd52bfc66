"""Splits the lineage of a task into child runs: one for each path to an output, one for each Spark action."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from heapq import heappop, heappush
from typing import Literal

from msgspec import Struct, structs

from spark_lineage.merge.lineage import Action, Attempt, AttemptReason, DatasetLineage, TaskLineage, TaskState
from spark_lineage.naming.identity import DatasetName
from spark_lineage.secrets.redaction import redact
from spark_lineage.secrets.spelling import sent_name
from spark_lineage.settings import Granularity

ChildKind = Literal["PATH", "ACTION"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HASH_DIGITS = 12
_READABLE_LENGTH = 64
_NOT_READABLE = re.compile(r"[^\w.\-]+")


class ChildRun(Struct, frozen=True):
    """A run within the run of the task, with a lineage of its own.

    ``job`` names its job within the task's: the same for the same work on every run. ``key`` tells the runs of one job
    within one run of the task apart. ``started_at`` is never after ``ended_at``.
    """

    kind: ChildKind
    job: str
    key: str
    is_streaming: bool
    started_at: datetime
    ended_at: datetime
    lineage: TaskLineage


def child_runs(lineage: TaskLineage, granularity: Granularity) -> list[ChildRun]:
    """The child runs of a task, in the order of their ends: none for ``task``, those of ``path`` also for ``action``.

    ``lineage`` has to have its ``actions`` for both: paths take their times from them, and failed ones their inputs.
    The job of a path is named by its output and a hash of its inputs and output, that of an action by Spark's command
    and a hash of what it read and wrote. A run that left nothing behind names no output, as in the task's event (M5).
    """
    children: list[ChildRun] = []
    if granularity in ("path", "action"):
        children += _paths(lineage)
    if granularity == "action":
        children += _actions(lineage)
    return sorted(children, key=lambda child: (child.ended_at, child.started_at, child.kind, child.job, child.key))


def _paths(task: TaskLineage) -> Iterator[ChildRun]:
    # How much of an input was read is known for the task alone.
    inputs = {each.dataset: structs.replace(each, statistics=None) for each in task.inputs}
    done = _Writers([action for action in task.actions if action.state == "COMPLETE"])
    for output in task.outputs:
        path = TaskLineage(
            state="COMPLETE",
            inputs=tuple(inputs.get(name, DatasetLineage(name)) for name in output.fed_by),
            outputs=(output,),
            unconfirmed=tuple(name for name in task.unconfirmed if name == output.dataset),
        )
        job = _job(_place(output.dataset), output.fed_by, [output.dataset])
        yield _child("PATH", job, "written", lineage=path, actions=done.leading_to(output.dataset), task=task)
    tried = _Writers(task.actions)
    for attempt in task.attempted:
        actions = tried.leading_to(attempt.dataset)
        read = {name for action in actions for name in action.inputs}
        path = TaskLineage(
            state=_state_of_attempt(attempt, task.state),
            inputs=tuple(each for name, each in inputs.items() if name in read),
            attempted=(attempt,),
        )
        job = _job(_place(attempt.dataset), (each.dataset for each in path.inputs), [attempt.dataset])
        yield _child("PATH", job, attempt.reason, lineage=path, actions=actions, task=task)


def _state_of_attempt(attempt: Attempt, task_state: TaskState) -> TaskState:
    if attempt.reason == "not written":
        return "COMPLETE"
    return "ABORT" if attempt.reason == "unfinished" and task_state == "ABORT" else "FAIL"


def _actions(task: TaskLineage) -> Iterator[ChildRun]:
    known = {each.dataset: _identity(each) for each in (*task.inputs, *task.outputs)}
    applications = sorted((each.job_name for each in task.applications), key=len, reverse=True)
    vain = {each.dataset: each.reason for each in task.attempted}
    unwritten = {name for name, reason in vain.items() if reason == "not written"}
    runs: defaultdict[tuple[str, str], list[Action]] = defaultdict(list)
    for action in task.actions:
        # What differs comes first: backends cut long names, and most actions are of few commands.
        places = [_place(name) for name in (*action.outputs, *action.inputs)[:1]]
        readable = "_".join(filter(None, (*places, _command(action.job_name, applications))))
        job = _job(readable, action.inputs, action.outputs)
        # The micro-batches of a query are one run, as they are one path.
        runs[job, "stream" if action.is_streaming else action.run_id].append(action)
    for (job, key), actions in runs.items():
        last = max(actions, key=lambda action: (action.ended_at, action.run_id))
        reason: AttemptReason = "unfinished" if last.state == "ABORT" else "failed"
        is_written = any(action.state == "COMPLETE" for action in actions)
        written = [name for name in last.outputs if is_written and name not in unwritten]
        tried = [name for name in last.outputs if name not in written]
        lineage = TaskLineage(
            state=last.state,
            inputs=tuple(known.get(name, DatasetLineage(name)) for name in last.inputs),
            outputs=tuple(known.get(name, DatasetLineage(name)) for name in written),
            attempted=tuple(Attempt(name, vain.get(name, reason)) for name in tried),
        )
        yield _child("ACTION", job, key, lineage=lineage, actions=actions, task=task)


def _child(
    kind: ChildKind, job: str, key: str, *, lineage: TaskLineage, actions: Sequence[Action], task: TaskLineage
) -> ChildRun:
    """Return a child the time of its actions; that of the task where none is known, as of a declared output."""
    started_at = min((action.started_at for action in actions), default=task.started_at or task.ended_at or _EPOCH)
    ended_at = max((action.ended_at for action in actions), default=task.ended_at or started_at)
    return ChildRun(
        kind=kind,
        job=job,
        key=key,
        is_streaming=any(action.is_streaming for action in actions),
        started_at=started_at,
        ended_at=max(started_at, ended_at),
        lineage=structs.replace(lineage, applications=task.applications),
    )


class _Writers:
    """Finds the actions that lead to a dataset: those that wrote it, and before each those that wrote what it read."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions = actions
        self._by_output: defaultdict[DatasetName, list[int]] = defaultdict(list)
        for index, action in enumerate(actions):
            for name in action.outputs:
                self._by_output[name].append(index)

    def leading_to(self, dataset: DatasetName) -> list[Action]:
        """The actions, the last first; ``actions`` are in the order of time."""
        found: dict[int, Action] = {}
        asked: set[DatasetName] = set()
        waiting: list[int] = []

        def ask(name: DatasetName, before: int) -> None:
            # Who asks again does so for an earlier time, whose writers are waiting already.
            if name not in asked:
                asked.add(name)
                writers = self._by_output.get(name, [])
                for index in writers[: bisect_left(writers, before)]:
                    heappush(waiting, -index)

        ask(dataset, len(self._actions))
        while waiting:
            index = -heappop(waiting)
            found[index] = self._actions[index]
            for name in self._actions[index].inputs:
                ask(name, index)
        return list(found.values())


def _identity(dataset: DatasetLineage) -> DatasetLineage:
    """What a dataset is, without what the task as a whole did to it."""
    return DatasetLineage(
        dataset.dataset,
        schema=dataset.schema,
        symlinks=dataset.symlinks,
        storage=dataset.storage,
        catalog=dataset.catalog,
    )


def _job(readable: str, inputs: Iterable[DatasetName], outputs: Iterable[DatasetName]) -> str:
    named = [sorted((name.namespace, name.name) for name in map(sent_name, names)) for names in (inputs, outputs)]
    digest = hashlib.sha256(json.dumps(named, separators=(",", ":")).encode()).hexdigest()
    return "_".join(part for part in (readable, digest[:_HASH_DIGITS]) if part)


def _place(dataset: DatasetName) -> str:
    """The end of a dataset's name, which people know it by: ``orders`` of ``/warehouse/shop.db/orders``."""
    return _readable(sent_name(dataset).name.rstrip("/").rpartition("/")[2])


def _command(job_name: str, applications: Iterable[str]) -> str:
    """Spark's command in the name that the listener gives a job: ``{application}.{command}.{dataset}``.

    The rest of it changes from run to run (a path with a date in it), or holds what may be secret.
    """
    for application in applications:
        if application and job_name.startswith(f"{application}."):
            return _readable(job_name[len(application) + 1 :].partition(".")[0])
    return _readable(redact(job_name))


def _readable(text: str) -> str:
    return _NOT_READABLE.sub("_", text)[:_READABLE_LENGTH].strip("_.")
