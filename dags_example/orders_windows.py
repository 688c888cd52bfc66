"""An example: a stateful stream, which sums up windows of a day, and forgets orders that come twice.

Each run reads what has come since the last one, and ends. The state is in the checkpoint; it is no dataset of the task.
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
    dag_id="orders_windows",
    description="What was sold of each product on each day that is over.",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    params={"lake": Param(LAKE, type="string", description="Directory below which the task writes")},
    tags=["example", "spark", "lineage"],
):
    LineageSparkSubmitOperator(
        task_id="sum_days",
        conn_id="spark_default",
        application=str(HERE / "spark_jobs" / "orders_windows.py"),
        application_args=[DATA, "{{ params.lake }}/windows/orders", "{{ params.lake }}/windows/_checkpoint"],
        conf={"spark.sql.shuffle.partitions": "2"},
    )
