"""Programs in the pods of a real Kubernetes: what their tasks say of them, however each of them ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from laboratory import Outcome

SOURCE = "Kubernetes"
FAILED = "RuntimeError: failed after the write, password=*** (exit code 1, Error (Kubernetes))"

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Case:
    """How a program ends, by itself or because of what is done to its pod, and what its task says then."""

    state: str
    driver: str
    error: str = ""
    end: str = "success"
    act: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


TRACKED, DEFERRED = {"track_driver_via_k8s_api": True}, {"deferrable": True}
CASES = {
    "success": Case("COMPLETE", "FINISHED"),
    "exception": Case("FAIL", "FAILED", FAILED, "exception"),
    "sys_exit": Case("FAIL", "FAILED", "exit code 1, Error (Kubernetes)", "sys_exit"),
    "killed": Case("FAIL", "FAILED", "exit code 137, Error (Kubernetes)", "killed", "kill"),
    "evicted": Case("FAIL", "FAILED", "Evicted, The node was low on resource: memory.", "killed", "evict"),
    "deleted": Case("FAIL", "KILLED", "", "killed", "delete"),
    "tracked success": Case("COMPLETE", "FINISHED", arguments=TRACKED),
    "tracked deleted": Case("FAIL", "KILLED", "is gone, and nobody saw it succeed", "killed", "delete", TRACKED),
    "deferred success": Case("COMPLETE", "FINISHED", arguments=DEFERRED),
    "deferred exception": Case("FAIL", "FAILED", FAILED, "exception", arguments=DEFERRED),
    "deferred evicted": Case(
        "FAIL", "FAILED", "Evicted, The node was low on resource: memory.", "killed", "evict", DEFERRED
    ),
    "deferred deleted": Case("FAIL", "UNKNOWN", "the pod is gone", "killed", "delete", DEFERRED),
}


@pytest.mark.truth
@pytest.mark.parametrize("name", CASES)
def test_an_end_in_cluster_mode(on_kubernetes: Any, statuses: Callable[..., Any], name: str) -> None:
    case = CASES[name]
    acting = meanwhile(lambda: getattr(on_kubernetes, case.act)(on_kubernetes.written())) if case.act else None
    outcome = on_kubernetes.run("cluster", case.end, **case.arguments)
    if acting is not None:
        acting.join()
    (ROOT / (name.replace(" ","_")+".txt")).write_text(f"{outcome.printed}\nERROR {outcome.error}\n{outcome.lineage}")
    (ROOT / (name.replace(" ","_")+".seen")).write_text(repr(on_kubernetes.cluster.kubelet.seen))
    check(outcome, case, statuses)
    assert on_kubernetes.datasets(outcome)


from pathlib import Path
ROOT = Path("/tmp/k8sout"); ROOT.mkdir(exist_ok=True)

def check(outcome: Outcome, case: Case, statuses: Callable[..., Any]) -> None:
    """The task, its event and its log say the same."""
    assert (outcome.error is None) == (case.state == "COMPLETE"), outcome.printed
    assert outcome.lineage is not None, outcome.printed
    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    assert status["state"] == case.state, outcome.printed
    assert statuses(outcome, "DRIVER")[-1] == (case.driver, SOURCE)
    assert case.error in status.get("error", "")
    assert case.error in (outcome.error or "")
    assert "hunter2" not in outcome.printed
    is_failed = case.driver == "FAILED"
    assert ("::group::The end of the driver's log: pod" in outcome.printed) == is_failed


def meanwhile(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.mark.truth
@pytest.mark.parametrize("arguments", [{}, TRACKED], ids=["waits", "tracked"])
def test_a_task_that_is_killed_deletes_its_driver(
    on_kubernetes: Any, statuses: Callable[..., Any], arguments: dict[str, Any]
) -> None:
    found: list[str] = []

    def kill() -> None:
        found.append(on_kubernetes.written())
        (task,) = psutil.Process(on_kubernetes.spark.bench.laboratory._process.pid).children()
        os.kill(task.pid, signal.SIGUSR1)

    killing = meanwhile(kill)
    # Airflow's own configuration leads to no cluster: the Spark connection does.
    on_kubernetes.spark.bench.env["AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER"] = "False" if arguments else "True"
    outcome = on_kubernetes.run("cluster", "killed", **arguments)
    killing.join()
    (ROOT / f"kill_{len(arguments)}.txt").write_text(f"{outcome.printed}\nERROR {outcome.error}\n{outcome.lineage}")
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "ABORT", outcome.printed
    assert ("KILLING", "Airflow") in statuses(outcome, "DRIVER")
    deadline = time.monotonic() + 20
    while on_kubernetes.cluster.drivers():
        assert time.monotonic() < deadline, "the driver goes on"
        time.sleep(0.1)


@pytest.mark.truth
def test_an_api_server_that_is_away_for_a_while(on_kubernetes: Any, statuses: Callable[..., Any]) -> None:
    released = on_kubernetes.directory / "released"

    def restart() -> None:
        on_kubernetes.written()
        on_kubernetes.cluster.stop()
        released.touch()
        time.sleep(12)

    restarting = meanwhile(restart)
    running: list[Any] = []
    task = meanwhile(lambda: running.append(on_kubernetes.run("cluster", str(released), deferrable=True)))
    restarting.join()
    # Not in a thread of its own: Linux ends what a thread has started as soon as that is over (PR_SET_PDEATHSIG).
    on_kubernetes.cluster.start()
    task.join()
    outcome = running[0]
    (ROOT / "away.txt").write_text(f"{outcome.printed}\nERROR {outcome.error}\n{outcome.lineage}")
    check(outcome, CASES["deferred success"], statuses)


@pytest.mark.truth
@pytest.mark.parametrize("end", ["success", "exception"])
def test_deploy_mode_client(on_kubernetes: Any, end: str) -> None:
    outcome = on_kubernetes.run("client", end)
    (ROOT / f"client_{end}.txt").write_text(f"{outcome.printed}\nERROR {outcome.error}\n{outcome.lineage}")
    assert (outcome.error is None) == (end == "success"), outcome.printed
    state = outcome.lineage["run_facets"]["sparkLineage_status"]["state"]
    assert state == ("COMPLETE" if end == "success" else "FAIL"), "by the exit code"
    assert on_kubernetes.datasets(outcome)
