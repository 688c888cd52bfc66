"""What the end of a task shows of a driver's log elsewhere, and what it lacks."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from spark_lineage.launch.bounded_run import Kill
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Guard, LineageRequiredError
from spark_lineage.merge.lineage import TaskLineage, UnknownDatasets
from spark_lineage.task.ended import _shown_log, nothing_came, unmet
from spark_lineage.watch.dialect import LOG_BYTES


@pytest.mark.parametrize(("missing_bytes", "is_shown"), [(0, False), (1, True)])
def test_the_first_line_is_left_out_where_it_may_be_cut(
    caplog: pytest.LogCaptureFixture, *, missing_bytes: int, is_shown: bool
) -> None:
    begin = "half a line\n"
    rest = ("a line of the driver\n" * LOG_BYTES)[-(LOG_BYTES - len(begin) - missing_bytes) :]
    # Few enough for all of them to be shown.
    text = begin + rest[:-1].replace("\n", " ") + "\n"
    sources = SimpleNamespace(log_tail=lambda: {"stderr": text})
    submission = SimpleNamespace(sources=sources, driver=SimpleNamespace(logs_url=None))
    guard, prepared = Guard(lambda: False, logging.getLogger("task")), SimpleNamespace(kill=Kill())
    running: Any = SimpleNamespace(guard=guard, submission=submission, prepared=prepared)
    with caplog.at_level(logging.INFO):
        assert "the driver failed" in _shown_log(running, "")
    assert "a line of the driver" in caplog.text
    assert ("half a line" in caplog.text) is is_shown


INCOMPLETE = TaskLineage("COMPLETE", unknown=(UnknownDatasets("AppendData x", 1),))


@pytest.mark.parametrize(
    ("required", "is_lacking", "is_complete", "reason"),
    [
        (False, True, True, None),
        (True, True, True, "nothing came"),
        ("complete", True, True, "nothing came"),
        (True, False, False, None),
        ("complete", False, True, None),
        (
            "complete",
            False,
            False,
            "lineage_required is complete. The lineage is not complete: AppendData x.",
        ),
    ],
)
def test_unmet_is_what_the_task_asked_for_and_did_not_get(
    required: bool | str, is_lacking: bool, is_complete: bool, reason: str | None
) -> None:
    lacking = LineageRequiredError("nothing came") if is_lacking else None
    error = unmet(TaskLineage("COMPLETE") if is_complete else INCOMPLETE, lacking, required=required)
    assert (str(error) if error else None) == reason


def test_where_nothing_came_it_says_where_it_looked_and_what_to_check() -> None:
    text = nothing_came(Launch("/lineage/shop/load", "run"), LineCounts(set_aside={"no JSON": 2}), has_listener=True)
    assert text.startswith(
        "No lineage came from the driver: no event in /lineage/shop/load/*.ndjson (2 lines set aside). "
    )
    for cause in ("(1) the listener jar", "(2) the driver ran on another host", "(3) the listener was switched off"):
        assert cause in text
    assert "A program that ended before it made a SparkSession leaves none. Else" in text


def test_where_no_event_log_came_it_says_where_it_looked_and_what_to_check() -> None:
    launch = Launch("/lineage", "run", event_logs=("/lineage/event-log", "/var/events"))
    text = nothing_came(launch, LineCounts(), has_listener=False)
    assert text.startswith("No lineage came from the driver: no event log of it in /lineage/event-log and /var/events.")
    for cause in (
        "(1) the program ended before",
        "(2) it sets spark.eventLog.* itself",
        "(3) the driver ran on another",
    ):
        assert cause in text
