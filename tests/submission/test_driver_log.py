"""The listener's events in the log of a driver: which lines they are, however the log is laid out, cut or mixed up."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_lineage.launch.directory import EVENTS_FILE
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import DirectoryCollector
from spark_lineage.submission.driver_log import GAP, LoggedEvents, events_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGS = Path(__file__).parents[1] / "fixtures" / "driver_logs"
PLAIN = (LOGS / "plain.log").read_bytes().splitlines()
EVENTS = [event for line in PLAIN for event in events_of(line)]
RUN = "01900000-0000-7000-8000-000000000001"
MARK = b"26/11/25 03:52:14 INFO ConsoleTransport: "


@dataclass
class Log:
    """A log that has these lines for each question; the last without its end, for those who want it."""

    rounds: list[list[bytes | None]]
    torn: bytes = b""
    asked: list[bool] = field(default_factory=list)

    def added(self, *, is_last: bool) -> Iterator[bytes | None]:
        self.asked.append(is_last)
        yield from self.rounds.pop(0) if self.rounds else []
        if self.torn and is_last:
            yield self.torn


def collected(tmp_path: Path, log: Log, rounds: int = 1) -> tuple[DirectoryCollector, dict[str, int]]:
    source, collector = LoggedEvents(log, RUN, tmp_path / EVENTS_FILE), DirectoryCollector(tmp_path)
    for number in range(rounds):
        source.pull(is_last=number == rounds - 1)
        collector.poll()
    collector.finish()
    return collector, source.set_aside


def test_a_log_has_the_events_of_its_driver_in_either_layout(tmp_path: Path) -> None:
    assert len(EVENTS) == 12
    assert all(json.loads(event)["producer"].endswith("/integration/spark") for event in EVENTS)
    for layout in ("plain", "structured"):
        (tmp_path / layout).mkdir()
        lines: list[bytes | None] = [*(LOGS / f"{layout}.log").read_bytes().splitlines()]
        collector, set_aside = collected(tmp_path / layout, Log([lines[:70], lines[70:], []]), 3)
        assert (collector.counts.read, collector.counts.set_aside, set_aside) == (12, {}, {})
        lineage = task_lineage(collector.state, "COMPLETE")
        assert [one.dataset.name for one in lineage.inputs] == ["/data/lab/orders.csv"]
        (output,) = lineage.outputs
        assert output.dataset.name == "/data/lab/big"
        assert "größe" in str(output)


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    collected(tmp_path, Log([[MARK + EVENTS[0]]]))
    assert (tmp_path / EVENTS_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("line", "events"),
    [
        (b"progress 10%" + MARK + EVENTS[0], [EVENTS[0]]),
        (MARK + EVENTS[0] + b"progress 20%", [EVENTS[0]]),
        (MARK + EVENTS[0] + MARK + EVENTS[1], [EVENTS[0], EVENTS[1]]),
        (b"io.openlineage.client.transports.ConsoleTransport - " + EVENTS[2], [EVENTS[2]]),
        (b"26/11/25 INFO OpenLineageClient: {}", []),
        (b"26/11/25 INFO Program: it says ConsoleTransport: nothing", []),
        (b'{"ts":"2026","level":"INFO","msg":"ConsoleTransport","logger":"Program"}', []),
    ],
)
def test_lines_of_others_around_an_event(line: bytes, events: list[bytes]) -> None:
    assert events_of(line) == events


def test_an_event_that_names_the_logger_is_one(tmp_path: Path) -> None:
    event = json.loads(EVENTS[0])
    event["run"]["facets"]["spark.exception"] = {"stacktrace": 'INFO ConsoleTransport: {"eventTime":"2026'}
    line = MARK + json.dumps(event).encode()
    assert [json.loads(one) for one in events_of(line)] == [event]


def test_an_event_that_another_line_breaks_is_set_aside_and_the_other_is_read(tmp_path: Path) -> None:
    lines = [MARK + EVENTS[0][:500] + MARK + EVENTS[1], EVENTS[0][500:], MARK + EVENTS[2]]
    collector, _ = collected(tmp_path, Log([lines]))
    assert (collector.counts.read, collector.counts.set_aside) == (2, {"not JSON": 1})


def test_a_last_line_that_is_cut_off_is_counted(tmp_path: Path) -> None:
    log = Log([[MARK + EVENTS[0]], []], torn=MARK + EVENTS[1][:-10])
    collector, _ = collected(tmp_path, log, 2)
    assert log.asked == [False, True]
    assert (collector.counts.read, collector.counts.set_aside) == (1, {"not JSON": 1})


def test_what_a_program_prints_of_another_run_is_no_event_of_it(tmp_path: Path) -> None:
    other = EVENTS[1].replace(RUN.encode(), b"01900000-0000-7000-8000-000000000002")
    collector, set_aside = collected(tmp_path, Log([[MARK + EVENTS[0], MARK + other, MARK + EVENTS[2]]]))
    assert (collector.counts.read, collector.counts.set_aside, set_aside) == (2, {}, {})


def test_gaps_are_counted(tmp_path: Path) -> None:
    collector, set_aside = collected(tmp_path, Log([[None, MARK + EVENTS[0]], [None, MARK + EVENTS[1]]]), 2)
    assert (collector.counts.read, set_aside) == (2, {GAP: 2})
