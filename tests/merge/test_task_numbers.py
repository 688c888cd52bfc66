"""What the tasks of an application come to, and which accumulators count."""

from __future__ import annotations

import pytest

from spark_lineage.merge.transition import Accumulator, TaskNumbers, accumulators_of, own_accumulator


def test_numbers_of_an_attempt() -> None:
    numbers = TaskNumbers("app-1", "2", "event log", finished=3, failed=2, killed=1, run_millis=400, gc_millis=100)
    assert (numbers.key, numbers.tasks, numbers.gc_share) == (("app-1", "2"), 6, 0.25)
    assert TaskNumbers("app-1", "", "event log").gc_share is None


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("rows", "5", ("rows", 5)),
        ("rows", "-5", ("rows", -5)),
        ("amount", "0.5", ("amount", 0.5)),
        ("", "5", None),
        (None, "5", None),
        ("rows", 5, None),
        ("rows", "[a, b]", None),
        ("rows", "NaN", None),
        ("rows", "Infinity", None),
        ("rows", "9" * 1000, None),
    ],
)
def test_an_accumulator_of_the_programs_own(name: str | None, value: object, found: tuple[str, float] | None) -> None:
    assert own_accumulator(name, value) == found


def test_accumulators_are_sorted_by_their_names() -> None:
    assert accumulators_of({"b": 1, "a": 2.5}) == (Accumulator("a", 2.5), Accumulator("b", 1))
