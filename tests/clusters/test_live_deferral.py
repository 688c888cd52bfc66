"""Ten deferred jobs on YARN under a live scheduler, while triggerer, workers and scheduler are killed: ten right ends.

A ``spark-submit`` on the path stops where a worker is to be killed: before the real one runs, and when that one has
submitted the job, but the worker has not read so.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
import requests
from fast_spark import JAVA_ENV
from lineage_backends.airflow_home import REPOSITORY, airflow_home
from lineage_backends.hadoop import spark_properties
from lineage_backends.http_backend import openlineage_backend
from lineage_backends.processes import Server
from live_airflow import LiveAirflow, processes

if TYPE_CHECKING:
    from lineage_backends.hadoop import Hadoop
    from lineage_backends.http_backend import OpenLineageBackend

DAG = "deferred"
LIMIT_SECONDS = 500
PROGRAM = Path(__file__).parent / "programs" / "counts.py"
SUBMIT = """#!/bin/sh
case " $* " in
*" before "*)
    if mkdir {gates}/before; then
        while ! [ -e {gates}/again ]; do sleep 0.2; done
    else
        touch {gates}/again
    fi ;;
*" after "*)
    if mkdir {gates}/after.begun; then
        {real} "$@" > {gates}/after.log 2>&1
        touch {gates}/after
        sleep 600
    fi ;;
esac 2>/dev/null
exec {real} "$@"
"""
DAG_FILE = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

ENDS = {{"long": {released!r}, "before": {released!r}, "after": {released!r}, "marked": "killed",
        "cleared": {released!r}, "collecting": {released!r}, "late": "killed", "fails": "exception"}}
with DAG("deferred", start_date=datetime(2024, 1, 1), schedule=None, max_active_tasks=20):
    common = dict(
        conn_id="spark_yarn", lineage_conn_id="own", application={program!r}, conf={conf!r}, evidence="event_log",
        deferrable=True, retry_delay=timedelta(seconds=1), poll_interval_seconds=1,
    )
    for position, (name, end) in enumerate(ENDS.items()):
        LineageSparkSubmitOperator(
            task_id=name,
            name=name,
            application_args=[{orders!r}, f"{out}/{{name}}", end],
            priority_weight=20 - position,
            # The one whose worker is killed at the end is not woken before.
            tracking_interval_seconds=3600 if name == "collecting" else 15,
            retries=1 if name in ("before", "after", "collecting") else 0,
            execution_timeout=timedelta(seconds=60) if name == "late" else None,
            **common,
        )
    LineageSparkSubmitOperator.partial(task_id="mapped", name="mapped", retries=0, **common).expand(
        application_args=[[{orders!r}, f"{out}/mapped_{{index}}", {released!r}] for index in range(2)]
    )
"""
# Of each try, by task: the states of a try whose worker or driver was killed come first.
ENDS = {
    "long": ["COMPLETE"],
    "before": ["FAIL", "COMPLETE"],
    "after": ["FAIL", "COMPLETE"],
    "collecting": ["FAIL", "COMPLETE"],
    "cleared": ["FAIL", "COMPLETE"],
    "marked": ["FAIL"],
    "late": ["FAIL"],
    "fails": ["FAIL"],
    "mapped": ["COMPLETE", "COMPLETE"],
}
# What was killed before it was submitted, and what was cleared.
DRIVERS = {**dict.fromkeys(ENDS, 1), "cleared": 2, "mapped": 2}

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.shares("hadoop")]


@dataclass
class Deferred:
    """The servers, the cluster, and what stops ``spark-submit``."""

    live: LiveAirflow
    hadoop: Hadoop
    gates: Path

    def wait(self, what: str, is_so: Callable[[], object]) -> None:
        self.live.wait_for(what, is_so, LIMIT_SECONDS)

    def states(self) -> dict[tuple[str, int], str | None]:
        rows = self.live.airflow.rows("SELECT task_id, map_index, state FROM task_instance")
        return {(task, index): state for task, index, state in rows}

    def are_deferred(self, *tasks: str) -> bool:
        return {state for (task, _), state in self.states().items() if task in tasks} == {"deferred"}

    def drivers(self) -> dict[str, list[str]]:
        """The final states of all applications of each name, in the order of their submission."""
        answer = requests.get(f"{self.hadoop.resource_manager_url}/ws/v1/cluster/apps", timeout=20).json()
        found: dict[str, list[str]] = {}
        for one in sorted((answer["apps"] or {}).get("app", ()), key=lambda one: str(one["id"])):
            found.setdefault(one["name"], []).append(one["finalStatus"])
        return {name: states for name, states in found.items() if name in ENDS}

    def is_waited_for(self, task: str) -> bool:
        """Whether a trigger runs for a task."""
        return any(self.live.airflow.home.glob(f"logs/dag_id={DAG}/*/task_id={task}/*.trigger.*"))

    def collects(self, task: str) -> bool:
        """Whether a worker reads what the driver of a task has left."""
        logs = self.live.airflow.home.glob(f"logs/dag_id={DAG}/*/task_id={task}/attempt=1.log")
        return sum(log.read_text(errors="replace").count("Lineage comes from") for log in logs) > 1


def test_each_job_has_one_right_end(hadoop: Hadoop, airflow_database: Path, tmp_path: Path) -> None:
    with (
        openlineage_backend() as backend,
        openlineage_backend() as own,
        deferred(hadoop, airflow_database, tmp_path, backend, own) as running,
    ):
        kill_all(running, backend)
        whole = {name: sorted(["START", end] for end in ends) for name, ends in ENDS.items()}
        # The provider knows no ABORT.
        expected = (whole | {"late": [["START", "ABORT"]]}, whole)
        deadline = time.monotonic() + 60
        while (found := (runs(own), runs(backend, is_own=False))) != expected:
            assert time.monotonic() < deadline, f"{found}\n{running.live.tails()}"
            time.sleep(1)
        drivers = running.drivers()
    assert {name: len(states) for name, states in drivers.items()} == DRIVERS, drivers
    assert (drivers["marked"], drivers["late"], drivers["cleared"]) == (["KILLED"], ["KILLED"], ["KILLED", "SUCCEEDED"])
    for name in ("long", "before", "after", "collecting", "cleared", "fails", "mapped"):
        for each in (backend, own):
            inputs, outputs = datasets(each, name)
            assert (inputs, len(outputs)) == ({"/live/orders.csv"}, 2 if name == "mapped" else 1), name


def kill_all(running: Deferred, backend: OpenLineageBackend) -> None:
    live, gates = running.live, running.gates
    triggerer = live.airflow.start("triggerer")
    live.schedule()
    for name in ("before", "after"):
        running.wait(f"spark-submit of {name}", (gates / name).exists)
        live.kill_worker(DAG, name)
    for name, act in (("marked", live.mark_failed), ("cleared", live.clear)):
        running.wait(f"the trigger of {name}", partial(running.is_waited_for, name))
        act(DAG, name)
        running.wait(f"the driver of {name} to be killed", lambda name=name: running.drivers()[name][0] == "KILLED")
    triggerer.stop(signal.SIGKILL)
    live.airflow.start("triggerer")
    others = [name for name in ENDS if name not in ("marked", "late", "fails")]
    running.wait("all of them", partial(running.are_deferred, *others))
    running.wait("a RUNNING event", lambda: "RUNNING" in {type_ for _, type_ in types(backend)})
    live.kill_scheduler()
    live.schedule()
    (gates / "released").touch()
    running.wait("a worker that collects", lambda: running.collects("collecting"))
    live.kill_worker(DAG, "collecting")
    running.wait("the ends", lambda: set(running.states().values()) <= {"success", "failed"})


@contextmanager
def deferred(
    hadoop: Hadoop, database: Path, folder: Path, backend: OpenLineageBackend, own: OpenLineageBackend
) -> Iterator[Deferred]:
    """Run Airflow with workers that outlive its scheduler, and trigger the DAG."""
    home, workers, gates = (folder / name for name in ("airflow", "workers", "gates"))
    for each in (home / "dags", workers, gates / "bin"):
        each.mkdir(parents=True)

    def put(path: str, operation: str, data: str = "") -> None:
        url = f"{hadoop.webhdfs_url}/webhdfs/v1{path}?op={operation}&user.name={hadoop.user}"
        requests.put(url, data=data, timeout=20).raise_for_status()

    put("/live/logs", "MKDIRS")
    put("/live/orders.csv", "CREATE&overwrite=true", "customer,amount\na,1\nb,2\n")
    binaries = Path(sys.executable).parent
    submit = gates / "bin" / "spark-submit"
    submit.write_text(SUBMIT.format(gates=gates, real=binaries / "spark-submit"))
    submit.chmod(0o755)
    conf = {
        **spark_properties(sys.executable),
        "spark.yarn.stagingDir": f"{hadoop.hdfs}/staging",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"{hadoop.hdfs}/live/logs",
        "spark.sql.shuffle.partitions": "1",
    }
    places = {"orders": f"{hadoop.hdfs}/live/orders.csv", "out": f"{hadoop.hdfs}/live/out"}
    text = DAG_FILE.format(program=str(PROGRAM), released=str(gates / "released"), conf=conf, **places)
    (home / "dags" / "deferred.py").write_text(text)
    extra = {"deploy-mode": "cluster", "webhdfs_url": hadoop.webhdfs_url}
    roots = ("provider", "operators", "listeners", "tests/plugins")
    env = {
        **JAVA_ENV,
        **hadoop.env,
        "PATH": os.pathsep.join([str(submit.parent), str(binaries), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(str(REPOSITORY / each) for each in roots),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "REMOTE_WORKERS": str(workers),
        "AIRFLOW_CONN_SPARK_YARN": json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}),
        "AIRFLOW_CONN_OWN": json.dumps(
            {"conn_type": "openlineage", "extra": {"transport": {"type": "http", "url": own.url}}}
        ),
        "AIRFLOW__CORE__EXECUTOR": "remote_executor.RemoteExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "http", "url": backend.url}),
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__SCHEDULER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "4",
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "20",
    }
    with airflow_home(home, env, database) as airflow:
        command = [sys.executable, str(REPOSITORY / "tests" / "plugins" / "remote_worker.py"), str(workers)]
        host = Server.start("the workers", command, workers / "host.log", env=airflow.env)
        live = LiveAirflow(airflow, gates, home, workers)
        try:
            airflow.wait_for_dags(DAG)
            live.trigger(DAG)
            yield Deferred(live, hadoop, gates)
        finally:
            host.stop()
            for process in processes(workers):
                process.kill()


def events(backend: OpenLineageBackend) -> Iterator[tuple[str, Any]]:
    """Each event of a task, by its name; what was sent again to the byte counts once."""
    for content in dict.fromkeys(each.content for each in backend.accepted):
        event = json.loads(content)
        dag, _, name = event["job"]["name"].partition(".")
        if dag == DAG and name in ENDS:
            yield name, event


def types(backend: OpenLineageBackend) -> list[tuple[str, str]]:
    return [(name, event["eventType"]) for name, event in events(backend)]


def runs(backend: OpenLineageBackend, *, is_own: bool = True) -> dict[str, list[list[str]]]:
    """The types of the events of all runs of each job, without RUNNING, sorted.

    The provider's backend gets a START each time that a task goes on; and of a try whose worker is lost, or that was
    marked, the end that Airflow sends itself, without lineage, besides that with it.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for name, event in events(backend):
        types = found.setdefault(name, {}).setdefault(event["run"]["runId"], [])
        if event["eventType"] != "RUNNING" and (is_own or event["eventType"] not in types):
            types.append(event["eventType"])
    return {name: sorted(of_job.values()) for name, of_job in found.items()}


def datasets(backend: OpenLineageBackend, name: str) -> tuple[set[str], set[str]]:
    """The names of what the last ends of a job have read and written."""
    ended = [event for task, event in events(backend) if task == name and event["eventType"] in ("COMPLETE", "FAIL")]
    last = [event for event in ended if event["eventType"] == "COMPLETE"] or ended
    return {one["name"] for event in last for one in event["inputs"]}, {
        one["name"] for event in last for one in event["outputs"]
    }
