"""How a lost try is judged to have ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from spark_lineage.merge.conclusion import EndFacts, conclude, is_kill_asked
from spark_lineage.merge.transition import Status, StatusSummary, StatusTransition, Subject

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def told(*statuses: tuple[Subject, Status, str]) -> StatusSummary:
    return StatusSummary(
        transitions=tuple(
            StatusTransition(
                subject=subject, subject_id="1", old_status=None, new_status=status, time=NOW, source=source
            )
            for subject, status, source in statuses
        )
    )


ENDED = ("APPLICATION", "FINISHED", "event log")
SUBMITTED = ("DRIVER", "SUBMITTED", "spark-submit")
KILLING = ("DRIVER", "KILLING", "Airflow")
KILLED = ("DRIVER", "KILLED", "Airflow")


@pytest.mark.parametrize(
    ("summary", "driver", "end", "state"),
    [
        # Client mode: Airflow's word, but for a success that nothing proves.
        (told(), None, "failed", "FAIL"),
        (told(SUBMITTED, ENDED), None, "failed", "FAIL"),
        (told(SUBMITTED), None, "success", "FAIL"),
        (told(SUBMITTED, ENDED), None, "success", "COMPLETE"),
        (told(SUBMITTED, ENDED), None, "skipped", "COMPLETE"),
        (told(SUBMITTED, ("APPLICATION", "FINISHED", "History Server")), None, "success", "COMPLETE"),
        (told(SUBMITTED, ("APPLICATION", "FINISHED", "YARN ResourceManager")), None, "success", "FAIL"),
        (told(SUBMITTED, ENDED, KILLED), None, "success", "FAIL"),
        # Cluster mode: the cluster manager's.
        (told(SUBMITTED), "FINISHED", "failed", "COMPLETE"),
        (told(SUBMITTED), "FAILED", "success", "FAIL"),
        (told(SUBMITTED), "KILLED", "failed", "FAIL"),
        (told(SUBMITTED), "RUNNING", "failed", "FAIL"),
        (told(SUBMITTED), "RUNNING", "success", "FAIL"),
        # Whoever asked for the end got it.
        (told(SUBMITTED, KILLING), None, "failed", "ABORT"),
        (told(SUBMITTED, KILLING, ENDED), "FINISHED", "success", "ABORT"),
        # A cluster that deletes a pod, or an earlier try, has not killed this one.
        (told(SUBMITTED, ("DRIVER", "KILLING", "Kubernetes")), "FINISHED", "failed", "COMPLETE"),
        (told(SUBMITTED, KILLING, ("DRIVER", "REATTACHED", "Airflow")), "FINISHED", "failed", "COMPLETE"),
    ],
)
def test_verdict(summary: StatusSummary, driver: Status | None, end: str, state: str) -> None:
    facts = EndFacts(is_kill_asked(summary.transitions), driver, airflow_end=end)  # type: ignore[arg-type]
    assert conclude(facts, summary.transitions) == state


def test_a_success_by_hand_after_a_failure_that_nothing_caught_is_none() -> None:
    # A failed job alone says nothing (M4): what counts is whether the program went on after it.
    summary = told(SUBMITTED, ENDED)
    failed = StatusSummary(summary.transitions, (("SPARK_JOB", "FAILED", 1), ("SPARK_JOB", "FINISHED", 2)))
    facts = EndFacts(airflow_end="success")
    assert conclude(facts, failed.transitions) == "COMPLETE"
    assert conclude(replace(facts, has_uncaught_failure=True), failed.transitions) == "FAIL"
