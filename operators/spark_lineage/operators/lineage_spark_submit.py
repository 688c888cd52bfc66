"""``SparkSubmitOperator`` with lineage: a DAG changes one import and one class name."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, AirflowTaskTimeout, conf

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

# The Spark provider polls YARN no faster.
_LEAST_POLL_SECONDS = 10.0


class LineageSparkSubmitOperator(LineageOperator, SparkSubmitOperator):
    """Submit a Spark job and give its task one truthful OpenLineage event: what was read, written, and how it ended.

    It takes every argument of ``SparkSubmitOperator``, and those of ``LineageOperator``.

    :param deferrable: whether a trigger waits for a driver that runs in a cluster, without a worker; it has no effect
        where ``lineage_enabled`` is False
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, *LineageOperator.template_fields)
    _own_methods = frozenset({"execute", "complete", "__fail__"})

    def __init__(
        self,
        *,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable

    def complete(self, context: Context, event: Mapping[str, Any]) -> None:
        """Go on with a job that a trigger waits for: its driver has ended, or a RUNNING event is due.

        :param event: of the trigger, with what was kept of the session: ``airflow dags test`` passes nothing else
        :raises AirflowException: when the driver has not succeeded
        :raises TaskDeferred: while it runs
        """
        from spark_lineage.adapters.cluster import follow_job, run_commands
        from spark_lineage.triggers.spark_application import RUNNING, TIMEOUT

        def go_on() -> None:
            kept, status = event["kept"], event["status"]
            external_id = kept["launch"]["external_id"]
            self._hook = self._get_hook()
            follow_job(self._hook, external_id)
            if self._session is not None:
                self._session.resume(kept, event["transitions"])
            if status == RUNNING:
                if self._session is not None:
                    with self._waiting():
                        self._session.send_running()
                    self._stop_if_killed()
                self.poll_until_complete(external_id, context)
                return
            run_commands(self._hook)
            if status == TIMEOUT:
                raise AirflowTaskTimeout(f"{external_id} has not ended within execution_timeout")
            if status != "FINISHED":
                raise AirflowException(f"{external_id} ended with final status: {status}. {event['error']}".strip())

        # ``go_on`` runs also if lineage was turned off meanwhile: the stock operator cannot resume.
        self._in_session(context, go_on, is_deferred=True)

    def _defer(self, external_id: str) -> None:
        """Have a trigger wait for the driver, where that can be."""
        from spark_lineage.adapters.cluster import launch_of
        from spark_lineage.triggers.spark_application import SparkApplicationTrigger

        session, hook = self._session, self._hook
        if session is None or hook is None:
            return
        kept = session.handover(launch_of(hook, self._conn_id, external_id))
        seconds = max(_LEAST_POLL_SECONDS, self._status_poll_interval)
        limit = self.execution_timeout
        deadline = None if limit is None else kept["began"] + limit.total_seconds()
        trigger = SparkApplicationTrigger(kept, seconds, deadline, session.next_look)
        self.defer(trigger=trigger, method_name="complete")

    def poll_until_complete(self, external_id: Any, context: Context) -> None:
        """Wait for the driver as ``SparkSubmitOperator`` does, also for that of an earlier try, or have it waited for.

        :raises TaskDeferred: with ``deferrable``
        """
        if self.deferrable:
            self._defer(external_id)
        if self._session is None:
            super().poll_until_complete(external_id, context)
            return
        with self._waiting():
            self._session.polling()
            self._stop_if_killed()
            super().poll_until_complete(external_id, context)
        self._stop_if_killed()

    def on_kill(self) -> None:
        """Kill the job as every operator does; a driver that has ended by itself is not waited for, either."""
        super().on_kill()
        if self._waits_in == threading.get_ident():
            raise AirflowException("The driver had ended when its task was killed.")
