"""Files of Spark in ``NAME/day=D/version=V``: events, and the tables of format parquet and ndjson."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_lineage.archive.file_system import FileSystem

_SOURCES = {"parquet": "parquet", "ndjson": "json", "text": "text"}
_READING = {"parquet": {}, "ndjson": {"mode": "FAILFAST"}, "text": {}}
_WRITING: Mapping[str, Mapping[str, Any]] = {
    "parquet": {},
    "ndjson": {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"},
    "text": {},
}


class DayDirectories:
    """What one name has in an output.

    :param kind: ``parquet``, ``ndjson``, or ``text`` for lines of any kind
    :param columns: in Spark's DDL, without ``day``
    """

    def __init__(self, spark: SparkSession, files: FileSystem, name: str, kind: str, columns: str) -> None:
        self._spark = spark
        self._files = files
        self._name = name
        self._kind = kind
        self._schema = f"{columns}, day date"

    def read(self, versions: Mapping[str, str], days: Collection[str] | None = None) -> DataFrame:
        """Return the rows of some days, of all without ``days``, each in its version."""
        wanted = {day: version for day, version in versions.items() if days is None or day in days}
        named = {f"{self._name}/day={day}/version={version}" for day, version in wanted.items()}
        # A table may have no row of a day, and then no directory.
        glob = "*" if days is None else f"{{{','.join(sorted(wanted))}}}"
        found = self._files.find(f"{self._name}/day={glob}/version=*") if wanted else []
        if not (paths := [self._files.child(name) for name in found if name in named]):
            return self._spark.createDataFrame([], self._schema)
        reader = self._spark.read.format(_SOURCES[self._kind]).options(**_READING[self._kind])
        reader = reader.option("basePath", self._files.child(self._name)).schema(f"{self._schema}, version string")
        return reader.load(paths).drop("version")

    def write(self, rows: DataFrame, version: str) -> None:
        """Write rows, which have a ``day`` and come :func:`by_day`, as one version."""
        from pyspark.sql import functions as f

        order = ("day", *(column for column in ("event_time", "run_id") if column in rows.columns))
        sorted_rows = rows.withColumn("version", f.lit(version)).sortWithinPartitions(*order)
        writer = sorted_rows.write.format(_SOURCES[self._kind]).options(**_WRITING[self._kind])
        # Spark's marker would say that a directory is whole which a later run adds to.
        writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").mode("append")
        writer.partitionBy("day", "version").save(self._files.child(self._name))


def by_day(rows: DataFrame) -> DataFrame:
    """Bring together what has one ``day``: small days make a file each then, and big ones several."""
    return rows.sparkSession.sql("SELECT /*+ REBALANCE(day) */ * FROM {rows}", rows=rows)
