"""``SparkSubmitOperator`` with lineage: a DAG changes one import and one class name.

Every DAG file imports this module, so modules that only a running task needs are imported when it runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, AirflowTaskTimeout, conf

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

# The Spark provider polls YARN no faster.
_LEAST_POLL_SECONDS = 10.0
_KILLED = "The driver was killed with its task."


class LineageSparkSubmitOperator(LineageOperator, SparkSubmitOperator):
    """Submit a Spark job and give its task one truthful OpenLineage event: what was read, written, and how it ended.

    It takes every argument of ``SparkSubmitOperator``, and those of ``LineageOperator``.

    :param deferrable: whether a trigger waits for a driver that runs in a cluster, without a worker; it has no effect
        where ``lineage_enabled`` is False
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, *LineageOperator.template_fields)
    _own_methods = frozenset({"execute", "complete", "__fail__"})
    _began = 0.0
    _waits_in: int | None = None
    """The thread that waits for a driver that runs elsewhere, or for its lineage so far."""

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
            self._began = kept["began"]
            self._hook = self._get_hook()
            follow_job(self._hook, external_id)
            if self._session is not None:
                self._session.resume(kept, event["transitions"])
            if status == RUNNING:
                if self._session is not None:
                    self._waits_in = threading.get_ident()
                    self._session.look()
                    self._waits_in = None
                    self._stop_if_killed()
                self._has_looked = True
                self.poll_until_complete(external_id, context)
                return
            run_commands(self._hook)
            if status == TIMEOUT:
                raise AirflowTaskTimeout(f"{external_id} has not ended within execution_timeout")
            if status != "FINISHED":
                raise AirflowException(f"{external_id} ended with final status: {status}. {event['error']}".strip())

        # Also where lineage was turned off meanwhile: the stock operator does not know how to go on.
        self._in_session(context, go_on, is_deferred=True)

    def _in_session(self, context: Context, run: Callable[[], object], **how: Any) -> object:
        self._began, self._has_looked = time.time(), False
        return super()._in_session(context, run, **how)

    def _defer(self, external_id: str) -> None:
        """Have a trigger wait for the driver, where that can be."""
        from spark_lineage.adapters.cluster import launch_of
        from spark_lineage.triggers.spark_application import SparkApplicationTrigger

        session, hook = self._session, self._hook
        if session is None or hook is None:
            return
        kept = session.kept(launch_of(hook, self._conn_id, external_id))
        kept |= {"began": self._began, "has_looked": self._has_looked}
        seconds = max(_LEAST_POLL_SECONDS, self._status_poll_interval)
        limit = self.execution_timeout
        deadline = None if limit is None else self._began + limit.total_seconds()
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
        self._waits_in = threading.get_ident()
        try:
            self._session.polling()
            self._stop_if_killed()
            super().poll_until_complete(external_id, context)
        finally:
            self._waits_in = None
        self._stop_if_killed()

    def _stop_if_killed(self) -> None:
        # What `on_kill` has raised may have been caught on its way; a driver that is gone looks like one that ended.
        if self._session is not None and self._session.is_killed:
            raise AirflowException(_KILLED)

    def on_kill(self) -> None:
        """Kill the job as ``SparkSubmitOperator`` does, with all its processes here, and say so in the lineage.

        :raises AirflowException: within the handler of a signal, where the task waits for a driver that runs elsewhere:
            it may be half a minute until the provider looks at it again, and the process is killed before that
        """
        super().on_kill()
        if self._session is not None and self._waits_in == threading.get_ident():
            raise AirflowException(_KILLED)
