"""The parts of an archive as a table: what is kept between runs, and which tasks are to be merged anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spark_lineage.archive import reading
from spark_lineage.archive.fold import PART
from spark_lineage.archive.local_files import SCHEME
from spark_lineage.archive.manifest import Manifest
from spark_lineage.archive.on_executor import OnExecutor
from spark_lineage.collect.lineage_files import COMPRESSED_SUFFIXES

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from spark_lineage.archive.sources import SourceFile


class Parts:
    """The parts in a directory; those of one version never change.

    :param directory: holds ``version=V`` for each version that has read something
    """

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self._directory = directory

    def add(self, files: Sequence[SourceFile], version: str) -> None:
        """Read files, fold them on executors, and keep what comes out."""
        local = [file for file in files if file.path.startswith(SCHEME)]
        remote = [file for file in files if not file.path.startswith(SCHEME)]
        packed = [file for file in remote if file.path.endswith(COMPRESSED_SUFFIXES)]
        plain = [file.path for file in remote if not file.path.endswith(COMPRESSED_SUFFIXES)]
        small = [file.path for file in packed if file.length <= reading.LARGE_BYTES]
        if local:
            self._fold(reading.pieces(self._spark.sparkContext, local), "fold_pieces", version)
        if plain:
            self._fold(reading.lines(self._spark, plain), "fold_lines", version)
        if small:
            self._fold(reading.files(self._spark, small), "fold_files", version)
        for file in packed:
            if file.length > reading.LARGE_BYTES:
                content = reading.large_file(self._spark, file.path)
                self._fold(content, "fold_large_file", version, path=file.path)

    def copy(self, manifest: Manifest, version: str) -> None:
        """Write the parts of a manifest once more, together: many versions make many small files."""
        self._write(self.of(manifest).repartition("application"), version)

    def _fold(self, read: RDD[Any], function: str, version: str, **options: Any) -> None:
        parts = read.mapPartitions(OnExecutor(f"spark_lineage.archive.fold:{function}", options))
        self._write(self._spark.createDataFrame(parts, PART, verifySchema=False), version)

    def _write(self, parts: DataFrame, version: str) -> None:
        parts.write.mode("append").parquet(f"{self._directory}/version={version}", compression="zstd")

    def of_version(self, version: str) -> DataFrame:
        """Return all parts that a version has written."""
        return self._spark.read.schema(PART).parquet(f"{self._directory}/version={version}")

    def of(self, manifest: Manifest) -> DataFrame:
        """Return the parts of the files of a manifest, as they were read last."""
        versions = manifest.versions
        paths = [f"{self._directory}/version={version}" for version in versions]
        if not paths:
            return self._spark.createDataFrame([], PART)
        reader = self._spark.read.schema(f"{PART}, version string").option("basePath", self._directory)
        entries = manifest.frame(self._spark).select("file", "version")
        return reader.parquet(*paths).join(entries, ["file", "version"], "left_semi").drop("version")


def runs_of(parts: DataFrame) -> DataFrame:
    """Return the task run of each application (application, run_id): the greatest parent that any part of it names.

    An application that names none is a run of its own. ``is_mixed`` tells that not all parts of it name that run.
    """
    from pyspark.sql import functions as f

    told = parts.where("application IS NOT NULL").groupBy("application")
    own = f.coalesce("parent", "application")
    run_id = f.coalesce(f.max("parent"), f.col("application"))
    return told.agg(run_id.alias("run_id"), (f.min(own) != f.max(own)).alias("is_mixed"))


def by_run(parts: DataFrame, runs: DataFrame, wanted: DataFrame | None, partitions: int) -> DataFrame:
    """Return run id and state of each part, those of a run together; the shuffle of the merge.

    :param runs: of the same parts, from :func:`runs_of`
    :param wanted: which runs (run_id), None for all
    """
    from pyspark.sql import functions as f

    # Nearly all parts name the run that is right; looking up the others spares those a shuffle.
    others = runs.where("is_mixed").select("application", "run_id")
    found = parts.where("application IS NOT NULL").join(others, "application", "left")
    keyed = found.select(f.coalesce("run_id", "parent", "application").alias("run_id"), "content")
    if wanted is not None:
        keyed = keyed.join(wanted, "run_id", "left_semi")
    return keyed.repartition(partitions, "run_id").sortWithinPartitions("run_id")
