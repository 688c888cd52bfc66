"""``SparkKubernetesOperator`` with lineage: a DAG changes one import and one class name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.task.session import LineageSession


class LineageSparkKubernetesOperator(LineageOperator, SparkKubernetesOperator):
    """Run a ``SparkApplication`` on Kubernetes, and give its task one truthful OpenLineage event.

    It takes every argument of ``SparkKubernetesOperator``, and those of ``LineageOperator``.

    Upstream fault (10.25): a task that is killed goes on to follow the driver that it has deleted, and to delete it.
    """

    template_fields: Sequence[str] = (  # type: ignore[assignment]
        *SparkKubernetesOperator.template_fields,
        *LineageOperator.template_fields,
    )

    @property
    def _conn_id(self) -> str:  # type: ignore[override]
        return self.kubernetes_conn_id or ""

    def _attach_adapter(self, session: LineageSession) -> None:
        session.attach(self, self)

    def get_or_create_spark_crd(self, *arguments: Any, **keywords: Any) -> Any:
        """Create the object, or find the driver of an earlier try, as the stock operator does."""
        with self._waiting():
            created = super().get_or_create_spark_crd(*arguments, **keywords)
        self._stop_if_killed()
        return created

    def execute_sync(self, context: Context) -> Any:
        """Wait for the driver as the stock operator does, also for that of an earlier try."""
        if self._session is not None:
            self._session.polling()
        with self._waiting():
            ended = super().execute_sync(context)
        self._stop_if_killed()
        return ended

    def on_kill(self) -> None:
        """Delete the object as the stock operator does, and note that in the lineage."""
        self._killed = self._killed or self._session is not None
        super().on_kill()
