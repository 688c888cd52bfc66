"""Files are read whole or while they grow, to the last line; what cannot be read is counted and named."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector, DirectoryCollector

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
EVENT_LOGS = FIXTURES.parent / "event_logs"
CONTENT = (FIXTURES / "a_414.ndjson").read_bytes()


def outputs(collector: Collector) -> list[str]:
    return [one.dataset.name for one in task_lineage(collector.state, "COMPLETE").outputs]


def test_set_aside_lines_are_named_by_file_and_line(caplog: pytest.LogCaptureFixture) -> None:
    lines = CONTENT.splitlines()
    lines[3:3] = [b"garbage with password=hunter2", b"", b'{"torn": ']
    collector = Collector()
    with caplog.at_level(logging.WARNING):
        collector.read(io.BytesIO(b"\n".join(lines)), source="some.ndjson")
    assert collector.counts.read == 21
    assert collector.counts.set_aside == {"not JSON": 2, "empty": 1}
    assert outputs(collector) == ["/data/lab/out/a_parquet"]
    messages = [record.getMessage() for record in caplog.records]
    assert [message.split(" ")[2] for message in messages] == ["some.ndjson:4:", "some.ndjson:5:", "some.ndjson:6:"]
    assert "hunter2" not in caplog.text


def test_a_flood_of_garbage_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    collector = Collector()
    with caplog.at_level(logging.WARNING):
        collector.read(io.BytesIO(b"x\n" * 5000 + CONTENT), source="f")
    assert collector.counts.set_aside == {"not JSON": 5000}
    assert collector.counts.read == 21
    assert len(caplog.records) == 21
    assert "only counted" in caplog.records[-1].getMessage()


def test_a_file_is_followed_while_it_grows(tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    collector = DirectoryCollector(tmp_path)
    collector.poll()
    cut = CONTENT.index(b"\n", len(CONTENT) // 2) + 200
    with file.open("wb") as stream:
        stream.write(CONTENT[:cut])
        stream.flush()
        collector.poll()
        half = collector.counts.read
        assert 0 < half < 21
        collector.poll()
        assert collector.counts.read == half
        stream.write(CONTENT[cut:].rstrip(b"\n"))
    collector.poll()
    assert collector.counts.read == 20
    collector.finish()
    assert collector.counts.read == 21
    collector.finish()
    assert (collector.counts.read, collector.counts.set_aside) == (21, {})


def test_the_torn_last_line_is_set_aside_by_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "events.ndjson").write_bytes(CONTENT[:-100])
    collector = DirectoryCollector(tmp_path)
    with caplog.at_level(logging.WARNING):
        collector.finish()
    assert (collector.counts.read, collector.counts.set_aside) == (20, {"not JSON": 1})
    assert "events.ndjson:21:" in caplog.text


def test_all_files_of_the_directory_count(tmp_path: Path) -> None:
    lines = CONTENT.splitlines(keepends=True)
    (tmp_path / "a.ndjson").write_bytes(b"".join(lines[::2]))
    (tmp_path / "b.ndjson").write_bytes(b"".join(lines[1::2]))
    (tmp_path / "other.txt").write_bytes(b"not ours")
    collector = DirectoryCollector(tmp_path)
    collector.finish()
    assert (collector.counts.read, collector.counts.set_aside) == (21, {})
    assert outputs(collector) == ["/data/lab/out/a_parquet"]


def test_a_missing_directory_is_an_empty_one(tmp_path: Path) -> None:
    collector = DirectoryCollector(tmp_path / "never")
    collector.finish()
    assert (collector.counts.read, collector.counts.set_aside) == (0, {})


def test_event_logs_are_folded_and_their_lines_counted_apart(tmp_path: Path) -> None:
    torn = tmp_path / "local-1795291862028"
    torn.write_bytes((EVENT_LOGS / "stream").read_bytes() + b"torn")
    collector = Collector()
    collector.read(io.BytesIO(CONTENT), source="a")
    for _ in range(2):
        collector.read_event_log(tmp_path)
    assert {application for application, *_ in collector.state.executions} == {"local-1795291862028"}
    assert len(collector.state.executions) == 10
    assert (collector.counts.read, collector.counts.set_aside) == (21, {})
    assert collector.log_counts.set_aside == {"not an event": 2}


def test_the_applications_whose_events_came_are_known_by_the_ids_that_name_their_logs() -> None:
    collector = Collector()
    assert collector.application_ids == set()
    for name in ("a_414", "b_414"):
        with (FIXTURES / f"{name}.ndjson").open("rb") as stream:
            collector.read(stream, source=name)
    assert collector.application_ids == {"local-1795215390665", "local-1795215479579"}


def test_what_is_read_when_it_is_closed_comes_too_late(tmp_path: Path) -> None:
    lines = CONTENT.splitlines(keepends=True)
    log = tmp_path / "local-1795291862028"
    log.write_bytes((EVENT_LOGS / "stream").read_bytes())
    collector = DirectoryCollector(tmp_path)

    def closing() -> Iterator[bytes]:
        yield lines[0]
        collector.close()
        yield lines[1]

    collector.add(closing(), source="a")
    assert collector.counts.read == 1
    (tmp_path / "events.ndjson").write_bytes(CONTENT)
    collector.finish()
    collector.read_event_log(log)
    assert collector.counts.read == 1
    assert collector.state.executions == {}


def test_a_file_that_begins_anew_is_read_again_and_what_may_be_lost_is_counted(tmp_path: Path) -> None:
    collector, file = DirectoryCollector(tmp_path), tmp_path / "events.ndjson"
    lines = CONTENT.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:10])
    collector.poll()
    file.write_bytes(lines[4])
    collector.finish()
    assert (collector.counts.read, collector.counts.set_aside) == (4, {"torn file": 1})
