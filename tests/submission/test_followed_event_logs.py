"""Event logs that are read while Spark writes them give what they give when they are read whole, and no line twice."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_lineage.launch.directory import EVENT_LOG_DIRECTORY, OWN_EVENT_LOGS
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.log import Guard
from spark_lineage.plans import event_log, event_log_files
from spark_lineage.plans.event_log_files import GrowingEventLog, run_id_of
from spark_lineage.submission import collector as collector_module
from spark_lineage.submission.collector import Collector, DirectoryCollector, FollowedEventLogs

EVENT_LOGS = Path(__file__).parents[1] / "fixtures" / "event_logs"
STREAM = EVENT_LOGS / "stream"
SESSIONS = EVENT_LOGS.parent / "connect" / "two_sessions.zstd"
SESSION = "61c71826-e088-461d-9994-aa73bd3d5043"
APPLICATION = "local-1795291862028"
RUN_ID = "spark.openlineage.applicationRunId"
GUARD = Guard(lambda: False, logging.getLogger(__name__))
DETAILS = f'"spark_applicationDetails":{{"applicationId":"{APPLICATION}"}}'
START = (
    f'{{"eventTime":"2026-01-01T00:00:00Z","eventType":"START","run":{{"runId":"1","facets":{{'
    f'{DETAILS}}}}},"job":{{"namespace":"ns","name":"app",'
    f'"facets":{{"jobType":{{"jobType":"APPLICATION"}}}}}},"inputs":[],"outputs":[]}}\n'
)


def whole() -> dict[Any, Any]:
    collector = Collector()
    collector.read_event_log(STREAM)
    return collector.state.executions


def framed(lines: list[bytes]) -> bytes:
    """As Spark writes them: a frame for what it flushes."""
    compressor = zstandard.ZstdCompressor()
    return b"".join(compressor.compress(b"".join(lines[at : at + 3])) for at in range(0, len(lines), 3))


def followed(
    directory: Path, *, is_ours: bool = True, report: Any = lambda _: None
) -> tuple[DirectoryCollector, FollowedEventLogs]:
    directory = directory / "run" / "task" / "-1" / "launch"
    directory.mkdir(parents=True)
    (directory / "events.ndjson").write_text(START)
    collector = DirectoryCollector(directory)
    collector.poll()
    log = directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
    log.mkdir(parents=True)
    return collector, FollowedEventLogs(collector, report, launch(directory, log), is_removing=is_ours)


def launch(directory: Path, *logs: Path) -> Launch:
    return Launch(str(directory), "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e", event_logs=tuple(map(str, logs)))


@pytest.mark.parametrize("is_compressed", [True, False])
@settings(deadline=None, max_examples=40)
@given(cuts=st.lists(st.floats(0, 1), max_size=12))
def test_wherever_it_is_torn_the_same_comes_out(
    tmp_path_factory: pytest.TempPathFactory, is_compressed: bool, cuts: list[float]
) -> None:
    lines = STREAM.read_bytes().splitlines(keepends=True)
    content = framed(lines) if is_compressed else b"".join(lines)
    reports: list[object] = []
    collector, logs = followed(tmp_path_factory.mktemp("home"), report=reports.append)
    ending = ".zstd" if is_compressed else ""
    path = collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / f"{APPLICATION}{ending}.inprogress"
    done = 0
    with path.open("wb") as stream:
        for cut in [*sorted(cuts), 1.0]:
            stream.write(content[done : int(cut * len(content))])
            stream.flush()
            done = int(cut * len(content))
            logs.poll()
    # Spark takes the ending away when the context stops.
    path.rename(path.with_name(path.name.removesuffix(".inprogress")))
    assert logs.is_followed
    logs.finish(GUARD)
    assert collector.state.executions == whole()
    assert collector.log_counts.set_aside == {}
    told: list[object] = []
    Collector().read_event_log(STREAM, told.append)
    assert reports == told
    assert not path.parent.parent.exists()


def test_the_output_of_a_stream_is_known_before_its_end(tmp_path: Path) -> None:
    collector, logs = followed(tmp_path)
    lines = STREAM.read_bytes().splitlines(keepends=True)
    progress = next(at for at, line in enumerate(lines) if b"QueryProgressEvent" in line)
    path = collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / f"{APPLICATION}.zstd.inprogress"
    path.write_bytes(framed(lines[: progress + 1])[:-5])
    logs.poll()
    assert not any(one.query_id for one in collector.state.executions.values())
    path.write_bytes(framed(lines[: progress + 1]))
    logs.poll()
    assert any(one.outputs for one in collector.state.executions.values() if one.query_id)
    assert path.exists()
    logs.finish(GUARD)


def test_the_parts_of_a_rolling_log_are_followed_to_their_ends(tmp_path: Path) -> None:
    lines = STREAM.read_bytes().splitlines(keepends=True)
    collector, logs = followed(tmp_path, is_ours=False)
    directory = collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / f"eventlog_v2_{APPLICATION}"
    directory.mkdir()
    (directory / f"appstatus_{APPLICATION}.inprogress").touch()
    third = len(lines) // 3
    with (directory / f"events_1_{APPLICATION}").open("wb") as first:
        first.writelines(lines[: third - 3])
        first.flush()
        logs.poll()
        # Written between two polls, before the next part was begun.
        first.writelines(lines[third - 3 : third])
    (directory / f"events_2_{APPLICATION}.zstd").write_bytes(framed(lines[third : 2 * third]))
    logs.poll()
    # The History Server has compacted what was read already.
    (directory / f"events_1_{APPLICATION}").unlink()
    (directory / f"events_2_{APPLICATION}.zstd").rename(directory / f"events_2_{APPLICATION}.zstd.compact")
    (directory / f"events_3_{APPLICATION}").write_bytes(b"".join(lines[2 * third :]))
    logs.poll()
    logs.finish(GUARD)
    assert collector.state.executions == whole()
    assert collector.log_counts.set_aside == {}
    assert directory.exists()


def test_a_poll_reads_no_more_than_it_may_and_the_end_reads_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "_POLL_BYTES", 4000)
    monkeypatch.setattr(event_log_files, "_CHUNK_BYTES", 1000)
    collector, logs = followed(tmp_path)
    directory = collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / f"eventlog_v2_{APPLICATION}"
    directory.mkdir()
    lines = STREAM.read_bytes().splitlines(keepends=True)
    (directory / f"events_1_{APPLICATION}").write_bytes(b"".join(lines[:-3]))
    (directory / f"events_2_{APPLICATION}").write_bytes(b"".join(lines[-3:]))
    read = [0]
    for _ in range(3):
        logs.poll()
        read.append(collector.log_counts.read)
    assert read == sorted(set(read))
    assert len(collector.state.executions) < len(whole())
    logs.finish(GUARD)
    assert collector.state.executions == whole()


def test_a_line_is_read_once_however_often_it_is_looked_for(tmp_path: Path) -> None:
    log = tmp_path / "local-1"
    log.write_bytes(b"one\ntwo\nthr")
    growing = GrowingEventLog(log)
    assert [line for _, line in growing.lines()] == [b"one", b"two"]
    assert list(growing.lines()) == []
    with log.open("ab") as stream:
        stream.write(b"ee\nfou")
    assert list(growing.lines()) == [(f"{log}:3", b"three")]
    assert [line for _, line in growing.finish()] == [b"fou"]
    assert list(growing.finish()) == []


def test_what_follows_damage_is_not_read(tmp_path: Path) -> None:
    log = tmp_path / "local-1.zstd"
    log.write_bytes(zstandard.ZstdCompressor().compress(b"one\n") + b"no frame, but long enough for its head")
    growing = GrowingEventLog(log)
    for _ in range(2):
        assert [line for _, line in growing.lines()] in ([b"one"], [])
    with log.open("ab") as stream:
        stream.write(zstandard.ZstdCompressor().compress(b"two\n"))
    assert list(growing.lines()) == []
    assert list(growing.finish()) == []


def test_a_log_that_cannot_be_read_is_left_to_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    collector, logs = followed(tmp_path, is_ours=False)
    (collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / f"{APPLICATION}.lz4").write_bytes(b"x")
    logs.poll()
    assert not logs.is_followed
    assert caplog.records == []
    logs.finish(GUARD)
    assert "spark.eventLog.compression.codec=zstd" in caplog.text


def test_of_the_logs_beside_that_of_a_server_none_is_read(tmp_path: Path) -> None:
    server, logs = "local-1795895442308", tmp_path / "logs"
    logs.mkdir()
    (logs / f"{server}.zstd").write_bytes(SESSIONS.read_bytes())
    (logs / APPLICATION).write_bytes(STREAM.read_bytes())
    kept = Launch(str(tmp_path), "run", event_logs=(str(logs),), application_id=server, session_id=SESSION)
    collector = DirectoryCollector(tmp_path)
    followed_logs = FollowedEventLogs(collector, lambda _: None, kept, is_removing=False)
    followed_logs.look_into([str(logs)], [server])
    followed_logs.finish(GUARD)

    assert collector.application_ids == {server}
    assert [output.dataset.name for one in collector.state.executions.values() for output in one.outputs] == [
        "/area/out1",
        "/area/agg1",
    ]


def test_where_no_log_is_known_none_is_followed(tmp_path: Path) -> None:
    logs = FollowedEventLogs(DirectoryCollector(tmp_path), lambda _: None, launch(tmp_path))
    logs.poll()
    logs.finish(GUARD)
    assert not logs.is_followed


def test_a_log_is_missing_where_one_is_expected(tmp_path: Path) -> None:
    collector, logs = followed(tmp_path)
    logs.finish(GUARD)
    assert logs.missing == {APPLICATION}
    assert FollowedEventLogs(collector, lambda _: None, launch(tmp_path)).missing == set()


def test_nothing_is_read_after_the_collector_was_closed(tmp_path: Path) -> None:
    collector, logs = followed(tmp_path)
    (collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / APPLICATION).write_bytes(STREAM.read_bytes())
    collector.close()
    logs.finish(GUARD)
    assert collector.state.executions == {}
    assert (collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS).exists()


def test_the_log_of_the_program_is_read_where_the_program_says_and_stays(tmp_path: Path) -> None:
    collector, logs = followed(tmp_path / "launch")
    theirs = tmp_path / "their logs"
    theirs.mkdir()
    (theirs / APPLICATION).write_bytes(STREAM.read_bytes())
    (theirs / "local-2").write_text("of another application")
    (collector.directory / EVENT_LOG_DIRECTORY / "true").symlink_to(theirs)
    properties = f'"spark_properties":{{"properties":{{"spark.eventLog.dir":"file://{theirs}"}}}}'
    told = START.replace(DETAILS, f"{DETAILS},{properties}").replace("file://", "file:").replace(" logs", "%20logs")
    (collector.directory / "events.ndjson").write_text(START + told)
    collector.poll()
    assert logs.missing == {APPLICATION}
    logs.finish(GUARD)
    assert logs.missing == set()
    assert collector.state.executions == whole()
    assert sorted(file.name for file in theirs.iterdir()) == [APPLICATION, "local-2"]
    assert not (collector.directory / EVENT_LOG_DIRECTORY).exists()


def test_a_log_that_the_program_has_turned_on_is_read_where_the_link_leads(tmp_path: Path) -> None:
    collector, _ = followed(tmp_path / "launch", is_ours=False)
    theirs = tmp_path / "theirs"
    given = collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
    logs = FollowedEventLogs(collector, lambda _: None, launch(collector.directory, given, theirs))
    logs.poll()
    theirs.mkdir()
    (theirs / APPLICATION).write_bytes(STREAM.read_bytes())
    logs.finish(GUARD)
    assert collector.state.executions == whole()


def test_of_our_own_log_a_part_goes_when_it_was_read(tmp_path: Path) -> None:
    collector, logs = followed(tmp_path)
    lines = STREAM.read_bytes().splitlines(keepends=True)
    directory = collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / f"eventlog_v2_{APPLICATION}"
    directory.mkdir()
    half = len(lines) // 2
    (directory / f"events_1_{APPLICATION}").write_bytes(b"".join(lines[:half]))
    logs.poll()
    assert (directory / f"events_1_{APPLICATION}").exists()
    (directory / f"events_2_{APPLICATION}").write_bytes(b"".join(lines[half:]))
    logs.poll()
    assert [file.name for file in directory.iterdir()] == [f"events_2_{APPLICATION}"]
    logs.finish(GUARD)
    assert collector.state.executions == whole()


def log_of(run_id: str, *, is_whole: bool = True) -> bytes:
    """A log whose application was submitted as a run; without its end, the environment has not been written yet."""
    environment, *rest = STREAM.read_bytes().splitlines(keepends=True)
    told = f'"Spark Properties":{{"{RUN_ID}":"{run_id}"}}'.encode()
    return b"".join([environment.replace(b'"Spark Properties":{}', told), *rest]) if is_whole else environment[:100]


def test_without_a_listener_the_log_of_the_run_is_found_among_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, ours = tmp_path / "shared", launch(tmp_path / "launch", tmp_path / "shared")
    shared.mkdir()
    (shared / "local-2").write_bytes(log_of("another"))
    (shared / "local-3").write_bytes(STREAM.read_bytes())
    (shared / "local-4.lz4").write_bytes(b"x")
    (shared / "local-5").write_bytes(log_of(ours.application_run_id))
    # Long before the launch.
    os.utime(shared / "local-5", (1, 1))
    (shared / "local-1.inprogress").write_bytes(log_of(ours.application_run_id, is_whole=False))
    asked: list[str] = []
    monkeypatch.setattr(collector_module, "run_id_of", lambda path: asked.append(path.name) or run_id_of(path))
    collector = DirectoryCollector(tmp_path / "launch")
    logs = FollowedEventLogs(collector, lambda _: None, ours)
    logs.poll()
    assert not logs.is_followed
    (shared / "local-1.inprogress").write_bytes(log_of(ours.application_run_id))
    logs.poll()
    logs.poll()
    assert (collector.application_ids, logs.missing) == ({APPLICATION}, set())
    logs.finish(GUARD)
    assert collector.state.executions == whole()
    assert (asked.count("local-2"), asked.count("local-3"), asked.count("local-5")) == (1, 1, 0)
    assert len([*shared.iterdir()]) == 5


@pytest.mark.parametrize("name", ["logs/local-5", "logs/eventlog_v2_local-5/events_1_local-5"])
def test_a_log_is_found_where_the_driver_says_that_its_files_are(tmp_path: Path, name: str) -> None:
    ours, collector = launch(tmp_path / "launch", tmp_path / "default"), DirectoryCollector(tmp_path / "launch")
    logs = FollowedEventLogs(collector, lambda _: None, ours)
    file = tmp_path / name
    logs.look_into([str(file.parent)], ["local-5"])
    logs.poll()
    assert not logs.is_followed
    file.parent.mkdir(parents=True)
    file.write_bytes(log_of(ours.application_run_id))
    (tmp_path / "logs" / "local-6").write_bytes(log_of("another"))
    logs.look_into([str(file.parent)], ["local-5"])
    logs.finish(GUARD)
    assert (collector.application_ids, collector.state.executions) == ({APPLICATION}, whole())
    assert file.exists()
