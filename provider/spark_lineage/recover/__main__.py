"""Closes the lost tries, DAG runs without an end and waiting events that standard input names, as a JSON list.

It runs beside a scheduler or an API server, in a process of its own that may query Airflow's database.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from airflow import settings as airflow_settings
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from airflow.providers.openlineage.plugins.listener import OpenLineageListener
from openlineage.client.event_v2 import RunState
from sqlalchemy import select
from sqlalchemy.orm import Session, make_transient

from spark_lineage import add_ons
from spark_lineage.deliver.connection_sender import ConnectionSender
from spark_lineage.deliver.connections import airflow_connection
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.emit.task_event import AirflowTry, send
from spark_lineage.launch.launch import TaskKey
from spark_lineage.launch.log import Log
from spark_lineage.launch.stores import ServerStore
from spark_lineage.recover.closing import close, end_child, guard
from spark_lineage.recover.recovery import end_leftovers
from spark_lineage.recover.search import CLEARED, ChildEnd, DagRunEnd, LeftInOutbox, Lost, LostTry
from spark_lineage.settings.places import section_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openlineage.client.event_v2 import RunEvent

    from spark_lineage.launch.launch import Launch

log = Log(__name__)


def main() -> None:
    """Close one after the other; an error of one is logged, and does not stop the others."""
    for lost in msgspec.json.decode(sys.stdin.buffer.read(), type=list[Lost]):
        with guard("The end of a try, or of a DAG run, is not sent"):
            match lost:
                case LostTry():
                    close_try(lost)
                case ChildEnd():
                    close_child(lost)
                case DagRunEnd():
                    send_dag_run_end(lost)
                case LeftInOutbox():
                    lost.send()


def close_try(lost: LostTry) -> bool:
    """Send the end of a try, with what the database knows of it, which is not changed; return whether it was sent."""
    task, content = lost.task, None
    with _found(task, lost.launch) as found:
        if found is None:
            return False
        airflow, latest = found
        ended = end_leftovers(lost.launch)
        content = close(lost, airflow, lambda: ServerStore.of(task), ended_processes=ended)
    if content is not None and lost.launch.try_number == latest:
        with guard("The tab of the task does not show its lineage", can_fail=False):
            _show(task, latest, content)
    return content is not None


def close_child(lost: ChildEnd) -> bool:
    """Send the end of a job that went on when its task had ended, if it is over; return whether it was sent."""
    with _found(lost.task, lost.launch) as found:
        return found is not None and end_child(lost, found[0], ServerStore.of(lost.task))


@contextmanager
def _found(task: TaskKey, launch: Launch) -> Iterator[tuple[AirflowTry, int] | None]:
    """Give what the database knows of a try, and the number of the latest one; None where the task is gone."""
    key = {"dag_id": task.dag_id, "run_id": task.run_id}
    # Not Airflow's own of this thread: whoever asks for that one meanwhile closes it.
    with Session(airflow_settings.engine) as session:
        dag_run = session.scalar(select(DagRun).filter_by(**key))
        instance: Any = session.scalar(select(TaskInstance).filter_by(**msgspec.structs.asdict(task)))
        if dag_run is None or instance is None:
            log.info("Airflow does not know %s any more; its end is not sent.", task)
            yield None
            return
        # The row may be that of a later try; a copy without its session can have another number.
        make_transient(instance)
        latest, instance.try_number = instance.try_number, launch.try_number
        dag: Any = None
        with guard("The event does not say what DAG and task are like"):
            dag = SerializedDagModel.get_dag(task.dag_id)
        operator = dag.get_task(task.task_id) if dag is not None and dag.has_task(task.task_id) else None
        yield AirflowTry(instance, dag_run, dag, operator), latest


def _show(task: TaskKey, try_number: int, content: bytes) -> None:
    """Leave the end of a task's latest try for the tab "Lineage", unless another try has begun meanwhile."""
    from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_1_PLUS

    if not AIRFLOW_V_3_1_PLUS or (tab := add_ons.part("tab")) is None:
        return
    from airflow.models.xcom import XComModel

    key = msgspec.structs.asdict(task)
    with Session(airflow_settings.engine) as session, session.begin():
        # Its lock keeps a next try, which takes the XComs away, from beginning in between.
        query = select(TaskInstance.try_number).filter_by(**key).with_for_update()
        if session.scalar(query) == try_number:
            before = session.scalar(select(XComModel.value).filter_by(**key, key=tab.XCOM_KEY))
            view = tab.of_event(content, number=try_number, tries=tab.tries_of(before))
            view["links"] = tab.links_of(before)
            XComModel.set(tab.XCOM_KEY, view, **key, session=session)


def send_dag_run_end(end: DagRunEnd) -> None:
    """Send the START and the end of a DAG run: some backends have it as running, others do not have it."""
    with Session(airflow_settings.engine, autoflush=False) as session:
        dag_run: Any = session.scalar(select(DagRun).filter_by(dag_id=end.dag_id, run_id=end.run_id))
        if dag_run is None or end.state not in (CLEARED, dag_run.state):
            return
        dag_run.dag = SerializedDagModel.get_dag(end.dag_id)
        # The row is never written.
        dag_run.clear_number = end.clear_number
        if end.state == CLEARED:
            dag_run.end_date = dag_run.queued_at
        events = _events(dag_run, end.state)
    settings = section_settings(log)
    for conn_id in end.conn_ids:
        if conn_id:
            is_own = conn_id == airflow_connection()
            sender = ConnectionSender((conn_id,), settings, guard, is_for_provider=is_own)
            for event in events:
                sender.put(Outgoing.encode(event), at_most_seconds=settings.brief_seconds)
            left = sender.deliver(settings.brief_seconds)
        else:
            left = ""
            for event in events:
                send(event)
        where = conn_id or "the transport of the OpenLineage provider"
        log.info("The end of the DAG run %s of %s: %s.", end.run_id, end.dag_id, left or f"sent to {where}")


def _events(dag_run: Any, state: str) -> list[RunEvent]:
    """Return START and end as the provider's listener makes them; none where its emission policy wants none."""
    made: list[RunEvent] = []

    class Unsent(OpenLineageAdapter):
        def emit(self, event: RunEvent) -> RunEvent:
            made.append(event)
            return event

    class Listener(OpenLineageListener):
        """Makes the events here and now."""

        def submit_callable(self, callable: Any, *args: Any, **kwargs: Any) -> None:  # noqa: A002, ARG002
            getattr(Unsent(), args[0])(**kwargs)

    listener: Any = Listener()  # type: ignore[no-untyped-call]
    listener.on_dag_run_running(dag_run, "")
    if state == CLEARED:
        listener.on_dag_run_failed(dag_run, "A task was cleared while the DAG run went on: it is another run since.")
        for event in made[1:]:
            event.eventType = RunState.ABORT
    else:
        getattr(listener, f"on_dag_run_{state}")(dag_run, "")
    return made


if __name__ == "__main__":
    main()
