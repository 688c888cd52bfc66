from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spark_lineage.merge.transition import Status, StatusLedger, StatusReport
from spark_lineage.watch.progress import StatusProgress, from_millis, from_text, later, translated

START = datetime(2026, 1, 1, tzinfo=UTC)


def report(status: Status, second: int = 0) -> StatusReport:
    return StatusReport("DRIVER", "driver-1", status, START + timedelta(seconds=second), "master")


def told(trail: StatusProgress, *way: StatusReport) -> list[tuple[str, int]]:
    reports = trail.tell(*way, asked=START + timedelta(seconds=99))
    return [(one.status, (one.time - START).seconds) for one in reports]


def test_what_a_thing_went_through_is_told_once() -> None:
    trail = StatusProgress()
    assert told(trail, report("SUBMITTED", 1), report("RUNNING", 3)) == [("SUBMITTED", 1), ("RUNNING", 3)]
    assert told(trail, report("SUBMITTED", 1), report("RUNNING", 3)) == [("RUNNING", 3)]
    assert told(trail, report("SUBMITTED", 1), report("RUNNING", 3), report("FINISHED", 5)) == [("FINISHED", 5)]


def test_what_was_missed_is_told() -> None:
    trail = StatusProgress()
    assert told(trail, report("SUBMITTED", 1)) == [("SUBMITTED", 1)]
    way = (report("SUBMITTED", 1), report("RUNNING", 3), report("FAILED", 5))
    assert told(trail, *way) == [("RUNNING", 3), ("FAILED", 5)]
    last = trail.last("DRIVER", "driver-1")
    assert last is not None
    assert last.status == "FAILED"
    assert trail.last("DRIVER", "driver-2") is None


def test_a_second_attempt_runs_later_than_the_first() -> None:
    trail = StatusProgress()
    told(trail, report("RUNNING", 3))
    told(trail, report("WAITING", 20))
    assert told(trail, report("SUBMITTED", 1), report("RUNNING", 3)) == [("RUNNING", 99)]


def test_polls_make_each_transition_once() -> None:
    trail, ledger = StatusProgress(), StatusLedger()
    for _ in range(3):
        for one in trail.tell(report("SUBMITTED", 1), report("RUNNING", 3), asked=START):
            ledger.add(one)
    assert [one.new_status for one in ledger.transitions] == ["SUBMITTED", "RUNNING"]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31T23:59:58.123GMT", datetime(2026, 1, 31, 23, 59, 58, 123000, UTC)),
        ("2026-01-31T23:59:58Z", datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)),
        ("2026-01-31T23:59:58.123456Z", datetime(2026, 1, 31, 23, 59, 58, 123456, UTC)),
        ("2026-02-01T01:59:58+02:00", datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)),
        ("2026-01-31T23:59:58", None),
        ("Sat Jan 31", None),
        ("GMT", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("", None),
        (None, None),
    ],
)
def test_times_as_text(text: str | None, time: datetime | None) -> None:
    assert from_text(text) == time


@pytest.mark.parametrize(
    ("millis", "time"),
    [(1767225600000, START), (0, None), (-1, None), (None, None), (10**20, None), (float("nan"), None)],
)
def test_times_in_milliseconds(millis: float | None, time: datetime | None) -> None:
    assert from_millis(millis) == time


@pytest.mark.parametrize(
    ("begin", "millis", "time"),
    [
        (START, 1500, START + timedelta(seconds=1.5)),
        (START, 0, START),
        (START, -1, None),
        (START, None, None),
        (None, 1500, None),
        (START, 10**15, None),
        (START, 10**30, None),
    ],
)
def test_times_after_others(begin: datetime | None, millis: int | None, time: datetime | None) -> None:
    assert later(begin, millis) == time


def test_an_unknown_word_is_unknown() -> None:
    assert translated("RUNNING", {"RUNNING": "RUNNING"}) == "RUNNING"
    assert translated("DANCING", {"RUNNING": "RUNNING"}) == "UNKNOWN"
    assert translated(None, {}) == "UNKNOWN"
