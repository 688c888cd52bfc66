"""An example: a stream that lives. When its driver dies, the next try goes on from the checkpoint, as a run of its own.

``@continuous`` starts the next run when the tries of one are used up. The checkpoint lies in a directory that is called
as the DAG, in which ``spark_maintenance`` finds it when this DAG is gone.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.common.compat.sdk import DAG

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HERE = Path(__file__).resolve().parent
LAKE = os.environ.get("SPARK_LINEAGE_EXAMPLE_LAKE", str(HERE / "lake"))
DATA = os.environ.get("SPARK_LINEAGE_EXAMPLE_DATA", str(HERE / "data"))

with DAG(
    dag_id="orders_live",
    description="Orders as they come in, for ever.",
    schedule="@continuous",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["example", "spark", "lineage"],
):
    LineageSparkSubmitOperator(
        task_id="follow_orders",
        conn_id="spark_default",
        application=str(HERE / "spark_jobs" / "orders_stream.py"),
        application_args=[
            DATA,
            f"{LAKE}/live/orders",
            f"{LAKE}/checkpoints/{{{{ dag.dag_id }}}}/{{{{ task.task_id }}}}",
        ],
        retries=1000,
        retry_delay=timedelta(seconds=5),
        tracking_interval_seconds=float(os.environ.get("SPARK_LINEAGE_EXAMPLE_INTERVAL", "60")),
    )
