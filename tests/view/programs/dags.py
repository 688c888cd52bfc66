"""The DAGs of the tests of the tab, beside the demo; ``LIVE`` names the directory in which they read and write."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

LIVE = Path(os.environ["LIVE"])
START = datetime(2024, 1, 1)  # noqa: DTZ001 (Airflow takes it as UTC)

with DAG("failing", start_date=START, schedule=None):
    LineageSparkSubmitOperator(
        task_id="check",
        application=os.environ["TAB_PROGRAM"],
        application_args=[str(LIVE / "orders.csv"), str(LIVE / "out")],
    )

with DAG("running", start_date=START, schedule=None):
    LineageSparkSubmitOperator.partial(
        task_id="wait",
        conn_id="spark_waiting",
        application=os.environ["TAB_PROGRAM"],
        poll_interval_seconds=1,
        tracking_interval_seconds=2,
    ).expand(
        application_args=[
            [*(f"{os.environ['RECORDED']}/{name}.ndjson" for name in ("gkillmid_414", "a_414")), str(LIVE / "w")]
        ]
    )

# Scheduled without a worker; the tests leave XComs for them.
for dag in ("wide", "shop", "hidden"):
    with DAG(dag, start_date=START, schedule=None):
        for name in ("load", "report", "none"):
            EmptyOperator(task_id=name)
