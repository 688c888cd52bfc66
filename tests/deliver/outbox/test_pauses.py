"""How long nothing is sent after a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_lineage.deliver import pauses as module
from spark_lineage.deliver.pauses import BACKEND, Pauses

RUN = "0190a5b2-7c1e-7d5f-9d4b-000000000001"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".later"


def test_failed_backend_pauses_twice_as_long_each_time_and_at_most_five_minutes(path: Path) -> None:
    pauses = Pauses(path)
    seconds = [pauses.failed(BACKEND, "503") for _ in range(12)]
    assert all(1 * 2**power <= each <= 2 * 2**power for power, each in enumerate(seconds[:7]))
    assert all(150 <= each <= 300 for each in seconds[-4:])


def test_failed_run_pauses_one_five_thirty_minutes_then_an_hour(path: Path) -> None:
    pauses = Pauses(path)
    assert [pauses.failed(RUN, "500") / 60 for _ in range(5)] == [1, 5, 30, 60, 60]


def test_failed_lasts_as_long_as_the_backend_asks_within_an_hour(path: Path) -> None:
    pauses = Pauses(path)
    assert pauses.failed(BACKEND, "429", retry_after=120) == 120
    assert pauses.failed(BACKEND, "429", retry_after=86_400) == 3600


def test_failed_lasts_at_least_as_long_as_the_answer_was_awaited(path: Path) -> None:
    assert Pauses(path).failed(BACKEND, "no answer", took_seconds=120) == 120


def test_seconds_left_is_known_to_other_processes(path: Path) -> None:
    Pauses(path).failed(RUN, "500 again")
    other = Pauses(path)
    assert 59 < other.seconds_left(RUN) <= 60
    assert other.why(RUN) == "500 again"
    assert other.seconds_left(BACKEND) == 0


def test_taken_after_an_outage_ends_all_pauses(path: Path) -> None:
    pauses = Pauses(path)
    pauses.failed(RUN, "500")
    pauses.taken("another")
    assert Pauses(path).seconds_left(RUN) > 0
    pauses.failed(BACKEND, "503")
    pauses.taken("another")
    assert Pauses(path).all == {}


def test_seconds_left_after_the_host_was_started_anew_is_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Pauses(path).failed(RUN, "500")
    monkeypatch.setattr(module, "_now", lambda: 1.0)
    assert Pauses(path).seconds_left(RUN) == 0


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"": 3}', b"\xff"])
def test_pauses_that_cannot_be_read_are_none(path: Path, junk: bytes) -> None:
    path.write_bytes(junk)
    assert Pauses(path).seconds_left(BACKEND) == 0


@pytest.mark.parametrize("key", [BACKEND, RUN])
def test_failed_of_a_backend_that_asks_for_no_time_is_as_long_as_ever(path: Path, key: str) -> None:
    pauses = Pauses(path)
    seconds = [pauses.failed(key, "503", retry_after=0.0) for _ in range(3)]
    assert seconds[0] >= 1
    assert seconds[2] > seconds[0]
