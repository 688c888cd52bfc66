"""Writes and reads the tables of an archive: Parquet in ``NAME/version=V/day=D``; events are lines of text there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from spark_lineage.archive.columns import OF_ROWS, OF_RUN, TABLES
from spark_lineage.archive.destination import Destination
from spark_lineage.archive.file_system import FileSystem
from spark_lineage.archive.pointer import EVENTS, DestinationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AT_ONCE = 4
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


def read_table(spark: SparkSession, path: str, name: str) -> DataFrame:
    """Return a table of an archive, with the rows that the pointer names, and no others.

    :param path: what the job was given as ``--out``
    :param name: of the table, such as ``run_outputs``
    :raises DestinationError: where there is no such table
    """
    if name not in TABLES:
        raise DestinationError(f"there is no table {name}, but {', '.join(TABLES)}")
    destination = Destination(spark, path)
    if destination.current is None:
        raise DestinationError(f"no run of the archive job has written {destination.child()} yet")
    return _read(spark, destination.files, name, destination.current.days)


def _read(spark: SparkSession, files: FileSystem, name: str, versions: Mapping[str, str]) -> DataFrame:
    """Return the rows of some days, each in its version."""
    schema = f"{TABLES.get(name, 'value string')}, day date"
    named = {f"{name}/version={version}/day={day}" for day, version in versions.items()}
    # A table may have no row of a day, and then no directory.
    found = files.find(f"{name}/version=*/day=*") if named else []
    if not (paths := [files.child(each) for each in found if each in named]):
        return spark.createDataFrame([], schema)
    reader = spark.read.format("text" if name == EVENTS else "parquet").option("basePath", files.child(name))
    return reader.schema(f"{schema}, version string").load(paths).drop("version")


def write_tables(
    destination: Destination, version: str, documents: DataFrame, replaced: DataFrame | None
) -> dict[str, str]:
    """Write events and tables of all days that change, and return the ``days`` of the new pointer.

    A day has then its old rows, without those of the runs that are replaced, and the new ones.

    :param documents: the new tasks ``by_day``, with the columns of ``DOCUMENT``; those with a problem are passed over
    :param replaced: ``run_id`` of the old tasks that go, besides those that are in ``documents``; None for all of them
    """
    versions = {} if destination.current is None else destination.current.days
    writing = _Writing(destination, version, versions, documents.where("day IS NOT NULL"))
    if replaced is None or not versions:
        return writing.write(set(versions))
    runs = _read(destination.spark, destination.files, "runs", versions).select("run_id", "day")
    gone = runs.join(replaced.select("run_id").union(documents.select("run_id")), "run_id", "left_semi").persist()
    try:
        return writing.write(_days(gone), gone)
    finally:
        gone.unpersist()


class _Writing:
    """One run's writing of all tables."""

    def __init__(
        self, destination: Destination, version: str, versions: Mapping[str, str], documents: DataFrame
    ) -> None:
        self._spark, self._files = destination.spark, destination.files
        self._version, self._versions = version, versions
        self._documents = documents

    def write(self, days: set[str], gone: DataFrame | None = None) -> dict[str, str]:
        """Write these days, and those of the documents.

        :param gone: run id and day of the old tasks that go; None for all of them
        """
        days |= _days(self._documents)
        if not days:
            return dict(self._versions)
        old = {day: version for day, version in self._versions.items() if day in days}

        def write(name: str) -> None:
            rows = self._new(name)
            if gone is not None:
                before = _read(self._spark, self._files, name, old)
                if name == EVENTS:
                    before = before.withColumn("run_id", f.get_json_object("value", "$.run.runId"))
                kept = before.join(gone.select("run_id"), "run_id", "left_anti").select(rows.columns)
                rows = by_day(kept.union(rows))
            self._write(name, rows)

        from pyspark.sql import functions as f

        # One alone would leave cores idle: each is a few jobs, one after the other, and most of them are small.
        with ThreadPoolExecutor(_AT_ONCE, "lineage archive tables") as pool:
            list(pool.map(write, (EVENTS, *OF_ROWS)))
        self._write("datasets", by_day(self._datasets(days)))
        left = _days(self._written("runs", days))
        unchanged = {day: version for day, version in self._versions.items() if day not in days}
        return unchanged | dict.fromkeys(sorted(left), self._version)

    def _new(self, name: str) -> DataFrame:
        """Return the rows of a table, or the events, that the documents have."""
        if name == EVENTS:
            return self._documents.selectExpr("event AS value", "CAST(day AS DATE) AS day")
        of_run = [f"get(runs, 0).{column} AS {column}" for column in _COMMON[1:]] if name != "runs" else []
        return self._documents.selectExpr("run_id", *of_run, f"inline({name})", "CAST(day AS DATE) AS day")

    def _write(self, name: str, rows: DataFrame) -> None:
        order = ("day", *(column for column in ("event_time", "run_id") if column in rows.columns))
        writer = rows.sortWithinPartitions(*order).write.format("text" if name == EVENTS else "parquet")
        writer.partitionBy("day").save(self._files.child(name, f"version={self._version}"))

    def _written(self, name: str, days: Collection[str]) -> DataFrame:
        return _read(self._spark, self._files, name, dict.fromkeys(days, self._version))

    def _datasets(self, days: Collection[str]) -> DataFrame:
        """Return what the inputs and outputs of each day say of a dataset together; the last word counts."""
        from pyspark.sql import functions as f

        inputs = self._written("run_inputs", days).selectExpr("*", "false AS is_output")
        outputs = self._written("run_outputs", days).selectExpr("*", "true AS is_output")
        touched = inputs.union(outputs.select(inputs.columns))
        touched = touched.selectExpr("*", "struct(event_time, is_output, run_id) AS at")
        last = touched.groupBy("day", "namespace", "name").agg(*(f.expr(each) for each in _LAST))
        return last.selectExpr("namespace", "name", "schema", "symlinks", "storage.*", "catalog.*", *_COUNTED, "day")


def by_day(rows: DataFrame) -> DataFrame:
    """Bring together what has one ``day``: small days make a file each then, and big ones several."""
    return rows.sparkSession.sql("SELECT /*+ REBALANCE(day) */ * FROM {rows}", rows=rows)


def _days(frame: DataFrame) -> set[str]:
    return {row["day"] for row in frame.selectExpr("CAST(day AS STRING) AS day").distinct().collect()}
