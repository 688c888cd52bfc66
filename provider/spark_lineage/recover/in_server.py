"""Closes lost tries beside a scheduler or an API server, in a process of its own that may ask Airflow's database."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spark_lineage.emit.task_event import AirflowTry
from spark_lineage.launch.claim import claim
from spark_lineage.launch.stores import ServerStore
from spark_lineage.recover.closing import configuration_of, guard, send_end
from spark_lineage.recover.recovery import end_leftovers, recover

if TYPE_CHECKING:
    from spark_lineage.launch.lost_try import LostTry

log = logging.getLogger(__name__)


def close(lost: LostTry) -> bool:
    """Send the end of a try, if nobody else does.

    The end is claimed right before it is sent: a worker that was only slow still comes first, and what goes wrong here
    leaves the try to the next who looks.

    :return: whether it was sent
    """
    launch, configuration = lost.launch, configuration_of(lost.launch.conn_id)
    with _airflow_try(lost) as airflow:
        if airflow is None:
            log.info("Airflow does not know %s any more; its end is not sent.", lost.task)
            return False
        recovered = recover(lost, configuration, ended_processes=end_leftovers(launch), logger=log)
        if not claim(launch, ServerStore.of(lost.task)):
            log.info("The end of %s, try %s, is told by another process.", lost.task, launch.try_number)
            return False
        return send_end(lost, recovered, configuration, airflow)


@contextmanager
def _airflow_try(lost: LostTry) -> Iterator[AirflowTry | None]:
    """What the database knows of a try, for as long as the database can be asked for more; nothing is changed."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.settings import engine
    from sqlalchemy import select
    from sqlalchemy.orm import Session, make_transient

    key = lost.task
    row: Any = TaskInstance
    run: Any = DagRun
    dag, task = _dag_and_task(key.dag_id, key.task_id)
    # Not Airflow's own of this thread: whoever asks for that one meanwhile closes it.
    with Session(engine) as session:
        dag_run = session.scalar(select(run).where(run.dag_id == key.dag_id, run.run_id == key.run_id))
        instance = session.scalar(
            select(row).where(
                row.dag_id == key.dag_id,
                row.run_id == key.run_id,
                row.task_id == key.task_id,
                row.map_index == key.map_index,
            )
        )
        if dag_run is None or instance is None:
            yield None
            return
        # The row may be that of a later try; a copy without its session can be given another number.
        make_transient(instance)
        instance.try_number = lost.launch.try_number
        yield AirflowTry(instance, dag_run, dag, task)


def _dag_and_task(dag_id: str, task_id: str) -> tuple[Any, Any]:
    with guard("The event does not say what DAG and task are like"):
        from airflow.models.serialized_dag import SerializedDagModel

        dag: Any = SerializedDagModel.get_dag(dag_id)
        if dag is not None and dag.has_task(task_id):
            return dag, dag.get_task(task_id)
    return None, None
