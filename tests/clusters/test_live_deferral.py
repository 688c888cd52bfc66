"""Tasks that are deferred under a live scheduler, while servers are killed: each has one right end."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests
from lineage_backends.airflow_home import AirflowHome, airflow_home
from lineage_backends.hadoop import spark_properties
from lineage_backends.http_backend import OpenLineageBackend, openlineage_backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_spark import FastSpark
    from lineage_backends.hadoop import Hadoop

COUNT = 6
LIMIT_SECONDS = 400
PROGRAM = Path(__file__).parent / "programs" / "counts.py"
DAG_FILE = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

with DAG("deferred", start_date=datetime(2024, 1, 1), schedule=None, max_active_tasks={count}):
    for number in range({count}):
        LineageSparkSubmitOperator(
            task_id=f"job_{{number}}",
            conn_id="spark_yarn",
            application={program!r},
            application_args=[{orders!r}, f"{out}/{{number}}", {released!r} if number % 2 else "exception"],
            conf={conf!r},
            evidence="event_log",
            deferrable=True,
            retries=1,
            retry_delay=timedelta(seconds=1),
        )
"""

pytestmark = [pytest.mark.spark, pytest.mark.truth]


def wait_for(what: str, is_so: Callable[[], object], airflow: AirflowHome) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            tails = [f"{log}:\n{log.read_text(errors='replace')[-3000:]}" for log in airflow.home.glob("*.log")]
            pytest.fail(f"Waited for {what}: {states(airflow)}\n" + "\n".join(tails))
        time.sleep(0.5)


def states(airflow: AirflowHome) -> dict[str, tuple[str, int]]:
    rows = airflow.rows("SELECT task_id, state, try_number FROM task_instance")
    return {task: (state, number) for task, state, number in rows}


def test_each_task_has_one_right_end(
    hadoop: Hadoop, fast_spark: FastSpark, airflow_database: Path, tmp_path: Path
) -> None:
    def put(path: str, operation: str, data: str = "") -> None:
        url = f"{hadoop.webhdfs_url}/webhdfs/v1{path}?op={operation}&user.name={hadoop.user}"
        requests.put(url, data=data, timeout=20).raise_for_status()

    put("/live/logs", "MKDIRS")
    put("/live/orders.csv", "CREATE", "customer,amount\na,1\nb,2\n")
    released = tmp_path / "released"
    conf = {
        **spark_properties(sys.executable),
        "spark.yarn.stagingDir": f"{hadoop.hdfs}/staging",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"{hadoop.hdfs}/live/logs",
        "spark.sql.shuffle.partitions": "1",
        "spark.yarn.maxAppAttempts": "1",
    }
    extra = {"deploy-mode": "cluster", "webhdfs_url": hadoop.webhdfs_url}
    with openlineage_backend() as backend:
        transport = {"type": "http", "url": backend.url}
        env = {
            **fast_spark.env,
            **hadoop.env,
            "AIRFLOW_CONN_SPARK_YARN": json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}),
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__SCHEDULER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "4",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "20",
        }
        (tmp_path / "airflow" / "dags").mkdir(parents=True)
        text = DAG_FILE.format(
            count=COUNT,
            program=str(PROGRAM),
            orders=f"{hadoop.hdfs}/live/orders.csv",
            out=f"{hadoop.hdfs}/live/out",
            released=str(released),
            conf=conf,
        )
        (tmp_path / "airflow" / "dags" / "deferred.py").write_text(text)
        with airflow_home(tmp_path / "airflow", env, airflow_database) as airflow:
            run(airflow, released)
            ends = end_types(backend)
    assert ends == {f"deferred.job_{number}": "COMPLETE" if number % 2 else "FAIL" for number in range(COUNT)}


def run(airflow: AirflowHome, released: Path) -> None:
    airflow.wait_for_dags("deferred")
    airflow.command("dags", "trigger", "deferred")
    scheduler, triggerer = airflow.start("scheduler"), airflow.start("triggerer")
    wait_for("deferred tasks", lambda: [one for one, _ in states(airflow).values()].count("deferred") >= 2, airflow)
    triggerer.stop(signal.SIGKILL)
    airflow.start("triggerer")
    wait_for("more of them", lambda: [one for one, _ in states(airflow).values()].count("deferred") >= 3, airflow)
    scheduler.stop(signal.SIGKILL)
    airflow.start("scheduler")
    released.touch()
    wait_for("the ends", lambda: {one for one, _ in states(airflow).values()} <= {"success", "failed"}, airflow)


def end_types(backend: OpenLineageBackend) -> dict[str, str]:
    """Return the last end of each job; every run has one START that counts, and one end."""
    runs: dict[tuple[str, str], list[str]] = {}
    for event in backend.events:
        job = event["job"]["name"]
        if job.startswith("deferred.job_") and event["eventType"] != "RUNNING":
            runs.setdefault((job, event["run"]["runId"]), []).append(event["eventType"])
    for types in runs.values():
        assert types[0] == "START"
        assert len([one for one in types if one != "START"]) == 1, runs
    return {job: types[-1] for (job, _), types in runs.items()}
