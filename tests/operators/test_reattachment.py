"""A try whose process is killed, and the next one, which re-attaches to its driver on a real standalone cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from standalone_cluster import StandaloneCluster, compiled, standalone_cluster

from spark_lineage.inject.installation import find_installation
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.settings.places import DEFAULT_JAR

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).parent / "programs" / "SlowCopy.java"

DAG = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r}

def note_process(context):
    Path(HOME, f"process-{{context['ti'].try_number}}").write_text(str(os.getpid()))

with DAG("reattachment", start_date=datetime(2024, 1, 1), schedule=None):
    LineageSparkSubmitOperator(
        task_id="copy",
        conn_id="spark_cluster",
        application={program!r},
        java_class="SlowCopy",
        application_args=[HOME + "/orders.csv", HOME + "/reattachment", HOME + "/released"],
        driver_memory="512m",
        executor_memory="512m",
        total_executor_cores=1,
        openlineage_jar={listener!r},
        retries=1,
        retry_delay=timedelta(seconds=0),
        on_execute_callback=note_process,
    )
"""

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(airflow: Any, background: Any) -> Iterator[StandaloneCluster]:
    """A master that has one worker."""
    if not Path("/usr/bin/curl").exists():
        pytest.skip("the Spark provider asks for the state of a standalone driver by /usr/bin/curl, which is missing")
    background.logs += [(background.folder, "master-*.log"), (background.folder, "worker.log")]
    background.logs.append((background.folder / "work", "driver-*/std*"))
    with standalone_cluster(background.folder, airflow.env | {"SPARK_DAEMON_MEMORY": "512m"}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def listener_jar(airflow: Any) -> str:
    """The listener as a path: what is in the worker's own cache would not be handed to a driver elsewhere."""
    return resolve_jar(
        DEFAULT_JAR,
        installation=lambda: find_installation("spark-submit", airflow.env),
        cache_dir=airflow.home / "jars",
        timeout_seconds=120,
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as a jar: standalone clusters run no Python in cluster mode."""
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler is installed (javac is not on the PATH)")
    return compiled(PROGRAM, tmp_path_factory.mktemp("program"))


def drivers(cluster: StandaloneCluster) -> list[dict[str, Any]]:
    """All drivers that were ever submitted, by what the master says."""
    return [*cluster.page()["activedrivers"], *cluster.page()["completeddrivers"]]


def applications(cluster: StandaloneCluster) -> list[dict[str, Any]]:
    """All applications that ever registered, by what the master says."""
    return [*cluster.page()["activeapps"], *cluster.page()["completedapps"]]


@pytest.fixture(scope="module")
def logs(
    executing_airflow: Any, background: Any, cluster: StandaloneCluster, program: Path, listener_jar: str
) -> list[str]:
    """What the two tries logged; the process of the first was killed, and the driver ended during the second."""
    home: Path = executing_airflow.home
    extra = {"deploy-mode": "cluster", "rest-port": cluster.rest_port, "master_ui_url": cluster.ui_url}
    connection = {"conn_type": "spark", "host": cluster.url, "extra": extra}
    (home / "dags" / "reattachment.py").write_text(
        DAG.format(home=str(home), program=str(program), listener=listener_jar)
    )
    background.logs.append((home / "logs" / "dag_id=reattachment", "**/*.log"))
    command = [sys.executable, "-m", "airflow", "dags", "test", "--use-executor", "reattachment"]
    env = executing_airflow.env | {"AIRFLOW_CONN_SPARK_CLUSTER": json.dumps(connection)}
    background.start("dags-test", command, env)

    def log(try_number: int) -> str:
        files = home.glob(f"logs/dag_id=reattachment/*/*/attempt={try_number}.log")
        return "".join(file.read_text(errors="replace") for file in files)

    # By then the provider has stored the driver's id.
    background.wait_for("the submission", lambda: re.search(r"Polling driver driver-\S+ until completion", log(1)))
    background.wait_for("the copy", (home / "reattachment" / "_SUCCESS").exists)
    os.kill(int((home / "process-1").read_text()), signal.SIGKILL)
    background.wait_for("the second try", lambda: "Reconnecting to existing job" in log(2))
    assert [driver["state"] for driver in drivers(cluster)] == ["RUNNING"], background.tails
    (home / "released").touch()
    # Not for its process: one of the LocalExecutor's, whose task was killed, may keep it from ending.
    dags_test = background.folder / "dags-test.log"
    background.wait_for("the DAG run", lambda: "DagRun Finished" in dags_test.read_text(errors="replace"))
    return [log(1), log(2)]


def test_the_second_try_takes_over_the_only_driver(
    cluster: StandaloneCluster, logs: list[str], background: Any
) -> None:
    submitted = drivers(cluster)
    assert [driver["state"] for driver in submitted] == ["FINISHED"], background.tails
    assert "SIGKILL" in logs[0]
    assert all(f"Polling driver {submitted[0]['id']} until completion" in log for log in logs)


def test_its_event_has_the_lineage_of_the_job_that_the_killed_try_submitted(
    executing_airflow: Any, logs: list[str], background: Any
) -> None:
    home: Path = executing_airflow.home
    runs: dict[str, list[dict[str, Any]]] = {}
    for event in executing_airflow.events_of("reattachment.copy"):
        runs.setdefault(event["run"]["runId"], []).append(event)
    types = [[event["eventType"] for event in run] for run in runs.values()]
    # The first FAIL is Airflow's own, without lineage: the process that was killed could not report its end. The second
    # is that of our listener, when the next try begins.
    assert types == [["START", "FAIL", "FAIL"], ["START", "COMPLETE"]], background.tails
    (killed, (_, fail, told)), (_, (_, complete)) = runs.items()
    assert (fail["inputs"], fail["outputs"]) == ([], [])
    assert "goes on (RUNNING)" in told["run"]["facets"]["errorMessage"]["message"]
    assert [dataset["name"] for dataset in told["outputs"]] == [f"{home}/reattachment"], "it was finished by then"

    assert [dataset["name"] for dataset in complete["inputs"]] == [f"{home}/orders.csv"], background.tails
    (output,) = complete["outputs"]
    assert output["name"] == f"{home}/reattachment"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 20
    (launch,) = home.glob("spark_lineage/reattachment/*/copy/-1/*")  # the second try made none
    assert launch.name.startswith("1-")
    lines = (launch / "openlineage-events.ndjson").read_text().splitlines()
    assert json.loads(lines[0])["run"]["facets"]["parent"]["run"]["runId"] == killed
    counts = complete["run"]["facets"]["sparkLineage_collection"]
    assert (counts["linesRead"], counts["linesSetAside"]) == (len(lines), 0)


def test_its_event_tells_the_way_of_the_driver_as_the_master_does(
    executing_airflow: Any, cluster: StandaloneCluster, logs: list[str], background: Any
) -> None:
    (driver,) = drivers(cluster)
    complete = executing_airflow.events_of("reattachment.copy")[-1]
    status = complete["run"]["facets"]["sparkLineage_status"]
    way = [one for one in status["transitions"] if one["subject"] == "DRIVER"]
    assert {one["id"] for one in way} == {driver["id"]}
    statuses = [one["newStatus"] for one in way]
    assert statuses[:3] == ["SUBMITTED", "RUNNING", "REATTACHED"]
    # It may end before anybody has seen it run again.
    assert statuses[3:] in ([driver["state"]], ["RUNNING", driver["state"]])
    (application,) = applications(cluster)
    told = [one["newStatus"] for one in status["transitions"] if one["subject"] == "APPLICATION"]
    assert {one["id"] for one in status["transitions"] if one["subject"] == "APPLICATION"} == {application["id"]}
    assert told[-1] == application["state"] == "FINISHED"
    assert status["state"] == "COMPLETE"
