"""``SparkSqlOperator`` with lineage: a DAG changes one import and one class name.

Every DAG file imports this module, so modules that only a running task needs are imported when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator

from spark_lineage.operators.lineage_operator import LineageOperator


class LineageSparkSqlOperator(LineageOperator, SparkSqlOperator):
    """Run a query with ``spark-sql``, and give its task one truthful OpenLineage event.

    It takes every argument of ``SparkSqlOperator``, and the arguments for lineage of ``LineageSparkSubmitOperator``:
    all of those but ``deferrable``, because the driver runs on the worker. Each of them overrides the key of the same
    name in the extra of the connection (``spark_sql_default``), which overrides the option in ``[spark_lineage]``.
    """

    template_fields: Sequence[str] = (*SparkSqlOperator.template_fields, *LineageOperator.template_fields)
