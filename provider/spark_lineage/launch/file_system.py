"""Which type of file system a path is on, and whether other machines may write there too."""

from __future__ import annotations

from pathlib import Path

import psutil

_NETWORK = ("nfs", "cifs", "smb", "fuse", "9p", "afs", "beegfs", "ceph", "glusterfs", "lustre", "gpfs", "virtiofs")


def file_system_of(path: Path) -> str:
    """Return the type of the file system that a path is on (``ext4``, ``fuse.s3fs``), empty where that is not known."""
    real = path.resolve()
    try:
        mounts = {Path(each.mountpoint): each.fstype for each in psutil.disk_partitions(all=True)}
    except OSError:
        return ""
    return next((mounts[place] for place in (real, *real.parents) if place in mounts), "")


def is_network(file_system: str) -> bool:
    """Whether a type of file system is one of another machine, as every FUSE may be."""
    return file_system.lower().startswith(_NETWORK)
