"""``SparkKubernetesOperator`` with lineage: a DAG changes one import and one class name.

Every DAG file imports this module, so modules that only a running task needs are imported when it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
from airflow.providers.common.compat.sdk import AirflowException

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

# Of the event of the trigger, which has all arguments that the provider was given for it.
_KEPT = "spark_lineage"


class LineageSparkKubernetesOperator(LineageOperator, SparkKubernetesOperator):
    """Run a ``SparkApplication`` on Kubernetes, and give its task one truthful OpenLineage event.

    It takes every argument of ``SparkKubernetesOperator``, and those of ``LineageOperator``.

    Upstream fault (10.25): a task that is killed goes on to follow the driver that it has deleted, and to delete it.
    """

    template_fields: Sequence[str] = (  # type: ignore[assignment]
        *SparkKubernetesOperator.template_fields,
        *LineageOperator.template_fields,
    )
    _own_methods = frozenset({"execute", "trigger_reentry", "__fail__"})
    _waits_in: int | None = None
    """The thread that waits for the driver."""

    @property
    def _conn_id(self) -> str:  # type: ignore[override]
        return self.kubernetes_conn_id or ""

    def _in_session(self, context: Context, run: Callable[[], object], **how: Any) -> object:
        return super()._in_session(context, lambda: self._attached(lambda: self, run), **how)

    def get_or_create_spark_crd(self, *arguments: Any, **keywords: Any) -> Any:
        """Create the object, or find the driver of an earlier try, as the stock operator does."""
        with self._waiting():
            return super().get_or_create_spark_crd(*arguments, **keywords)

    def execute_sync(self, context: Context) -> Any:
        """Wait for the driver as the stock operator does, also for that of an earlier try."""
        if self._session is not None:
            self._session.polling()
        with self._waiting():
            return super().execute_sync(context)

    def defer(self, *, trigger: Any, method_name: str, **options: Any) -> NoReturn:
        """Defer as the stock operator does, and keep the session in the event of the trigger."""
        from airflow.providers.cncf.kubernetes.triggers.pod import KubernetesPodTrigger

        from spark_lineage.adapters.spark_application import launch_of

        if self._session is not None and isinstance(trigger, KubernetesPodTrigger):
            kept = self._session.kept(launch_of(trigger.pod_namespace, trigger.pod_name, self._conn_id))
            trigger.trigger_kwargs = {**(trigger.trigger_kwargs or {}), _KEPT: kept}
        # Not ``LineageOperator``'s, which would keep it a second time.
        super(LineageOperator, self).defer(trigger=trigger, method_name=method_name, **options)

    def trigger_reentry(self, context: Context, event: dict[str, Any]) -> Any:
        """Go on as the stock operator does, with the session that was kept."""
        event = dict(event)
        kept, reentry = event.pop(_KEPT, None), super().trigger_reentry

        def go_on() -> Any:
            if self._session is not None:
                self._session.resume(kept, ())
            return reentry(context, event)

        return reentry(context, event) if kept is None else self._in_session(context, go_on, is_deferred=True)

    def on_kill(self) -> None:
        """Delete the object as the stock operator does, and note that in the lineage.

        :raises AirflowException: within the handler of a signal, where the task waits for the driver: it may look at it
            again too late, because the process is killed before that
        """
        self._killed = self._killed or self._session is not None
        super().on_kill()
        if self._waits_in == threading.get_ident():
            self._stop_if_killed()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self._waits_in = threading.get_ident()
        try:
            yield
        finally:
            self._waits_in = None
        self._stop_if_killed()

    def _stop_if_killed(self) -> None:
        # What `on_kill` has raised may have been caught on its way.
        if self._session is not None and self._session.is_killed:
            raise AirflowException("The driver was killed with its task.")
