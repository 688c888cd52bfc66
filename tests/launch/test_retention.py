"""Lineage files are removed when they are old, and nothing else, wherever links lead; a step at a time."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from spark_lineage.launch.directory import (
    EVENT_LOG_DIRECTORY,
    EVENTS_FILE,
    LAST_ENDS_DIRECTORY,
    LAUNCH_FILE,
    OWN_EVENT_LOGS,
    RUN_EVENTS_FILE,
    create_private,
    launch_directory,
)
from spark_lineage.launch.retention import clean_up, remove_event_logs, remove_if_empty, remove_part

RUN = "01890a5d-ac96-7dde-8a63-{:012x}"


def directory(root: Path, number: int = 0, **ids: str) -> Path:
    defaults = {"dag_id": "dag", "run_id": "manual__2026-01-01T00:00:00+00:00", "task_id": "task"}
    names = defaults | ids
    return launch_directory(root, **names, map_index=-1, try_number=1, application_run_id=RUN.format(number))


def old(file: Path) -> Path:
    """A file that was last written to long ago, with its directories."""
    create_private(file.parent)
    file.write_text("{}")
    os.utime(file, (0, 0))
    return file


def nobody(root: Path) -> Path:
    """The launch that stays: one that is not there."""
    return directory(root, dag_id="now")


def test_clean_up_removes_what_is_old_and_nothing_else(tmp_path: Path) -> None:
    old, fresh, kept = (
        directory(tmp_path, dag_id="old"),
        directory(tmp_path, dag_id="new"),
        directory(tmp_path, dag_id="now"),
    )
    long_ago = time.time() - 40 * 24 * 3600
    for path in (old, fresh, kept):
        create_private(path)
        (path / EVENTS_FILE).write_text("{}")
    (old / RUN_EVENTS_FILE).write_text("{}")
    foreign = tmp_path / "old" / "users.txt"
    foreign.write_text("not ours")
    deep = tmp_path / "a" / "b" / "c" / "d" / "e" / "f"
    deep.mkdir(parents=True)
    (deep / EVENTS_FILE).write_text("at another depth")
    for path in (old / EVENTS_FILE, old / RUN_EVENTS_FILE, kept / EVENTS_FILE, foreign, deep / EVENTS_FILE):
        os.utime(path, (long_ago, long_ago))
    assert clean_up(tmp_path, 30, keep=kept) == 2
    assert not old.exists()
    assert foreign.exists()
    assert (fresh / EVENTS_FILE).exists()
    assert (kept / EVENTS_FILE).exists()
    assert (deep / EVENTS_FILE).exists()


def test_clean_up_removes_what_is_in_the_event_logs_directory_unless_spark_still_writes_it(tmp_path: Path) -> None:
    theirs = old(tmp_path / "theirs" / "local-1").parent
    done, running, kept = (directory(tmp_path, dag_id=name) for name in ("done", "running", "kept"))
    rolled = Path("eventlog_v2_local-2", "events_2_local-2.zstd")
    for path in (done, running, kept):
        logs = path / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
        for file in (path / EVENTS_FILE, logs / "local-1.inprogress", logs / rolled):
            old(file)
        old(logs / rolled.with_name(".appstatus_local-2.inprogress.crc"))
        (path / EVENT_LOG_DIRECTORY / "true").symlink_to(theirs)
    os.utime(running / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / rolled)
    assert clean_up(tmp_path, 30, keep=kept) == 4
    assert not (tmp_path / "done").exists()
    for path in (running, kept):
        assert len([file for file in path.rglob("*") if file.is_file()]) == 4
    assert (theirs / "local-1").exists()


def test_clean_up_runs_once_an_hour(tmp_path: Path) -> None:
    path = directory(tmp_path)
    create_private(path)
    assert clean_up(tmp_path, 30, keep=path) == 0
    other = directory(tmp_path, dag_id="old")
    create_private(other)
    (other / EVENTS_FILE).write_text("{}")
    os.utime(other / EVENTS_FILE, (0, 0))
    assert clean_up(tmp_path, 30, keep=path) == 0
    os.utime(tmp_path / ".retention", (0, 0))
    assert clean_up(tmp_path, 30, keep=path) == 1


def test_what_a_killed_process_left_goes_too(tmp_path: Path) -> None:
    launch = directory(tmp_path)
    for name in (
        f".{LAUNCH_FILE}.4711",
        "declared-12-0a1b2c3d.ndjson",
        f"claimed-1-{RUN.format(1)}",
    ):
        old(launch / name)
    assert clean_up(tmp_path, 30, keep=nobody(tmp_path)) == 3
    assert not (tmp_path / "dag").exists()


def test_files_of_other_names_stay(tmp_path: Path) -> None:
    launch = directory(tmp_path)
    logs, ends = launch / EVENT_LOG_DIRECTORY, tmp_path / LAST_ENDS_DIRECTORY
    own = logs / OWN_EVENT_LOGS
    names = (
        launch / "notes.txt",
        logs / "local-1",
        own / "id_rsa",
        own / "eventlog_v2_local-1" / "keys.db",
        own / "x" / "events_1_x",
    )
    stay = [old(file) for file in (*names, ends / "package.json")]
    old(launch / EVENTS_FILE)
    old(own / "application_1_0001_1.zstd")
    old(tmp_path / LAST_ENDS_DIRECTORY / f"dag-{'0' * 32}.json")
    assert clean_up(tmp_path, 30, keep=nobody(tmp_path)) == 3
    assert [file.exists() for file in stay] == [True] * 6
    assert len([file for file in launch.rglob("*") if file.is_file()]) == 5


@pytest.mark.parametrize("depth", range(9))
def test_no_link_is_followed(tmp_path: Path, depth: int) -> None:
    """A link in the place of a DAG, a run, a task, an index, a launch, its event logs, a part, or the last ends."""
    root, stranger = tmp_path / "lineage", tmp_path / "stranger"
    logs = Path(EVENT_LOG_DIRECTORY, OWN_EVENT_LOGS, "eventlog_v2_local-1")
    theirs = directory(stranger)
    files = [old(theirs / EVENTS_FILE), old(theirs / logs / "events_1_local-1")]
    files.append(old(stranger / LAST_ENDS_DIRECTORY / f"dag-{'0' * 32}.json"))
    below = (directory(root) / logs).relative_to(root).parts
    parts = below[: depth + 1] if depth < len(below) else (LAST_ENDS_DIRECTORY,)
    create_private(root.joinpath(*parts).parent)
    root.joinpath(*parts).symlink_to(stranger.joinpath(*parts))
    clean_up(root, 30, keep=nobody(root))
    with suppress(OSError):
        remove_event_logs(directory(root), ["local-1"])
    remove_part(directory(root), directory(root) / logs / "events_1_local-1")
    remove_if_empty(directory(root))
    assert [file.exists() for file in files] == [True] * 3


def test_an_event_log_that_was_read_goes_and_nothing_else(tmp_path: Path) -> None:
    logs = directory(tmp_path) / EVENT_LOG_DIRECTORY
    old(logs / OWN_EVENT_LOGS / "my-id.zstd")
    other = old(logs / OWN_EVENT_LOGS / "users.txt")
    (logs / "True").symlink_to(tmp_path)
    remove_part(directory(tmp_path), old(logs / OWN_EVENT_LOGS / "eventlog_v2_my-id" / "events_1_my-id"))
    (logs / OWN_EVENT_LOGS / "eventlog_v2_my-id").rmdir()
    remove_event_logs(directory(tmp_path), ["my-id"])
    assert list(logs.rglob("*")) == [logs / OWN_EVENT_LOGS, other]
    other.unlink()
    remove_event_logs(directory(tmp_path))
    remove_if_empty(directory(tmp_path))
    remove_event_logs(directory(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("trap", ["link", "pipe"])
def test_the_marker_is_no_way_out_either(tmp_path: Path, trap: str) -> None:
    root, stranger = tmp_path / "lineage", old(tmp_path / "stranger")
    root.mkdir()
    marker = root / ".retention"
    marker.symlink_to(stranger) if trap == "link" else os.mkfifo(marker)
    with pytest.raises(OSError, match=r"Too many levels|no regular file"):
        clean_up(root, 30, keep=nobody(root))
    assert (stranger.read_text(), stranger.stat().st_mtime) == ("{}", 0)


def test_what_there_is_no_time_for_is_left_to_the_next(tmp_path: Path) -> None:
    for number in range(250):
        old(directory(tmp_path, number, run_id=str(number % 7)) / EVENTS_FILE)
    steps = [clean_up(tmp_path, 30, keep=nobody(tmp_path), is_over=lambda: True) for _ in range(4)]
    assert steps == [100, 100, 50, 0]
    assert [path.name for path in tmp_path.iterdir()] == [".retention"]


def test_damaged_position_is_the_beginning(tmp_path: Path) -> None:
    old(directory(tmp_path) / EVENTS_FILE)
    (tmp_path / ".retention").write_text("\0 not ours")
    os.utime(tmp_path / ".retention", (0, 0))
    assert clean_up(tmp_path, 30, keep=nobody(tmp_path)) == 1
