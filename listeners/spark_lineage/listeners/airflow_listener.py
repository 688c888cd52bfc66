"""Airflow's own listener: reports the ends of tasks that their operator could not report.

The operator reports an end while its process lives. When the process was killed, its heartbeat was lost, or a user set
its state, schedulers and API servers notice it here, or when the DAG run ends, and workers when the next try begins.
Nothing here is slow, and nothing is raised.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import hookimpl

from spark_lineage.launch.log import Log, log_trouble

if TYPE_CHECKING:
    from spark_lineage.merge.conclusion import TryEnd
    from spark_lineage.recover.backlog import Backlog
    from spark_lineage.recover.search import Lost

# Each process of Airflow imports this module: what it needs, it imports when there is something to do.
_OPERATORS = "spark_lineage.operators"
_SWEEP_SECONDS = 300.0
_SWEEP_HOURS = 24.0

log = Log(__name__)


class AirflowListener:
    """The hooks; but for a beginning they come after those of the OpenLineage provider, which forks the task's process.

    The end of an earlier try comes before the START of this one: a backend shows of a job what came last.
    """

    def __init__(self) -> None:
        self._sweeping_process_id = 0

    @hookimpl(tryfirst=True)
    def on_task_instance_running(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ARG002
        """In a worker: close the tries before this one."""
        self._tolerate(lambda: self._begun(task_instance))

    @hookimpl(trylast=True)
    def on_task_instance_success(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ARG002
        """In a worker, or by hand."""
        self._tolerate(lambda: self._ended(task_instance, "success"))

    @hookimpl(trylast=True)
    def on_task_instance_failed(self, previous_state: Any, task_instance: Any, error: Any) -> None:  # noqa: ARG002
        """In a worker, by hand, or because nothing was heard of it any more."""
        self._tolerate(lambda: self._ended(task_instance, "failed", "" if error is None else str(error)))

    @hookimpl(trylast=True)
    def on_task_instance_skipped(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ARG002
        """In a worker, or by hand."""
        self._tolerate(lambda: self._ended(task_instance, "skipped"))

    @hookimpl(trylast=True)
    def on_starting(self, component: Any) -> None:
        """In a scheduler, which says only later that it is one: what ended while there was none is looked for."""
        if type(component).__name__ == "Job":
            self._tolerate(lambda: self._backlog.add(partial(self._started, component)))

    @hookimpl(trylast=True)
    def on_dag_run_running(self, dag_run: Any, msg: str) -> None:  # noqa: ARG002
        """In a scheduler: it sweeps from now on."""
        self._tolerate(self._sweep)

    @hookimpl(trylast=True)
    def on_dag_run_success(self, dag_run: Any, msg: str) -> None:  # noqa: ARG002
        """In a scheduler, or by hand."""
        self._tolerate(lambda: self._dag_run_ended(dag_run))

    on_dag_run_failed = on_dag_run_success

    @cached_property
    def _backlog(self) -> Backlog:
        from spark_lineage.recover.backlog import Backlog

        return Backlog()

    def _started(self, job: Any) -> Sequence[Lost]:
        # Its session is another thread's.
        if vars(job).get("job_type") != "SchedulerJob":
            return ()
        from spark_lineage.recover.search import lost_meanwhile

        self._sweep()
        return lost_meanwhile()

    def _sweep(self) -> None:
        """Look for lost tries now and then: a server that was restarted has lost its list of them.

        Begun by the start of a scheduler, or by the first DAG run.
        """
        if self._sweeping_process_id != os.getpid():
            from spark_lineage.recover.search import lost_within

            self._backlog.repeat(partial(lost_within, _SWEEP_HOURS), _SWEEP_SECONDS)
            self._sweeping_process_id = os.getpid()

    def _begun(self, task_instance: Any) -> None:
        if task_instance.try_number > 1 and _is_ours(task_instance):
            from spark_lineage.recover.closing import close_earlier

            close_earlier(task_instance)

    def _ended(self, task_instance: Any, end: TryEnd, error: str = "") -> None:
        if not _is_of_server(task_instance):
            if _is_ours(task_instance):
                from spark_lineage.recover.closing import close_own

                close_own(task_instance)
            return
        from spark_lineage.launch.launch import TaskKey
        from spark_lineage.recover.search import lost_tries

        self._backlog.add(partial(lost_tries, TaskKey.of(task_instance), task_instance.try_number, end, error))

    def _dag_run_ended(self, dag_run: Any) -> None:
        from spark_lineage.recover.search import is_test, lost_of_dag_run

        search = partial(lost_of_dag_run, dag_run.dag_id, dag_run.run_id)
        if is_test(dag_run):
            # The process of `airflow dags test` commits the end after this, and exits soon.
            atexit.register(self._tolerate, lambda: self._backlog.close(search))
        else:
            self._backlog.add(search)
            self._sweep()

    def _tolerate(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:
            log_trouble(log, "The end of a lost task may be missing", error)


def _is_of_server(task_instance: Any) -> bool:
    """Whether this is a row of the database whose task ran elsewhere; Airflow 2 has rows in workers too."""
    task = getattr(task_instance, "task", None)
    return hasattr(task_instance, "_sa_instance_state") and not getattr(task, "has_session", False)


def _is_ours(task_instance: Any) -> bool:
    """Whether the operator of a running task is ours, or made from ours."""
    return any(each.__module__.startswith(_OPERATORS) for each in type(task_instance.task).__mro__)
