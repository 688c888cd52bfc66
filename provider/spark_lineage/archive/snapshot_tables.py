"""The tables as Delta or Iceberg tables: days are replaced at once, and what a dead run wrote is taken back.

Each commit carries the version of its run, and versions sort by time: a commit with a later version than the pointer's
is of a run that never ended. What users do to a table, such as OPTIMIZE, stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from spark_lineage.archive.columns import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_lineage.archive.file_system import FileSystem

CATALOG = "lineage_archive"


class _At(Enum):
    """Which snapshot of a table the pointer means, where it has no number."""

    NEWEST = "newest"
    NONE = "none"


class SnapshotTables(ABC):
    """What Delta and Iceberg have in common.

    :param committed: the version that the pointer names, empty where there is none
    """

    _FORMAT: ClassVar[str]
    _MARK: ClassVar[str]

    def __init__(self, spark: SparkSession, files: FileSystem, committed: str) -> None:
        self._spark = spark
        self._files = files
        self._committed = committed

    def committed(self, name: str, days: Collection[str] | None = None) -> DataFrame:
        """Return the rows of some days, or of all, as they were when the pointer was written."""
        at = self._committed_at(name)
        if at is _At.NONE:
            return self._spark.createDataFrame([], f"{TABLES[name]}, day date")
        return _of_days(self._load(name, at), days)

    def written(self, name: str, days: Collection[str], _version: str) -> DataFrame:
        """Return what ``write`` wrote."""
        return _of_days(self._load(name, _At.NEWEST), days)

    def write(self, name: str, rows: DataFrame, days: Collection[str], version: str) -> None:
        """Put rows in the place of all that these days have."""
        at = self._committed_at(name)
        if at is _At.NONE:
            self._create(name, rows, version)
            return
        if not isinstance(at, _At):
            self._take_back(name, at)
        self._replace(name, rows, days, version)

    @abstractmethod
    def _committed_at(self, name: str) -> int | _At:
        """Return the snapshot that the pointer means."""

    def _load(self, name: str, at: int | _At) -> DataFrame:
        reader = self._spark.read.format(self._FORMAT)
        return (reader if isinstance(at, _At) else reader.option("versionAsOf", at)).load(self._files.child(name))

    @abstractmethod
    def _create(self, name: str, rows: DataFrame, version: str) -> None: ...

    @abstractmethod
    def _take_back(self, name: str, at: int) -> None: ...

    @abstractmethod
    def _replace(self, name: str, rows: DataFrame, days: Collection[str], version: str) -> None: ...


class DeltaTables(SnapshotTables):
    """Delta tables, by path; needs Delta Lake's jars, session extension and catalog."""

    _FORMAT = "delta"
    _MARK = "spark-lineage "

    def _committed_at(self, name: str) -> int | _At:
        if not self._files.exists(f"{name}/_delta_log"):
            return _At.NONE
        history = self._spark.sql(f"DESCRIBE HISTORY {self._identifier(name)}").select("version", "userMetadata")
        committed = f"{self._MARK}{self._committed}"
        # Whoever optimizes a table may leave words of his own.
        ours = [row for row in history.collect() if (row["userMetadata"] or "").startswith(self._MARK)]
        uncommitted = [row["version"] for row in ours if row["userMetadata"] > committed]
        at = min(uncommitted, default=None)
        return _At.NEWEST if at is None else at - 1 if at else _At.NONE

    def _create(self, name: str, rows: DataFrame, version: str) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("day")
        writer.option("userMetadata", f"{self._MARK}{version}").save(self._files.child(name))

    def _take_back(self, name: str, at: int) -> None:
        self._spark.sql(f"RESTORE TABLE {self._identifier(name)} TO VERSION AS OF {at}").collect()

    def _replace(self, name: str, rows: DataFrame, days: Collection[str], version: str) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("userMetadata", f"{self._MARK}{version}")
        replaced = ", ".join(f"DATE '{day}'" for day in sorted(days))
        writer.option("replaceWhere", f"day IN ({replaced})").save(self._files.child(name))

    def _identifier(self, name: str) -> str:
        return f"delta.`{self._files.child(name).replace('`', '``')}`"


class IcebergTables(SnapshotTables):
    """Iceberg tables; writing needs Iceberg's runtime jar, session extension and our catalog, reading the jar alone."""

    _FORMAT = "iceberg"
    _MARK = "spark-lineage-version"

    def write(self, name: str, rows: DataFrame, days: Collection[str], version: str) -> None:
        """Put rows in the place of all that these days have."""
        # Iceberg keeps what it is told, and a relative path would mean another place to the next one who reads.
        self._spark.conf.set(f"spark.sql.catalog.{CATALOG}.warehouse", self._files.root)
        super().write(name, rows, days, version)

    def _committed_at(self, name: str) -> int | _At:
        if not self._files.exists(f"{name}/metadata"):
            return _At.NONE
        snapshots = self._spark.read.format("iceberg").load(f"{self._files.child(name)}#snapshots")
        uncommitted = [
            row["parent_id"]
            for row in snapshots.orderBy("committed_at").select("parent_id", "summary").collect()
            if (row["summary"] or {}).get(self._MARK, "") > self._committed
        ]
        if not uncommitted:
            return _At.NEWEST
        parent: int | None = uncommitted[0]
        return _At.NONE if parent is None else parent

    def _create(self, name: str, rows: DataFrame, version: str) -> None:
        from pyspark.sql import functions as f

        writer = rows.writeTo(f"{CATALOG}.{name}").using("iceberg").option(f"snapshot-property.{self._MARK}", version)
        writer.partitionedBy(f.col("day")).createOrReplace()

    def _take_back(self, name: str, at: int) -> None:
        self._spark.sql(f"CALL {CATALOG}.system.set_current_snapshot('{name}', {at})").collect()

    def _replace(self, name: str, rows: DataFrame, days: Collection[str], version: str) -> None:
        from pyspark.sql import functions as f

        writer = rows.writeTo(f"{CATALOG}.{name}").option(f"snapshot-property.{self._MARK}", version)
        writer.overwrite(f.col("day").isin([date.fromisoformat(day) for day in sorted(days)]))


def _of_days(rows: DataFrame, days: Collection[str] | None) -> DataFrame:
    from pyspark.sql import functions as f

    return rows if days is None else rows.where(f.col("day").isin([date.fromisoformat(day) for day in days]))
