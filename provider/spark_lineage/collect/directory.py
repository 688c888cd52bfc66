"""The directories that lineage files are written to: private, one for each launch, and cleaned up when old."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

EVENTS_FILE = "openlineage-events.ndjson"
# What a worker that was killed leaves of what it was to remove.
PRIVATE_FILE = "spark.properties"
LISTENER_FILE = "openlineage.json"
EVENT_LOG_DIRECTORY = "event-log"
DECLARE_ARCHIVE = "spark_lineage_declare.zip"
LAUNCH_FILE = "launch.json"
TRANSITIONS_FILE = "status-transitions.jsonl"
# Not .ndjson, as the files that are merged are: it holds what came out.
RUN_EVENTS_FILE = "run-events.jsonl"
CLAIM_PREFIX = "claimed-"
LAST_ENDS_DIRECTORY = ".last-ends"
# As `spark_lineage.declare` names its files.
_DECLARED_FILES = "declared-*.ndjson"
_FILES = (EVENTS_FILE, PRIVATE_FILE, LISTENER_FILE, DECLARE_ARCHIVE, LAUNCH_FILE, TRANSITIONS_FILE, RUN_EVENTS_FILE)
# try_number-application_run_id
_LAUNCHES = "[0-9]*-????????-????-????-????-????????????"
_MARKER = ".retention"
_ATTEMPTS = 5
_DAY_SECONDS = 24 * 60 * 60
_CLEANUP_INTERVAL_SECONDS = 60 * 60
# Most file systems allow 255 bytes a name.
_NAME_BYTES = 200


def launch_directory(
    root: Path, *, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int, application_run_id: str
) -> Path:
    """Give the directory of one launch: ``root/dag/run/task/map_index/try-application_run_id``.

    The application's run id makes it private to the launch: a DAG run that is tested twice has one try number.
    """
    names = (dag_id, run_id, task_id, str(map_index), f"{try_number}-{application_run_id}")
    return root.joinpath(*(encoded(name) for name in names))


def root_of(directory: Path) -> Path:
    """Give the root that a directory of ``launch_directory`` lies in."""
    return directory.parents[4]


def encoded(name: str) -> str:
    """Give a name that is one path segment, whatever it holds, and different for different names."""
    segment = quote(name, safe="")
    if not segment.strip("."):
        segment = segment.replace(".", "%2E") or "%"
    if len(segment) > _NAME_BYTES:
        digest = hashlib.sha256(name.encode()).hexdigest()[:32]
        segment = f"{segment[: _NAME_BYTES - 33]}-{digest}"
    return segment


def create_private(directory: Path) -> None:
    """Make a directory and its missing parents, for their owner alone (0700).

    :raises OSError: when that cannot be done
    """
    for attempt in range(_ATTEMPTS):
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        try:
            for path in reversed(missing):
                path.mkdir(mode=0o700, exist_ok=True)
        except FileNotFoundError:
            # Another task has just removed a parent that it had left empty.
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def replace_private(file: Path, content: bytes) -> None:
    """Write a file for its owner alone (0600) in the place of the one before, whole or not at all.

    :raises OSError: when it cannot be written
    """
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.touch(mode=0o600)
        partial.write_bytes(content)
        partial.replace(file)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def clean_up(root: Path, retention_days: float, *, keep: Path) -> int:
    """Remove lineage files that nothing was added to for ``retention_days``, at most once an hour.

    Only files of our own name at the depth where we put them are removed, and only empty directories; ``keep`` stays.

    :return: the number of files removed
    :raises OSError: when something cannot be removed
    """
    marker = root / _MARKER
    now = time.time()
    if marker.exists() and now - marker.stat().st_mtime < _CLEANUP_INTERVAL_SECONDS:
        return 0
    marker.touch(mode=0o600)
    oldest = now - retention_days * _DAY_SECONDS
    removed = 0
    for file in (root / LAST_ENDS_DIRECTORY).glob("*.json"):
        with suppress(FileNotFoundError):
            if file.stat().st_mtime < oldest:
                file.unlink()
                removed += 1
    for directory in root.glob(f"*/*/*/*/{_LAUNCHES}"):
        # Another task may be cleaning up too.
        with suppress(FileNotFoundError):
            patterns = (*_FILES, _DECLARED_FILES, f"{CLAIM_PREFIX}*", f"{EVENT_LOG_DIRECTORY}/*")
            ours = [file for pattern in patterns for file in directory.glob(pattern) if file.is_file()]
            last_touched = max(path.stat().st_mtime for path in (ours or [directory]))
            if directory != keep and last_touched < oldest:
                for file in ours:
                    file.unlink()
                removed += len(ours)
                remove_empty(directory / EVENT_LOG_DIRECTORY, directory)
                remove_empty(directory, root)
    return removed


def remove_empty(directory: Path, root: Path) -> None:
    """Remove a directory, and those above it up to ``root``, as far as they are empty."""
    while directory != root:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent


def check_root(root: str) -> Path:
    """Give the lineage directory as a path.

    :raises ValueError: for what the listener's file transport cannot write to
    """
    if "://" in root:
        message = (
            f"lineage_dir {root!r} is a URL, but the listener's file transport writes local paths only: "
            "give an absolute path that worker and driver share"
        )
        raise ValueError(message)
    if not Path(root).is_absolute():
        message = f"lineage_dir {root!r} is not an absolute path: worker and driver would look in different places"
        raise ValueError(message)
    return Path(root)
