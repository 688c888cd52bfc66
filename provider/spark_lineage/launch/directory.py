"""The directories that lineage files are written to: private, and one for each launch.

Functions that make, read or write a file raise ``OSError``. The program of a task may write there, too: a
pipe or a link in the place of a file is neither waited for nor followed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote, urlsplit

from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.lock import append_whole

EVENTS_FILE = "openlineage-events.ndjson"
# The file of declarations, beside the log of a container of YARN.
DECLARED_FILE = "declared.ndjson"
# YARN replaces this placeholder by the log directory, in the options of a container's JVM.
LOG_DIRECTORY = "<LOG_DIR>"
# A worker that is killed leaves this file.
PRIVATE_FILE = "spark.properties"
EVENT_LOG_DIRECTORY = "event-log"
# The directory of our logs in it, and our value of spark.eventLog.enabled, which Spark reads in any case.
OWN_EVENT_LOGS = "tRuE"
DECLARE_ARCHIVE = "spark_lineage_declare.zip"
LAUNCH_FILE = "launch.json"
TRANSITIONS_FILE = "status-transitions.jsonl"
# The merged events; the ending is not .ndjson, which files to be merged have.
RUN_EVENTS_FILE = "run-events.jsonl"
# The pointer to the current version of each day of an archive; it is replaced in one step.
ARCHIVE_POINTER = "_current.json"
# The prefix of the directory of a rolling log.
ROLLING = "eventlog_v2_"
CLAIM_PREFIX = "claimed-"
LAST_ENDS_DIRECTORY = ".last-ends"
APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_ATTEMPTS = 5
# The limit of a small file; launches and lists of transitions are far smaller.
_MOST_BYTES = 64 * 1024 * 1024
# The least size of a hole in a file.
_PAGE_BYTES = 4096
# The disk space that copies of event logs leave free for others.
FREE_BYTES = 256 * 1024 * 1024
# Object stores, whose URLs have no user otherwise (``ObjectStoragePath``).
_WITH_CONNECTION = frozenset({"s3", "s3a", "s3n", "gs", "dbfs"})
# The end of the URL of event logs that Databricks delivers, of any cluster.
DELIVERED = "/*/eventlog"
# Ends the URL of the event log that EMR Serverless delivers; the id of the job run replaces the star.
DELIVERED_JOB = "/*/sparklogs"
# A colon may also stand before a port, and an @ after a container: abfss://CONTAINER@ACCOUNT….
_PASSWORD = re.compile(r"(?<=://)[^/@]*:(?!\d+(?:/|\Z))[^@]*@")
# Most file systems allow 255 bytes a name.
_NAME_BYTES = 200


def launch_directory(
    root: Path, *, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int, application_run_id: str
) -> Path:
    """Return the directory of one launch: ``root/dag/run/task/map_index/try-application_run_id``.

    The application's run id makes it private to the launch: a DAG run that is tested twice has one try number.
    """
    names = (dag_id, run_id, task_id, str(map_index), f"{try_number}-{application_run_id}")
    return root.joinpath(*(path_segment(name) for name in names))


def root_of(directory: Path) -> Path:
    """Return the root that a directory of ``launch_directory`` lies in."""
    return directory.parents[4]


def path_segment(name: str) -> str:
    """Return a name that is one path segment, whatever it holds, and different for different names."""
    segment = quote(name, safe="")
    if not segment.strip("."):
        segment = segment.replace(".", "%2E") or "%"
    if len(segment) > _NAME_BYTES:
        digest = hashlib.sha256(name.encode()).hexdigest()[:32]
        segment = f"{segment[: _NAME_BYTES - 33]}-{digest}"
    return segment


@LINEAGE_FILES.bounded
def create_private(directory: Path) -> None:
    """Make a directory and its missing parents, for their owner alone (0700)."""
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


@LINEAGE_FILES.bounded
def replace_private(file: Path, content: bytes) -> None:
    """Write a file for its owner alone (0600) in the place of the one before, whole or not at all."""
    replace_file(file, content, 0o600)


def replace_file(file: Path, content: bytes, mode: int) -> None:
    """Write a file in the place of the one before, whole or not at all, however long that takes.

    :param mode: of which the umask takes its part
    """
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    try:
        write_new(partial, content, mode)
        partial.replace(file)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_new(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file that is not there yet, never through a link that another user has laid there."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)


class NoRegularFileError(OSError):
    """A pipe, a device, a directory or a link stands where a file is expected."""

    def __init__(self, file: Path | str) -> None:
        super().__init__(errno.EINVAL, "this is no regular file", str(file))


def open_regular(file: Path, flags: int = os.O_RDONLY) -> int:
    """Return the descriptor of a file, and never wait for it.

    :param flags: of ``os.open``
    :raises NoRegularFileError: for a pipe, a device, a directory, and a link, wherever it leads
    """
    try:
        descriptor = os.open(file, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NoRegularFileError(file) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NoRegularFileError(file)
    return descriptor


def open_to_read(file: Path, *, buffering: int = -1) -> BinaryIO:
    """Open a file as ``open_regular`` does."""
    return os.fdopen(open_regular(file), "rb", buffering)


def read_small(file: Path) -> bytes:
    """Return what is in a file, which ``open_regular`` opens.

    :raises OSError: for one of more than 64 MiB, too
    """
    with open_to_read(file) as stream:
        content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "this is too big", str(file))
    return content


def is_hole(chunk: bytes) -> bool:
    """Whether a chunk of a file holds nothing but zeros, as where nothing was written: no text follows them."""
    return len(chunk) >= _PAGE_BYTES and not chunk.strip(b"\0")


def append_private(file: Path, pieces: Iterable[bytes]) -> None:
    """Append to a file for its owner alone (0600), which is made with its directory when the first piece comes.

    Of a piece that cannot be written, also because the disk is nearly full, nothing stays.
    """
    for piece in pieces:
        create_private(file.parent)
        check_free_space(file.parent, len(piece))
        descriptor = open_regular(file, APPENDING)
        with os.fdopen(descriptor, "ab"):
            append_whole(descriptor, piece)


def check_free_space(directory: Path, size: int = 0) -> None:
    """Check that a disk has room for so many bytes more.

    :raises OSError: when it is nearly full
    """
    if shutil.disk_usage(directory).free < FREE_BYTES + size:
        raise OSError(f"the disk of {directory} is nearly full")


def check_root(root: str) -> Path:
    """Return the lineage directory as a path.

    :raises ValueError: for what the listener's file transport cannot write to
    """
    if "://" in root:
        raise ValueError(
            f"lineage_dir {root!r} is a URL, but the listener's file transport writes local paths only: "
            "give an absolute path that worker and driver share"
        )
    if not Path(root).is_absolute():
        raise ValueError(
            f"lineage_dir {root!r} is not an absolute path: worker and driver would look in different places"
        )
    return Path(root)


def local_directory(given: str) -> str | None:
    """Return the path that a ``spark.eventLog.dir`` names, None for one of another file system, or a relative one."""
    parts = urlsplit(given.strip())
    path = unquote(parts.path) if parts.scheme else given.strip()
    return path if parts.scheme in {"", "file"} and path.startswith("/") else None


def remote_directory(given: str) -> str | None:
    """Return the URL of a ``spark.eventLog.dir`` on another file system, without a login; None for any other."""
    url = given.strip().partition("?")[0].rstrip("/")
    is_remote = "://" in url and not url.startswith("file:") and "${" not in url
    return _PASSWORD.sub("", url) if is_remote else None


def split_connection(url: str) -> tuple[str, str]:
    """Return a URL as Spark takes it, and its user: the Airflow connection to read it with, empty for none.

    Others have no connection: the user of ``hdfs`` is Hadoop's own, and that of ``abfs`` is the container.
    """
    scheme, separator, rest = url.partition("://")
    user, at, place = rest.partition("@")
    has_connection = bool(at) and scheme in _WITH_CONNECTION and "/" not in user
    return (f"{scheme}{separator}{place}", user) if has_connection else (url, "")


def without_scheme(location: str) -> str:
    """Return a local file as spark-submit takes it, a path or a ``file:`` URL, as a path; others as they are."""
    return location.strip().removeprefix("file://").removeprefix("file:")
