"""An example: accumulators of a Spark program as numbers of its lineage.

The program declares a file that it writes by plain Python. The number of its rows, and of those that it rejected, are
the values of two accumulators: rows in ``outputStatistics``, the other in ``sparkLineage_properties``.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.providers.common.compat.sdk import DAG, Param

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HERE = Path(__file__).resolve().parent
LAKE = os.environ.get("SPARK_LINEAGE_EXAMPLE_LAKE", str(HERE / "lake"))
DATA = os.environ.get("SPARK_LINEAGE_EXAMPLE_DATA", str(HERE / "data"))

with DAG(
    dag_id="orders_exported",
    description="Orders as JSON lines, with the number of those that were rejected.",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    params={"lake": Param(LAKE, type="string", description="Directory below which the task writes")},
    tags=["example", "spark", "lineage"],
):
    LineageSparkSubmitOperator(
        task_id="export_orders",
        conn_id="spark_default",
        application=str(HERE / "spark_jobs" / "orders_exported.py"),
        application_args=[f"{DATA}/orders.csv", "{{ params.lake }}/exported/orders.jsonl"],
    )
