"""RUNNING events of a task that takes long, and that none of them comes after the last event."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.collect.collector import Collector
from spark_lineage.emit.tracking import Tracking
from spark_lineage.naming.options import DEFAULT_NAMING
from spark_lineage.tolerance import Tolerance

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_lineage.collect.line import LineCounts
    from spark_lineage.merge.lineage import TaskLineage
    from spark_lineage.merge.transition import StatusSummary

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"


def collected() -> Collector:
    collector = Collector()
    with EVENTS.open("rb") as stream:
        collector.read(stream, source="a_414")
    return collector


def tracking(
    send: Callable[[TaskLineage, LineCounts], None], status: Callable[[], StatusSummary | None] = lambda: None
) -> Tracking:
    tolerating = Tolerance(lambda: False, logging.getLogger(__name__))
    return Tracking(0.0, naming=DEFAULT_NAMING, send=send, status=status, tolerating=tolerating)


def test_what_is_known_is_told_at_the_interval() -> None:
    told: list[str] = []
    one = tracking(lambda lineage, _: told.append(lineage.state))
    one.tell(collected())
    one.stop(5)
    assert told == ["RUNNING"]


def test_nothing_is_told_after_the_end() -> None:
    told: list[str] = []
    one = tracking(lambda lineage, _: told.append(lineage.state))
    one.stop(5)
    # By the thread that collects, which may have hung until now.
    one.tell(collected())
    time.sleep(0.2)
    assert told == []


def test_what_was_not_handed_over_when_the_end_came_is_not_told_any_more() -> None:
    told: list[str] = []
    is_asked, may_go_on = threading.Event(), threading.Event()

    def slow_status() -> None:
        is_asked.set()
        may_go_on.wait(10)

    one = tracking(lambda lineage, _: told.append(lineage.state), slow_status)
    thread = threading.Thread(target=one.tell, args=(collected(),))
    thread.start()
    assert is_asked.wait(10)
    one.stop(0)
    may_go_on.set()
    thread.join(10)
    time.sleep(0.2)
    assert told == []


def test_one_that_the_backend_is_taking_is_waited_for_as_long_as_there_is_time() -> None:
    is_taking, has_taken = threading.Event(), threading.Event()

    def slow_backend(*_: object) -> None:
        is_taking.set()
        has_taken.wait(10)

    one = tracking(slow_backend)
    one.tell(collected())
    assert is_taking.wait(10)
    assert one.stop(0.1) is False
    has_taken.set()
    assert one.stop(10) is True
