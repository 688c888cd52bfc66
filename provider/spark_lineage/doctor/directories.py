"""Whether the directories of lineage and of the outbox can be written, have room, and lie where writing is safe."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.spool import MAX_BYTES
from spark_lineage.doctor.setup import Finding, Setup, ok, problem, warning
from spark_lineage.launch.directory import check_root, without_scheme
from spark_lineage.launch.log import error_line
from spark_lineage.settings.places import lineage_directory, outbox_directory
from spark_lineage.submission.stored_event_log import open_file_system

# A file that is appended to is written anew there, or not at all.
_OBJECT_STORES = ("s3", "gcs", "goofys", "blobfuse", "rclone", "juicefs", "oss")
_NETWORK = ("nfs", "cifs", "smb", "fuse", "9p", "afs", "beegfs", "ceph", "glusterfs", "lustre", "gpfs", "virtiofs")
_PROBLEM_BYTES, _WARNING_BYTES = 50_000_000, 1_000_000_000
_DAY_SECONDS = 24 * 60 * 60
_NEARLY_FULL = 0.8


def check_lineage_directory(setup: Setup) -> Iterator[Finding]:
    """Look whether drivers can write their lineage there, and tasks read it."""
    if not setup.settings.lineage_enabled:
        yield warning("lineage_enabled is off: no lineage is collected", "remove the setting, unless you want that")
    try:
        path = check_root(lineage_directory(setup.settings))
    except ValueError as error:
        yield problem(str(error), "correct lineage_dir")
        return
    yield from _free_space(path, "lineage_dir", "drivers cannot write their lineage")
    kind = file_system_of(path)
    # Else a driver elsewhere writes nothing there.
    is_cluster, is_shared = setup.deploy_mode == "cluster", bool(setup.settings.lineage_dir)
    is_shared |= setup.settings.event_log_from == "directory"
    if kind.startswith("fuse") and any(name in kind for name in _OBJECT_STORES):
        yield warning(
            f"{path} is a bucket ({kind}): a driver that is killed loses what it had appended",
            "use a local disk or NFS for lineage_dir",
        )
    elif is_cluster and is_shared and not setup.master.startswith("local") and not is_network(kind):
        # Only a standalone cluster can be this one host, with its directories.
        bad = warning if setup.master.startswith("spark:") else problem
        yield bad(
            f"in deploy mode cluster the driver runs elsewhere, and {path} is on a local disk ({kind})",
            "set lineage_dir to a directory that the hosts of worker and driver both mount under the same path, or "
            "remove it: then the listener's events are read from the driver's log",
        )
    elif not is_cluster and is_network(kind):
        yield warning(
            f"{path} is on a network file system ({kind}): when that hangs, the driver hangs with it",
            "use a local disk in deploy mode client",
        )


def check_records(setup: Setup) -> Iterator[Finding]:
    """Look whether the last ends of tasks can be kept where ``records_dir`` says, and read there."""
    place = without_scheme(setup.settings.records_dir)
    if "://" not in place:
        yield from _free_space(Path(place), "records_dir", "a START names no datasets") if place else ()
        return
    name = f"doctor-{uuid.uuid4()}"
    try:
        store, root = open_file_system(place, ())
        store.pipe_file(f"{root}/{name}", b"doctor")
        store.cat_file(f"{root}/{name}")
        store.rm_file(f"{root}/{name}")
    except Exception as error:
        remedy = "correct records_dir, or let the connection that is its user write there"
        yield problem(f"records_dir cannot be used: {error_line(error)}", remedy)
    else:
        yield ok("records_dir can be written and read")


def check_outbox(setup: Setup) -> Iterator[Finding]:
    """Look whether events can wait there until a backend takes them, and which do."""
    try:
        path = outbox_directory(setup.settings.outbox_dir)
    except ValueError as error:
        yield problem(str(error), "give an absolute path")
        return
    yield from _free_space(path, "outbox_dir", "events that a backend does not take at once are lost")
    if is_network(kind := file_system_of(path)):
        yield warning(
            f"{path} is on a network file system ({kind}): when that hangs, events are sent without being kept",
            "set outbox_dir to a local disk",
        )
    if path.is_dir():
        yield from _contents(path)
    for other in Outbox(path).others():
        if not os.access(other, os.R_OK | os.X_OK):
            text = f"{other}, where the events of the user {other.name} wait, cannot be read by this user"
            yield warning(text, "run the doctor as that user, too (run_as_user)")
        else:
            yield from _contents(other)


def _free_space(path: Path, setting: str, consequence: str) -> Iterator[Finding]:
    """Write to a directory as durably as lineage is, leave nothing, and look at what room there is."""
    there = next(each for each in (path, *path.parents) if each.exists())
    try:
        _write(there)
    except OSError as error:
        cause = error.strerror or type(error).__name__
        yield problem(
            f"{path} cannot be written ({cause}): {consequence}",
            f"let the user that runs tasks (uid {os.geteuid()}) write there, or set {setting} to another directory",
        )
        return
    free_bytes = shutil.disk_usage(there).free
    free = f"{free_bytes / 1e9:,.2f} GB free"
    if free_bytes < _WARNING_BYTES:
        bad = problem if free_bytes < _PROBLEM_BYTES else warning
        yield bad(f"only {free} where {path} is: {consequence}", f"make room, or set {setting} to another disk")
    mode = path.stat().st_mode if path.exists() else 0
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield warning(
            f"every user can write to {path}, and remove or replace what is there", f"chmod o-w {path}, or chmod +t"
        )
    is_there = "" if path.exists() else ", not there yet, and can be made"
    yield ok(f"{path} can be written ({file_system_of(path) or 'unknown file system'}, {free}{is_there})")


def _write(there: Path) -> None:
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{there} is not a directory")
    with tempfile.NamedTemporaryFile(prefix=".spark-lineage-doctor-", dir=there) as file:
        file.write(b"{}\n")
        file.flush()
        os.fsync(file.fileno())


def _contents(path: Path) -> Iterator[Finding]:
    for one in Outbox(path).destinations():
        if one.waiting:
            since = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(one.oldest_at))
            answer = f"; it said: {one.answer}" if one.answer else ""
            text = f"{one.waiting} events wait for {one.destination}, the oldest since {since}{answer}"
            # The next task sends the events of today.
            is_late = one.answer or time.time() - one.oldest_at > _DAY_SECONDS
            yield warning(text, "fix the backend, then run spark-lineage outbox flush") if is_late else ok(text)
        if one.dead:
            yield warning(
                f"{one.destination} has refused {one.dead} events",
                "spark-lineage outbox list --dead shows why; outbox retry sends them again, outbox drop removes them",
            )
        if one.bytes > MAX_BYTES * _NEARLY_FULL:
            bad = problem if one.bytes >= MAX_BYTES else warning
            yield bad(
                f"it holds {one.bytes / 1e6:,.1f} of {MAX_BYTES / 1e6:,.1f} MB for {one.destination}",
                "fix the backend, then run spark-lineage outbox flush",
            )


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
