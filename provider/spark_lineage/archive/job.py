"""Merges an archive: the program that Spark runs, from the command line, by ``spark-submit``, or by the operator."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from spark_lineage import declare
from spark_lineage.archive.destination import (
    EVENTS,
    PARTS,
    SOURCES,
    STAGING,
    ArchiveError,
    Current,
    Destination,
    located,
    reason,
)
from spark_lineage.archive.on_executor import DISTRIBUTION, OnExecutor, installed_version, ship
from spark_lineage.archive.parts import (
    Manifest,
    Parts,
    SourceFile,
    by_run,
    check_local,
    find,
    read_manifest,
    runs_of,
    size_bytes,
    versions_of,
    write_manifest,
)
from spark_lineage.archive.rows import DOCUMENT, TABLES
from spark_lineage.archive.tables import by_day, write_tables
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES
from spark_lineage.merge.state import FORMAT
from spark_lineage.naming.options import NamingError, naming_from
from spark_lineage.secrets.redaction import airflow_configuration, redact, section_patterns

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

# What the next run asks for parts in; more versions than that are written together.
_MOST_VERSIONS = 24
# Enough that no task of Spark's is long, few enough that starting them costs nothing.
_BYTES_A_PARTITION = 160 * 1024 * 1024
_PARTITIONS_A_CORE = 3
# Of an event: Spark's default is less than what a limit may be set to.
_MOST_CHARACTERS = 2**31 - 1
_SESSION = {
    # Other readers of Parquet know no INT96; and no time is out of range.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # Days are those of UTC, wherever this runs.
    "spark.sql.session.timeZone": "UTC",
}
# Of a driver that plans, and hands bytes to Python, the second compiler takes more time than it ever gains.
_FIRST_COMPILER = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}
# How many files with lines that were set aside, and tasks that could not be merged, are named.
_NAMED = 20
_UNKNOWN = SourceFile("", 0, 0)


class Summary(Struct, frozen=True):
    """What a run did.

    ``set_aside`` has the numbers of lines by reason, ``torn`` those of files that had any, ``problems`` the run ids of
    tasks that make no event, each with why; of both, the first ones.
    """

    files: int = 0
    read: int = 0
    events: int = 0
    set_aside: Mapping[str, int] = {}
    torn: Mapping[str, int] = {}
    tasks: int = 0
    problems: Mapping[str, str] = {}
    days: int = 0


def merge_archive(
    spark: SparkSession,
    sources: Sequence[str],
    out: str,
    *,
    event_logs: Sequence[str] = (),
    naming: Mapping[str, str] | None = None,
    max_event_bytes: int = DEFAULT_LIMIT_BYTES,
    is_full: bool = False,
) -> Summary:
    """Merge lineage files, and Spark's event logs, into task-level events and tables.

    What an earlier run has read, and has not changed since, is not read again. The output is that of one run over all.

    :param sources: files, directories and globs, as paths or URIs of Spark's file systems
    :param out: a directory, which the first run makes
    :param event_logs: logs, directories of logs and globs, likewise
    :param naming: how datasets are named, as in ``[spark_lineage]``
    :param max_event_bytes: above this an event loses detail
    :param is_full: read everything, also what was read before
    :raises ArchiveError: for what cannot be read or written
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        ship(spark.sparkContext)
        destination = Destination(spark, out)
        # Where something has been merged, a directory may have been emptied since.
        files = find(spark, sources, event_logs, may_be_empty=destination.current is not None)
        version = destination.begin()
        try:
            patterns = section_patterns(airflow_configuration())
            options = {"naming": dict(naming or {}), "max_event_bytes": max_event_bytes, "patterns": patterns}
            return _merge(destination, version, options, [*sources, *event_logs], files, is_full=is_full)
        finally:
            destination.end(version)
    except (PySparkException, Py4JError) as error:
        raise ArchiveError(f"Spark has failed, and the output is unchanged: {reason(error)}") from error


def _merge(
    destination: Destination,
    this: str,
    options: Mapping[str, Any],
    sources: Sequence[str],
    files: Sequence[SourceFile],
    *,
    is_full: bool,
) -> Summary:
    """Merge what has changed into the version ``this`` of the output, and commit it."""
    spark, current = destination.spark, destination.current
    # What changes the result for the same files; the patterns of secrets are hashed.
    patterns = "\n".join(options["patterns"]).encode()
    digest = hashlib.scrypt(patterns, salt=DISTRIBUTION.encode(), n=2**14, r=8, p=1).hex()
    settings = {**options, "patterns": digest, "state_format": FORMAT, "package": installed_version()}
    known: Manifest = {}
    if current is not None and not is_full and current.settings.get("state_format") == FORMAT:
        known = read_manifest(spark, destination.child(SOURCES, f"version={current.version}"))
    # Also where the settings or the code have changed.
    is_anew = not known or current is None or current.settings != settings
    changed = [file for file in files if known.get(file.path, _UNKNOWN)._replace(version="") != file]
    if not changed and not is_anew:
        return Summary(files=len(files))
    for source in sources:
        # A path without a scheme is one of Spark's default file system.
        declare.read(located(spark, source)[1].toString())
    parts = Parts(spark, destination.child(PARTS))
    parts.add(changed, this)
    after = {**known, **{file.path: file._replace(version=this) for file in changed}}
    new = parts.of_version(this) if changed else parts.of({})
    # Beside the merge, as these are small jobs, which leave cores idle.
    with ThreadPoolExecutor(1, "lineage archive") as beside:
        counted = beside.submit(_counted, new, changed)
        if len(versions_of(after)) > _MOST_VERSIONS:
            parts.copy({path: file for path, file in after.items() if file.version != this}, this)
            after = {path: file._replace(version=this) for path, file in after.items()}
        listed = beside.submit(write_manifest, spark, after, destination.child(SOURCES, f"version={this}"))
        live = parts.of(after) if known else new
        runs = runs_of(live)
        replaced = None
        if not is_anew:
            old = parts.of({file.path: known[file.path] for file in changed if file.path in known})
            # The runs, now and before, of all applications of which something has been read anew.
            touched = new.union(old).where("application IS NOT NULL").select("application").distinct()
            either = runs.union(runs_of(parts.of(known))).join(touched, "application", "left_semi")
            replaced = either.select("run_id").distinct()
        cores = spark.sparkContext.defaultParallelism
        partitions = max(cores * _PARTITIONS_A_CORE, size_bytes(after.values()) // _BYTES_A_PARTITION)
        merge_parts = OnExecutor("spark_lineage.archive.merging:merge_parts", options)
        merged = by_run(live, runs, replaced, partitions).rdd.mapPartitions(merge_parts)
        documents = _kept(spark, merged, destination.child(STAGING, f"version={this}"))
        summary, _ = counted.result(), listed.result()
    tasks, all_ = documents.selectExpr("count_if(problem IS NULL)", "count(*)").first()  # type: ignore[misc]
    first = documents.where("problem IS NOT NULL").take(_NAMED) if tasks < all_ else []
    problems = {row.run_id: row.problem for row in first}
    days = write_tables(destination, this, documents, replaced)
    destination.commit(Current(version=this, days=days, settings=settings, parts=versions_of(after)))
    for name in (EVENTS, *TABLES):
        declare.wrote(destination.child(name))
    changed_days = sum(1 for each in days.values() if each == this)
    return replace(summary, files=len(files), tasks=tasks, problems=problems, days=changed_days)


def _kept(spark: SparkSession, documents: RDD[str], staging: str) -> DataFrame:
    """Write what was merged, as it is read ten times, and return it."""
    # What does not fit the schema is a mistake of ours, and no row of nulls.
    reader = spark.read.schema(DOCUMENT).option("mode", "FAILFAST").option("maxStringLen", _MOST_CHARACTERS)
    by_day(reader.json(documents)).write.parquet(staging)
    return spark.read.schema(DOCUMENT).parquet(staging)


def _counted(parts: DataFrame, files: Sequence[SourceFile]) -> Summary:
    """Count the lines of the files that a run has read; raise for those that are gone, or that Spark passed over."""
    counts = parts.where("application IS NULL").select("file", "read", "set_aside").collect()
    seen = {row.file for row in counts}
    if missing := [file.path for file in files if file.length and file.path not in seen]:
        named = ", ".join(missing[:_NAMED])
        raise ArchiveError(f"not read, so perhaps gone: {named}. The output is unchanged; run it again")
    by_reason, by_file = Counter[str](), Counter[str]()
    for row in counts:
        by_reason.update(row.set_aside)
        by_file[row.file] += sum(row.set_aside.values())
    torn = {file: by_file[file] for file in sorted(+by_file)[:_NAMED]}
    return Summary(read=len(files), events=sum(row.read for row in counts), set_aside=dict(by_reason), torn=torn)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job, which the command, ``spark-submit`` and the operator give alike."""
    add = parser.add_argument
    pairs: dict[str, Any] = {"action": "append", "type": _pair, "default": [], "metavar": "KEY=VALUE"}
    files = "lineage file, directory or glob, as a path or a URI of Spark's file systems"
    add("sources", nargs="*", metavar="SRC", help=files)
    logs = "Spark's event log, directory of logs or glob, likewise; may be repeated, and is enough without a SRC"
    add("--event-log", action="append", default=[], metavar="PATH", help=logs)
    add("--out", required=True, metavar="DST", help="directory of the output, as a path or a URI")
    add("--full", action="store_true", help="read every file, also what an earlier run has read")
    add("--master", metavar="URL", help="where Spark runs; default: that of spark-submit, else local[*]")
    add("--conf", **pairs, help="a Spark property; may be repeated")
    names = "how datasets are named, as in [spark_lineage]: hostnamePattern.prod=10\\.1\\..*; may be repeated"
    add("--naming", **pairs, help=names)
    limit = "above this an event loses detail, never a dataset; default: %(default)s"
    add("--max-event-bytes", type=int, default=DEFAULT_LIMIT_BYTES, metavar="N", help=limit)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program: the arguments and the exit code are those of ``spark-lineage archive merge``."""
    parser = argparse.ArgumentParser(prog="spark-lineage archive merge", description="Merge lineage files.")
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(arguments: argparse.Namespace) -> int:
    """Run the job by its arguments; return 0, or 2 for what cannot be used, which standard error says."""
    try:
        naming_from(naming := dict(arguments.naming))
        check_local([*arguments.sources, *arguments.event_log], conf := dict(arguments.conf))
        spark = _session(arguments.master, conf)
        try:
            summary = merge_archive(
                spark,
                arguments.sources,
                arguments.out,
                event_logs=arguments.event_log,
                naming=naming,
                max_event_bytes=arguments.max_event_bytes,
                is_full=arguments.full,
            )
        finally:
            spark.stop()
    except (ArchiveError, NamingError) as error:
        _print(f"spark-lineage: {error}")
        return 2
    for line in _lines(summary):
        _print(line)
    return 0


def _session(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ArchiveError(f"PySpark is not installed: pip install '{DISTRIBUTION}[spark]'") from error

    # Below spark-submit the JVM runs already.
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName("spark-lineage archive merge")
    if master or not is_submitted:
        builder = builder.master(master or "local[*]")
    options: dict[str, Any] = {**({} if is_submitted else _FIRST_COMPILER), **conf, **_SESSION}
    return builder.config(map=options).getOrCreate()


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("give KEY=VALUE")
    return key, value


def _lines(summary: Summary) -> list[str]:
    lines = [
        f"{summary.read} of {summary.files} files read, the others are unchanged",
        f"{summary.events} lines read, {sum(summary.set_aside.values())} set aside",
        *(f"  {number} {reason}" for reason, number in sorted(summary.set_aside.items())),
        *(f"  {number} in {file}" for file, number in sorted(summary.torn.items())),
        f"{summary.tasks} tasks merged, on {summary.days} days",
    ]
    return lines + [f"not merged: run {run_id}: {why}" for run_id, why in sorted(summary.problems.items())]


def _print(text: str) -> None:
    print(redact(text), file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
