"""The program of a task can write where its lineage lies: what it puts there costs no time, and no other file."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.launch.directory import (
    EVENT_LOG_DIRECTORY,
    EVENTS_FILE,
    LAUNCH_FILE,
    OWN_EVENT_LOGS,
    TRANSITIONS_FILE,
    append_private,
    open_regular,
    read_small,
)
from spark_lineage.launch.launch import Launch, read_launch, read_transitions
from spark_lineage.launch.lock import appending
from spark_lineage.launch.log import Guard, Log, escaped, log_trouble
from spark_lineage.submission.collector import DirectoryCollector, FollowedEventLogs

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
STREAM = Path(__file__).parents[1] / "fixtures" / "event_logs" / "stream"
APPLICATION = "local-1795291862028"
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
GUARD = Guard(lambda: False, logging.getLogger(__name__))
SECRET = b"root:x:0:0\n"


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link(path: Path) -> None:
    outside = path.parents[5] / "outside"
    outside.write_bytes(SECRET)
    path.symlink_to(outside)


def folder(path: Path) -> None:
    path.mkdir()


STRANGERS = (fifo, device, link, folder)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path.joinpath("root", "dag", "run", "task", "-1", "1-launch")
    made.mkdir(parents=True)
    return made


@pytest.fixture(autouse=True)
def _no_wait() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 30, "a reader or writer has waited"


def quick(work: Callable[[], object]) -> None:
    """Do some work, which may raise ``OSError``, and must not hang."""

    def run() -> None:
        with pytest.raises(OSError, match="no regular file"):
            work()

    assert BoundedRun(run, "test").wait(10.0), "it hangs"


@pytest.mark.parametrize("stranger", STRANGERS)
def test_open_regular_refuses_all_that_is_no_file(directory: Path, stranger: Callable[[Path], None]) -> None:
    path = directory / "stranger"
    stranger(path)
    if stranger is not folder:
        quick(lambda: os.close(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)))
        quick(lambda: append_private(path, [b"x"]))
    quick(lambda: read_small(path))


def test_appending_to_a_fifo_fails_at_once(directory: Path) -> None:
    fifo(directory / "events")

    def append() -> None:
        with appending(directory / "events", 0o600) as append_line:
            append_line(b"x" * 1_000_000)

    quick(append)


def test_read_small_refuses_a_huge_sparse_file(directory: Path) -> None:
    os.truncate(directory / "sparse" if (directory / "sparse").touch() is None else "", 1 << 40)
    with pytest.raises(OSError, match="too big"):
        read_small(directory / "sparse")


@pytest.mark.parametrize("stranger", STRANGERS)
def test_read_launch_of_a_stranger_is_none(directory: Path, stranger: Callable[[Path], None]) -> None:
    stranger(directory / LAUNCH_FILE)
    assert read_launch(directory) is None


@pytest.mark.parametrize("stranger", STRANGERS)
def test_read_transitions_of_a_stranger_fails(directory: Path, stranger: Callable[[Path], None]) -> None:
    stranger(directory / TRANSITIONS_FILE)
    quick(lambda: list(read_transitions(directory)))


@pytest.mark.parametrize("stranger", STRANGERS)
def test_collector_with_a_stranger_reads_the_other_files(directory: Path, stranger: Callable[[Path], None]) -> None:
    # Before and behind it in the order of names.
    for name in ("a.ndjson", "c.ndjson"):
        shutil.copy(EVENTS, directory / name)
    stranger(directory / "b.ndjson")
    collector = DirectoryCollector(directory)
    collector.poll()
    collector.finish()
    assert collector.counts.read == 2 * len(EVENTS.read_bytes().splitlines())
    assert collector.counts.set_aside == {"no file": 1}


def test_collector_with_a_huge_sparse_file_stops_at_the_hole(directory: Path) -> None:
    shutil.copy(EVENTS, directory / EVENTS_FILE)
    os.truncate(directory / EVENTS_FILE, 1 << 40)
    collector = DirectoryCollector(directory)
    collector.finish()
    assert collector.counts.read == len(EVENTS.read_bytes().splitlines())
    assert collector.counts.set_aside["torn file"] == 1


def event_logs(directory: Path) -> tuple[DirectoryCollector, FollowedEventLogs, Path]:
    ours = directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
    collector = DirectoryCollector(directory)
    launch = Launch(str(directory), RUN_ID, event_logs=(str(ours),))
    return collector, FollowedEventLogs(collector, lambda _: None, launch, is_removing=False), ours


def assert_own_log_is_read(collector: DirectoryCollector, logs: FollowedEventLogs, ours: Path) -> None:
    shutil.copy(STREAM, ours / APPLICATION)
    logs.poll()
    logs.finish(GUARD)
    assert collector.state.executions


@pytest.mark.parametrize("stranger", STRANGERS)
def test_event_logs_with_a_stranger_are_read(directory: Path, stranger: Callable[[Path], None]) -> None:
    collector, logs, ours = event_logs(directory)
    ours.mkdir(parents=True)
    stranger(directory / "local-1")
    (directory / "local-1").rename(ours / "local-1")
    assert_own_log_is_read(collector, logs, ours)


@pytest.mark.parametrize("stranger", [fifo, device, link])
def test_event_log_with_a_stranger_for_a_part_costs_no_other_log(
    directory: Path, stranger: Callable[[Path], None]
) -> None:
    collector, logs, ours = event_logs(directory)
    rolling = ours / "eventlog_v2_local-1"
    rolling.mkdir(parents=True)
    stranger(directory / "part")
    (directory / "part").rename(rolling / "events_1_local-1")
    assert_own_log_is_read(collector, logs, ours)


def test_event_logs_in_a_linked_directory_are_not_read(directory: Path, tmp_path: Path) -> None:
    collector, logs, ours = event_logs(directory)
    (tmp_path / OWN_EVENT_LOGS).mkdir()
    shutil.copy(STREAM, tmp_path / OWN_EVENT_LOGS / APPLICATION)
    ours.parent.symlink_to(tmp_path)
    assert ours.is_dir()
    logs.finish(GUARD)
    assert not collector.state.executions


def test_event_log_that_is_huge_and_sparse_ends_at_the_hole(directory: Path) -> None:
    collector, logs, ours = event_logs(directory)
    ours.mkdir(parents=True)
    shutil.copy(STREAM, ours / APPLICATION)
    os.truncate(ours / APPLICATION, 1 << 40)
    logs.finish(GUARD)
    assert collector.state.executions


def test_printed_directory_is_read_for_the_printed_application_alone(directory: Path, tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    printed.mkdir()
    fifo(printed / "fifo")
    fifo(printed / "local-7")
    own = b'{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":{"spark.openlineage.applicationRunId":"%s"}}\n'
    for name in (APPLICATION, "local-8"):
        (printed / name).write_bytes(own % RUN_ID.encode() + STREAM.read_bytes())
    collector, logs, _ = event_logs(directory)
    logs.look_into([str(printed)], ["local-7", "local-9"])
    logs.poll()
    assert not logs.is_followed
    logs.look_into([str(printed)], [APPLICATION])
    logs.finish(GUARD)
    assert collector.state.executions
    assert {path.name for path in logs._others} == set()


def test_names_and_answers_stand_in_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert escaped("a\x1b[31mb\0c\nd\r\u2028é") == r"a\x1b[31mb\x00c\nd\r\u2028é"
    log_trouble(Log("spark_lineage.test"), "Not sent", ValueError("no\x1b[2J\nERROR forged"))
    (line,) = caplog.messages
    assert line == r"Not sent: no\x1b[2J\nERROR forged"


def test_collector_names_a_file_with_controls_in_one_line(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    (directory / "a\x1b[31m\nERROR forged.ndjson").write_bytes(b"no JSON\n")
    DirectoryCollector(directory).finish()
    assert any(r"a\x1b[31m\nERROR forged.ndjson:1" in line for line in caplog.messages)
    assert not any("\n" in line or "\x1b" in line for line in caplog.messages)
