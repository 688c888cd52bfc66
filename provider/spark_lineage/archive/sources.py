"""Finds the files of an archive, wherever Hadoop's file systems reach: local disks, HDFS, S3."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_lineage.archive.file_system import located
from spark_lineage.archive.local_files import SCHEME
from spark_lineage.collect.lineage_files import HIDDEN, is_lineage_file, is_status_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CONF_DIRECTORIES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR")
_CONF_FILES = ("core-site.xml", "spark-defaults.conf")
_GLOB = re.compile(r"[\[\]{}*?\\%]")


class SourceError(ValueError):
    """What is no archive; the text says what it is, and what to do."""


class SourceFile(NamedTuple):
    """One file: its URI as Hadoop writes it (``file:/…``, ``hdfs://…``), its bytes, and its time in milliseconds."""

    path: str
    length: int
    modified: int


def find(spark: SparkSession, sources: Sequence[str], *, may_be_empty: bool = False) -> list[SourceFile]:
    """Return the files that are meant, each once, sorted; of a directory its lineage files, at any depth.

    :param sources: files, directories and globs, as paths or URIs
    :param may_be_empty: whether a directory without lineage files is none the worse
    :raises SourceError: where there is none, and for what cannot be listed
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        try:
            files = list(_find(spark, source, may_be_empty=may_be_empty))
        except SourceError:
            raise
        except Exception as error:
            why = str(getattr(error, "java_exception", error)).partition("\n")[0]
            raise SourceError(f"cannot list {source}: {why}") from None
        for file in files:
            _check(file.path)
            found[file.path] = file
    return [found[path] for path in sorted(found)]


def check_local(sources: Iterable[str], conf: Mapping[str, str]) -> None:
    """Refuse a local path that is not there, without Spark; whatever else it may be is left to :func:`find`.

    :param conf: the properties that Spark is given, one of which may say that a bare path is of HDFS
    :raises SourceError: where there is none
    """
    directories = [Path(os.environ[name]) for name in _CONF_DIRECTORIES if name in os.environ]
    if "SPARK_HOME" in os.environ:
        directories.append(Path(os.environ["SPARK_HOME"], "conf"))
    is_default_local = "PYSPARK_GATEWAY_PORT" not in os.environ and not (
        any("defaultFS" in key or key == "fs.default.name" for key in conf)
        or any((each / name).exists() for each in directories for name in _CONF_FILES)
    )
    for source in sources:
        scheme, colon, rest = source.partition(":")
        if _GLOB.search(source) or (colon and scheme != "file") or not (colon or is_default_local):
            continue
        if not os.path.lexists(f"/{rest.lstrip('/')}" if colon else source):
            raise SourceError(f"there is no file {source}")


def _check(path: str) -> None:
    """Refuse what Spark or Hadoop would not read, or worse, pass over."""
    name = posixpath.basename(path)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SourceError(f"Java cannot read {path!a}, as its name is no UTF-8: rename it") from None
    if name.startswith(HIDDEN) and not path.startswith(SCHEME):
        raise SourceError(f"Spark passes over {path}, as its name begins with {name[0]!r}: rename it")


def _find(spark: SparkSession, source: str, *, may_be_empty: bool) -> Iterator[SourceFile]:
    # Spark's own listing passes over names that begin with an underscore, as those of DAGs may.
    system, path = located(spark, source)
    # A name may look like a glob.
    statuses = [system.getFileStatus(path)] if system.exists(path) else _matching(system, path)
    if not statuses:
        raise SourceError(f"there is no file {source}")
    for status in statuses:
        if not status.isDirectory():
            yield _of(status)
            continue
        directory = status.getPath()
        is_local = directory.toString().startswith(SCHEME)
        files = _in_local(directory.toUri().getPath()) if is_local else _in_remote(system, directory)
        kept = [file for file in files if is_lineage_file(file.path)]
        if not may_be_empty and len(statuses) == 1 and all(is_status_file(file.path) for file in kept):
            raise SourceError(f"no *.ndjson file in the directory {source}, plain or compressed")
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
                yield SourceFile(SCHEME + entry.path, status.st_size, status.st_mtime_ns // 1_000_000)


def _in_remote(system: Any, directory: Any) -> Iterator[SourceFile]:
    files = system.listFiles(directory, True)  # noqa: FBT003  # Java's argument has no name
    while files.hasNext():
        yield _of(files.next())


def _of(status: Any) -> SourceFile:
    return SourceFile(status.getPath().toString(), status.getLen(), status.getModificationTime())
