"""An output of the archive job: old until a run commits, new from then on, and whole at every moment."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self

from spark_lineage.archive import lock, pointer
from spark_lineage.archive.columns import EVENTS, TABLES
from spark_lineage.archive.file_system import FileSystem
from spark_lineage.archive.lock import Lock
from spark_lineage.archive.pointer import Current, DestinationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PARTS", "SOURCES", "STAGING", "Current", "Destination", "DestinationError"]

_TIME = "%Y%m%dT%H%M%SZ"
_VERSION = re.compile(r"version=(\d{8}T\d{6}Z-[0-9a-f]{6})")
# Bookkeeping, which is no dataset of the task's lineage (M10).
PARTS, SOURCES, STAGING = (f"_spark_lineage/{room}" for room in ("parts", "sources", "staging"))
_ROOMS = (PARTS, SOURCES)
_BY_DAY = (EVENTS, *TABLES)


class Destination:
    """The directory that the job writes to.

    Used as a context manager it gives back the lock at the end. What is written between ``begin`` and ``commit`` is
    seen by nobody, and removed by the next ``begin`` where no ``commit`` came.

    :param path: a path or URI of any file system that Spark writes to
    :raises DestinationError: for what is no such path; and for a directory with anything else in it
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.files = FileSystem(spark, path)
        self._lock = Lock(self.files)
        self._content: bytes | None = None
        self._previous: Current | None = None
        self._now: Current | None = None
        self._load()

    @property
    def current(self) -> Current | None:
        """What is the output now; None where nothing was ever committed."""
        return self._now if self._now is not None and self._now.version else None

    def child(self, *names: str) -> str:
        """Return the URI of what is in the directory."""
        return self.files.child(*names)

    def begin(self) -> str:
        """Take the lock, remove what dead runs have left, and give the version that this run is to write.

        :raises DestinationError: when another run writes, and for a directory that is not ours
        """
        self._check_is_ours()
        self._lock.take()
        try:
            self._load()
            if self._content is None:
                # What is found from now on beside this file is ours.
                self._put(Current(version="", table_format="parquet"))
            self._sweep([self._now], is_begin=True)
            self._previous = self._now
        except BaseException:
            self._lock.give_back()
            raise
        return self._next_version()

    def commit(self, current: Current) -> None:
        """Make what was written the output, at once.

        :raises DestinationError: when another run has taken over, or has committed since this one began
        """
        self._lock.check()
        if self.files.read(pointer.FILE) != self._content:
            raise DestinationError(f"another run has replaced {self.child(pointer.FILE)}: run this one again")
        self._put(current)

    def clean_up(self) -> None:
        """Remove what nobody needs.

        The days that were replaced stay until the next run begins, for those who are reading them.
        """
        self._lock.check()
        self._sweep([self._now, self._previous], is_begin=False)

    def close(self) -> None:
        """Release the lock."""
        self._lock.give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _load(self) -> None:
        self._content = self.files.read(pointer.FILE)
        self._now = None if self._content is None else pointer.decode(self._content, self.child(pointer.FILE))

    def _put(self, current: Current) -> None:
        content = pointer.encode(current)
        self.files.replace(pointer.FILE, content)
        self._content, self._now = content, current

    def _check_is_ours(self) -> None:
        if self._content is None:
            strange = [name for name in self.files.find("*") if not name.startswith((".", pointer.FILE, lock.FILE))]
            if strange:
                raise DestinationError(
                    f"{self.files.root} has {strange[0]} in it, and no {pointer.FILE}: give a new or empty directory"
                )

    def _next_version(self) -> str:
        # Versions sort by time, also where the clock went back.
        now = datetime.now(UTC)
        if self.current is not None:
            last = datetime.strptime(self.current.version.partition("-")[0], _TIME).replace(tzinfo=UTC)
            now = max(now, last + timedelta(seconds=1))
        return f"{now.strftime(_TIME)}-{secrets.token_hex(3)}"

    def _sweep(self, named: Iterable[Current | None], *, is_begin: bool) -> None:
        """Remove what none of these pointers names."""
        pointers = [each for each in named if each is not None]
        self.files.delete(STAGING)
        for room in _ROOMS:
            versions = set(self._now.kept.get(room, [self._now.version])) if self._now is not None else set()
            self._remove(self.files.find(f"{room}/version=*"), versions)
        days = {f"day={day}/version={version}" for each in pointers for day, version in each.days.items()}
        for name in self.files.find("*/day=*/version=*"):
            table, _, version = name.partition("/")
            if table in _BY_DAY and version not in days and _VERSION.fullmatch(name.rpartition("/")[2]):
                self.files.delete(name)
                self.files.delete_empty(name.rpartition("/")[0])
        if is_begin:
            # Of a job of Spark that was killed while it wrote.
            for table in _BY_DAY:
                self.files.delete(f"{table}/_temporary")

    def _remove(self, names: Iterable[str], versions: set[str]) -> None:
        for name in names:
            found = _VERSION.fullmatch(name.rpartition("/")[2])
            if found is not None and found[1] not in versions:
                self.files.delete(name)
