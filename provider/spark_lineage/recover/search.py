"""Finds the tries that are over in Airflow, and whose launch nobody has closed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from spark_lineage.deliver.outbox.database import FILE
from spark_lineage.deliver.outbox.outbox import Outbox, default_directory, flush
from spark_lineage.launch.claim import LaunchStore, is_same_try
from spark_lineage.launch.directory import LAUNCH_FILE, encoded, root_of
from spark_lineage.launch.launch import Launch, launches_below
from spark_lineage.launch.lost_try import LostTry, TaskKey, TryEnd
from spark_lineage.launch.stores import ServerStore, stored_tasks
from spark_lineage.recover.dag_runs import DagRunEnd, ends_of, lineage_root

_SENDING_SECONDS = 30.0
_ENDS: dict[str, TryEnd] = {
    "success": "success",
    "skipped": "skipped",
    **dict.fromkeys(("failed", "up_for_retry", "upstream_failed", "removed"), "failed"),
}


class EndedTry(Struct, frozen=True):
    """A try that Airflow has just said to be over."""

    task: TaskKey
    try_number: int
    end: TryEnd
    error: str = ""

    def lost(self) -> list[LostTry]:
        """Return what is open of this try, and of those before it."""
        return list(_open_tries(self.task, self.try_number, self.end, self.error))


class EndedDagRun(Struct, frozen=True):
    """A DAG run that is over; a task of it may still be on its way to its end."""

    dag_id: str
    run_id: str

    def lost(self) -> list[LostTry | DagRunEnd]:
        """Return what is open of the tries that are over, and then of the DAG run itself."""
        from airflow.models.dagrun import DagRun
        from airflow.utils.session import create_session
        from sqlalchemy import select

        tries = _over({*stored_tasks((self.dag_id, self.run_id)), *self._in_directories()})
        with create_session() as session:
            dag_run = session.scalar(select(DagRun).filter_by(dag_id=self.dag_id, run_id=self.run_id))
            return [*tries, *(ends_of(dag_run) if dag_run is not None else ())]

    def _in_directories(self) -> Iterator[TaskKey]:
        """Return the tasks that have launches in the lineage directory of this host."""
        directory = lineage_root() / encoded(self.dag_id) / encoded(self.run_id)
        names = {(file.parts[-4], file.parts[-3]) for file in directory.glob(f"*/*/*/{LAUNCH_FILE}")}
        if names:
            for task, _, _ in _task_instances(self.dag_id, self.run_id):
                if (encoded(task.task_id), encoded(str(task.map_index))) in names:
                    yield task


class LeftInOutbox(Struct, frozen=True, tag=True):
    """Events that waited in the outboxes of this host at a moment (seconds since the epoch).

    A server delivers them: where no task runs, nobody else would.
    """

    seen_at: float

    def send(self) -> None:
        """Send them, as far as the backends take them."""
        flush(seconds=_SENDING_SECONDS)


class Recent(Struct, frozen=True):
    """Whatever was launched within so many hours: of some ends nobody tells, and a server may lose what it knew."""

    hours: float

    def lost(self) -> list[LostTry | LeftInOutbox]:
        """Return what is open of the tries that are over, and what waits in the outbox of this host."""
        tries = _over(stored_tasks(None, datetime.now(UTC) - timedelta(hours=self.hours)))
        return [*tries, *([LeftInOutbox(time.time())] if _waits(default_directory()) else [])]


def _waits(directory: Path) -> bool:
    if not (directory / FILE).exists():
        return False
    with closing(Outbox(directory)) as outbox:
        return any(one.waiting for one in outbox.destinations())


def launches_of(task: TaskKey, store: LaunchStore | None) -> list[Launch]:
    """Return the launches of a task, of whichever try, the oldest first; closed where either place says so.

    The store has the latest one. Those before it are found where the lineage directory is shared.
    """
    stored = store.get() if store is not None else None
    roots = {lineage_root(), *([root_of(Path(stored.directory))] if stored is not None else [])}
    names = (task.dag_id, task.run_id, task.task_id, str(task.map_index))
    launches = [launch for root in roots for launch in launches_below(root, *names)]
    if stored is not None:
        same = [one for one in launches if is_same_try(one, stored)]
        is_closed = stored.is_closed or any(one.is_closed for one in same)
        launches = [one for one in launches if one not in same] + [structs.replace(stored, is_closed=is_closed)]
    return sorted(launches, key=lambda one: one.try_number)


def _over(tasks: Iterable[TaskKey]) -> list[LostTry]:
    return [
        lost
        for task in tasks
        for _, state, try_number in _task_instances(task.dag_id, task.run_id, task)
        for lost in _open_tries(task, try_number, _ENDS.get(state))
    ]


def _open_tries(task: TaskKey, latest: int, end: TryEnd | None, error: str = "") -> Iterator[LostTry]:
    """Return the tries before the latest that nobody has closed, and the latest if it has ended."""
    for launch in launches_of(task, ServerStore.of(task)):
        if launch.is_closed or launch.try_number > latest:
            continue
        if launch.try_number < latest:
            yield LostTry(task, launch)
        elif end is not None:
            yield LostTry(task, launch, end, error)


def _task_instances(dag_id: str, run_id: str, task: TaskKey | None = None) -> list[tuple[TaskKey, str, int]]:
    """Return the task instances of a DAG run, or one of them, each with its state and try number."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    one: Any = TaskInstance
    rows = select(one.task_id, one.map_index, one.state, one.try_number).filter_by(dag_id=dag_id, run_id=run_id)
    if task is not None:
        rows = rows.filter_by(task_id=task.task_id, map_index=task.map_index)
    with create_session() as session:
        found = session.execute(rows).all()
    return [
        (TaskKey(dag_id, run_id, task_id, map_index), str(state or ""), try_number)
        for task_id, map_index, state, try_number in found
    ]
