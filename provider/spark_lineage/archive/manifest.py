"""Which files have been read into which parts, so that a later run reads only what is new or has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_lineage.archive.sources import SourceFile

_SCHEMA = "file string, length bigint, modified bigint, version string"
# Spark sends what a task is to write along with it: some megabytes.
_ENTRIES_A_TASK = 20_000


class Entry(NamedTuple):
    """What a file was when it was read (bytes, milliseconds), and the version that has its parts."""

    length: int
    modified: int
    version: str


class Manifest:
    """The files that were read, by path.

    A file that is gone stays: what it said is not lost because somebody cleans up.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = dict(entries)

    @classmethod
    def read(cls, spark: SparkSession, path: str) -> Manifest:
        """Read what ``write`` wrote."""
        rows = spark.read.schema(_SCHEMA).parquet(path).collect()
        return cls({row.file: Entry(row.length, row.modified, row.version) for row in rows})

    def write(self, spark: SparkSession, path: str) -> None:
        """Write all entries as Parquet."""
        self.frame(spark).write.parquet(path, compression="zstd")

    def changed(self, files: Iterable[SourceFile]) -> list[SourceFile]:
        """Return those that are new, or not as they were when they were read."""
        return [file for file in files if self._of(file) != (file.length, file.modified)]

    def _of(self, file: SourceFile) -> tuple[int, int] | None:
        entry = self.entries.get(file.path)
        return None if entry is None else (entry.length, entry.modified)

    def after(self, changed: Iterable[SourceFile], version: str) -> Manifest:
        """Return what is read once a version has read these."""
        return Manifest(self.entries | {file.path: Entry(file.length, file.modified, version) for file in changed})

    def moved(self, version: str) -> Manifest:
        """Return the same with all parts in one version."""
        return Manifest({path: entry._replace(version=version) for path, entry in self.entries.items()})

    def before(self, version: str) -> Manifest:
        """Return the entries whose parts another version has."""
        return Manifest({path: entry for path, entry in self.entries.items() if entry.version != version})

    def only(self, files: Iterable[SourceFile]) -> Manifest:
        """Return the entries of these files."""
        return Manifest({file.path: self.entries[file.path] for file in files if file.path in self.entries})

    @property
    def versions(self) -> Sequence[str]:
        """Those that hold parts, sorted."""
        return sorted({entry.version for entry in self.entries.values()})

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the entries as a table."""
        rows = [(path, *entry) for path, entry in self.entries.items()]
        tasks = spark.sparkContext.parallelize(rows, 1 + len(rows) // _ENTRIES_A_TASK)
        return spark.createDataFrame(tasks, _SCHEMA, verifySchema=False)
