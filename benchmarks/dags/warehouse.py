"""The DAG of ``benchmarks/task.py``: one task, by the operator that the environment names.

Everything else that differs between the variants is in the JSON of ``BENCHMARK_ARGUMENTS``.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

from airflow.providers.common.compat.sdk import DAG, BaseOperator


def operator() -> type[BaseOperator]:
    """Return the class of the operator; the import of the other one is none of this task's time."""
    if os.environ["BENCHMARK_OPERATOR"] == "LineageSparkSubmitOperator":
        from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

        return LineageSparkSubmitOperator
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    return SparkSubmitOperator


with DAG(dag_id="warehouse", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC), catchup=False) as dag:
    make_tables = operator()(task_id="make_tables", **json.loads(os.environ["BENCHMARK_ARGUMENTS"]))
