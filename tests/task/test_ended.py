"""What the end of a task shows of a driver's log elsewhere."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from spark_lineage.launch.bounded_run import Kill
from spark_lineage.launch.log import Guard
from spark_lineage.task.ended import _shown_log
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
