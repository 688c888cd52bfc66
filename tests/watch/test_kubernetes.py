from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from dialogues import asked, http_connection, polled

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import StatusLedger
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.kubernetes import Kubernetes

ID = "jobs:silver-driver"
PATH = "/api/v1/namespaces/jobs/pods/silver-driver"
STARTED = {"running": {"startedAt": "2026-01-01T00:00:02Z"}}


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)


def ended(exit_code: int, reason: str = "Error", **values: Any) -> dict[str, Any]:
    times = {"startedAt": "2026-01-01T00:00:02Z", "finishedAt": "2026-01-01T00:00:09Z"}
    return {"terminated": {"exitCode": exit_code, "reason": reason, **times, **values}}


def pod(phase: str, state: dict[str, Any] | None = None, *, is_deleted: bool = False, **status: Any) -> dict[str, Any]:
    """A pod as the API server 1.33 gives it, without what nobody reads."""
    labels = {"spark-role": "driver", "spark-app-selector": "spark-4711"}
    metadata = {"name": "silver-driver", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels}
    if is_deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:38Z"
    containers = [] if state is None else [{"name": "spark-kubernetes-driver", "ready": False, "state": state}]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "status": {"phase": phase, "containerStatuses": containers, **status},
    }


def kubernetes(loopback: Any, driver_id: str | None = ID, connection: Any = None) -> Kubernetes:
    endpoints = Endpoints(f"k8s://{loopback.url}", "cluster", {}, connection)
    return Kubernetes(endpoints, Driver(driver_id=driver_id))


def told(source: Kubernetes, subject: str = "DRIVER") -> list[tuple[str, datetime]]:
    return [(one.status, one.time) for one in polled(source) if one.subject == subject]


def test_nothing_is_asked_without_an_id(loopback: Any) -> None:
    assert polled(kubernetes(loopback, None)) == []


def test_a_pod_without_a_namespace_is_in_that_of_the_connection(loopback: Any) -> None:
    loopback.reply("/api/v1/namespaces/default/pods/silver-driver", json=pod("Running", STARTED))
    assert {one.subject_id for one in polled(kubernetes(loopback, "silver-driver"))} == {"silver-driver", "spark-4711"}


def test_the_way_of_a_driver(loopback: Any) -> None:
    source, ledger = kubernetes(loopback), StatusLedger()
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    for answer in (
        pod("Pending"),
        pod("Pending", waiting),
        pod("Running", STARTED),
        pod("Running", STARTED),
        pod("Succeeded", ended(0, "Completed")),
    ):
        loopback.reply(PATH, json=answer)
        for report in polled(source):
            ledger.add(report)
    for subject, subject_id in (("DRIVER", ID), ("APPLICATION", "spark-4711")):
        way = [one for one in ledger.transitions if one.subject == subject]
        assert {one.subject_id for one in way} == {subject_id}
        assert [(one.new_status, one.time) for one in way] == [
            ("WAITING", at(0)),
            ("RUNNING", at(2)),
            ("FINISHED", at(9)),
        ]


def test_a_driver_that_was_not_seen_before(loopback: Any) -> None:
    loopback.reply(PATH, json=pod("Failed", ended(1)))
    source = kubernetes(loopback)
    assert told(source) == [("WAITING", at(0)), ("RUNNING", at(2)), ("FAILED", at(9))]
    assert told(source) == [("FAILED", at(9))]


@pytest.mark.parametrize(
    ("answer", "status", "detail", "exception"),
    [
        (pod("Pending", {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}), "WAITING",
         "Pending, ImagePullBackOff, no such image", ""),
        (pod("Pending", reason="Unschedulable"), "WAITING", "Pending, Unschedulable", ""),
        (pod("Running", ended(0, "Completed")), "FINISHED", "Running, exit code 0, Completed", ""),  # a sidecar runs on
        (pod("Failed", ended(1, message="Traceback")), "FAILED",
         "Failed, exit code 1, Error", "exit code 1, Error, Traceback"),
        (pod("Failed", ended(137, "OOMKilled")), "FAILED",
         "Failed, exit code 137, OOMKilled", "exit code 137, OOMKilled"),
        (pod("Failed", reason="Evicted", message="no memory"), "FAILED", "Failed, Evicted", "Evicted, no memory"),
        (pod("Running", STARTED, is_deleted=True), "KILLING", "the pod is being deleted", ""),
        (pod("Failed", ended(143), is_deleted=True), "KILLED",
         "Failed, exit code 143, Error", "exit code 143, Error"),
        (pod("Succeeded", ended(0, "Completed"), is_deleted=True), "FINISHED",
         "Succeeded, exit code 0, Completed", ""),
        (pod("Unknown", reason="NodeLost"), "UNKNOWN", "Unknown, NodeLost", ""),
        (pod("Dancing"), "UNKNOWN", "Dancing", ""),
        ({}, "UNKNOWN", "", ""),
        ({"status": {"phase": "Running", "containerStatuses": [{"name": "mine", "state": STARTED}]}}, "RUNNING",
         "Running", ""),
    ],
)  # fmt: skip
def test_what_a_pod_says(loopback: Any, answer: Any, status: str, detail: str, exception: str) -> None:
    loopback.reply(PATH, json=answer)
    last = [one for one in polled(kubernetes(loopback)) if one.subject == "DRIVER"][-1]
    assert (last.status, last.detail, last.exception) == (status, detail, exception)


def test_a_pod_that_was_gone_before_it_was_seen(loopback: Any) -> None:
    loopback.reply(PATH, status=404)
    assert [(one.status, one.detail) for one in polled(kubernetes(loopback))] == [("UNKNOWN", "the pod is gone")]


def test_a_pod_that_is_gone(loopback: Any) -> None:
    source = kubernetes(loopback)
    loopback.reply(PATH, json=pod("Running", STARTED))
    polled(source)
    loopback.reply(PATH, status=403, json={"kind": "Status", "code": 403})
    with pytest.raises(NoAnswerError, match="HTTP 403"):
        polled(source)
    loopback.reply(PATH, status=404, json={"kind": "Status", "code": 404})
    reports = polled(source)
    assert [(one.subject, one.subject_id, one.status, one.detail) for one in reports] == [
        ("DRIVER", ID, "UNKNOWN", "the pod is gone"),
        ("APPLICATION", "spark-4711", "UNKNOWN", "the pod is gone"),
    ]


def test_a_pod_that_was_deleted_while_it_ran(loopback: Any) -> None:
    source = kubernetes(loopback)
    loopback.reply(PATH, json=pod("Running", STARTED, is_deleted=True))
    polled(source)
    loopback.reply(PATH, status=404)
    assert [one.status for one in polled(source)] == ["KILLED", "KILLED"]
    assert polled(source) == []


def test_a_pod_that_was_deleted_after_its_end(loopback: Any) -> None:
    source = kubernetes(loopback)
    loopback.reply(PATH, json=pod("Succeeded", ended(0)))
    polled(source)
    loopback.reply(PATH, status=404)
    assert polled(source) == []


@pytest.mark.parametrize("answer", [[], {"status": []}, {"status": {"containerStatuses": [{"state": 1}]}}, "pod"])
def test_what_is_no_answer(loopback: Any, answer: Any) -> None:
    loopback.reply(PATH, json=answer)
    with pytest.raises(NoAnswerError, match="another shape"):
        polled(kubernetes(loopback))


def test_a_token_is_sent(loopback: Any) -> None:
    loopback.reply(PATH, json=pod("Pending"))
    polled(kubernetes(loopback, connection=http_connection(None, "of-the-pod")))
    assert loopback.asked[0][1]["Authorization"] == "Bearer of-the-pod"


def test_the_end_of_the_log_of_the_drivers_container(loopback: Any) -> None:
    source = kubernetes(loopback)
    assert asked(source.log_tail()) == {}, "it is not known yet which container that is"
    loopback.reply(PATH, json=pod("Failed", ended(1)))
    polled(source)
    loopback.reply(f"{PATH}/log", body="Traceback\nRuntimeError: no ä".encode())
    assert asked(source.log_tail()) == {"pod": "Traceback\nRuntimeError: no ä"}
    assert loopback.paths[-1] == f"{PATH}/log?container=spark-kubernetes-driver&tailLines=100"
