"""An example: a job that fails after it has written; its event says FAIL, why, and what is there all the same.

The listener inside Spark says COMPLETE of it: the context was stopped in good order. A listener of the user's own, in
``example_listeners.py``, gets its end, and keeps a line with the reason.
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
    dag_id="orders_check",
    description="Orders are kept as delivered, and refused when one lacks its quantity.",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    params={"lake": Param(LAKE, type="string", description="Directory below which the task writes")},
    tags=["example", "spark", "lineage"],
):
    LineageSparkSubmitOperator(
        task_id="check_orders",
        conn_id="spark_default",
        application=str(HERE / "spark_jobs" / "orders_check.py"),
        application_args=[f"{DATA}/orders.csv", "{{ params.lake }}"],
        # The DAGs folder is on the path of every task; a listener of yours is better in a package.
        lineage_listeners=["example_listeners.FailureReport"],
    )
