"""Closes what standard input names, as a JSON list: lost tries, DAG runs without an end, events that wait.

It runs beside a scheduler or an API server, in a process of its own that may ask Airflow's database.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import msgspec

from spark_lineage.launch.lost_try import LostTry

log = logging.getLogger(__name__)


def main() -> None:
    """Close one after the other; trouble with one is logged, and leaves the others alone."""
    from spark_lineage.recover.closing import guard
    from spark_lineage.recover.dag_runs import DagRunEnd, send_dag_run_end
    from spark_lineage.recover.search import LeftInOutbox

    for lost in msgspec.json.decode(sys.stdin.buffer.read(), type=list[LostTry | DagRunEnd | LeftInOutbox]):
        with guard("The end of a try, or of a DAG run, is not sent"):
            match lost:
                case LostTry():
                    close_try(lost)
                case DagRunEnd():
                    send_dag_run_end(lost)
                case LeftInOutbox():
                    lost.send()


def close_try(lost: LostTry) -> bool:
    """Send the end of a try, with what the database knows of it, which is not changed; return whether it was sent."""
    from airflow.models.dagrun import DagRun
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.models.taskinstance import TaskInstance
    from airflow.settings import engine
    from sqlalchemy import select
    from sqlalchemy.orm import Session, make_transient

    from spark_lineage.emit.task_event import AirflowTry
    from spark_lineage.launch.stores import ServerStore
    from spark_lineage.recover.closing import close, guard
    from spark_lineage.recover.recovery import end_leftovers

    task = lost.task
    key = {"dag_id": task.dag_id, "run_id": task.run_id}
    of_task = {**key, "task_id": task.task_id, "map_index": task.map_index}
    # Not Airflow's own of this thread: whoever asks for that one meanwhile closes it.
    with Session(engine) as session:
        dag_run = session.scalar(select(DagRun).filter_by(**key))
        instance: Any = session.scalar(select(TaskInstance).filter_by(**of_task))
        if dag_run is None or instance is None:
            log.info("Airflow does not know %s any more; its end is not sent.", task)
            return False
        # The row may be that of a later try; a copy without its session can have another number.
        make_transient(instance)
        instance.try_number = lost.launch.try_number
        dag: Any = None
        with guard("The event does not say what DAG and task are like"):
            dag = SerializedDagModel.get_dag(task.dag_id)
        operator = dag.get_task(task.task_id) if dag is not None and dag.has_task(task.task_id) else None
        airflow = AirflowTry(instance, dag_run, dag, operator)
        ended = end_leftovers(lost.launch)
        return close(lost, airflow, lambda: ServerStore.of(task), ended_processes=ended)


if __name__ == "__main__":
    main()
