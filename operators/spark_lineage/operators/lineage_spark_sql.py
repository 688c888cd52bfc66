"""``SparkSqlOperator`` with lineage: a DAG changes one import and one class name."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator

from spark_lineage.operators.lineage_operator import LineageOperator


class LineageSparkSqlOperator(LineageOperator, SparkSqlOperator):
    """Run a query with ``spark-sql``, and give its task one truthful OpenLineage event.

    It takes every argument of ``SparkSqlOperator``, and those of ``LineageOperator``. The driver runs on the worker.
    """

    template_fields: Sequence[str] = (*SparkSqlOperator.template_fields, *LineageOperator.template_fields)
