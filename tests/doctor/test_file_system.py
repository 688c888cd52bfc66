"""The type of file system that a path is on, from a table of mounts."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from spark_lineage.doctor.directories import file_system_of, is_network


def test_the_file_system_of_a_directory() -> None:
    assert file_system_of(Path("/proc/self")) == "proc"


def test_it_is_that_of_the_innermost_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    mounts = tmp_path / "self" / "mounts"
    mounts.parent.mkdir()
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nhost:/x {tmp_path.parent} nfs4 rw 0 0\ns3fs {tmp_path}/a\\040b fuse.s3fs rw 0 0\n"
    )
    (tmp_path / "a b").mkdir()
    assert file_system_of(tmp_path / "new") == "nfs4"
    assert file_system_of(tmp_path / "a b" / "new") == "fuse.s3fs"
    assert file_system_of(Path("/")) == "ext4"
    mounts.unlink()
    assert file_system_of(tmp_path) == ""


@pytest.mark.parametrize(
    ("file_system", "expected"), [("ext4", False), ("overlay", False), ("", False), ("nfs4", True), ("fuse.s3fs", True)]
)
def test_what_other_machines_may_write_to(file_system: str, expected: bool) -> None:
    assert is_network(file_system) == expected
