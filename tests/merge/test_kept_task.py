"""What files tell of a task when Airflow is not asked: how it ended, and which run it is."""

from __future__ import annotations

import itertools
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_lineage.launch.line import LineDecoder
from spark_lineage.merge.lineage import ParentRun
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import identity_of, kept_lineage, state_of, summary_of
from spark_lineage.merge.transition import StatusTransition

START = datetime(2026, 1, 1, tzinfo=UTC)
SUBMIT, AIRFLOW, MASTER = "spark-submit", "Airflow", "master"


def told(*words: tuple[str, str] | tuple[str, str, str]) -> list[StatusTransition]:
    """Transitions of one driver, a second apart: new status, source, exception."""
    transitions, old = [], None
    for second, (status, source, *exception) in enumerate(words):
        transitions.append(
            StatusTransition(
                "DRIVER",
                "driver-1",
                old,  # type: ignore[arg-type]
                status,  # type: ignore[arg-type]
                START + timedelta(seconds=second),
                source,
                exception="".join(exception),
            )
        )
        old = status
    return transitions


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ([("SUBMITTED", SUBMIT), ("RUNNING", MASTER), ("FINISHED", SUBMIT)], "COMPLETE"),
        ([("SUBMITTED", SUBMIT), ("FAILED", SUBMIT, "exit code 3")], "FAIL"),
        ([("SUBMITTED", SUBMIT), ("KILLED", MASTER)], "FAIL"),
        ([("SUBMITTED", SUBMIT), ("KILLING", AIRFLOW), ("KILLED", SUBMIT)], "ABORT"),
        ([("SUBMITTED", SUBMIT), ("KILLING", AIRFLOW)], "ABORT"),
        ([("KILLING", AIRFLOW), ("REATTACHED", AIRFLOW), ("FINISHED", MASTER)], "COMPLETE"),
        ([("SUBMITTED", SUBMIT), ("RUNNING", MASTER)], None),
        ([], None),
    ],
)
def test_how_the_task_ended(words: list[Any], state: str | None) -> None:
    assert state_of(summary_of(told(*words))) == state


def test_order_and_repetition_change_nothing() -> None:
    transitions = told(("SUBMITTED", SUBMIT), ("RUNNING", MASTER), ("FAILED", SUBMIT, "exit  code\n3"))
    expected = summary_of(transitions)
    assert [one.new_status for one in expected.transitions] == ["SUBMITTED", "RUNNING", "FAILED"]
    assert expected.error == "exit code 3"
    for order in itertools.permutations([*transitions, transitions[1]]):
        assert summary_of(order) == expected


def test_only_the_status_or_the_caller_makes_a_task_fail() -> None:
    state = LineageState()
    assert kept_lineage(state).state == "COMPLETE"
    assert kept_lineage(state).status is None
    state.transitions |= set(told(("SUBMITTED", SUBMIT), ("FAILED", SUBMIT)))
    assert kept_lineage(state).state == "FAIL"
    assert kept_lineage(state, "COMPLETE").state == "COMPLETE"
    assert kept_lineage(state).status == summary_of(state.transitions)


def event(run_id: str, *, parent: str = "", kind: str = "SQL_JOB", task: str = "") -> bytes:
    facets = []
    if parent or task:
        facets = ['"parent":{"run":{"runId":"%s"},"job":{"namespace":"ns","name":"dag.task"}}' % (parent or task)]
    return (
        '{"eventTime":"2026-01-01T00:00:00Z","eventType":"START",'
        f'"run":{{"runId":"{run_id}","facets":{{{",".join(facets)}}}}},'
        f'"job":{{"namespace":"spark","name":"app","facets":{{"jobType":{{"jobType":"{kind}"}}}}}}}}'
    ).encode()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([event("a", kind="APPLICATION", task="t"), event("q", parent="a")], ParentRun("t", "ns", "dag.task")),
        ([event("a", kind="APPLICATION"), event("q", parent="a")], ParentRun("a", "spark", "app")),
        ([event("q", parent="a")], ParentRun("a", "unknown", "unknown")),
        ([event("q")], ParentRun("q", "unknown", "unknown")),
        ([], ParentRun(str(uuid.UUID(int=0)), "unknown", "unknown")),
    ],
)
def test_which_run_it_is(lines: list[bytes], expected: ParentRun) -> None:
    state, decode = LineageState(), LineDecoder().decode
    for line in lines:
        state.add(*decode(line))
    assert identity_of(kept_lineage(state), state) == expected
