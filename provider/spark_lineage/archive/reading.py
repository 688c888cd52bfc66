"""Gives the executors lineage files to read: pieces of those of disks, and the lines of others, which Spark reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from spark_lineage.archive.local_files import Piece
from spark_lineage.collect.lineage_files import COMPRESSED_SUFFIXES

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, Row, SparkSession

    from spark_lineage.archive.sources import SourceFile

# Lineage files are many and small; by Spark's default each counts as four megabytes.
_OPEN_COST = "spark.sql.files.openCostInBytes"
_OPEN_COST_BYTES = 128 * 1024
_PIECE_BYTES = 32 * 1024 * 1024
_TASK_BYTES = 64 * 1024 * 1024
_TASKS_A_CORE = 3
# How much larger lineage is than its compressed file.
_COMPRESSED = 20
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTING_TASKS_A_CORE = 4
_PARTITION_BYTES = "spark.sql.files.maxPartitionBytes"
# Compressed, lineage takes a twentieth of its size, and each file is held whole.
LARGE_BYTES = 8 * 1024 * 1024
# As Spark itself has them for paths that are none: a name may look like a glob.
_GLOB_PATHS = "__globPaths__"

# Bytes, as Java's strings would have U+FFFD for whatever is no UTF-8.
_LINE = "CAST(concat(_metadata.file_path, '\\t', value) AS BINARY)"


def pieces(context: SparkContext, files: Iterable[SourceFile]) -> RDD[Piece]:
    """Return the pieces of files of disks, spread over tasks that have about the same to do."""
    found = sorted(_pieces(files), key=_cost_bytes, reverse=True)
    tasks = max(context.defaultParallelism * _TASKS_A_CORE, sum(map(_cost_bytes, found)) // _TASK_BYTES)
    # Each task gets a row of neighbours.
    spread = [piece for number in range(tasks) for piece in found[number::tasks]]
    return context.parallelize(spread, tasks)


def _pieces(files: Iterable[SourceFile]) -> Iterator[Piece]:
    for file in files:
        step = max(file.length, 1) if file.path.endswith(COMPRESSED_SUFFIXES) else _PIECE_BYTES
        for start in range(0, max(file.length, 1), step):
            yield Piece(file.path, start, min(start + step, file.length))


def _cost_bytes(piece: Piece) -> int:
    size = piece.end - piece.start
    return _OPEN_COST_BYTES + (size * _COMPRESSED if piece.path.endswith(COMPRESSED_SUFFIXES) else size)


def lines(spark: SparkSession, paths: Sequence[str]) -> RDD[bytes]:
    """Return the lines of plain files as they are, each behind the URI of its file and a tab.

    Spark's own reader of text splits large files.
    """
    _set_unset(spark)
    frame = spark.read.option(_GLOB_PATHS, "false").option("lineSep", "\n").text(list(paths))
    return _bytes(frame.selectExpr(_LINE))


def large_file(spark: SparkSession, path: str) -> RDD[bytes]:
    """Return what one compressed file holds, still compressed.

    Pickled with its path, as those of ``files``, it would be in the JVM's memory six times.
    """
    return _bytes(spark.read.format("binaryFile").option(_GLOB_PATHS, "false").load(path).select("content"))


def _bytes(frame: DataFrame) -> RDD[bytes]:
    """Return the values of the only column, of type BINARY, without pickling them."""
    from pyspark import RDD
    from pyspark.serializers import UTF8Deserializer

    context = frame.sparkSession.sparkContext
    jvm: Any = context._jvm  # noqa: SLF001
    # As `DataFrame.toJSON` does it with strings; what is not decoded in Python need not be one.
    content = getattr(frame._jdf, "as")(jvm.org.apache.spark.sql.Encoders.BINARY())  # noqa: SLF001
    return RDD(content.toJavaRDD(), context, UTF8Deserializer(use_unicode=False))  # type: ignore[no-untyped-call]


def files(spark: SparkSession, paths: Sequence[str]) -> RDD[Row]:
    """Return compressed files, none of them large, as (path, content).

    They are decompressed in Python, where a torn one fails no job.
    """
    _set_unset(spark)
    kept = spark.conf.get(_PARTITION_BYTES)
    spark.conf.set(_PARTITION_BYTES, LARGE_BYTES)
    try:
        frame = spark.read.format("binaryFile").option(_GLOB_PATHS, "false").load(list(paths))
        # Spark plans the partitions now.
        return frame.select("path", "content").rdd
    finally:
        spark.conf.set(_PARTITION_BYTES, str(kept))


def _set_unset(spark: SparkSession) -> None:
    """Set for many small files what the user has not set."""
    given = spark.sparkContext.getConf()
    cores = spark.sparkContext.defaultParallelism
    # By Spark's default each path is asked for by a task of its own.
    for key, value in ((_OPEN_COST, _OPEN_COST_BYTES), (_LISTING_TASKS, _LISTING_TASKS_A_CORE * cores)):
        if given.get(key) is None:
            spark.conf.set(key, value)
