"""Sends the end of a DAG run to the connections that heard of its tasks, where the OpenLineage provider has not.

The parent facet of a task's event makes a backend such as Marquez create the run of its DAG. The provider ends it where
its own transport reaches, while its process lives. Everything here may ask Airflow's database.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from spark_lineage.deliver.outbox.outbox import Outbox
from spark_lineage.deliver.through_connections import ConnectionSender
from spark_lineage.deliver.transports.airflow import airflow_connection
from spark_lineage.launch.launch import Launch, launches_below
from spark_lineage.launch.lost_try import TaskKey
from spark_lineage.launch.stores import stored_launches
from spark_lineage.recover.closing import guard
from spark_lineage.secrets.redacted_event import encode
from spark_lineage.settings.defaults import outbox_directory
from spark_lineage.settings.places import option, section_settings

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent

log = logging.getLogger(__name__)

_ENDS = ("success", "failed")
_HOURS = 24.0
# The provider sends in a process of its own, and may just be about to.
_GRACE_SECONDS = 20.0


class DagRunEnd(Struct, frozen=True, tag=True):
    """A DAG run that is over, and connections that may not have heard of it."""

    dag_id: str
    run_id: str
    conn_ids: tuple[str, ...]


class EndedMeanwhile(Struct, frozen=True):
    """What ended while no scheduler was there to see it: for one that has just been started."""

    def lost(self) -> list[DagRunEnd]:
        """Return the DAG runs of the last day that are over, and of whose end the outbox of this host does not know."""
        from airflow.models.dagrun import DagRun
        from airflow.utils.session import create_session
        from sqlalchemy import select

        now, row = datetime.now(UTC), cast("Any", DagRun)
        since, until = now - timedelta(hours=_HOURS), now - timedelta(seconds=_GRACE_SECONDS)
        keys = {(task.dag_id, task.run_id) for task, _ in stored_launches(None, since)}
        begun: set[str] = set()
        if airflow_connection():
            # The names of jobs, among them those of DAGs, that began here and have not ended here.
            with closing(_outbox()) as outbox:
                begun = {job.partition(" ")[2] for job in outbox.open_runs().values()}
        of_dags = row.dag_id.in_(begun | {dag_id for dag_id, _ in keys})
        query = select(row).where(of_dags, row.state.in_(_ENDS), row.end_date > since, row.end_date < until)
        with create_session() as session:
            found = session.scalars(query).all()
            session.expunge_all()
        over = (one for one in found if one.dag_id in begun or (one.dag_id, one.run_id) in keys)
        return [end for dag_run in over for end in ends_of(dag_run)]


def ends_of(dag_run: Any) -> Iterator[DagRunEnd]:
    """Return the end of a DAG run that has to be sent, nothing while it goes on."""
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter

    if dag_run.state not in _ENDS:
        return
    run_id = OpenLineageAdapter.build_dag_run_id(
        dag_id=dag_run.dag_id,
        logical_date=dag_run.logical_date or dag_run.run_after,
        clear_number=getattr(dag_run, "clear_number", 0),
    )
    with closing(_outbox()) as outbox:
        missing = [one for one in _connections_of_tasks(dag_run) if not outbox.has_ended(one, run_id)]
        # The provider sends it itself; where it began here, and did not end here, it was killed.
        conn_id = airflow_connection()
        if conn_id and run_id in outbox.open_runs():
            missing.append(conn_id)
    if missing:
        yield DagRunEnd(dag_run.dag_id, dag_run.run_id, tuple(dict.fromkeys(missing)))


def send_dag_run_end(end: DagRunEnd) -> None:
    """Send the START and the end of a DAG run: some backend knows it as running, another has never heard of it."""
    from airflow.models.dagrun import DagRun
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.settings import engine
    from sqlalchemy import select
    from sqlalchemy.orm import Session

    with Session(engine) as session:
        dag_run: Any = session.scalar(select(DagRun).filter_by(dag_id=end.dag_id, run_id=end.run_id))
        if dag_run is None or dag_run.state not in _ENDS:
            return
        dag_run.dag = SerializedDagModel.get_dag(end.dag_id)
        events = _events(dag_run)
    settings = section_settings(log)
    providers_own = airflow_connection()
    for conn_id in end.conn_ids:
        sender = ConnectionSender(
            (conn_id,), settings, guard=guard, logger=log, is_for_provider=conn_id == providers_own
        )
        for event in events:
            sender.put(encode(event), at_most_seconds=settings.delivery_timeout_seconds)
        sender.deliver(settings.delivery_timeout_seconds)
        sender.close()
        log.info("Sent the end of the DAG run %s of %s to %s.", end.run_id, end.dag_id, conn_id)


def _events(dag_run: Any) -> list[RunEvent]:
    """Return START and end as the provider's listener makes them; none where its emission policy wants none."""
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from airflow.providers.openlineage.plugins.listener import OpenLineageListener

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
    end = listener.on_dag_run_success if dag_run.state == "success" else listener.on_dag_run_failed
    end(dag_run, "")
    return made


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

    key = (dag_run.dag_id, dag_run.run_id)
    stored = list(stored_launches(key))
    launches = [launch for task, launch in stored if launch.run_id == run_id(task, launch)]
    if not stored:
        launches = launches_below(lineage_root(), *key)
    return dict.fromkeys(conn_id for launch in launches for conn_id in launch.openlineage_conn_id)


def _outbox() -> Outbox:
    settings = section_settings(log)
    return Outbox(outbox_directory(settings.outbox_dir), max_bytes=int(settings.outbox_max_bytes))


def lineage_root() -> Path:
    """Return the lineage directory that the section names, else the default."""
    from airflow.configuration import AIRFLOW_HOME

    return Path(option("lineage_dir") or f"{AIRFLOW_HOME}/spark_lineage")
