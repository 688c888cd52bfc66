"""Where the tables of an output are: directories by day and version, or a Delta or Iceberg table each."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from spark_lineage.archive.columns import TABLES
from spark_lineage.archive.day_directories import DayDirectories
from spark_lineage.archive.snapshot_tables import DeltaTables, IcebergTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_lineage.archive.file_system import FileSystem
    from spark_lineage.archive.pointer import Current, TableFormat


class TableStore(Protocol):
    """The tables, as the pointer has them, and as one run makes them."""

    def committed(self, name: str, days: Collection[str] | None = None) -> DataFrame:
        """Return the rows of some days, or of all, as they were when the pointer was written."""
        ...

    def write(self, name: str, rows: DataFrame, days: Collection[str], version: str) -> None:
        """Put rows in the place of all that these days have."""
        ...

    def written(self, name: str, days: Collection[str], version: str) -> DataFrame:
        """Return what ``write`` wrote."""
        ...


class _Directories:
    """Tables of format parquet and ndjson."""

    def __init__(self, spark: SparkSession, files: FileSystem, current: Current | None, kind: str) -> None:
        self._versions = {} if current is None else current.days
        self._tables = {name: DayDirectories(spark, files, name, kind, columns) for name, columns in TABLES.items()}

    def committed(self, name: str, days: Collection[str] | None = None) -> DataFrame:
        return self._tables[name].read(self._versions, days)

    def write(self, name: str, rows: DataFrame, _days: Collection[str], version: str) -> None:
        self._tables[name].write(rows, version)

    def written(self, name: str, days: Collection[str], version: str) -> DataFrame:
        return self._tables[name].read(dict.fromkeys(days, version), days)


def open_tables(
    spark: SparkSession, files: FileSystem, current: Current | None, table_format: TableFormat
) -> TableStore:
    """Return the tables of an output, as ``current`` has them."""
    committed = "" if current is None else current.version
    if table_format == "delta":
        return DeltaTables(spark, files, committed)
    if table_format == "iceberg":
        return IcebergTables(spark, files, committed)
    return _Directories(spark, files, current, table_format)
