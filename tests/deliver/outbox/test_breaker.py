from __future__ import annotations

import time
from dataclasses import replace

import pytest

from spark_lineage.deliver.outbox.kept_event import CAP_SECONDS, RETRY_AFTER_CAP_SECONDS, Breaker, opened

DAY = 24 * 60 * 60


def after(failures: int, retry_after: float | None = None) -> Breaker:
    breaker = None
    for _ in range(failures):
        breaker = opened(breaker, "503", retry_after)
    assert breaker is not None
    return breaker


@pytest.mark.parametrize(("failures", "seconds"), [(1, 2), (2, 4), (5, 32), (9, CAP_SECONDS), (10_000, CAP_SECONDS)])
def test_it_waits_twice_as_long_each_time_up_to_a_cap(failures: int, seconds: float) -> None:
    waits = [after(failures).wait_seconds for _ in range(30)]
    assert all(seconds / 2 <= wait <= seconds for wait in waits)
    assert len(set(waits)) > 1


def test_what_the_backend_asks_for_comes_first_but_not_for_ever() -> None:
    assert after(9, 7).wait_seconds == 7
    assert after(1, DAY).wait_seconds == RETRY_AFTER_CAP_SECONDS


def test_it_is_half_open_when_its_time_is_over() -> None:
    breaker = after(1)
    assert replace(breaker, opened_at=breaker.opened_at - 2).remaining_seconds == 0


@pytest.mark.parametrize(("ahead", "remaining"), [(-DAY, 0), (-100, 50), (0, 150), (10, 0), (400 * DAY, 0)])
def test_by_a_clock_that_was_set_it_ends_early_but_never_late(ahead: float, remaining: float) -> None:
    breaker = replace(after(9), wait_seconds=150)
    moved = replace(breaker, opened_at=breaker.opened_at + ahead)
    assert moved.remaining_seconds == pytest.approx(remaining, abs=1)


def test_time_goes_on() -> None:
    breaker = after(1, 60)
    first = breaker.remaining_seconds
    assert 55 < first <= 60
    time.sleep(0.01)
    assert breaker.remaining_seconds < first
