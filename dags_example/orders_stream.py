"""An example: a streaming job that runs until its time is over, and sends its lineage while it runs.

A RUNNING event is sent when its datasets are known, and every ``tracking_interval_seconds``. When the execution timeout
ends the job, what its micro-batches have written stays an output of the task. The variables
``SPARK_LINEAGE_EXAMPLE_SECONDS`` and ``SPARK_LINEAGE_EXAMPLE_INTERVAL`` set both times.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.common.compat.sdk import DAG, Param

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HERE = Path(__file__).resolve().parent
LAKE = os.environ.get("SPARK_LINEAGE_EXAMPLE_LAKE", str(HERE / "lake"))
DATA = os.environ.get("SPARK_LINEAGE_EXAMPLE_DATA", str(HERE / "data"))

with DAG(
    dag_id="orders_stream",
    description="Orders as they come in, for as long as the task may take.",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    params={"lake": Param(LAKE, type="string", description="Directory below which the task writes")},
    tags=["example", "spark", "lineage"],
):
    LineageSparkSubmitOperator(
        task_id="follow_orders",
        conn_id="spark_default",
        application=str(HERE / "spark_jobs" / "orders_stream.py"),
        application_args=[DATA, "{{ params.lake }}/stream/orders", "{{ params.lake }}/stream/_checkpoint"],
        execution_timeout=timedelta(seconds=float(os.environ.get("SPARK_LINEAGE_EXAMPLE_SECONDS", "600"))),
        tracking_interval_seconds=float(os.environ.get("SPARK_LINEAGE_EXAMPLE_INTERVAL", "60")),
        poll_interval_seconds=2,
    )
