"""``PySparkOperator`` with lineage: a DAG changes one import and one class name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from spark_lineage.task.session import LineageSession


class LineagePySparkOperator(LineageOperator, PySparkOperator):
    """Run a function with a Spark session, and give its task one truthful OpenLineage event.

    It takes every argument of ``PySparkOperator``, and those of ``LineageOperator``. For ``@task.pyspark``, see
    ``docs/operators.md``.
    """

    template_fields: Sequence[str] = (*PySparkOperator.template_fields, *LineageOperator.template_fields)

    @property
    def _conn_id(self) -> str:  # type: ignore[override]
        return self.conn_id or ""

    def _attach_adapter(self, session: LineageSession) -> None:
        session.attach(self, self)
