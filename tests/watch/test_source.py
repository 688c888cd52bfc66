"""What the dialects share: states are reported once, and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spark_lineage.merge.transition import Status, StatusLedger
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.rest import RestClient
from spark_lineage.watch.source import Known, Source, State, from_millis
from spark_lineage.watch.spark_api import time_of

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def source() -> Source:
    made = Source(RestClient(), Endpoints("local", "client", {}), Known())
    made.name = "master"
    return made


def state(status: Status, second: int = 0) -> State:
    return State(status, START + timedelta(seconds=second))


def told(source: Source, *way: State) -> list[tuple[str, int]]:
    reports = source.news("DRIVER", "driver-1", way, START + timedelta(seconds=99))
    return [(one.status, (one.time - START).seconds) for one in reports]


def test_what_a_thing_went_through_is_told_once(source: Source) -> None:
    assert told(source, state("SUBMITTED", 1), state("RUNNING", 3)) == [("SUBMITTED", 1), ("RUNNING", 3)]
    assert told(source, state("SUBMITTED", 1), state("RUNNING", 3)) == [("RUNNING", 3)]
    assert told(source, state("SUBMITTED", 1), state("RUNNING", 3), state("FINISHED", 5)) == [("FINISHED", 5)]


def test_what_was_missed_is_told(source: Source) -> None:
    assert told(source, state("SUBMITTED", 1)) == [("SUBMITTED", 1)]
    way = (state("SUBMITTED", 1), state("RUNNING", 3), state("FAILED", 5))
    assert told(source, *way) == [("RUNNING", 3), ("FAILED", 5)]
    last = source.last("DRIVER", "driver-1")
    assert last is not None
    assert last.status == "FAILED"
    assert source.last("DRIVER", "driver-2") is None


def test_a_second_attempt_runs_later_than_the_first(source: Source) -> None:
    told(source, state("RUNNING", 3))
    told(source, state("WAITING", 20))
    assert told(source, state("SUBMITTED", 1), state("RUNNING", 3)) == [("RUNNING", 99)]


def test_polls_make_each_transition_once(source: Source) -> None:
    ledger = StatusLedger()
    for _ in range(3):
        for one in source.news("DRIVER", "driver-1", [state("SUBMITTED", 1), state("RUNNING", 1)], START):
            ledger.add(one)
    assert [one.new_status for one in ledger.transitions] == ["SUBMITTED", "RUNNING"]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31T23:59:58.123GMT", datetime(2026, 1, 31, 23, 59, 58, 123000, UTC)),
        ("2026-01-31T23:59:58", None),
        ("Sat Jan 31", None),
        ("GMT", None),
        ("", None),
        (None, None),
    ],
)
def test_times_as_text(text: str | None, time: datetime | None) -> None:
    assert time_of(text) == time


@pytest.mark.parametrize(("millis", "time"), [(1767225600000, START), (0, None), (-1, None), (None, None)])
def test_times_in_milliseconds(millis: int | None, time: datetime | None) -> None:
    assert from_millis(millis) == time
