"""Directories are private, and cannot be escaped from."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.launch.directory import (
    check_root,
    create_private,
    launch_directory,
    path_segment,
    replace_private,
)

RUN = "01890a5d-ac96-7dde-8a63-0123456789ab"


def directory(root: Path, **ids: str) -> Path:
    defaults = {"dag_id": "dag", "run_id": "manual__2026-01-01T00:00:00+00:00", "task_id": "task"}
    return launch_directory(root, **(defaults | ids), map_index=-1, try_number=1, application_run_id=RUN)


@given(st.text(max_size=300))
def test_no_name_escapes(name: str) -> None:
    segment = path_segment(name)
    assert segment not in ("", ".", "..")
    assert "/" not in segment
    assert segment.isascii()
    assert len(segment) <= 200


@given(st.text(max_size=300), st.text(max_size=300))
def test_different_names_stay_different(left: str, right: str) -> None:
    assert (path_segment(left) == path_segment(right)) == (left == right)


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


def test_a_file_is_replaced_and_not_what_a_link_of_another_user_leads_to(tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.write_text("mine")
    file = tmp_path / "launch.json"
    (tmp_path / f".launch.json.{os.getpid()}").symlink_to(stranger)
    file.symlink_to(stranger)
    replace_private(file, b"{}")
    assert (stranger.read_text(), file.read_text(), file.is_symlink()) == ("mine", "{}", False)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "root", ["s3://bucket/lineage", "hdfs://nn/lineage", "file:///lineage", "lineage", "./x", "~/x"]
)
def test_a_root_that_the_listener_cannot_write_to(root: str) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        check_root(root)


def test_an_absolute_root(tmp_path: Path) -> None:
    assert check_root(str(tmp_path)) == tmp_path
