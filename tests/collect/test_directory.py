"""Directories are private, cannot be escaped from, and are cleaned up without touching anything else."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.collect.directory import (
    EVENT_LOG_DIRECTORY,
    EVENTS_FILE,
    RUN_EVENTS_FILE,
    check_root,
    clean_up,
    create_private,
    encoded,
    launch_directory,
)

RUN = "01890a5d-ac96-7dde-8a63-0123456789ab"


def directory(root: Path, **ids: str) -> Path:
    defaults = {"dag_id": "dag", "run_id": "manual__2026-01-01T00:00:00+00:00", "task_id": "task"}
    return launch_directory(root, **(defaults | ids), map_index=-1, try_number=1, application_run_id=RUN)


@given(st.text(max_size=300))
def test_no_name_escapes(name: str) -> None:
    segment = encoded(name)
    assert segment not in ("", ".", "..")
    assert "/" not in segment
    assert segment.isascii()
    assert len(segment) <= 200


@given(st.text(max_size=300), st.text(max_size=300))
def test_different_names_stay_different(left: str, right: str) -> None:
    assert (encoded(left) == encoded(right)) == (left == right)


@pytest.mark.parametrize("name", ["..", ".", "", "../../etc", "/etc", "a/../b", "a\0b", "x" * 400, "é" * 300])
def test_a_launch_stays_below_its_root(tmp_path: Path, name: str) -> None:
    path = directory(tmp_path, dag_id=name, run_id=name, task_id=name)
    assert path.resolve().is_relative_to(tmp_path.resolve())
    assert len(path.relative_to(tmp_path).parts) == 5
    create_private(path)
    assert path.is_dir()


def test_directories_are_for_their_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        path = directory(tmp_path / "new")
        create_private(path)
    finally:
        os.umask(old)
    for made in (path, *path.parents[:5]):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    create_private(path)


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
    done, running, kept = (directory(tmp_path, dag_id=name) for name in ("done", "running", "kept"))
    for path in (done, running, kept):
        logs = path / EVENT_LOG_DIRECTORY
        create_private(logs)
        for file in (path / EVENTS_FILE, logs / "local-1", logs / "local-2.zstd.inprogress"):
            file.write_text("{}")
            os.utime(file, (0, 0))
    os.utime(running / EVENT_LOG_DIRECTORY / "local-2.zstd.inprogress")
    assert clean_up(tmp_path, 30, keep=kept) == 3
    assert not (tmp_path / "done").exists()
    for path in (running, kept):
        assert len(list(path.rglob("*"))) == 4


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


@pytest.mark.parametrize(
    "root", ["s3://bucket/lineage", "hdfs://nn/lineage", "file:///lineage", "lineage", "./x", "~/x"]
)
def test_a_root_that_the_listener_cannot_write_to(root: str) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        check_root(root)


def test_an_absolute_root(tmp_path: Path) -> None:
    assert check_root(str(tmp_path)) == tmp_path
