"""Tasks whose driver is a pod, as a real API server was recorded; ``test_real_kubernetes.py`` runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_ends import CASES
from lineage_backends.kubernetes_recorded import RECORDED, TOKEN, RecordedPod, recorded_pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from laboratory import Bench, Outcome

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"


@pytest.fixture
def submit(bench: Bench) -> Callable[..., Outcome]:
    """Submits to a recorded pod; ``extra`` goes to the connection."""

    def run(name: str, pod: RecordedPod, extra: dict[str, Any] | None = None, **arguments: Any) -> Outcome:
        asked = {"deploy-mode": "cluster", "namespace": "jobs", "status_token": TOKEN}
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
