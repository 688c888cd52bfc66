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


def arguments(mode: str, name: str) -> list[str]:
    return [mode, str(LIVE / "texts"), str(LIVE / "out" / name), str(LIVE / name)]


def recorded(name: str) -> list[str]:
    """Return the arguments of a driver that is none, for tasks of which nothing but their end matters."""
    return [*os.environ["LIVE_RECORDED"].split(), str(LIVE / name)]


def spark(mode: str, name: str, kind: type[LineageSparkSubmitOperator] = LineageSparkSubmitOperator, **own: Any) -> Any:
    own.setdefault("application_args", arguments(mode, name))
    application = str(Path(os.environ["LIVE_PROGRAM"]))
    return kind(task_id=name, application=application, poll_interval_seconds=1, **own)


with DAG("ends", start_date=START, schedule=None):
    spark("fail", "failure")
    spark("fail_once", "retried", retries=1, retry_delay=timedelta(0))
    spark("copy", "deferred", DeferringOperator)
    spark("stream", "stream", tracking_interval_seconds=2)
    LineageSparkSubmitOperator.partial(
        task_id="mapped", conn_id="spark_waiting", application=os.environ["LIVE_PROGRAM"], poll_interval_seconds=1
    ).expand(application_args=[recorded("mapped_0"), recorded("mapped_1")])

with DAG("killed_worker", start_date=START, schedule=None):
    spark("wait", "lost")

with DAG("killed_scheduler", start_date=START, schedule=None):
    spark("wait", "slow") >> BashOperator(task_id="after", bash_command="true")

with DAG("stopped", start_date=START, schedule=None):
    for name, seconds in (("by_hand", None), ("timed_out", timedelta(seconds=15))):
        spark("wait", name, conn_id="spark_waiting", application_args=recorded(name), execution_timeout=seconds)

with DAG("short", start_date=START, schedule=None):
    spark("copy", "well")
    spark("fail", "badly")
