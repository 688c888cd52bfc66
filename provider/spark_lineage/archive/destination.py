"""The output of the archive job: unchanged until a run commits, and complete at every moment.

It may be on any of Hadoop's file systems: disks, HDFS, S3.

There is no lock. Each run writes a version of its own beside the output, and commits it only if the output is still
the one that it began with. Versions sort by time. The next run removes each version that is older than the output and
not named by it: a run that was killed or came too late left it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import msgspec

from spark_lineage.archive.rows import TABLES
from spark_lineage.launch.directory import ARCHIVE_POINTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = "events"
"""The name of what is beside the tables, as lines of JSON."""
_TIME = "%Y%m%dT%H%M%SZ"
_VERSION = re.compile(r"(.+)/version=(\d{8}T\d{6}Z-[0-9a-f]{6})(?:/day=(.+))?")
# Bookkeeping, which is no dataset of the task's lineage (M10).
PARTS, SOURCES, STAGING = (f"_spark_lineage/{folder}" for folder in ("parts", "sources", "staging"))
_ROOMS = (EVENTS, *TABLES, PARTS, SOURCES, STAGING)
# Here a file that is written over is replaced when it is closed, and a rename is a copy.
_OBJECT_STORES = frozenset({"s3", "s3a", "s3n", "gs", "oss", "cosn", "obs", "tos", "bos", "swift", "wasb", "wasbs"})
_LOCAL = "file"
# What Spark reads as a glob where it reads a path.
_GLOB = re.compile(r"[\[\]{}*?\\]")
# The arguments of Java's methods have no names.
_OVERWRITE, _RECURSIVE = True, True


class ArchiveError(ValueError):
    """Something cannot be read, merged or written; the text says what, where, and what to do."""


class Current(msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag=1):
    """What is the output now.

    :param version: of the run that wrote the pointer; empty where nothing has been committed yet
    :param days: the version of each day's events and tables; a day without a task run is not in it
    :param settings: the rules by which the job merged
    :param parts: the versions of parts that the next run still reads
    """

    version: str
    days: dict[str, str] = {}
    settings: dict[str, Any] = {}
    parts: list[str] = []


def encode(current: Current) -> bytes:
    """Return the content of the file."""
    return msgspec.json.format(msgspec.json.encode(current, order="deterministic"), indent=2) + b"\n"


def decode(content: bytes, place: str) -> Current:
    """Return what the content of the file says; raises ``ArchiveError`` for another content."""
    try:
        return msgspec.json.decode(content, type=Current)
    except msgspec.DecodeError as error:
        raise ArchiveError(
            f"{place} is no {ARCHIVE_POINTER} of an archive that this version knows ({error}): is this the right "
            "directory?"
        ) from error


def event_directories(current: Current, first_day: str = "") -> Iterator[str]:
    """Return the directories of the events from a day on, relative to the output, in the order of their days.

    The last day is always among them: so an output without news differs from one without events.
    """
    for day in sorted(current.days):
        if day >= min(first_day, max(current.days)):
            yield f"{EVENTS}/version={current.days[day]}/day={day}"


def located(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The file system of Hadoop that a path or URI is of, and its whole URI there, both as objects of the JVM."""
    context: Any = spark.sparkContext
    name = context._jvm.org.apache.hadoop.fs.Path(path)  # noqa: SLF001
    system = name.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
    return system, system.makeQualified(name)


def reason(error: Exception) -> str:
    """Return why Spark or Hadoop has failed, without Java's stack."""
    return str(getattr(error, "java_exception", error)).partition("\n")[0]


@contextmanager
def reported(what: str, place: str) -> Iterator[None]:
    """Raise ``ArchiveError`` for whatever fails."""
    try:
        yield
    except ArchiveError:
        raise
    except Exception as error:
        raise ArchiveError(f"cannot {what} {place}: {reason(error)}") from None


class Destination:
    """The directory that the job writes to; every method raises ``ArchiveError`` for what fails.

    :param path: a path or URI of any file system that Spark writes to; it need not be there yet
    :raises ArchiveError: for what is no such path
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        if _GLOB.search(path):
            raise ArchiveError(f"{path} has one of []{{}}*?\\ in it, which Spark takes for a pattern")
        self.spark = spark
        self._context = context = cast("Any", spark.sparkContext)
        self._jvm = context._jvm  # noqa: SLF001
        self._hadoop = self._jvm.org.apache.hadoop.fs
        with reported("use", path):
            system, root = located(spark, path)
            self._scheme: str = system.getScheme()
            self.root: str = root.toString().rstrip("/")
        # A local file and its checksum cannot be replaced at once.
        self._system: Any = system.getRawFileSystem() if self._scheme == _LOCAL else system
        self.current: Current | None = None
        """What is the output now; None where nothing was ever committed."""
        self._content = self.read(ARCHIVE_POINTER)
        if self._content is not None:
            now = decode(self._content, self.child(ARCHIVE_POINTER))
            self.current = now if now.version else None

    def begin(self) -> str:
        """Remove unused versions, and return the version that this run is to write.

        :raises ArchiveError: for a directory with anything else in it
        """
        if self._content is None:
            if strange := [name for name in self.find("*") if not name.startswith((".", ARCHIVE_POINTER))]:
                raise ArchiveError(
                    f"{self.root} has {strange[0]} in it, and no {ARCHIVE_POINTER}: give a new or empty directory"
                )
            # What is found from now on beside this file is ours.
            self._content = encode(Current(version=""))
            self.replace(ARCHIVE_POINTER, self._content)
        now = datetime.now(UTC)
        if (current := self.current) is not None:
            self._sweep(current)
            # Versions sort by time, also where the clock went back.
            last = datetime.strptime(current.version.partition("-")[0], _TIME).replace(tzinfo=UTC)
            now = max(now, last + timedelta(seconds=1))
        return f"{now.strftime(_TIME)}-{secrets.token_hex(3)}"

    def commit(self, current: Current) -> None:
        """Make what was written the output, atomically; raises ``ArchiveError`` if another run has, too."""
        if self.read(ARCHIVE_POINTER) != self._content:
            raise ArchiveError(f"another run has replaced {self.child(ARCHIVE_POINTER)}: run this one again")
        self._content, self.current = encode(current), current
        self.replace(ARCHIVE_POINTER, self._content)

    def end(self, version: str) -> None:
        """Remove what a run needs no longer: all that it has written, if it has not committed."""
        # What cannot be removed now is removed by the next run. A commit that raised may have succeeded.
        with suppress(ArchiveError):
            now = Destination(self.spark, self.root).current
            named = {now.version, *now.days.values(), *now.parts} if now is not None else set()
            for folder in (STAGING,) if version in named else _ROOMS:
                self.delete(f"{folder}/version={version}")

    def _sweep(self, current: Current) -> None:
        """Remove what the output has replaced, or was written before it and never committed."""
        kept = {PARTS: set(current.parts), SOURCES: {current.version}, STAGING: set[str]()}
        globs = ("_spark_lineage/*/version=*", "*/version=*", "*/version=*/day=*")
        for name in (name for glob in globs for name in self.find(glob)):
            if (found := _VERSION.fullmatch(name)) is None or found[1] not in _ROOMS or found[2] >= current.version:
                continue
            named = kept.get(found[1], current.days.values()) if found[3] is None else {current.days.get(found[3])}
            if found[2] not in named:
                self.delete(name)

    def child(self, *names: str) -> str:
        """Return the URI of what is in the directory; of the directory itself without names."""
        return "/".join((self.root, *names))

    def find(self, glob: str) -> list[str]:
        """Return the names that match, relative to the directory, sorted; none where the directory is not there."""
        with reported("list", self.child(glob)):
            statuses = self._system.globStatus(self._path(glob))
            if statuses is None:
                return []
            paths = self._hadoop.FileUtil.stat2Paths(statuses)
            # One call of the JVM, however many there are. No name of ours has a line end in it.
            text: str = self._jvm.scala.Predef.genericWrapArray(paths).mkString("\n")
        return [path.removeprefix(f"{self.root}/") for path in text.split("\n") if path]

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None where there is none."""
        with reported("read", self.child(name)):
            if not self._system.exists(self._path(name)):
                return None
            with closing(self._system.open(self._path(name))) as stream:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))

    def replace(self, name: str, content: bytes) -> None:
        """Replace the content atomically: a reader finds the old or the new one, also after a crash."""
        draft = name if self._scheme in _OBJECT_STORES else f"{name}.{secrets.token_hex(3)}"
        with reported("write", self.child(name)):
            with closing(self._system.create(self._path(draft), _OVERWRITE)) as stream:
                stream.write(bytearray(content))
                if draft != name:
                    stream.hsync()
            if self._scheme == _LOCAL:
                # rename(2), where Hadoop's FileContext would remove the old file first.
                if not self._system.rename(self._path(draft), self._path(name)):
                    raise ArchiveError(f"cannot replace {self.child(name)}: may this user write there?")
            elif draft != name:
                conf = self._context._jsc.hadoopConfiguration()  # noqa: SLF001
                options = self._context._gateway.new_array(self._hadoop.Options.Rename, 1)  # noqa: SLF001
                options[0] = self._hadoop.Options.Rename.OVERWRITE
                context = self._hadoop.FileContext.getFileContext(self._system.getUri(), conf)
                context.rename(self._path(draft), self._path(name), options)

    def delete(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it; nothing happens where there is none."""
        with reported("remove", self.child(name)):
            self._system.delete(self._path(name), _RECURSIVE)

    def _path(self, name: str) -> Any:
        return self._hadoop.Path(self.child(name))
