"""``LivyOperator`` with lineage: a DAG changes one import and one class name."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.providers.apache.livy.operators.livy import LivyOperator

from spark_lineage.operators.lineage_operator import HookOperator, LineageOperator, PollingOperator


class LineageLivyOperator(PollingOperator, HookOperator, LivyOperator):
    """Run a batch of Apache Livy, and give its task one truthful OpenLineage event.

    It takes every argument of ``LivyOperator``, and those of ``LineageOperator``. Where the task does not wait for its
    batch, the lineage is that of a job of its own.
    """

    template_fields: Sequence[str] = (*LivyOperator.template_fields, *LineageOperator.template_fields)

    @property
    def _conn_id(self) -> str:  # type: ignore[override]
        return self._livy_conn_id
