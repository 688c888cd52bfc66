"""Finds the files of an archive, wherever Hadoop's file systems reach: local disks, HDFS, S3."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_lineage.archive.file_system import located, reason
from spark_lineage.archive.fold import LOCAL
from spark_lineage.archive.pointer import ArchiveError
from spark_lineage.collect.lineage_files import HIDDEN, is_lineage_file, is_status_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_GLOB = re.compile(r"[\[\]{}*?\\%]")


class SourceFile(NamedTuple):
    """One file: its URI as Hadoop writes it (``file:/…``, ``hdfs://…``), its bytes, and its time in milliseconds.

    ``version`` is that of the run that has read it, empty before.
    """

    path: str
    length: int
    modified: int
    version: str = ""


def check_local(sources: Iterable[str], conf: Mapping[str, str]) -> None:
    """Refuse a local path that is not there, without Spark; what else it may be is left to :func:`find`.

    :param conf: the properties that Spark is given, one of which may say that a bare path is of HDFS
    :raises ArchiveError: where there is none
    """
    directories = [os.environ.get(name, "") for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR")]
    directories.append(f"{os.environ.get('SPARK_HOME', '')}/conf")
    files = [Path(each, name) for each in directories if each for name in ("core-site.xml", "spark-defaults.conf")]
    is_default_local = "PYSPARK_GATEWAY_PORT" not in os.environ and not (
        any("fs.default" in key for key in conf) or any(file.exists() for file in files)
    )
    for source in sources:
        scheme, colon, rest = source.partition(":")
        is_local = scheme == "file" if colon else is_default_local
        if is_local and not _GLOB.search(source) and not os.path.lexists(f"/{rest.lstrip('/')}" if colon else source):
            raise ArchiveError(f"there is no file {source}")


def find(spark: SparkSession, sources: Sequence[str], *, may_be_empty: bool = False) -> list[SourceFile]:
    """Return the files that are meant, each once, sorted; of a directory its lineage files, at any depth.

    :param sources: files, directories and globs, as paths or URIs
    :param may_be_empty: whether a directory without lineage files is none the worse
    :raises ArchiveError: where there is none, and for what cannot be listed
    """
    found: set[SourceFile] = set()
    for source in sources:
        try:
            found.update(_find(spark, source, may_be_empty=may_be_empty))
        except ArchiveError:
            raise
        except Exception as error:
            raise ArchiveError(f"cannot list {source}: {reason(error)}") from None
    try:
        "".join(file.path for file in found).encode()
    except UnicodeEncodeError as error:
        named = next(file.path for file in found if error.object[error.start] in file.path)
        raise ArchiveError(f"Java cannot read {named!a}, as its name is no UTF-8: rename it") from None
    return sorted({file.path: file for file in found}.values())


def _find(spark: SparkSession, source: str, *, may_be_empty: bool) -> Iterator[SourceFile]:
    # Spark's own listing passes over names that begin with an underscore, as those of DAGs may.
    system, path = located(spark, source)
    # A name may look like a glob.
    statuses = [system.getFileStatus(path)] if system.exists(path) else _matching(system, path)
    if not statuses:
        raise ArchiveError(f"there is no file {source}")
    for status in statuses:
        if not status.isDirectory():
            yield _of(status)
            continue
        directory = status.getPath()
        is_local = directory.toString().startswith(LOCAL)
        files = _in_local(directory.toUri().getPath()) if is_local else _in_remote(system, directory)
        kept = [file for file in files if is_lineage_file(file.path)]
        if not may_be_empty and len(statuses) == 1 and all(is_status_file(file.path) for file in kept):
            raise ArchiveError(f"no *.ndjson file in the directory {source}, plain or compressed")
        yield from kept


def _matching(system: Any, glob: Any) -> list[Any]:
    found = system.globStatus(glob) or ()
    return [status for status in found if status.isDirectory() or not status.getPath().getName().startswith(HIDDEN)]


def _in_local(root: str) -> Iterator[SourceFile]:
    """A call of the JVM for each file would take longer than reading it."""
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _in_local(entry.path)
            elif entry.is_file():
                status = entry.stat()
                yield SourceFile(LOCAL + entry.path, status.st_size, status.st_mtime_ns // 1_000_000)


def _in_remote(system: Any, directory: Any) -> Iterator[SourceFile]:
    files = system.listFiles(directory, True)  # noqa: FBT003  # Java's argument has no name
    while files.hasNext():
        yield _of(files.next())


def _of(status: Any) -> SourceFile:
    return SourceFile(status.getPath().toString(), status.getLen(), status.getModificationTime())
