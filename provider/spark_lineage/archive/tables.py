"""Writes and reads the tables of an archive: Parquet in ``NAME/version=V/day=D``; events are JSON lines there."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from spark_lineage.archive.destination import EVENTS, ArchiveError, Destination
from spark_lineage.archive.rows import OF_RUN, TABLES

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

    :param path: the ``--out`` of the job
    :param name: of the table, such as ``run_outputs``
    :raises ArchiveError: where there is no such table
    """
    if name not in TABLES:
        raise ArchiveError(f"there is no table {name}, but {', '.join(TABLES)}")
    destination = Destination(spark, path)
    if destination.current is None:
        raise ArchiveError(f"no run of the archive job has written {destination.child()} yet")
    return _read(destination, name, destination.current.days)


def _read(destination: Destination, name: str, versions: Mapping[str, str]) -> DataFrame:
    """Return the rows of some days, each in its version."""
    schema = f"{TABLES.get(name, 'value string')}, day date"
    named = {f"{name}/version={version}/day={day}" for day, version in versions.items()}
    # A table may have no row of a day, and then no directory.
    found = destination.find(f"{name}/version=*/day=*") if named else []
    if not (paths := [destination.child(each) for each in found if each in named]):
        return destination.spark.createDataFrame([], schema)
    reader = destination.spark.read.format("text" if name == EVENTS else "parquet").option(
        "basePath", destination.child(name)
    )
    return reader.schema(f"{schema}, version string").load(paths).drop("version")


def write_tables(
    destination: Destination, version: str, documents: DataFrame, replaced: DataFrame | None
) -> dict[str, str]:
    """Write events and tables of all days that change, and return the ``days`` of the new pointer.

    A day has then its old rows, without those of the runs that are replaced, and the new ones.

    :param documents: the new tasks ``by_day``, with the columns of ``DOCUMENT``; those with a problem are passed over
    :param replaced: ``run_id`` of the old tasks that go, besides those that are in ``documents``; None for all of them
    """
    from pyspark.sql import functions as f

    versions = {} if destination.current is None else destination.current.days
    new = documents.where("day IS NOT NULL")
    days, gone = set(versions), None
    if replaced is not None and versions:
        runs = _read(destination, "runs", versions).select("run_id", "day")
        gone = runs.join(replaced.select("run_id").union(new.select("run_id")), "run_id", "left_semi").persist()
        touched = new.selectExpr("CAST(day AS DATE) AS day").union(gone.select("day")).distinct()
        days = {str(row["day"]) for row in touched.collect()}
        if not days:
            return dict(versions)
    old = {day: version for day, version in versions.items() if day in days}

    def with_old(name: str) -> DataFrame:
        rows = _new(name, new)
        if gone is None:
            return rows
        before = _read(destination, name, old)
        if name == EVENTS:
            before = before.withColumn("run_id", f.get_json_object("value", "$.run.runId"))
        return before.join(gone.select("run_id"), "run_id", "left_anti").select(rows.columns).union(rows)

    def write(name: str) -> None:
        rows = _datasets(with_old("run_inputs"), with_old("run_outputs")) if name == "datasets" else with_old(name)
        if gone is not None and name != "datasets":
            rows = by_day(rows)
        order = ("day", *(column for column in ("event_time", "run_id") if column in rows.columns))
        writer = rows.sortWithinPartitions(*order).write.format("text" if name == EVENTS else "parquet")
        writer.partitionBy("day").save(destination.child(name, f"version={version}"))

    # One alone would leave cores idle: each is a few jobs, most of them small, and `datasets` the most of all.
    with ThreadPoolExecutor(_AT_ONCE, "lineage archive tables") as pool:
        list(pool.map(write, (EVENTS, *reversed(TABLES))))
    # A day without a row has no directory.
    left = [name.rpartition("=")[2] for name in destination.find(f"runs/version={version}/day=*")]
    if gone is not None:
        gone.unpersist()
    return {day: version for day, version in versions.items() if day not in days} | dict.fromkeys(left, version)


def _new(name: str, documents: DataFrame) -> DataFrame:
    """Return the rows of a table, or the events, that documents have."""
    if name == EVENTS:
        return documents.selectExpr("event AS value", "CAST(day AS DATE) AS day")
    of_run = [f"get(runs, 0).{column} AS {column}" for column in _COMMON[1:]] if name != "runs" else []
    return documents.selectExpr("run_id", *of_run, f"inline({name})", "CAST(day AS DATE) AS day")


def _datasets(inputs: DataFrame, outputs: DataFrame) -> DataFrame:
    """Return what the inputs and outputs of each day say of a dataset together; the last word counts."""
    from pyspark.sql import functions as f

    of_outputs = outputs.select(inputs.columns).selectExpr("*", "true AS is_output")
    touched = inputs.selectExpr("*", "false AS is_output").union(of_outputs)
    touched = touched.selectExpr("*", "struct(event_time, is_output, run_id) AS at")
    # One shuffle, which leaves a file a day.
    last = touched.repartition("day").groupBy("day", "namespace", "name").agg(*(f.expr(each) for each in _LAST))
    return last.selectExpr("namespace", "name", "schema", "symlinks", "storage.*", "catalog.*", *_COUNTED, "day")


def by_day(rows: DataFrame) -> DataFrame:
    """Bring together what has one ``day``: small days make a file each then, and big ones several."""
    return rows.sparkSession.sql("SELECT /*+ REBALANCE(day) */ * FROM {rows}", rows=rows)
