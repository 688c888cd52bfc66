"""An output of the archive job: old until a run commits, new from then on, and whole at every moment.

There is no lock. Each run writes a version of its own beside the output, and commits it only if the output is still
the one that it began with. Versions sort by time: what is older than the output, and not named by it, is of a run that
was killed or came too late, and the next run removes it.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from spark_lineage.archive import pointer
from spark_lineage.archive.columns import TABLES
from spark_lineage.archive.file_system import FileSystem
from spark_lineage.archive.pointer import EVENTS, ArchiveError, Current

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIME = "%Y%m%dT%H%M%SZ"
_VERSION = re.compile(r"(.+)/version=(\d{8}T\d{6}Z-[0-9a-f]{6})(?:/day=(.+))?")
# Bookkeeping, which is no dataset of the task's lineage (M10).
PARTS, SOURCES, STAGING = (f"_spark_lineage/{room}" for room in ("parts", "sources", "staging"))
_ROOMS = (EVENTS, *TABLES, PARTS, SOURCES, STAGING)


class Destination(FileSystem):
    """The directory that the job writes to.

    :param path: a path or URI of any file system that Spark writes to
    :raises ArchiveError: for what is no such path
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        super().__init__(spark, path)
        self.current: Current | None = None
        """What is the output now; None where nothing was ever committed."""
        self._content = self.read(pointer.FILE)
        if self._content is not None:
            now = pointer.decode(self._content, self.child(pointer.FILE))
            self.current = now if now.version else None

    def begin(self) -> str:
        """Remove what nobody needs, and return the version that this run is to write.

        :raises ArchiveError: for a directory with anything else in it
        """
        if self._content is None:
            if strange := [name for name in self.find("*") if not name.startswith((".", pointer.FILE))]:
                raise ArchiveError(
                    f"{self.root} has {strange[0]} in it, and no {pointer.FILE}: give a new or empty directory"
                )
            # What is found from now on beside this file is ours.
            self._content = pointer.encode(Current(version=""))
            self.replace(pointer.FILE, self._content)
        now = datetime.now(UTC)
        if (current := self.current) is not None:
            self._sweep(current)
            # Versions sort by time, also where the clock went back.
            last = datetime.strptime(current.version.partition("-")[0], _TIME).replace(tzinfo=UTC)
            now = max(now, last + timedelta(seconds=1))
        return f"{now.strftime(_TIME)}-{secrets.token_hex(3)}"

    def commit(self, current: Current) -> None:
        """Make what was written the output, at once.

        :raises ArchiveError: when another run has committed since this one began
        """
        if self.read(pointer.FILE) != self._content:
            raise ArchiveError(f"another run has replaced {self.child(pointer.FILE)}: run this one again")
        self._content, self.current = pointer.encode(current), current
        self.replace(pointer.FILE, self._content)

    def end(self, version: str) -> None:
        """Remove what a run needs no longer: all that it has written, if it has not committed."""
        # What cannot be removed now is removed by the next run. A commit that raised may have succeeded.
        with suppress(ArchiveError):
            now = Destination(self.spark, self.root).current
            named = {now.version, *now.days.values(), *now.parts} if now is not None else set()
            for room in (STAGING,) if version in named else _ROOMS:
                self.delete(f"{room}/version={version}")

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
