"""The DAGs of the live tests; ``LIVE`` names the directory in which they read and write."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import DAG

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

LIVE = Path(os.environ["LIVE"])
START = datetime(2024, 1, 1)  # noqa: DTZ001 (Airflow takes it as UTC)


class DeferringOperator(LineageSparkSubmitOperator):
    """Waits in the triggerer before it submits, as users' own operators do."""

    def execute(self, context: Any) -> None:
        self.defer(trigger=TimeDeltaTrigger(timedelta(seconds=2)), method_name="submit")

    def submit(self, context: Any, event: Any = None) -> None:
        super().execute(context)


def spark(
    name: str, kind: type[LineageSparkSubmitOperator] = LineageSparkSubmitOperator, mode: str = "copy", **own: Any
) -> Any:
    own = {"application_args": [mode, str(LIVE / "texts"), str(LIVE / "out" / name)], **own}
    return kind(task_id=name, application=os.environ["LIVE_PROGRAM"], poll_interval_seconds=1, **own)


def recorded(name: str, *files: str) -> list[str]:
    """Return the arguments of a driver that is none, for tasks of which nothing but their end matters."""
    paths = [f"{os.environ['LIVE_RECORDED']}/{file}.ndjson" for file in files or ("gkillmid_414", "a_414")]
    return [*paths, str(LIVE / name)]


def waiting(name: str, *files: str, **own: Any) -> Any:
    return spark(name, conn_id="spark_waiting", application_args=recorded(name, *files), **own)


with DAG("ends", start_date=START, schedule=None):
    waiting("failure", "gpyexc_414", "gpyexc_414")
    waiting("retried", "gpyexc_414", "a_414", retries=1, retry_delay=timedelta(0))
    spark("deferred", DeferringOperator)
    waiting("stream", "e_414", "e_414", tracking_interval_seconds=2)
    LineageSparkSubmitOperator.partial(
        task_id="mapped", conn_id="spark_waiting", application=os.environ["LIVE_PROGRAM"], poll_interval_seconds=1
    ).expand(application_args=[recorded("mapped_0"), recorded("mapped_1")])

with DAG("killed_worker", start_date=START, schedule=None):
    waiting("lost")

with DAG("killed_scheduler", start_date=START, schedule=None):
    waiting("slow", "a_414", "a_414") >> BashOperator(task_id="after", bash_command="true")

with DAG("stopped", start_date=START, schedule=None):
    waiting("by_hand")
    waiting("timed_out", execution_timeout=timedelta(seconds=15))

with DAG("short", start_date=START, schedule=None):
    spark("well")
    spark("badly", mode="fail")

with DAG("cleared", start_date=START, schedule=None):
    waiting("quick")
    waiting("long", "a_414", "a_414")
