"""Finds what is over in Airflow without an end that was sent: tries, DAG runs, waiting events.

The parent facet of a task's event makes a backend such as Marquez create the run of its DAG. The OpenLineage provider
ends it where its own transport reaches, while its process lives. Everything here may query Airflow's database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from spark_lineage.deliver.connections import airflow_connection
from spark_lineage.deliver.outbox import Outbox, default_directory, flush
from spark_lineage.emit.task_event import is_active
from spark_lineage.launch.directory import LAUNCH_FILE, path_segment, root_of
from spark_lineage.launch.launch import Launch, TaskKey, launches_below
from spark_lineage.launch.stores import LaunchStore, ServerStore, is_same_try, stored_launches, stored_tasks
from spark_lineage.merge.conclusion import TryEnd
from spark_lineage.settings.places import option

_SENDING_SECONDS = 30.0
DAG_RUN_ENDS = ("success", "failed")
CLEARED = "cleared"
_HOURS = 24.0
# The provider sends in a process of its own, and may just be about to.
_GRACE_SECONDS = 20.0
_RETRIED = "up_for_retry"
_TRY_ENDS: dict[str, TryEnd] = {
    "success": "success",
    "skipped": "skipped",
    **dict.fromkeys(("failed", _RETRIED, "upstream_failed", "removed"), "failed"),
}


class _Found(Struct, frozen=True, tag=True, kw_only=True):
    """A lost try; one that each search sees anew has that moment in ``seen_at`` (seconds since the epoch)."""

    seen_at: float = 0.0


class LostTry(_Found, frozen=True):
    """The launch of a try whose terminal event is missing.

    ``end`` is the state that Airflow has for it, ``error`` Airflow's words for why, not redacted, or empty.
    ``is_retried`` says that another try follows, which may go on with its driver, and sends how that has ended.
    """

    task: TaskKey
    launch: Launch
    end: TryEnd = "failed"
    error: str = ""
    is_retried: bool = False


class ChildEnd(_Found, frozen=True):
    """A job that goes on when its task has ended, and was not over at ``seen_at``."""

    task: TaskKey
    launch: Launch


class DagRunEnd(_Found, frozen=True):
    """An OpenLineage run of a DAG run that is over, and connections that may not have heard of it.

    Each clear begins a run anew: the provider makes its id with ``clear_number``. ``state`` is that of the DAG run, or
    ``CLEARED`` where it still ran. An empty connection is the provider's own transport.
    """

    dag_id: str
    run_id: str
    conn_ids: tuple[str, ...]
    clear_number: int = 0
    state: str = ""


class LeftInOutbox(_Found, frozen=True):
    """Events that waited in the outboxes of this host at ``seen_at``.

    A server delivers them: where no task runs, nothing else does.
    """

    def send(self) -> None:
        """Send them, as far as the backends take them."""
        flush(seconds=_SENDING_SECONDS)


Lost = LostTry | ChildEnd | DagRunEnd | LeftInOutbox


def lost_of_dag_run(dag_id: str, run_id: str) -> list[Lost]:
    """Return what is open of a DAG run that is over: its tries that have ended, then its own end.

    A task of it may still be on its way to its end.
    """
    tries = _over({*stored_tasks(dag_id=dag_id, run_id=run_id), *_tasks_in_directories(dag_id, run_id)})
    dag_runs = _dag_runs(lambda row: [row.dag_id == dag_id, row.run_id == run_id])
    return [*tries, *(end for dag_run in dag_runs for end in ends_of(dag_run, by_provider=True))]


def _tasks_in_directories(dag_id: str, run_id: str) -> Iterator[TaskKey]:
    """Return the tasks of a DAG run that have launches in the lineage directory of this host."""
    directory = lineage_root() / path_segment(dag_id) / path_segment(run_id)
    names = {(file.parts[-4], file.parts[-3]) for file in directory.glob(f"*/*/*/{LAUNCH_FILE}")}
    if names:
        for task, _, _ in _task_instances(dag_id=dag_id, run_id=run_id):
            if (path_segment(task.task_id), path_segment(str(task.map_index))) in names:
                yield task


def lost_meanwhile() -> list[DagRunEnd]:
    """Return what ended while no scheduler was there to see it, for one that has just been started.

    These are the DAG runs of the last day that are over, and of whose end the outbox of this host does not know.
    """
    now, conn_id = datetime.now(UTC), airflow_connection()
    since, until = now - timedelta(hours=_HOURS), now - timedelta(seconds=_GRACE_SECONDS)
    keys = {(task.dag_id, task.run_id) for task, _ in stored_launches(since)}

    def fits(row: Any) -> list[Any]:
        is_over = [row.state.in_(DAG_RUN_ENDS), row.end_date > since, row.end_date < until]
        # Without a connection, only DAG runs with a stored launch are known here.
        return is_over if conn_id else [*is_over, row.dag_id.in_({dag_id for dag_id, _ in keys})]

    begun = Outbox(default_directory()).spool(conn_id) if conn_id else None
    over = (
        one
        for one in _dag_runs(fits)
        if (one.dag_id, one.run_id) in keys
        or (begun is not None and begun.run(_run_id(one, _clear_number(one))).is_open)
    )
    return [end for dag_run in over for end in ends_of(dag_run)]


def lost_within(hours: float) -> list[Lost]:
    """Return what is open of what was launched within so many hours, and what waits to be sent.

    Some ends are never reported, and a server may lose what it knew. Nothing reports that a DAG run which goes on was
    cleared. What waits is in the outbox of this host.
    """
    found: list[Lost] = [*_over(stored_tasks(datetime.now(UTC) - timedelta(hours=hours)))]
    for dag_run in _dag_runs(lambda row: [row.state == "running", row.queued_at > row.start_date]):
        found += ends_of(dag_run)
    if any(each.waiting for each in Outbox(default_directory()).destinations()):
        found.append(LeftInOutbox(seen_at=time.time()))
    return found


def _dag_runs(fits: Callable[[Any], Iterable[Any]]) -> Sequence[Any]:
    """Return the DAG runs of the database that fit; none of them is written any more.

    :param fits: returns the conditions, by the class of their rows
    """
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(DagRun).where(*fits(DagRun))).all()
        session.expunge_all()
        return found


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


def _over(tasks: Iterable[TaskKey]) -> list[LostTry | ChildEnd]:
    found = (each for task in tasks for each in _task_instances(**structs.asdict(task)))
    return [
        lost
        for task, state, latest in found
        for lost in _open_tries(task, latest, _TRY_ENDS.get(state), is_retried=state == _RETRIED)
    ]


def lost_tries(task: TaskKey, try_number: int, end: TryEnd | None, error: str = "") -> list[LostTry | ChildEnd]:
    """Return what is open of a try that Airflow has just said to be over, and of those before it."""
    now = _task_instances(**structs.asdict(task))
    is_retried = any(state == _RETRIED or latest > try_number for _, state, latest in now)
    return list(_open_tries(task, try_number, end, error, is_retried=is_retried))


def _open_tries(
    task: TaskKey, latest: int, end: TryEnd | None, error: str = "", *, is_retried: bool
) -> Iterator[LostTry | ChildEnd]:
    """Return the tries before the latest that are not closed, and the latest if it has ended."""
    for launch in (one for one in launches_of(task, ServerStore.of(task)) if not one.is_closed):
        if launch.child:
            yield ChildEnd(task, launch, seen_at=time.time())
        elif launch.try_number < latest:
            yield LostTry(task, launch, is_retried=True)
        elif launch.try_number == latest and end is not None:
            yield LostTry(task, launch, end, error, is_retried)


def _task_instances(**of: Any) -> list[tuple[TaskKey, str, int]]:
    """Return the task instances of a DAG run, or that of a task, each with its state and try number."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    one: Any = TaskInstance
    key = (one.dag_id, one.run_id, one.task_id, one.map_index)
    with create_session() as session:
        found = session.execute(select(*key, one.state, one.try_number).filter_by(**of)).all()
    return [(TaskKey(*of_task), str(state or ""), try_number) for *of_task, state, try_number in found]


def ends_of(dag_run: Any, *, by_provider: bool = False) -> Iterator[DagRunEnd]:
    """Return the ends of the runs of a DAG run that have to be sent.

    :param by_provider: whether the provider's own transport gets that of a run which was cleared while it ran: of what
        was sent there, nothing is known here
    """
    clear_number = _clear_number(dag_run)
    if clear_number and dag_run.start_date and dag_run.queued_at and dag_run.start_date < dag_run.queued_at:
        # A clear after the end sets a later start.
        yield from _end(dag_run, clear_number - 1, CLEARED, by_provider=by_provider)
    if dag_run.state in DAG_RUN_ENDS:
        yield from _end(dag_run, clear_number, str(dag_run.state))


def _end(dag_run: Any, clear_number: int, state: str, *, by_provider: bool = False) -> Iterator[DagRunEnd]:
    run_id, outbox = _run_id(dag_run, clear_number), Outbox(default_directory())
    # A DAG run that is tested twice at one date has one run id: its second end may be another.
    missing = [
        one for one in _connections_of_tasks(dag_run) if is_test(dag_run) or not outbox.spool(one).run(run_id).has_ended
    ]
    if conn_id := airflow_connection():
        # The provider sends an end itself; where the run began here, and did not end here, it was killed.
        begun = outbox.spool(conn_id).run(run_id)
        missing += [conn_id] if begun.is_open or (state == CLEARED and not begun.has_ended) else []
    elif by_provider and is_active():
        missing.append("")
    if missing:
        yield DagRunEnd(dag_run.dag_id, dag_run.run_id, tuple(dict.fromkeys(missing)), clear_number, state)


def is_test(dag_run: Any) -> bool:
    """Whether a DAG run is one of ``airflow dags test``."""
    return getattr(getattr(dag_run, "triggered_by", None), "value", "") == "test"


def _clear_number(dag_run: Any) -> int:
    return int(getattr(dag_run, "clear_number", 0))


def _run_id(dag_run: Any, clear_number: int) -> str:
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter

    return str(
        OpenLineageAdapter.build_dag_run_id(
            dag_id=dag_run.dag_id,
            logical_date=dag_run.logical_date or dag_run.run_after,
            clear_number=clear_number,
        )
    )


def _connections_of_tasks(dag_run: Any) -> Iterable[str]:
    """Return the connections that the launches of a DAG run name, as far as those can be found.

    Under another namespace of Airflow its runs were others, whose ends are not sent now.
    """
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter

    def run_id(task: TaskKey, launch: Launch) -> object:
        return OpenLineageAdapter.build_task_instance_run_id(
            dag_id=task.dag_id,
            task_id=task.task_id,
            try_number=launch.try_number,
            logical_date=dag_run.logical_date or dag_run.run_after,
            map_index=task.map_index,
        )

    stored = list(stored_launches(dag_id=dag_run.dag_id, run_id=dag_run.run_id))
    launches = [launch for task, launch in stored if launch.run_id == run_id(task, launch)]
    if not stored:
        launches = launches_below(lineage_root(), dag_run.dag_id, dag_run.run_id)
    return dict.fromkeys(conn_id for launch in launches for conn_id in launch.event_conn_ids)


def lineage_root() -> Path:
    """Return the lineage directory that the section names, else the default."""
    from airflow.configuration import AIRFLOW_HOME

    return Path(option("lineage_dir") or f"{AIRFLOW_HOME}/spark_lineage")
