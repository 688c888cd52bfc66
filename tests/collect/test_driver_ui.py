"""What the driver's UI says stands in for a log that cannot be read yet, and never beside one."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from spark_lineage.collect.collector import Collector
from spark_lineage.collect.driver_ui import UiCollector
from spark_lineage.merge.task import task_lineage

if TYPE_CHECKING:
    import pytest

LOG = Path(__file__).parents[1] / "fixtures" / "sql" / "event_log"
LINES = LOG.read_bytes().splitlines()
# That of a listener, of the same application.
EVENTS = (Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson").read_bytes().splitlines()
START = EVENTS[0].replace(b"local-1795215390665", b"local-1795602500463")


@dataclass
class Sql:
    """Lines that have come."""

    is_wanted: bool = False
    lines: deque[tuple[str, list[bytes]]] = field(default_factory=deque)
    why_not: str = ""


def told(sql: Sql, collector: Collector, interval_seconds: float = 3600.0) -> UiCollector:
    return UiCollector(sql, collector, interval_seconds, logging.getLogger(__name__))


def test_it_asks_at_growing_intervals_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("spark_lineage.collect.driver_ui.time", SimpleNamespace(monotonic=lambda: clock.now))
    sql = Sql()
    collector, asked = told(sql, Collector(), 60.0), []
    for second in range(300):
        clock.now = 1000.0 + second
        collector.poll()
        asked += [second] if sql.is_wanted else []
        sql.is_wanted = False
    assert asked == [0, 20, 60, 120, 180, 240]


def test_a_log_that_can_be_read_later_stands_alone(caplog: pytest.LogCaptureFixture) -> None:
    main, sql = Collector(), Sql()
    ui = told(sql, main)
    assert ui.poll() is main
    sql.lines.append(("app", LINES[:-1]))
    with caplog.at_level(logging.DEBUG):
        assert ui.poll() is ui
        ui.poll()
    assert [record.message for record in caplog.records] == [
        "RUNNING events rest on the driver's UI: no event log can be read yet."
    ]
    assert ui.counts.sources == {"driver_ui"}
    main.read_event_log(LOG)
    alone = Collector()
    alone.read_event_log(LOG)
    ui.finish()
    assert task_lineage(main.state, "COMPLETE") == task_lineage(alone.state, "COMPLETE")
    assert main.counts.sources == set()


def test_without_any_log_it_is_the_last_resort_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    main, sql = Collector(), Sql()
    ui = told(sql, main)
    sql.lines.append(("app", LINES[:-1]))
    ui.finish()
    lineage = task_lineage(main.state, "COMPLETE")
    assert (lineage.evidence, main.counts.sources) == (("driver_ui",), {"driver_ui"})
    assert lineage.outputs
    assert "the lineage rests on what the driver's UI said" in caplog.text


def test_beside_the_first_events_of_a_listener_that_was_cut_off_it_has_the_rest() -> None:
    sql = Sql()
    sql.lines.append(("app", LINES[:-1]))
    for is_cut_off, sources in ((False, set()), (True, {"driver_ui"})):
        main = Collector()
        main.add([START], source="listener")
        assert main.application_ids
        told(Sql(lines=deque(sql.lines)), main).finish(is_cut_off=is_cut_off)
        assert main.counts.sources == sources
        lineage = task_lineage(main.state, "COMPLETE")
        assert lineage.evidence == (("listener", *sources) if sources else ("listener",))
        assert bool(lineage.outputs) is is_cut_off


def test_where_it_said_nothing_there_is_nothing(caplog: pytest.LogCaptureFixture) -> None:
    main = Collector()
    told(Sql(), main).finish()
    assert (main.state.logged, main.counts.sources, caplog.records) == ({}, set(), [])


def test_what_cannot_be_true_is_given_up_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    main, sql = Collector(), Sql()
    ui = told(sql, main)
    sql.lines.append(("app", LINES[:-1]))
    assert ui.poll() is ui
    sql.why_not = "a streaming query runs"
    with caplog.at_level(logging.DEBUG):
        assert ui.poll() is ui.poll() is main
    assert caplog.text.count("does not serve as evidence: a streaming query runs.") == 1
    ui.finish()
    assert main.state.executions == {}
