"""The files of an archive and their parts: what is kept between runs, and which tasks need a new merge.

Files are on any of Hadoop's file systems: local disks, HDFS, S3. Parts are a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_lineage.archive.destination import ArchiveError, located, reported
from spark_lineage.archive.fold import LOCAL, PART, PART_OF_LOG, Piece
from spark_lineage.archive.on_executor import OnExecutor
from spark_lineage.launch.directory import ROLLING
from spark_lineage.plans.event_log_files import IN_PROGRESS, is_event_log
from spark_lineage.submission.lineage_files import COMPRESSED_SUFFIXES, HIDDEN, is_lineage_file, is_status_file

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

_FILES = "file string, length bigint, modified bigint, is_event_log boolean, version string"
# Spark sends what a task is to write along with it: some megabytes.
_ENTRIES_A_TASK = 20_000
# Lineage files are many and small; by Spark's default each counts as four megabytes.
_OPEN_COST_BYTES = 128 * 1024
_PIECE_BYTES = 32 * 1024 * 1024
_TASK_BYTES = 64 * 1024 * 1024
# What an executor can hold of one file of HDFS or S3, several times.
_MOST_BYTES = 512 * 1024 * 1024
_TASKS_A_CORE = 3
# How much larger lineage is than its compressed file.
_COMPRESSED = 20
# By Spark's default each path is asked for by a task of its own.
_LISTING_TASKS_A_CORE = 4
# As Spark itself has them for paths that are none: a name may look like a glob.
_GLOB_PATHS = "__globPaths__"
# Bytes, as Java's strings would have U+FFFD for whatever is no UTF-8.
_LOCATED = "concat(CAST(concat(_metadata.file_path, '\\t') AS BINARY), CAST({} AS BINARY))"
# With one of these, a file may say that a bare path is not of this machine.
_CONFIGURED = frozenset({"HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_GATEWAY_PORT"})
_GLOB = re.compile(r"[\[\]{}*?\\%]")
_LOG = f"regexp_replace(_metadata.file_path, '{PART_OF_LOG}', '$1')"


class SourceFile(NamedTuple):
    """One file: its URI as Hadoop writes it (``file:/…``, ``hdfs://…``), its bytes, and its time in milliseconds.

    An event log may be a directory; while it is written, its name has another ending, which is not in ``path``.
    ``version`` is that of the run that has read it, empty before.
    """

    path: str
    length: int
    modified: int
    is_event_log: bool = False
    version: str = ""


Manifest = Mapping[str, SourceFile]
"""The files that have been read, by path; one that was removed since stays, so that its lineage does too."""


def check_local(sources: Sequence[str], conf: Mapping[str, str]) -> None:
    """Refuse a local path that is not there before Spark starts; :func:`find` looks for all others.

    :param conf: the properties that Spark is given, one of which may say that a bare path is of HDFS
    :raises ArchiveError: where there is none
    """
    if not sources:
        raise ArchiveError("give a SRC of lineage files, an --event-log, or both")
    is_default_local = _CONFIGURED.isdisjoint(os.environ) and not any("fs.default" in key for key in conf)
    for source in sources:
        scheme, colon, rest = source.partition(":")
        is_local = scheme == "file" if colon else is_default_local
        if is_local and not _GLOB.search(source) and not os.path.lexists(f"/{rest.lstrip('/')}" if colon else source):
            raise ArchiveError(f"there is no file {source}")


def find(
    spark: SparkSession, sources: Sequence[str], event_logs: Sequence[str] = (), *, may_be_empty: bool = False
) -> list[SourceFile]:
    """Return the files that are meant, each once, sorted; of a directory its lineage files, at any depth.

    :param sources: files, directories and globs, as paths or URIs
    :param event_logs: event logs, directories that hold some, and globs, as paths or URIs
    :param may_be_empty: whether a directory without lineage files, or without event logs, is none the worse
    :raises ArchiveError: where there is none, and for what cannot be listed
    """
    found: dict[str, SourceFile] = {}
    for find_in, named in ((_find_event_logs, event_logs), (_find, sources)):
        for source in named:
            with reported("list", source):
                found |= {file.path: file for file in find_in(spark, source, may_be_empty=may_be_empty)}
    try:
        "".join(found).encode()
    except UnicodeEncodeError as error:
        path = next(path for path in found if error.object[error.start] in path)
        raise ArchiveError(f"Java cannot read {path!a}, as its name is not UTF-8: rename it") from None
    return sorted(found.values())


def _find(spark: SparkSession, source: str, *, may_be_empty: bool) -> Iterator[SourceFile]:
    # Spark's own listing passes over names that begin with an underscore, as those of DAGs may.
    system, statuses = _statuses(spark, source)
    for status in statuses:
        directory = status.getPath()
        if not status.isDirectory():
            yield _of(status)
            continue
        is_local = directory.toString().startswith(LOCAL)
        files = _in_local(directory.toUri().getPath()) if is_local else _in_remote(system, directory)
        kept = [file for file in files if is_lineage_file(file.path)]
        if not may_be_empty and len(statuses) == 1 and all(is_status_file(file.path) for file in kept):
            raise ArchiveError(f"no *.ndjson file in the directory {source}, plain or compressed")
        yield from kept


def _statuses(spark: SparkSession, source: str) -> tuple[Any, list[Any]]:
    """Return a file system, and the status there of what a source names; objects of the JVM."""
    system, path = located(spark, source)
    # A name may look like a glob.
    if system.exists(path):
        return system, [system.getFileStatus(path)]
    found = system.globStatus(path) or ()
    statuses = [each for each in found if each.isDirectory() or not each.getPath().getName().startswith(HIDDEN)]
    if not statuses:
        raise ArchiveError(f"there is no file {source}")
    return system, statuses


def _find_event_logs(spark: SparkSession, source: str, *, may_be_empty: bool) -> Iterator[SourceFile]:
    """Return the event logs that a source names, or that lie in a directory of that name."""
    is_empty = True
    for status in _statuses(spark, source)[1]:
        path, is_directory = status.getPath(), status.isDirectory()
        is_log = not is_directory or is_event_log(path.getName(), is_directory=True)
        entries = [(_of(status), is_directory)] if is_log else sorted(_entries(spark, path.toString()), reverse=True)
        # Of two that differ by what a growing one is named, the one that has ended comes last, and counts.
        for file, is_rolling in entries:
            if is_log or is_event_log(file.path.rpartition("/")[2], is_directory=is_rolling):
                files = [each for each, _ in _entries(spark, file.path)] if is_rolling else [file]
                length, modified = sum(each.length for each in files), max((each.modified for each in files), default=0)
                yield SourceFile(file.path.removesuffix(IN_PROGRESS), length, modified, is_event_log=True)
                is_empty = False
    if is_empty and not may_be_empty:
        raise ArchiveError(f"no event log in the directory {source}: check spark.eventLog.dir of the applications")


def _entries(spark: SparkSession, directory: str) -> Iterator[tuple[SourceFile, bool]]:
    """Return what lies in a directory, and whether it is one itself."""
    if not directory.startswith(LOCAL):
        system, path = located(spark, directory)
        for status in system.listStatus(path):
            yield _of(status), status.isDirectory()
        return
    with os.scandir(directory.removeprefix(LOCAL)) as entries:
        for entry in entries:
            # Spark renames logs, and removes old ones.
            with suppress(FileNotFoundError):
                yield _of_local(entry), entry.is_dir()


def _in_local(root: str) -> Iterator[SourceFile]:
    """A call of the JVM for each file would take longer than reading it."""
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _in_local(entry.path)
            elif entry.is_file():
                yield _of_local(entry)


def _of_local(entry: os.DirEntry[str]) -> SourceFile:
    status = entry.stat()
    return SourceFile(LOCAL + entry.path, status.st_size, status.st_mtime_ns // 1_000_000)


def _in_remote(system: Any, directory: Any) -> Iterator[SourceFile]:
    files = system.listFiles(directory, True)  # noqa: FBT003  # Java's argument has no name
    while files.hasNext():
        yield _of(files.next())


def _of(status: Any) -> SourceFile:
    return SourceFile(status.getPath().toString(), status.getLen(), status.getModificationTime())


def read_manifest(spark: SparkSession, path: str) -> Manifest:
    """Read what ``write_manifest`` wrote."""
    return {row.file: SourceFile(*row) for row in spark.read.schema(_FILES).parquet(path).collect()}


def write_manifest(spark: SparkSession, manifest: Manifest, path: str) -> None:
    """Write a manifest as Parquet."""
    _frame(spark, manifest).write.parquet(path, compression="zstd")


def _frame(spark: SparkSession, manifest: Manifest) -> DataFrame:
    rows = [tuple(file) for file in manifest.values()]
    tasks = spark.sparkContext.parallelize(rows, 1 + len(rows) // _ENTRIES_A_TASK)
    return spark.createDataFrame(tasks, _FILES, verifySchema=False)


class Parts:
    """The parts in a directory, in ``version=V`` for each version that read something; those of one never change."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self._directory = directory

    def add(self, files: Sequence[SourceFile], version: str) -> None:
        """Read files, fold them on executors, and keep what comes out."""
        local: list[SourceFile] = []
        logs, packed, plain = list[str](), list[str](), list[str]()
        for file in files:
            if file.path.startswith(LOCAL) or _is_too_large(file):
                local.append(file)
            elif file.is_event_log:
                logs.append(_present(self._spark, file.path))
            else:
                (packed if file.path.endswith(COMPRESSED_SUFFIXES) else plain).append(file.path)
        if local:
            self._fold(_pieces(self._spark, local), "fold_pieces", version)
        if plain:
            self._fold(_located(self._spark, plain, "text", "value", _TASK_BYTES), "fold_located", version)
        if packed:
            read = _located(self._spark, packed, "binaryFile", "content", _TASK_BYTES // _COMPRESSED)
            self._fold(read, "fold_located", version)
        if logs:
            read = _located(self._spark, logs, "binaryFile", "content", _TASK_BYTES, is_by_log=True)
            self._fold(read, "fold_event_logs", version)

    def copy(self, manifest: Manifest, version: str) -> None:
        """Write the parts of a manifest once more, together: many versions make many small files."""
        self._write(self.of(manifest).repartition("application"), version)

    def _fold(self, read: RDD[Any], function: str, version: str) -> None:
        parts = read.mapPartitions(OnExecutor(f"spark_lineage.archive.fold:{function}"))
        self._write(self._spark.createDataFrame(parts, PART, verifySchema=False), version)

    def _write(self, parts: DataFrame, version: str) -> None:
        parts.write.mode("append").parquet(f"{self._directory}/version={version}", compression="zstd")

    def of_version(self, version: str) -> DataFrame:
        """Return all parts that a version has written."""
        return self._spark.read.schema(PART).parquet(f"{self._directory}/version={version}")

    def of(self, manifest: Manifest) -> DataFrame:
        """Return the parts of the files of a manifest, as they were read last."""
        paths = [f"{self._directory}/version={version}" for version in versions_of(manifest)]
        if not paths:
            return self._spark.createDataFrame([], PART)
        reader = self._spark.read.schema(f"{PART}, version string").option("basePath", self._directory)
        entries = _frame(self._spark, manifest).select("file", "version")
        return reader.parquet(*paths).join(entries, ["file", "version"], "left_semi").drop("version")


def versions_of(manifest: Manifest) -> list[str]:
    """Return the versions that hold the parts of a manifest, sorted."""
    return sorted({file.version for file in manifest.values()})


def size_bytes(files: Iterable[SourceFile]) -> int:
    """Return about how many bytes files hold, decompressed."""
    return sum(_decompressed(file.path, file.length) for file in files)


def _decompressed(path: str, size: int) -> int:
    return size * _COMPRESSED if path.endswith(COMPRESSED_SUFFIXES) else size


def _pieces(spark: SparkSession, files: Iterable[SourceFile]) -> RDD[Piece]:
    """Return the pieces of files of disks, spread over tasks that have about the same to do."""

    def cut(file: SourceFile) -> Iterator[Piece]:
        is_whole = file.is_event_log or file.path.endswith(COMPRESSED_SUFFIXES)
        step = max(file.length, 1) if is_whole else _PIECE_BYTES
        for start in range(0, max(file.length, 1), step):
            yield Piece(file.path, start, min(start + step, file.length), file.is_event_log)

    def cost_bytes(piece: Piece) -> int:
        return _OPEN_COST_BYTES + _decompressed(piece.path, piece.end - piece.start)

    context = spark.sparkContext
    found = sorted((piece for file in files for piece in cut(file)), key=cost_bytes, reverse=True)
    tasks = max(context.defaultParallelism * _TASKS_A_CORE, sum(map(cost_bytes, found)) // _TASK_BYTES)
    # Each task gets a row of neighbours.
    return context.parallelize([piece for number in range(tasks) for piece in found[number::tasks]], tasks)


def _is_too_large(file: SourceFile) -> bool:
    """Whether an event log that is not on a disk is one file that no executor holds; one in parts is read by parts."""
    is_one = file.is_event_log and not file.path.rpartition("/")[2].startswith(ROLLING)
    return is_one and file.length > _MOST_BYTES and not file.path.startswith(LOCAL)


def _present(spark: SparkSession, path: str) -> str:
    # While it is written, it has another ending.
    system, place = located(spark, path)
    return path if system.exists(place) else path + IN_PROGRESS


def _located(
    spark: SparkSession, paths: list[str], source: str, column: str, task_bytes: int, *, is_by_log: bool = False
) -> RDD[bytes]:
    """Return the lines of files, or their whole content, each behind the URI of its file and a tab.

    :param is_by_log: whether the files of one event log come one after the other
    """
    from pyspark import RDD
    from pyspark.serializers import UTF8Deserializer

    own = spark.newSession()
    context = spark.sparkContext
    own.conf.set("spark.sql.files.openCostInBytes", _OPEN_COST_BYTES)
    own.conf.set("spark.sql.files.maxPartitionBytes", task_bytes)
    listing = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    own.conf.set(listing, _LISTING_TASKS_A_CORE * context.defaultParallelism)
    frame = own.read.format(source).option(_GLOB_PATHS, "false").option("lineSep", "\n").load(paths)
    lines = frame.selectExpr(f"{_LOCATED.format(column)} AS line", f"{_LOG} AS log")
    if is_by_log:
        lines = lines.repartition("log").sortWithinPartitions("log")
    # As `DataFrame.toJSON` does it with strings: nothing is decoded or pickled.
    jvm: Any = context._jvm  # noqa: SLF001
    content = getattr(lines.select("line")._jdf, "as")(jvm.org.apache.spark.sql.Encoders.BINARY())  # noqa: SLF001
    return RDD(content.toJavaRDD(), context, UTF8Deserializer(use_unicode=False))  # type: ignore[no-untyped-call]


def runs_of(parts: DataFrame) -> DataFrame:
    """Return the task run of each application (application, run_id): the greatest parent that any part of it names.

    An application that names none is a run of its own. ``is_mixed``: some of its parts name another run, or none.
    """
    from pyspark.sql import functions as f

    named = parts.where("application IS NOT NULL").groupBy("application")
    own = f.coalesce("parent", "application")
    run_id = f.coalesce(f.max("parent"), f.col("application"))
    return named.agg(run_id.alias("run_id"), (f.min(own) != f.max(own)).alias("is_mixed"))


def by_run(parts: DataFrame, runs: DataFrame, wanted: DataFrame | None, partitions: int) -> DataFrame:
    """Return run id and state of each part, those of a run together; the shuffle of the merge.

    :param runs: of the same parts, from :func:`runs_of`
    :param wanted: which runs (run_id), None for all
    """
    from pyspark.sql import functions as f

    # Nearly all parts name the run that is right; looking up the others spares those a shuffle.
    others = runs.where("is_mixed").select("application", "run_id")
    found = parts.where("content IS NOT NULL").join(others, "application", "left")
    keyed = found.select(f.coalesce("run_id", "parent", "application").alias("run_id"), "content")
    if wanted is not None:
        keyed = keyed.join(wanted, "run_id", "left_semi")
    return keyed.repartition(partitions, "run_id").sortWithinPartitions("run_id")
