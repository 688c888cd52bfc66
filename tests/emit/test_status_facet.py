"""What the event says of the status: bounded, without secrets, with the error in the place that backends look at."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from openlineage.client.serde import Serde

from spark_lineage.emit.run_event import STATUS_KEY, run_event, run_facets
from spark_lineage.merge.lineage import TaskLineage, TaskState
from spark_lineage.merge.transition import (
    MAX_FAILED,
    Accumulator,
    StatusLedger,
    StatusReport,
    StatusSummary,
    StatusTransition,
    TaskNumbers,
)

NOW = datetime(2026, 1, 1, 12, 0, 0, 1000, tzinfo=UTC)


def transition(subject: str = "DRIVER", **more: str) -> StatusTransition:
    return StatusTransition(subject, "driver-1", None, "FAILED", NOW, "standalone master", **more)  # type: ignore[arg-type]


def facets_of(state: TaskState, status: StatusSummary) -> dict[str, Any]:
    """Return the facets that say how a task ended."""
    run_id = "0190a5b2-7c1e-7d5f-9d4b-000000000000"
    event = run_event(TaskLineage(state, status=status), None, job_namespace="n", job_name="j", run_id=run_id)
    return {key: facet for key, facet in (event.run.facets or {}).items() if key in (STATUS_KEY, "errorMessage")}


def test_what_is_not_known_is_left_out() -> None:
    facets = facets_of("COMPLETE", StatusSummary(transitions=(transition(),)))
    assert set(facets) == {STATUS_KEY}
    told = Serde.to_dict(facets[STATUS_KEY])
    assert {key: value for key, value in told.items() if not key.startswith("_")} == {
        "state": "COMPLETE",
        "transitions": [
            {
                "subject": "DRIVER",
                "id": "driver-1",
                "newStatus": "FAILED",
                "time": "2026-01-01T12:00:00.001000Z",
                "source": "standalone master",
            }
        ],
        "counts": [],
    }


def test_an_error_is_told_as_openlineage_does() -> None:
    facets = facets_of("FAIL", StatusSummary(error="ValueError: password=hunter2 (exit code 1)"))
    message = Serde.to_dict(facets["errorMessage"])
    assert (message["message"], message["programmingLanguage"]) == ("ValueError: password=*** (exit code 1)", "PYTHON")
    assert Serde.to_dict(facets[STATUS_KEY])["error"] == message["message"]


def test_no_secret_gets_out() -> None:
    url = "http://me:hunter2@host:4040"
    status = StatusSummary(
        transitions=(transition(detail="apiKey=hunter2", exception="jdbc:postgresql://me:hunter2@db/x"),),
        error="token=hunter2",
        ui_url=url,
        history_url=url,
        logs_url=url,
    )
    facets = facets_of("FAIL", status)
    assert "hunter2" not in json.dumps([Serde.to_dict(facet) for facet in facets.values()])


def test_the_facet_is_bounded_whatever_happens() -> None:
    ledger = StatusLedger()
    for subject in ("SPARK_JOB", "SQL_EXECUTION"):
        for number in range(10_000):
            failed = StatusReport(subject, str(number), "FAILED", NOW, "event log", "app-1", exception="x" * 100_000)  # type: ignore[arg-type]
            ledger.add(failed)
    status = StatusSummary(tuple(ledger.transitions), (("SPARK_JOB", "FAILED", 10_000),))
    told = Serde.to_dict(facets_of("FAIL", status)[STATUS_KEY])
    assert len(told["transitions"]) == 2 * MAX_FAILED
    assert len(json.dumps(told)) < 40_000


def test_what_the_tasks_of_each_application_did() -> None:
    one = TaskNumbers(
        "app-1",
        "2",
        "event log",
        finished=3,
        failed=1,
        bytes_read=10,
        run_millis=2000,
        gc_millis=250,
        accumulators=(Accumulator("orders", 3), Accumulator("key token=hunter2", 0.5)),
    )
    status = StatusSummary(numbers=(one, TaskNumbers("", "", "History Server")))
    first, second = Serde.to_dict(facets_of("FAIL", status)[STATUS_KEY])["applications"]
    zeros = {"bytesWritten": 0, "memoryBytesSpilled": 0, "diskBytesSpilled": 0}
    assert first == {
        "applicationId": "app-1",
        "attemptId": "2",
        "source": "event log",
        "tasks": {"finished": 3, "failed": 1, "killed": 0},
        "bytesRead": 10,
        "runMillis": 2000,
        "gcMillis": 250,
        "gcShare": 0.125,
        "accumulators": [{"name": "orders", "value": 3}, {"name": "key token=***", "value": 0.5}],
        **zeros,
    }
    tasks = {"finished": 0, "failed": 0, "killed": 0}
    assert second == {"source": "History Server", "tasks": tasks, "bytesRead": 0, "runMillis": 0, "gcMillis": 0} | zeros
    assert "applications" not in Serde.to_dict(facets_of("FAIL", StatusSummary())[STATUS_KEY])


def test_lineage_that_nobody_watched_has_no_status() -> None:
    assert STATUS_KEY not in run_facets(TaskLineage("COMPLETE"))
    assert STATUS_KEY in run_facets(TaskLineage("COMPLETE", status=StatusSummary()))
