"""Who is believed about the end of the task (M4)."""

from __future__ import annotations

import pytest

from spark_lineage.merge.conclusion import EndFacts, conclude, reported_end


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        ({}, "FAIL"),
        ({"exit_code": 0}, "COMPLETE"),
        ({"exit_code": 1}, "FAIL"),
        ({"exit_code": -9}, "FAIL"),
        ({"is_succeeded": True}, "COMPLETE"),
        ({"is_succeeded": False}, "FAIL"),
        # What fails after the job, in Airflow, does not make it a failed job, nor the other way round.
        ({"exit_code": 0, "is_succeeded": False}, "COMPLETE"),
        ({"exit_code": 1, "is_succeeded": True}, "FAIL"),
        # spark-submit ends with 0 for failed drivers of a cluster.
        ({"driver": "FAILED", "exit_code": 0, "is_succeeded": True}, "FAIL"),
        ({"driver": "KILLED", "exit_code": 0}, "FAIL"),
        ({"driver": "FINISHED", "is_succeeded": False}, "COMPLETE"),
        ({"driver": "RUNNING", "is_succeeded": False}, "FAIL"),
        ({"driver": "UNKNOWN", "is_succeeded": True}, "COMPLETE"),
        ({"is_killed": True, "driver": "FINISHED", "exit_code": 0, "is_succeeded": True}, "ABORT"),
    ],
)
def test_a_kill_then_the_driver_then_the_exit_code_then_the_provider(evidence: dict[str, object], state: str) -> None:
    assert conclude(EndFacts(**evidence)) == state  # type: ignore[arg-type]


@pytest.mark.parametrize(("state", "told"), [("COMPLETE", "FAIL"), ("FAIL", "FAIL"), ("ABORT", "ABORT")])
def test_a_task_that_fails_is_told_to_have_failed(state: str, told: str) -> None:
    assert reported_end(state, ValueError()) == told  # type: ignore[arg-type]
    assert reported_end(state, None) == state  # type: ignore[arg-type]
