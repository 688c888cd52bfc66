"""An example: a batch for each day, also for days that are past, each of which replaces its partition.

``airflow backfill create --dag-id orders_by_day --from-date 2024-09-02 --to-date 2024-09-04`` runs three days; on
Airflow 2 that is ``airflow dags backfill -s 2024-09-02 -e 2024-09-04 orders_by_day``. Each day is a run of its own, by
the date of its data interval; all of them write one dataset.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.providers.common.compat.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HERE = Path(__file__).resolve().parent
LAKE = os.environ.get("SPARK_LINEAGE_EXAMPLE_LAKE", str(HERE / "lake"))
DATA = os.environ.get("SPARK_LINEAGE_EXAMPLE_DATA", str(HERE / "data"))

with DAG(
    dag_id="orders_by_day",
    description="The orders of each day, a partition a day.",
    # What "@daily" means on Airflow 2: the run of a day begins when it is over.
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2024, 9, 2, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=True,
    tags=["example", "spark", "lineage"],
):
    LineageSparkSubmitOperator(
        task_id="write_day",
        conn_id="spark_default",
        application=str(HERE / "spark_jobs" / "orders_by_day.py"),
        application_args=[f"{DATA}/orders.csv", f"{LAKE}/orders_by_day", "{{ data_interval_start | ds }}"],
    )
