"""Programs in the pods of a real Kubernetes, however each of them ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from kubernetes_ends import CASES, TRACKED

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


@pytest.mark.parametrize("name", CASES)
def test_an_end_in_cluster_mode(on_kubernetes: Any, statuses: Callable[..., Any], name: str) -> None:
    case = CASES[name]
    acting = meanwhile(lambda: getattr(on_kubernetes, case.act)(on_kubernetes.written())) if case.act else None
    outcome = on_kubernetes.run("cluster", case.end, **case.arguments)
    if acting is not None:
        acting.join()
    case.check(outcome, statuses)
    assert on_kubernetes.has_datasets(outcome)


def meanwhile(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.mark.parametrize("arguments", [{}, TRACKED], ids=["waits", "tracked"])
def test_a_task_that_is_killed_deletes_its_driver(
    on_kubernetes: Any, statuses: Callable[..., Any], arguments: dict[str, Any]
) -> None:
    def kill() -> None:
        on_kubernetes.written()
        (task,) = psutil.Process(on_kubernetes.spark.bench.laboratory._process.pid).children()
        os.kill(task.pid, signal.SIGUSR1)

    killing = meanwhile(kill)
    outcome = on_kubernetes.run("cluster", "killed", **arguments)
    killing.join()
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "ABORT", outcome.printed
    assert ("KILLING", "Airflow") in statuses(outcome, "DRIVER")
    deadline = time.monotonic() + 20
    while on_kubernetes.cluster.drivers():
        assert time.monotonic() < deadline, "the driver goes on"
        time.sleep(0.1)


def test_an_api_server_that_is_away_for_a_while(on_kubernetes: Any, statuses: Callable[..., Any]) -> None:
    released, outcomes = on_kubernetes.directory / "released", []
    task = meanwhile(lambda: outcomes.append(on_kubernetes.run("cluster", str(released), deferrable=True)))
    on_kubernetes.written()
    on_kubernetes.cluster.stop()
    released.touch()
    time.sleep(12)  # longer than the trigger waits
    # Not in a thread of its own: Linux ends what a thread has started as soon as that is over (PR_SET_PDEATHSIG).
    on_kubernetes.cluster.start()
    task.join()
    CASES["deferred success"].check(outcomes[0], statuses)


@pytest.mark.parametrize("end", ["success", "exception"])
def test_deploy_mode_client(on_kubernetes: Any, end: str) -> None:
    outcome = on_kubernetes.run("client", end)
    assert (outcome.error is None) == (end == "success"), outcome.printed
    state = outcome.lineage["run_facets"]["sparkLineage_status"]["state"]
    assert state == ("COMPLETE" if end == "success" else "FAIL"), "by the exit code"
    assert on_kubernetes.has_datasets(outcome)
