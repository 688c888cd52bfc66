"""Writes and reads the tables of an archive, one partition a day."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from spark_lineage.archive import pointer
from spark_lineage.archive.columns import DOCUMENT, EVENTS, OF_ROWS, OF_RUN, TABLES
from spark_lineage.archive.day_directories import DayDirectories, by_day
from spark_lineage.archive.file_system import FileSystem
from spark_lineage.archive.pointer import DestinationError
from spark_lineage.archive.snapshot_tables import CATALOG, DeltaTables, IcebergTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_lineage.archive.destination import Destination
    from spark_lineage.archive.pointer import Current, TableFormat


__all__ = ["DOCUMENT", "TABLES", "check_format", "read_table", "session_conf", "write_tables"]

_AT_ONCE = 4
_CATALOG = f"spark.sql.catalog.{CATALOG}"
_SESSION = {
    # Other readers of Parquet know no INT96; and no time is out of range.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.session.timeZone": "UTC",
}
_EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
_PACKAGES = {"delta": "io.delta:delta-spark_…", "iceberg": "org.apache.iceberg:iceberg-spark-runtime-…"}
_CATALOG_COLUMNS = "catalog_framework, catalog_type, catalog_name, catalog_metadata_uri, catalog_warehouse_uri"
# Of a day's inputs and outputs with one name: what is said last counts, unless nothing is said.
_LAST = (
    "max_by(schema, struct(size(schema) > 0, at)) AS schema",
    "max_by(symlinks, struct(size(symlinks) > 0, at)) AS symlinks",
    "max_by(struct(storage_layer, file_format), struct(storage_layer IS NOT NULL, at)) AS storage",
    f"max_by(struct({_CATALOG_COLUMNS}), struct(catalog_name IS NOT NULL, at)) AS catalog",
    "max_by(dataset_version, struct(dataset_version IS NOT NULL, at)) AS dataset_version",
    "count_if(NOT is_output) AS read_count",
    "max(event_time) FILTER (WHERE NOT is_output) AS last_read_at",
    "max_by(run_id, at) FILTER (WHERE NOT is_output) AS last_read_run_id",
    "count_if(is_output) AS write_count",
    "max(event_time) FILTER (WHERE is_output) AS last_written_at",
    "max_by(run_id, at) FILTER (WHERE is_output) AS last_written_run_id",
)
_COUNTED = [each.rpartition(" ")[2] for each in _LAST[-7:]]
_COMMON = [column.split()[0] for column in OF_RUN.split(", ")]


def session_conf(table_format: TableFormat, path: str) -> dict[str, str]:
    """Return the properties that a session needs to write such tables there, where the user has not set them."""
    if table_format == "delta":
        catalog = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
    elif table_format == "iceberg":
        catalog = {
            _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{_CATALOG}.type": "hadoop",
            f"{_CATALOG}.warehouse": path,
        }
    else:
        return dict(_SESSION)
    return {**_SESSION, "spark.sql.extensions": _EXTENSIONS[table_format], **catalog}


def check_format(destination: Destination, table_format: TableFormat) -> None:
    """Find out, before hours of work, whether the tables can be written.

    :raises DestinationError: where the output has tables of another format, and where the session lacks what it needs
    """
    current = destination.current
    if current is not None and current.table_format != table_format:
        raise DestinationError(
            f"the tables in {destination.child()} are {current.table_format}: give --format {current.table_format}, "
            "or another directory"
        )
    if (extension := _EXTENSIONS.get(table_format)) is None:
        return
    spark = destination.spark
    if not destination.files.jvm.org.apache.spark.util.Utils.classIsLoadable(extension):
        raise DestinationError(
            f"--format {table_format} needs its jars: --conf spark.jars.packages={_PACKAGES[table_format]}, for Spark "
            f"{spark.version}"
        )
    if extension not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise DestinationError(f"--format {table_format} needs {extension} in spark.sql.extensions as well")


def read_table(spark: SparkSession, path: str, name: str) -> DataFrame:
    """Return a table of an archive, with the rows that the pointer names, and no others.

    :param path: what the job was given as ``--out``
    :param name: of the table, such as ``run_outputs``
    :raises DestinationError: where there is no such table
    """
    files = FileSystem(spark, path)
    if name not in TABLES:
        raise DestinationError(f"there is no table {name}, but {', '.join(TABLES)}")
    content = files.read(pointer.FILE)
    current = None if content is None else pointer.decode(content, files.child(pointer.FILE))
    if current is None or not current.version:
        raise DestinationError(f"no run of the archive job has written {files.root} yet")
    return open_tables(spark, files, current, current.table_format).committed(name)


def write_tables(
    destination: Destination,
    version: str,
    table_format: TableFormat,
    documents: DataFrame,
    replaced: DataFrame | None,
) -> dict[str, str]:
    """Write events and tables of all days that change, and give the ``days`` of the new pointer.

    A day has then its old rows, without those of the runs that are replaced, and the new ones.

    :param documents: the new tasks ``by_day``, with the columns of ``DOCUMENT``; those with a problem are passed over
    :param replaced: ``run_id`` of the old tasks that go, besides those that are in ``documents``; None for all of them
    """
    check_format(destination, table_format)
    return _Writing(destination, version, table_format, documents).write(replaced)


class _Writing:
    """One run's writing of all tables."""

    def __init__(self, destination: Destination, version: str, table_format: TableFormat, documents: DataFrame) -> None:
        self._spark = destination.spark
        self._version = version
        self._documents = documents.where("day IS NOT NULL")
        self._versions = {} if destination.current is None else destination.current.days
        self._tables = open_tables(self._spark, destination.files, destination.current, table_format)
        self._events = DayDirectories(self._spark, destination.files, EVENTS, "text", "value string")

    def write(self, replaced: DataFrame | None) -> dict[str, str]:
        gone = None if replaced is None or not self._versions else self._gone(replaced).persist()
        try:
            days = _days(self._documents)
            if gone is not None:
                days |= _days(gone)
            elif replaced is None:
                days |= set(self._versions)
            return self._write(sorted(days), gone)
        finally:
            if gone is not None:
                gone.unpersist()

    def _gone(self, replaced: DataFrame) -> DataFrame:
        """Return run id and day of the old tasks that go."""
        runs = self._tables.committed("runs").select("run_id", "day")
        return runs.join(replaced.select("run_id").union(self._documents.select("run_id")), "run_id", "left_semi")

    def _write(self, days: list[str], gone: DataFrame | None) -> dict[str, str]:
        if not days:
            return dict(self._versions)

        def write(name: str) -> None:
            if name == EVENTS:
                self._events.write(self._with_old_events(days, gone), self._version)
                return
            rows = self._new(name)
            if gone is not None:
                old = self._tables.committed(name, days)
                rows = by_day(old.join(gone.select("run_id"), "run_id", "left_anti").unionByName(rows))
            self._tables.write(name, rows, days, self._version)

        # One alone would leave cores idle: each is a few jobs, one after the other, and most of them are small.
        with ThreadPoolExecutor(_AT_ONCE, "lineage archive tables") as pool:
            list(pool.map(write, (EVENTS, *OF_ROWS)))
        self._tables.write("datasets", by_day(self._datasets(days)), days, self._version)
        left = _days(self._tables.written("runs", days, self._version))
        unchanged = {day: version for day, version in self._versions.items() if day not in days}
        return unchanged | dict.fromkeys(sorted(left), self._version)

    def _with_old_events(self, days: list[str], gone: DataFrame | None) -> DataFrame:
        new = self._documents.selectExpr("event AS value", "CAST(day AS DATE) AS day")
        if gone is None:
            return new
        old = self._events.read(self._versions, days).selectExpr("*", "get_json_object(value, '$.run.runId') AS run_id")
        return by_day(old.join(gone.select("run_id"), "run_id", "left_anti").select("value", "day").union(new))

    def _new(self, name: str) -> DataFrame:
        """Return the rows of a table that the documents have."""
        of_run = [f"get(runs, 0).{column} AS {column}" for column in _COMMON[1:]] if name != "runs" else []
        return self._documents.selectExpr("run_id", *of_run, f"inline({name})", "CAST(day AS DATE) AS day")

    def _datasets(self, days: list[str]) -> DataFrame:
        """Return what the inputs and outputs of each day say of a dataset together; the last word counts."""
        from pyspark.sql import functions as f

        inputs = self._tables.written("run_inputs", days, self._version).selectExpr("*", "false AS is_output")
        outputs = self._tables.written("run_outputs", days, self._version).selectExpr("*", "true AS is_output")
        touched = inputs.unionByName(outputs.select(inputs.columns))
        touched = touched.selectExpr("*", "struct(event_time, is_output, run_id) AS at")
        last = touched.groupBy("day", "namespace", "name").agg(*(f.expr(each) for each in _LAST))
        return last.selectExpr("namespace", "name", "schema", "symlinks", "storage.*", "catalog.*", *_COUNTED, "day")


def _days(frame: DataFrame) -> set[str]:
    return {row["day"] for row in frame.selectExpr("CAST(day AS STRING) AS day").distinct().collect()}


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
