"""Says what the job itself reads and writes: of files that are read one by one, the listener names the directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from spark_lineage import declare
from spark_lineage.archive.file_system import located

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
