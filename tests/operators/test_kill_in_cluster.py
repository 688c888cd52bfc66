"""A task that is killed while its driver runs on a real standalone cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from standalone_cluster import StandaloneCluster, compiled, standalone_cluster

from spark_lineage.inject.installation import find_installation
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.settings.places import DEFAULT_JAR

if TYPE_CHECKING:
    from fast_spark import FastSpark

PROGRAM = Path(__file__).parent / "programs" / "SlowCopy.java"
# After which Airflow kills the process of a task that it has told to end.
AIRFLOW_SECONDS = 5.0

DAG = """
import os
from datetime import datetime
from pathlib import Path
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r}

def note_process(context):
    Path(HOME, "process").write_text(str(os.getpid()))

with DAG("killed", start_date=datetime(2024, 1, 1), schedule=None):
    LineageSparkSubmitOperator(
        task_id="copy",
        conn_id="spark_cluster",
        application={program!r},
        java_class="SlowCopy",
        application_args=[HOME + "/orders.csv", HOME + "/copy", HOME + "/never"],
        driver_memory="512m",
        executor_memory="512m",
        total_executor_cores=1,
        openlineage_jar={listener!r},
        # The provider would not see in time that the driver is gone.
        status_poll_interval=60,
        poll_interval_seconds=1,
        on_execute_callback=note_process,
    )
"""

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def seconds(
    executing_airflow: Any, background: Any, tmp_path_factory: pytest.TempPathFactory, fast_spark: FastSpark
) -> Any:
    """How long it took from the signal to the task until its last event was there, and the cluster."""
    for command in ("javac", "/usr/bin/curl"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    home: Path = executing_airflow.home
    env = executing_airflow.env
    jar = resolve_jar(
        DEFAULT_JAR,
        installation=lambda: find_installation("spark-submit", env),
        cache_dir=fast_spark.jar_cache,
        timeout_seconds=120,
    )
    program = compiled(PROGRAM, tmp_path_factory.mktemp("program"))
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), env | {"SPARK_DAEMON_MEMORY": "512m"}) as cluster:
        extra = {"deploy-mode": "cluster", "rest-port": cluster.rest_port, "master_ui_url": cluster.ui_url}
        connection = {"conn_type": "spark", "host": cluster.url, "extra": extra}
        dag = DAG.format(home=str(home), program=str(program), listener=jar)
        (home / "dags" / "killed.py").write_text(dag)
        background.logs.append((home / "logs" / "dag_id=killed", "**/*.log"))
        command = [sys.executable, "-m", "airflow", "dags", "test", "--use-executor", "killed"]
        background.start("dags-test", command, env | {"AIRFLOW_CONN_SPARK_CLUSTER": json.dumps(connection)})
        background.wait_for("the copy", (home / "copy" / "_SUCCESS").exists, 200)
        assert [one["state"] for one in cluster.page()["activedrivers"]] == ["RUNNING"]
        # The lineage of the copy has been read, and the driver was seen to run.
        time.sleep(3)
        signalled = time.time()
        os.kill(int((home / "process").read_text()), signal.SIGTERM)

        def ended() -> list[Path]:
            files = home.glob("event-*.json")
            return [one for one in files if json.loads(one.read_text())["eventType"] not in ("START", "RUNNING")]

        files = background.wait_for("the event", lambda: [one for one in ended() if "killed.copy" in one.read_text()])
        yield files[0].stat().st_mtime - signalled, cluster


def test_the_driver_is_killed_on_the_master(seconds: tuple[float, StandaloneCluster], background: Any) -> None:
    _, cluster = seconds
    background.wait_for("the end of the driver", lambda: cluster.page()["completeddrivers"])
    assert [one["state"] for one in cluster.page()["completeddrivers"]] == ["KILLED"], background.tails
    assert cluster.page()["activedrivers"] == []


def test_its_event_says_so_and_comes_in_time(
    executing_airflow: Any, seconds: tuple[float, StandaloneCluster], background: Any
) -> None:
    took, _ = seconds
    events = sorted(executing_airflow.events_of("killed.copy"), key=lambda event: str(event["eventTime"]))
    assert [event["eventType"] for event in events] == ["START", "FAIL"], background.tails
    status = events[-1]["run"]["facets"]["sparkLineage_status"]
    assert (status["state"], status["error"]) == ("ABORT", "killed by Airflow (on_kill)")
    driver = [one["newStatus"] for one in status["transitions"] if one["subject"] == "DRIVER"]
    # The master may not have heard yet of the end.
    assert driver[:3] == ["SUBMITTED", "RUNNING", "KILLING"]
    assert driver[3:] in ([], ["KILLED"])
    assert [one["name"] for one in events[-1]["outputs"]] == [f"{executing_airflow.home}/copy"]
    assert took < AIRFLOW_SECONDS, background.tails
