"""Finds the tries that are over in Airflow, and whose launch nobody has closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from spark_lineage.launch.claim import LaunchStore, is_same_try
from spark_lineage.launch.directory import LAUNCH_FILE, encoded, root_of
from spark_lineage.launch.launch import Launch, launches_below
from spark_lineage.launch.lost_try import LostTry, TaskKey, TryEnd
from spark_lineage.launch.stores import ServerStore, stored_tasks
from spark_lineage.recover.configuration import lineage_root
from spark_lineage.recover.dag_runs import DagRunEnd, ends_of
from spark_lineage.recover.left_in_outbox import LeftInOutbox, left_in_outbox

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_ENDS: dict[str, TryEnd] = {
    "success": "success",
    "skipped": "skipped",
    "failed": "failed",
    "up_for_retry": "failed",
    "upstream_failed": "failed",
    "removed": "failed",
}


class EndedTry(Struct, frozen=True):
    """A try that Airflow has just said to be over."""

    task: TaskKey
    try_number: int
    end: TryEnd
    error: str = ""

    def lost(self) -> list[LostTry]:
        """Return what is open of this try, and of those before it."""
        return [
            LostTry(self.task, one, self.end, self.error)
            if one.try_number == self.try_number
            else LostTry(self.task, one)
            for one in launches_of(self.task, ServerStore.of(self.task))
            if not one.is_closed and one.try_number <= self.try_number
        ]


class EndedDagRun(Struct, frozen=True):
    """A DAG run that is over; a task of it may still be on its way to its end."""

    dag_id: str
    run_id: str

    def lost(self) -> list[LostTry | DagRunEnd]:
        """Return what is open of the tries that are over, and then of the DAG run itself."""
        tries = _over({*stored_tasks((self.dag_id, self.run_id)), *self._in_directories()})
        return [*tries, *self._own_end()]

    def _own_end(self) -> Iterator[DagRunEnd]:
        from airflow.models.dagrun import DagRun
        from airflow.utils.session import create_session
        from sqlalchemy import select

        row: Any = DagRun
        with create_session() as session:
            dag_run = session.scalar(select(row).where(row.dag_id == self.dag_id, row.run_id == self.run_id))
            if dag_run is not None:
                yield from ends_of(dag_run)

    def _in_directories(self) -> Iterator[TaskKey]:
        """Return the tasks that have launches in the lineage directory of this host."""
        directory = lineage_root() / encoded(self.dag_id) / encoded(self.run_id)
        names = {(file.parts[-4], file.parts[-3]) for file in directory.glob(f"*/*/*/{LAUNCH_FILE}")}
        if names:
            for task, _, _ in _task_instances(self.dag_id, self.run_id):
                if (encoded(task.task_id), encoded(str(task.map_index))) in names:
                    yield task


class Recent(Struct, frozen=True):
    """Whatever was launched within so many hours: of some ends nobody tells, and a server may lose what it knew."""

    hours: float

    def lost(self) -> list[LostTry | LeftInOutbox]:
        """Return what is open of the tries that are over, and what waits in the outboxes of this host."""
        tries = _over(stored_tasks(None, datetime.now(UTC) - timedelta(hours=self.hours)))
        return [*tries, *left_in_outbox()]


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
    lost: list[LostTry] = []
    for task in tasks:
        for _, state, try_number in _task_instances(task.dag_id, task.run_id, task):
            for launch in launches_of(task, ServerStore.of(task)):
                if launch.is_closed:
                    continue
                if launch.try_number < try_number:
                    lost.append(LostTry(task, launch))
                elif launch.try_number == try_number and state in _ENDS:
                    lost.append(LostTry(task, launch, _ENDS[state]))
    return lost


def _task_instances(dag_id: str, run_id: str, task: TaskKey | None = None) -> list[tuple[TaskKey, str, int]]:
    """Return the task instances of a DAG run, or one of them, each with its state and try number."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    one: Any = TaskInstance
    rows = select(one.task_id, one.map_index, one.state, one.try_number)
    rows = rows.where(one.dag_id == dag_id, one.run_id == run_id)
    if task is not None:
        rows = rows.where(one.task_id == task.task_id, one.map_index == task.map_index)
    session: Session
    with create_session() as session:
        found = session.execute(rows).all()
    return [
        (TaskKey(dag_id, run_id, task_id, map_index), str(state or ""), try_number)
        for task_id, map_index, state, try_number in found
    ]
