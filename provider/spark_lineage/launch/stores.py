"""Airflow's task state store (Airflow 3.3 and newer), of servers and of workers, and the claim on the end of a try."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import CLAIM_PREFIX, write_new
from spark_lineage.launch.launch import STORE_KEY, Launch, TaskKey, read_launch, storable, store_launch, stored_launch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

_ATTEMPTS = 3


class LaunchStore:
    """Where the latest launch of a task is kept: Airflow's task state store, of whichever side."""

    def get(self) -> Launch | None:
        """Return the launch that the latest try has left, None where there is none of ours."""
        return _decoded(self._read())

    def close(self, launch: Launch) -> bool | None:
        """Close the try of a launch: True for the one caller who does, False if it was closed, None if it is not there.

        Where the store is Airflow's database, this is one atomic step.
        """
        for _ in range(_ATTEMPTS):
            value = self._read()
            stored = _decoded(value)
            if stored is None or not is_same_try(stored, launch):
                return None
            if stored.is_closed:
                return False
            if self._replace(value, json.dumps(storable(structs.replace(stored, is_closed=True)))):
                return True
        return False

    def touch(self, silent_since: float = 0.0) -> None:
        """Keep what is there as if it were new: a sweep looks at what changed within a day.

        :param silent_since: of the launch
        """
        value = self._read()
        if (stored := _decoded(value)) is not None:
            self._replace(value, json.dumps(storable(structs.replace(stored, silent_since=silent_since))))

    def _read(self) -> str | None:
        raise NotImplementedError

    def _replace(self, old: str | None, new: str) -> bool:
        """Put a value in the place of another; False if that is not there any more."""
        raise NotImplementedError


def is_same_try(one: Launch, other: Launch) -> bool:
    """Whether two handles are of one try; a driver that was taken over has the same directory, but another run."""
    return (one.directory, one.run_id, one.try_number) == (other.directory, other.run_id, other.try_number)


@LINEAGE_FILES.bounded
def claim(launch: Launch, store: LaunchStore | None) -> bool:
    """Close the try of a launch before its end is sent; the caller that gets False must not send it.

    A file that only one process can make decides where the launch's directory is shared, the store where it is not.
    The file goes when the launch is kept as closed.
    """
    claim_file = Path(launch.directory, f"{CLAIM_PREFIX}{launch.try_number}-{launch.run_id}")
    try:
        write_new(claim_file, b"")
        is_made = True
    except FileExistsError:
        return False
    except OSError:
        is_made = False
    on_disk = read_launch(claim_file.parent)
    if on_disk is not None and not is_same_try(on_disk, launch):
        # Another try has taken the driver over, and the file with it.
        on_disk = None
    was_closed = on_disk is not None and on_disk.is_closed
    if not was_closed:
        is_closed_now = store.close(launch) if store is not None else None
        if is_closed_now is False or not (is_closed_now or is_made):
            return False
        if on_disk is None:
            return True
        store_launch(None, structs.replace(launch, is_closed=True))
    if is_made:
        claim_file.unlink()
    return not was_closed


class WorkerStore(LaunchStore):
    """The store of a running task (``context["task_state_store"]``)."""

    def __init__(self, accessor: Any) -> None:
        self._accessor = accessor

    def _read(self) -> str | None:
        return json.dumps(self._accessor.get(STORE_KEY))

    def _replace(self, _old: str | None, new: str) -> bool:
        self._accessor.set(STORE_KEY, json.loads(new))
        return True


class ServerStore(LaunchStore):
    """The store of one task instance in Airflow's database; of another backend, what it gives."""

    def __init__(self, task: TaskKey) -> None:
        from airflow.state import TaskScope, get_state_backend

        self._task, self._backend = task, get_state_backend()
        self._scope = TaskScope(*structs.astuple(task))

    @classmethod
    def of(cls, task: TaskKey) -> ServerStore | None:
        """Return the store, None where Airflow has none (before 3.3)."""
        return cls(task) if find_spec("airflow.state") else None

    def _read(self) -> str | None:
        return self._backend.get(self._scope, STORE_KEY)

    def _replace(self, old: str | None, new: str) -> bool:
        from airflow.models.task_state_store import TaskStateStoreModel as Row
        from airflow.state.metastore import MetastoreBackend
        from airflow.utils.session import create_session
        from sqlalchemy import update

        if not isinstance(self._backend, MetastoreBackend):
            self._backend.set(self._scope, STORE_KEY, new)
            return True
        row = update(Row).filter_by(**structs.asdict(self._task), key=STORE_KEY, value=old)
        with create_session() as session:
            done: Any = session.execute(row.values(value=new).execution_options(synchronize_session=False))
            return bool(done.rowcount == 1)


def stored_tasks(since: datetime | None = None, **of: str) -> Iterator[TaskKey]:
    """Return the task instances that have an open launch in the database's store; arguments as below."""
    return (task for task, launch in stored_launches(since, **of) if not launch.is_closed)


def has_open_launch(dag_id: str, run_id: str) -> bool:
    """Whether the store has an open launch of a DAG for an OpenLineage run; no where Airflow has no such store."""
    return any(launch.run_id == run_id and not launch.is_closed for _, launch in stored_launches(dag_id=dag_id))


def stored_launches(since: datetime | None = None, **of: str) -> Iterator[tuple[TaskKey, Launch]]:
    """Return the task instances that have a launch in the database's store, each with its latest.

    :param since: an aware time; older entries are skipped
    :param of: ``dag_id`` and ``run_id``, or the first of these, where not all are wanted
    """
    try:
        from airflow.models.task_state_store import TaskStateStoreModel as Row
    except ImportError:
        return
    from airflow.utils.session import create_session
    from sqlalchemy import select

    rows = select(Row.dag_id, Row.run_id, Row.task_id, Row.map_index, Row.value).filter_by(key=STORE_KEY, **of)
    if since is not None:
        rows = rows.where(Row.updated_at > since)
    with create_session() as session:
        found = session.execute(rows).all()
    for dag_id, run_id, task_id, map_index, value in found:
        if (launch := _decoded(value)) is not None:
            yield TaskKey(dag_id, run_id, task_id, map_index), launch


def _decoded(value: str | None) -> Launch | None:
    try:
        return stored_launch(json.loads(value or "null"))
    except msgspec.ValidationError:
        # A backend of the worker's own keeps only a reference here.
        return None
