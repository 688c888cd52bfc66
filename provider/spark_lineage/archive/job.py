"""Merges an archive: the program that Spark runs, from the command line, by ``spark-submit``, or by the operator."""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from spark_lineage import declare
from spark_lineage.archive.arguments import add_arguments
from spark_lineage.archive.columns import EVENTS
from spark_lineage.archive.day_directories import by_day
from spark_lineage.archive.destination import PARTS, SOURCES, STAGING, Current, Destination, DestinationError
from spark_lineage.archive.file_system import located
from spark_lineage.archive.manifest import Manifest
from spark_lineage.archive.on_executor import DISTRIBUTION, OnExecutor, installed_version
from spark_lineage.archive.parts import Parts, by_run, runs_of
from spark_lineage.archive.pointer import TableFormat
from spark_lineage.archive.shipping import ShippingError, ship
from spark_lineage.archive.sources import SourceError, SourceFile, check_local, find
from spark_lineage.archive.tables import DOCUMENT, TABLES, check_format, session_conf, write_tables
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES
from spark_lineage.merge.stored_state import FORMAT
from spark_lineage.naming.options import NamingError, naming_from
from spark_lineage.secrets.redaction import redact
from spark_lineage.secrets.registered_secrets import airflow_configuration, section_patterns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_UNUSABLE = 2
# What the next run asks for parts in; more versions than that are written together.
_MOST_VERSIONS = 24
# Enough that no task of Spark's is long, few enough that starting them costs nothing.
_EVENTS_A_PARTITION = 50_000
_PARTITIONS_A_CORE = 3
# Of an event: Spark's default is less than what a limit may be set to.
_MOST_CHARACTERS = 2**31 - 1
_DEFAULT_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
_FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
# How many files with lines that were set aside, and tasks that could not be merged, are named.
_NAMED = 20


class ArchiveError(ValueError):
    """An archive that cannot be merged; the text says what, and what to do."""


class Options(Struct, frozen=True):
    """How tasks are merged: the naming, as in ``[spark_lineage]``, and the size above which events lose detail."""

    naming: Mapping[str, str] = field(default_factory=dict)
    max_event_bytes: int = DEFAULT_LIMIT_BYTES


class Summary(Struct, frozen=True):
    """What a run did.

    ``set_aside`` has the numbers of lines by reason, ``torn`` those of files that had any, ``problems`` the run ids of
    tasks that make no event, each with why; of both, the first ones.
    """

    files: int
    read: int = 0
    events: int = 0
    set_aside: Mapping[str, int] = field(default_factory=dict)
    torn: Mapping[str, int] = field(default_factory=dict)
    tasks: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)
    days: int = 0


def merge_archive(
    spark: SparkSession,
    sources: Sequence[str],
    out: str,
    *,
    table_format: TableFormat = "parquet",
    options: Options | None = None,
    is_full: bool = False,
) -> Summary:
    """Merge lineage files into task-level events and tables.

    What an earlier run has read, and has not changed since, is not read again. The output is that of one run over all.

    :param sources: files, directories and globs, as paths or URIs of Spark's file systems
    :param out: a directory, which the first run makes
    :param is_full: read everything, also what was read before
    :raises ArchiveError: for what cannot be read or written
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return _Run(spark, out, table_format, options or Options()).merge(sources, is_full=is_full)
    except (SourceError, DestinationError, ShippingError) as error:
        raise ArchiveError(str(error)) from error
    except (PySparkException, Py4JError) as error:
        why = str(getattr(error, "java_exception", error)).partition("\n")[0]
        raise ArchiveError(f"Spark has failed, and the output is as it was: {why}") from error


class _Run:
    """One run of the job."""

    def __init__(self, spark: SparkSession, out: str, table_format: TableFormat, options: Options) -> None:
        self._spark = spark
        self._out = out
        self._format = table_format
        self._options = options
        self._patterns = section_patterns(airflow_configuration())

    def merge(self, sources: Sequence[str], *, is_full: bool) -> Summary:
        ship(self._spark.sparkContext)
        with Destination(self._spark, self._out) as destination:
            # Where something has been merged, a directory may have been emptied since.
            files = find(self._spark, sources, may_be_empty=destination.current is not None)
            return self._merged(sources, files, destination, is_full=is_full)

    def _merged(
        self, sources: Sequence[str], files: Sequence[SourceFile], destination: Destination, *, is_full: bool
    ) -> Summary:
        this = destination.begin()
        check_format(destination, self._format)
        known, is_anew = self._known(destination, is_full=is_full)
        changed = known.changed(files)
        if not changed and not is_anew:
            return Summary(files=len(files))
        declare_sources(self._spark, sources)
        parts = Parts(self._spark, destination.child(PARTS))
        parts.add(changed, this)
        after = known.after(changed, this)
        new = parts.of_version(this) if changed else parts.of(Manifest({}))
        counted = _Counted(new)
        counted.check(changed)
        if len(after.versions) > _MOST_VERSIONS:
            parts.copy(after.before(this), this)
            after = after.moved(this)
        after.write(self._spark, destination.child(SOURCES, f"version={this}"))
        live = parts.of(after) if known.entries else new
        events = _events(live) if known.entries else counted.events
        runs = runs_of(live)
        replaced = None if is_anew else _replaced(runs, new, runs_of(parts.of(known)), parts.of(known.only(changed)))
        documents = self._documents(by_run(live, runs, replaced, self._partitions(events)))
        staging = destination.child(STAGING, this, "documents")
        # What is read nine times is brought together once.
        by_day(documents).write.parquet(staging)
        documents = self._spark.read.schema(DOCUMENT).parquet(staging)
        tasks, all_ = documents.selectExpr("count_if(problem IS NULL)", "count(*)").first()  # type: ignore[misc]
        problems = documents.where("problem IS NOT NULL").take(_NAMED) if tasks < all_ else []
        days = write_tables(destination, this, self._format, documents, replaced)
        destination.commit(
            Current(
                version=this,
                table_format=self._format,
                days=days,
                settings=self._settings(secrets.token_hex(16)),
                kept={PARTS: list(after.versions)},
            )
        )
        declare_tables(destination.child(name) for name in (EVENTS, *TABLES))
        summary = Summary(
            files=len(files),
            read=len(changed),
            events=counted.events,
            set_aside=counted.set_aside,
            torn=counted.torn,
            tasks=tasks,
            problems={row.run_id: row.problem for row in problems},
            days=sum(1 for each in days.values() if each == this),
        )
        destination.clean_up()
        return summary

    def _known(self, destination: Destination, *, is_full: bool) -> tuple[Manifest, bool]:
        """What has been read, and whether all tasks are to be merged anew: the settings or the code may differ."""
        current = destination.current
        if current is None or is_full or current.settings.get("state_format") != FORMAT:
            return Manifest({}), True
        known = Manifest.read(self._spark, destination.child(SOURCES, f"version={current.version}"))
        salt = current.settings.get("patterns", {}).get("salt", "")
        return known, current.settings != self._settings(salt)

    def _settings(self, salt: str) -> dict[str, Any]:
        """Return what decides what is made of the same files; the patterns of secrets in a form that nobody guesses."""
        patterns = "\n".join(self._patterns).encode()
        digest = hashlib.scrypt(patterns, salt=bytes.fromhex(salt), n=2**14, r=8, p=1).hex()
        return {
            "patterns": {"salt": salt, "digest": digest},
            "state_format": FORMAT,
            "package": installed_version(),
            "naming": dict(self._options.naming),
            "max_event_bytes": self._options.max_event_bytes,
        }

    def _documents(self, parts: DataFrame) -> DataFrame:
        options = {
            "naming": dict(self._options.naming),
            "max_event_bytes": self._options.max_event_bytes,
            "patterns": self._patterns,
        }
        merged = parts.rdd.mapPartitions(OnExecutor("spark_lineage.archive.merging:merge_parts", options))
        # What does not fit the schema is a mistake of ours, and no row of nulls.
        reader = self._spark.read.schema(DOCUMENT).option("mode", "FAILFAST").option("maxStringLen", _MOST_CHARACTERS)
        documents: DataFrame = reader.json(merged)
        return documents

    def _partitions(self, events: int) -> int:
        cores = self._spark.sparkContext.defaultParallelism
        return max(cores * _PARTITIONS_A_CORE, events // _EVENTS_A_PARTITION)


class _Counted:
    """The lines of the files that a run has read, as ``Summary`` has them."""

    def __init__(self, parts: DataFrame) -> None:
        counts = parts.where("application IS NULL").select("file", "read", "set_aside").collect()
        self._files = {row.file for row in counts}
        self.events = sum(row.read for row in counts)
        by_reason: Counter[str] = Counter()
        by_file: Counter[str] = Counter()
        for row in counts:
            by_reason.update(row.set_aside)
            if row.set_aside:
                by_file[row.file] += sum(row.set_aside.values())
        self.set_aside = dict(by_reason)
        self.torn = {file: by_file[file] for file in sorted(by_file)[:_NAMED]}

    def check(self, files: Sequence[SourceFile]) -> None:
        """Raise for files that are gone meanwhile, or that Spark passed over: it does so silently."""
        missing = [file.path for file in files if file.length and file.path not in self._files]
        if missing:
            named = ", ".join(missing[:_NAMED])
            raise ArchiveError(f"not read, so perhaps gone: {named}. The output is as it was; run it again")


def _events(parts: DataFrame) -> int:
    return int(parts.selectExpr("coalesce(sum(read), 0)").first()[0])  # type: ignore[index]


def _replaced(runs: DataFrame, new: DataFrame, runs_before: DataFrame, old: DataFrame) -> DataFrame:
    """Return the runs of all applications of which something has been read anew: the runs they are of, and were."""
    applications = new.select("application").union(old.select("application")).where("application IS NOT NULL")
    touched = applications.distinct()
    either = runs.union(runs_before).join(touched, "application", "left_semi")
    return either.select("run_id").distinct()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program: the arguments are those of ``spark-lineage archive merge``.

    :return: 0, or 2 for what cannot be used
    """
    parser = argparse.ArgumentParser(prog="spark-lineage archive merge", description="Merge lineage files.")
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(arguments: argparse.Namespace) -> int:
    """Run the job by its arguments.

    :return: 0, or 2 for what cannot be used, which is said on standard error
    """
    try:
        options = Options(_pairs("--naming", arguments.naming), arguments.max_event_bytes)
        naming_from(options.naming)
        conf = _pairs("--conf", arguments.conf)
        # Starting Spark takes longer than seeing that there is nothing to read.
        check_local(arguments.sources, conf)
        spark = _session(arguments, conf)
        try:
            summary = merge_archive(
                spark,
                arguments.sources,
                arguments.out,
                table_format=arguments.format,
                options=options,
                is_full=arguments.full,
            )
        finally:
            spark.stop()
    except (ArchiveError, NamingError, SourceError) as error:
        _say(f"spark-lineage: {error}")
        return _UNUSABLE
    for line in _lines(summary):
        _say(line)
    return 0


def _session(arguments: argparse.Namespace, conf: Mapping[str, str]) -> SparkSession:
    try:
        from pyspark import SparkConf
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ArchiveError(f"PySpark is not installed: pip install '{DISTRIBUTION}[spark]'") from error

    # Below spark-submit the JVM runs already, and knows what the user has set; else reading it would start one.
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    given = {**(dict(SparkConf().getAll()) if is_submitted else {}), **conf}
    builder = SparkSession.builder.appName("spark-lineage archive merge")
    if arguments.master or not is_submitted:
        builder = builder.master(arguments.master or "local[*]")
    if not is_submitted:
        # Of a driver that plans, and hands bytes to Python, the second compiler takes more time than it ever gains.
        builder = builder.config(_DEFAULT_JAVA_OPTIONS, _FIRST_COMPILER)
    for key, value in {**session_conf(arguments.format, arguments.out), **given}.items():
        builder = builder.config(key, value)
    # Days are those of UTC, wherever this runs.
    return builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ArchiveError(f"{option} wants KEY=VALUE")
        pairs[key] = value
    return pairs


def _lines(summary: Summary) -> list[str]:
    total = sum(summary.set_aside.values())
    lines = [
        f"{summary.read} of {summary.files} files read, the others are as they were",
        f"{summary.events} lines read, {total} set aside",
        *(f"  {number} {reason}" for reason, number in sorted(summary.set_aside.items())),
        *(f"  {number} in {file}" for file, number in sorted(summary.torn.items())),
        f"{summary.tasks} tasks merged, on {summary.days} days",
    ]
    return lines + [f"not merged: run {run_id}: {why}" for run_id, why in sorted(summary.problems.items())]


def _say(text: str) -> None:
    print(redact(text), file=sys.stderr)  # noqa: T201


def declare_sources(spark: SparkSession, sources: Sequence[str]) -> None:
    """Say that these files, directories and globs are read; outside of ``LineageArchiveOperator`` nobody listens."""
    for source in sources:
        # A path without a scheme is one of Spark's default file system.
        _, path = located(spark, source)
        declare.read(path.toString())


def declare_tables(locations: Iterable[str]) -> None:
    """Say that these directories, as URIs, have been written, from all that was declared as read."""
    for location in locations:
        declare.wrote(location)


if __name__ == "__main__":
    sys.exit(main())
