"""Nothing is silent: an event that is not the truth counts something, and nearly none that is the truth does."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.shares("recordings")

# Tests are no package, and the tool is a program: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
truth_counts = importlib.import_module("truth_counts")

# Programs of which no source of evidence shows that a fact is missing.
UNDECIDABLE = {
    "table_functions_in_sql": "Spark counts rows where the counted column is never null: no plan names the column",
}
EXCEPTIONS = UNDECIDABLE.keys()
MOST_RIGHT_COUNTED = 0.01


@cache
def events(evidence: str) -> list[Any]:
    """Return the events of all recordings."""
    return [event for version in truth_counts.VERSIONS for event in truth_counts.counted_events(version, evidence)]


@pytest.mark.parametrize("evidence", truth_counts.EVIDENCE)
def test_faulty_event_counts_something(evidence: str) -> None:
    silent = {event.job: event.faults for event in events(evidence) if event.is_silent}
    assert silent.keys() <= EXCEPTIONS, silent


def test_right_event_counts_nothing() -> None:
    right = [event for evidence in truth_counts.EVIDENCE for event in events(evidence) if not event.is_faulty]
    counted = [event for event in right if event.counts]
    assert len(counted) <= MOST_RIGHT_COUNTED * len(right), counted


@pytest.mark.parametrize("evidence", truth_counts.EVIDENCE)
@pytest.mark.parametrize("job", ["delta_history_saved", "static_rows_before_count"])
def test_rows_that_no_query_has_given_count_nothing(job: str, evidence: str) -> None:
    assert [event.counts for event in events(evidence) if event.job == job] == [()]


def test_exceptions_are_still_needed() -> None:
    silent = {event.job for evidence in truth_counts.EVIDENCE for event in events(evidence) if event.is_silent}
    assert silent >= EXCEPTIONS
