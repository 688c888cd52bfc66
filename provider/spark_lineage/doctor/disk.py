"""Whether a directory can be written to, has room, and lies where writing is safe; what is tried leaves nothing."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spark_lineage.doctor.finding import Finding, problem, warning

_MOUNTS = Path("/proc/self/mounts")
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "9p", "afs", "beegfs", "gpfs")
# A file that is appended to is written anew, or not at all.
_OBJECT_STORES = ("s3", "gcs", "goofys", "blobfuse", "rclone", "juicefs", "oss")
_PROBLEM_BYTES, _WARNING_BYTES = 50_000_000, 1_000_000_000


@dataclass(frozen=True)
class Disk:
    """The file system that a path is on, or is going to be on."""

    free_bytes: int
    kind: str
    """As the kernel calls it (``ext4``, ``nfs4``, ``fuse.s3fs``); empty where it does not tell."""
    has_inodes: bool

    @property
    def is_network(self) -> bool:
        """Whether other machines may write there too."""
        return self.kind in _NETWORK or self.is_object_store

    @property
    def is_object_store(self) -> bool:
        """Whether it is a bucket that looks like a directory."""
        return self.kind.startswith("fuse") and any(name in self.kind for name in _OBJECT_STORES)


def disk_of(path: Path) -> Disk:
    """Look at the file system of a path, of its nearest parent where it is not there yet.

    :raises OSError: when that cannot be told
    """
    there = _existing(path)
    status = os.statvfs(there)
    return Disk(status.f_bavail * status.f_frsize, _kind(there), status.f_files == 0 or status.f_favail > 0)


def check_room(path: Path, setting: str, consequence: str) -> Iterator[Finding]:
    """Write to a directory, and look at what is left there.

    :param setting: that names the directory
    :param consequence: what follows where it cannot be written
    """
    there = _existing(path)
    try:
        _write(there)
    except OSError as error:
        cause = error.strerror or type(error).__name__
        yield problem(
            f"{path} cannot be written ({cause}): {consequence}",
            f"let the user that runs tasks ({_user()}) write there, or set {setting} to another directory",
        )
        return
    disk = disk_of(path)
    free = f"{disk.free_bytes / 1e6:,.0f} MB"
    if disk.free_bytes < _PROBLEM_BYTES or not disk.has_inodes:
        what = f"{free} are free" if disk.has_inodes else "no more files can be made"
        yield problem(f"{what} where {path} is: {consequence}", f"make room, or set {setting} to another disk")
    elif disk.free_bytes < _WARNING_BYTES:
        yield warning(f"only {free} are free where {path} is", f"make room, or set {setting} to another disk")
    mode = path.stat().st_mode if path.exists() else 0
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield warning(
            f"every user can write to {path}, and remove or replace what is there", f"chmod o-w {path}, or chmod +t"
        )


def _existing(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.exists())


def _write(there: Path) -> None:
    """Write a file as durably as lineage is, and take it away."""
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{there} is no directory")
    with (
        tempfile.TemporaryDirectory(prefix=".spark-lineage-doctor-", dir=there) as directory,
        (Path(directory) / "file").open("wb") as file,
    ):
        file.write(b"{}\n")
        file.flush()
        os.fsync(file.fileno())


def _kind(path: Path) -> str:
    """Return the type of the mount that a path is in, the latest of those at one place."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    real, best, kind = str(path.resolve()), -1, ""
    for line in lines:
        _, place, found, *_ = line.split(" ")
        place = place.replace("\\040", " ")
        is_in = real == place or real.startswith(place.rstrip("/") + "/")
        if is_in and len(place) >= best:
            best, kind = len(place), found
    return kind


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())
