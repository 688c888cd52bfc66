"""An example: one Spark task makes gold tables of CSV files, and Airflow reports what it read and wrote.

The task writes below the parameter ``lake``: by default what the environment variable ``SPARK_LINEAGE_EXAMPLE_LAKE``
says, or else the directory ``lake`` beside this file. It reads what is in ``SPARK_LINEAGE_EXAMPLE_DATA``, or else in
the directory ``data`` beside this file. It needs the connection ``spark_default``.
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
    dag_id="orders_medallion",
    description="CSV files of orders and customers: bronze, silver, gold.",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    params={"lake": Param(LAKE, type="string", description="Directory below which the task writes")},
    tags=["example", "spark", "lineage"],
) as dag:
    LineageSparkSubmitOperator(
        task_id="build_gold",
        conn_id="spark_default",
        application=str(HERE / "spark_jobs" / "orders_medallion.py"),
        application_args=[f"{DATA}/orders.csv", f"{DATA}/customers.csv", "{{ params.lake }}"],
        conf={
            "spark.sql.warehouse.dir": "{{ params.lake }}",
            "spark.sql.shuffle.partitions": "4",
        },
    )
