"""Tasks whose driver is a pod, as a real API server was recorded; ``test_real_kubernetes.py`` runs them."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_ends import CASES
from lineage_backends.kubernetes_recorded import PODS, RECORDED, STRANGER_TOKEN, TOKEN, RecordedPod, recorded_pod

from spark_lineage.launch.launch import Launch, storable
from spark_lineage.triggers.spark_application import SparkApplicationTrigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from laboratory import Bench, Outcome

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"


@pytest.fixture
def submit(bench: Bench) -> Callable[..., Outcome]:
    """Submits to a recorded pod; ``extra`` goes to the connection."""

    def run(
        name: str, pod: RecordedPod, extra: dict[str, Any] | None = None, token: str = TOKEN, **arguments: Any
    ) -> Outcome:
        asked = {"deploy-mode": "cluster", "namespace": "jobs", "status_conn_id": "servers"}
        bench.env["AIRFLOW_CONN_SERVERS"] = json.dumps({"conn_type": "http", "password": token})
        bench.connection = {"conn_type": "spark", "host": f"k8s://{pod.url}", "extra": asked | (extra or {})}
        bench.env |= kubeconfig(bench.root / "kubeconfig", pod.url)
        printed = RECORDED["runs"][name]["printed"]
        given = {"log": printed, "lineage": [EVENTS], "store": {}, "openlineage_jar": "local:///listener.jar"}
        return bench.run(**given | arguments)

    return run


def kubeconfig(path: Path, url: str) -> dict[str, str]:
    """Return the environment in which the Spark provider finds the cluster."""
    config = {
        "current-context": "tests",
        "clusters": [{"name": "tests", "cluster": {"server": url}}],
        "users": [{"name": "operator", "user": {"token": TOKEN}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "operator"}}],
    }
    path.write_text(json.dumps(config))
    return {
        "AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
        "AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE": str(path),
    }


@pytest.mark.parametrize("name", CASES)
def test_an_end(submit: Callable[..., Outcome], statuses: Callable[..., Any], name: str) -> None:
    case = CASES[name]
    with recorded_pod(name) as pod:
        # A task that waits looks at the pod when spark-submit has ended; what it was before is for `tests/watch`.
        pod.pods = pod.pods[-1:]
        outcome = submit(name, pod, **case.arguments)
    case.check(outcome, statuses)
    if case.driver == ("FAILED",):
        assert "::group::The end of the driver's log: pod" in outcome.printed


def test_a_task_that_is_killed_deletes_its_driver(submit: Callable[..., Outcome]) -> None:
    # As long as it runs; and Airflow's own configuration leads to no cluster.
    with recorded_pod("killed") as pod:
        del pod.pods[2:], pod.pods[0]
        outcome = submit("killed", pod, signal_parent=signal.SIGUSR1)
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "ABORT", outcome.printed
    assert [one for one in pod.asked if one.startswith("DELETE")] == [f"DELETE {PODS}/{pod.name}"], outcome.printed


@pytest.mark.parametrize(("token", "status"), [("wrong-token-of-a-test", 401), (STRANGER_TOKEN, 403)])
def test_an_api_server_that_does_not_let_us_look(submit: Callable[..., Outcome], token: str, status: int) -> None:
    with recorded_pod("success") as pod:
        outcome = submit("success", pod, token=token)
    assert outcome.error is None, outcome.printed
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "COMPLETE", "by the log of spark-submit"
    assert f"{pod.name} answered HTTP {status}" in outcome.printed
    assert token not in outcome.printed


def test_the_namespace_is_that_of_the_submission(submit: Callable[..., Outcome], statuses: Callable[..., Any]) -> None:
    with recorded_pod("success") as pod:
        pod.pods = pod.pods[-1:]
        outcome = submit("success", pod, {"namespace": ""})
    CASES["success"].check(outcome, statuses)


def test_a_trigger_outlasts_an_api_server_in_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded_pod("deferred success") as pod:
        pod.refuses = [401, 403, 500, 503]
        connection = {"conn_type": "spark", "host": f"k8s://{pod.url}", "extra": {"status_conn_id": "servers"}}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps(connection))
        monkeypatch.setenv("AIRFLOW_CONN_SERVERS", json.dumps({"conn_type": "http", "password": TOKEN}))
        launch = Launch(
            "", "", external_id=f"jobs:{pod.name}", conn_id="spark", master=f"k8s://{pod.url}", deploy_mode="cluster"
        )
        event = asyncio.run(first(SparkApplicationTrigger({"launch": storable(launch)}, 0.01)))
    assert event["status"] == "FINISHED"
    assert [one["new_status"] for one in event["transitions"] if one["subject"] == "DRIVER"] == [
        "WAITING",
        "RUNNING",
        "FINISHED",
    ]


async def first(trigger: SparkApplicationTrigger) -> Any:
    return (await anext(trigger.run())).payload
