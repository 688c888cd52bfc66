"""An example: four tasks, each a Spark job, of which each reads what the one before has written.

A backend joins them by their datasets: the output of one is the input of the next.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.providers.common.compat.sdk import DAG, Param, chain

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HERE = Path(__file__).resolve().parent
LAKE = os.environ.get("SPARK_LINEAGE_EXAMPLE_LAKE", str(HERE / "lake"))
DATA = os.environ.get("SPARK_LINEAGE_EXAMPLE_DATA", str(HERE / "data"))

with DAG(
    dag_id="chain",
    description="Orders are landed, cleaned, enriched with their customers, and reported.",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    params={"lake": Param(LAKE, type="string", description="Directory below which the tasks write")},
    tags=["example", "spark", "lineage"],
):
    chain(
        *(
            LineageSparkSubmitOperator(
                task_id=step,
                conn_id="spark_default",
                application=str(HERE / "spark_jobs" / "orders_chain.py"),
                application_args=[step, DATA, "{{ params.lake }}"],
                poll_interval_seconds=1,
            )
            for step in ("land", "clean", "enrich", "report")
        )
    )
