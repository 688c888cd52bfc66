"""A ``SparkApplication`` of a real Kubernetes, however its driver ends; a controller of the tests submits it."""

from __future__ import annotations

import copy
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from lineage_backends.kubernetes import NAMESPACE
from real_spark import environment
from spark_operator import SparkOperator

if TYPE_CHECKING:
    from laboratory import Outcome
    from lineage_backends.kubernetes import Kubernetes
    from real_spark import RealSpark

pytestmark = [pytest.mark.spark, pytest.mark.nightly]
PROGRAM = Path(__file__).parent / "programs" / "counts.py"
LIMIT_SECONDS = 120


@dataclass
class OnSparkOperator:
    """Runs the program as a ``SparkApplication``, whose event log is in a directory of the test."""

    cluster: Kubernetes
    operator: SparkOperator
    spark: RealSpark

    @property
    def directory(self) -> Path:
        """Where the program reads and writes."""
        return self.spark.bench.root

    @property
    def logs(self) -> Path:
        """Where event logs are."""
        return self.directory / "event_logs"

    def body(self, end: str, **conf: str) -> dict[str, Any]:
        """Return the object of a user."""
        places = [str(self.directory / name) for name in ("orders.csv", "counts")]
        spec = {
            "type": "Python",
            "mode": "cluster",
            "image": "spark",
            "mainApplicationFile": f"local://{PROGRAM}",
            "arguments": [*places, end],
            "sparkConf": {**self.cluster.properties("cluster"), "spark.sql.shuffle.partitions": "1", **conf},
            "driver": {"cores": 1},
            "executor": {"instances": 1},
        }
        return {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "spec": spec}

    def log_conf(self) -> dict[str, str]:
        """Return the properties of a user who logs events."""
        return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": self.logs.as_uri()}

    def run(self, end: str = "success", *, is_logged: bool = True, **arguments: Any) -> Outcome:
        """Run it to its end; ``arguments`` go to the operator."""
        spec = {"spark": self.body(end, **(self.log_conf() if is_logged else {}))}
        given = {"namespace": NAMESPACE, "name": "counts", "context": {"run_id": "manual"}, **arguments}
        if "application_file" not in given:
            given["template_spec"] = given.get("template_spec", spec)
        return self.spark.execute(**given)

    def written(self) -> str:
        """Wait until the program has written, and return the name of its pod."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (self.directory / "counts" / "_SUCCESS").exists():
            assert time.monotonic() < deadline, "the program has written nothing"
            time.sleep(0.2)
        (pod,) = [one for one in self.cluster.drivers() if one["status"]["phase"] == "Running"]
        return str(pod["metadata"]["name"])

    def task(self) -> int:
        """The id of the process of the task."""
        (task,) = psutil.Process(self.spark.bench.laboratory._process.pid).children()
        return task.pid

    def names(self, outcome: Outcome) -> list[list[str]]:
        """The names of inputs and outputs within the directory."""
        assert outcome.lineage is not None, outcome.printed
        return [[Path(name).name for name in outcome.names(kind)] for kind in ("inputs", "outputs")]


@pytest.fixture
def on(kubernetes: Kubernetes, real_spark: RealSpark) -> Iterator[OnSparkOperator]:
    """One test's place on the cluster that all share."""
    env = {**os.environ, **environment(real_spark.fast)}
    kubernetes.image(env)
    bench = real_spark.bench
    bench.operator, bench.application = "lineage_spark_kubernetes:LineageSparkKubernetesOperator", {}
    connection = {"conn_type": "kubernetes", "extra": {"kube_config_path": str(kubernetes.kubeconfig)}}
    bench.env |= {"AIRFLOW_CONN_KUBERNETES_DEFAULT": json.dumps(connection)}
    with SparkOperator(kubernetes, {**env, "KUBECONFIG": str(kubernetes.kubeconfig)}).running() as operator:
        found = OnSparkOperator(kubernetes, operator, real_spark)
        found.logs.mkdir()
        (found.directory / "orders.csv").write_text("customer,amount\na,1\nb,2\na,3\n")
        yield found
        operator.clear()
        for pod in kubernetes.drivers():
            kubernetes.delete(pod["metadata"]["name"], seconds=0)


def status(outcome: Outcome) -> dict[str, Any]:
    assert outcome.lineage is not None, outcome.printed
    found: dict[str, Any] = outcome.lineage["run_facets"]["sparkLineage_status"]
    return found


def meanwhile(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.mark.parametrize("arguments", [{}, {"deferrable": True}], ids=["waits", "deferred"])
def test_success(on: OnSparkOperator, arguments: dict[str, Any]) -> None:
    outcome = on.run(**arguments)

    assert outcome.error is None, outcome.printed
    assert status(outcome)["state"] == "COMPLETE"
    assert on.names(outcome) == [["orders.csv"], ["counts"]]
    ((name, created),) = on.operator.seen.items()
    assert outcome.last["driver"]["driver_id"] == f"{NAMESPACE}:{name}-driver"
    assert outcome.last["driver"]["application_id"].startswith("spark-")
    conf = created["spec"]["sparkConf"]
    assert conf["spark.openlineage.parentJobName"] == "shop.load"
    assert conf["spark.eventLog.dir"] == on.logs.as_uri()
    assert "spark.extraListeners" not in conf
    assert on.operator.there() == [], "the operator deletes the object"


@pytest.mark.parametrize("arguments", [{}, {"deferrable": True}], ids=["waits", "deferred"])
def test_program_that_fails(on: OnSparkOperator, arguments: dict[str, Any]) -> None:
    outcome = on.run("exception", **arguments)

    assert outcome.error is not None
    assert status(outcome)["state"] == "FAIL"
    assert "RuntimeError: failed after the write" in status(outcome)["error"]
    assert "exit code 1, Error" in status(outcome)["error"]
    assert "hunter2" not in status(outcome)["error"]
    assert on.names(outcome) == [["orders.csv"], ["counts"]]


def test_driver_that_runs_out_of_memory(on: OnSparkOperator) -> None:
    killing = meanwhile(lambda: on.cluster.kubelet.kill(on.written(), reason="Evicted", message="out of memory"))
    outcome = on.run("killed")
    killing.join()

    assert status(outcome)["state"] == "FAIL"
    assert "Evicted, out of memory" in status(outcome)["error"]


def test_program_that_cannot_be_submitted(on: OnSparkOperator) -> None:
    body = on.body("success", **on.log_conf(), **{"spark.kubernetes.container.image.pullPolicy": "no such"})
    outcome = on.run(template_spec=body)

    assert "Spark Job Failed" in (outcome.error or "")
    assert status(outcome)["state"] == "FAIL"
    assert "pullPolicy" in status(outcome)["error"]


def test_task_that_is_killed_deletes_its_object(on: OnSparkOperator) -> None:
    def kill() -> None:
        on.written()
        os.kill(on.task(), signal.SIGUSR1)

    killing = meanwhile(kill)
    outcome = on.run("killed")
    killing.join()

    assert status(outcome)["state"] == "ABORT", outcome.printed
    assert on.operator.there() == []
    assert on.names(outcome) == [["orders.csv"], ["counts"]]
    deadline = time.monotonic() + 20
    while on.cluster.drivers():
        assert time.monotonic() < deadline, "the driver goes on"
        time.sleep(0.1)


@pytest.mark.parametrize("has_store", [True, False], ids=["store", "files"])
def test_retry_follows_the_driver_of_a_lost_worker(on: OnSparkOperator, *, has_store: bool) -> None:
    released = on.directory / "released"

    def lose() -> None:
        on.written()
        # Until the operator has seen the driver run.
        time.sleep(11)
        os.kill(on.task(), signal.SIGKILL)

    losing = meanwhile(lose)
    with pytest.raises(AssertionError):
        on.run(str(released), store={} if has_store else None)
    losing.join()
    store = None
    if has_store:
        (file,) = on.spark.bench.lineage_dir.glob("**/launch.json")
        store = {"spark_lineage_launch": json.loads(file.read_text())}
    releasing = meanwhile(lambda: (time.sleep(3), released.touch()))
    outcome = on.run(str(released), task={"try_number": 2}, store=store)
    releasing.join()

    assert outcome.error is None, outcome.printed
    assert "Reattaching to it" in outcome.printed
    assert len(on.operator.seen) == 1
    assert status(outcome)["state"] == "COMPLETE"
    assert on.names(outcome) == [["orders.csv"], ["counts"]]


def test_directory_of_all_drivers_is_used_where_the_user_logs_nothing(on: OnSparkOperator) -> None:
    on.spark.bench.env |= {"AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": str(on.logs)}
    outcome = on.run(is_logged=False)

    assert outcome.error is None, outcome.printed
    assert on.names(outcome) == [["orders.csv"], ["counts"]]


def test_object_without_an_event_log_runs_and_says_so(on: OnSparkOperator) -> None:
    outcome = on.run(is_logged=False)

    assert outcome.error is None, outcome.printed
    assert "set event_log_dir" in outcome.printed


def test_file_and_policy(on: OnSparkOperator) -> None:
    file = on.directory / "application.json"
    file.write_text(json.dumps(on.body("success", **on.log_conf())))
    bench = on.spark.bench
    bench.operator, bench.is_by_policy = (
        "airflow.providers.cncf.kubernetes.operators.spark_kubernetes:SparkKubernetesOperator",
        True,
    )
    outcome = on.run(application_file=str(file))

    assert outcome.error is None, outcome.printed
    assert on.names(outcome) == [["orders.csv"], ["counts"]]
    assert json.loads(file.read_text()) == on.body("success", **on.log_conf())
    assert copy.deepcopy(on.operator.seen)
