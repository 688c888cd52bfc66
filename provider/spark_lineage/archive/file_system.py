"""Hadoop's file system of one directory, so that an output may lie wherever Spark writes: disks, HDFS, S3."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from spark_lineage.archive.pointer import ArchiveError
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Here a file that is written over is replaced when it is closed, and a rename is a copy.
_OBJECT_STORES = frozenset({"s3", "s3a", "s3n", "gs", "oss", "cosn", "obs", "tos", "bos", "swift", "wasb", "wasbs"})
_LOCAL = "file"
# What Spark reads as a glob where it reads a path.
_GLOB = re.compile(r"[\[\]{}*?\\]")
# The arguments of Java's methods have no names.
_OVERWRITE, _RECURSIVE = True, True


def located(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The file system of Hadoop that a path or URI is of, and its whole URI there, both as objects of the JVM."""
    context: Any = spark.sparkContext
    name = context._jvm.org.apache.hadoop.fs.Path(path)  # noqa: SLF001
    system = name.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
    return system, system.makeQualified(name)


def reason(error: Exception) -> str:
    """Return why Spark or Hadoop has failed, without Java's stack."""
    return str(getattr(error, "java_exception", error)).partition("\n")[0]


class FileSystem:
    """The files of one directory, by their names in it; every method raises ``ArchiveError`` for what fails.

    :param path: the directory as a path or URI; it need not be there yet
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        if _GLOB.search(path):
            raise ArchiveError(f"{redact(path)} has one of []{{}}*?\\ in it, which Spark takes for a pattern")
        self.spark = spark
        self._context = context = cast("Any", spark.sparkContext)
        self._jvm = context._jvm  # noqa: SLF001
        self._hadoop = self._jvm.org.apache.hadoop.fs
        with _reported("use", path):
            system, root = located(spark, path)
            self._scheme: str = system.getScheme()
            self.root: str = root.toString().rstrip("/")
        # A local file and its checksum cannot be replaced at once.
        self._system: Any = system.getRawFileSystem() if self._scheme == _LOCAL else system

    def child(self, *names: str) -> str:
        """Return the URI of what is in the directory; of the directory itself without names."""
        return "/".join((self.root, *names))

    def find(self, glob: str) -> list[str]:
        """Return the names that match, relative to the directory, sorted; none where the directory is not there."""
        with _reported("list", self.child(glob)):
            statuses = self._system.globStatus(self._path(glob))
            if statuses is None:
                return []
            paths = self._hadoop.FileUtil.stat2Paths(statuses)
            # One call of the JVM, however many there are. No name of ours has a line end in it.
            text: str = self._jvm.scala.Predef.genericWrapArray(paths).mkString("\n")
        return [path.removeprefix(f"{self.root}/") for path in text.split("\n") if path]

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None where there is none."""
        with _reported("read", self.child(name)):
            if not self._system.exists(self._path(name)):
                return None
            stream = self._system.open(self._path(name))
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def replace(self, name: str, content: bytes) -> None:
        """Put one content in the place of another: whoever reads, and whatever dies, finds the one or the other."""
        draft = name if self._scheme in _OBJECT_STORES else f"{name}.{secrets.token_hex(3)}"
        with _reported("write", self.child(name)):
            stream = self._system.create(self._path(draft), _OVERWRITE)
            try:
                stream.write(bytearray(content))
                if draft != name:
                    stream.hsync()
            finally:
                stream.close()
            if self._scheme == _LOCAL:
                # rename(2), where Hadoop's FileContext would remove the old file first.
                if not self._system.rename(self._path(draft), self._path(name)):
                    raise ArchiveError(f"cannot replace {redact(self.child(name))}: may this user write there?")
            elif draft != name:
                conf = self._context._jsc.hadoopConfiguration()  # noqa: SLF001
                options = self._context._gateway.new_array(self._hadoop.Options.Rename, 1)  # noqa: SLF001
                options[0] = self._hadoop.Options.Rename.OVERWRITE
                context = self._hadoop.FileContext.getFileContext(self._system.getUri(), conf)
                context.rename(self._path(draft), self._path(name), options)

    def delete(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it; nothing happens where there is none."""
        with _reported("remove", self.child(name)):
            self._system.delete(self._path(name), _RECURSIVE)

    def _path(self, name: str) -> Any:
        return self._hadoop.Path(self.child(name))


@contextmanager
def _reported(what: str, place: str) -> Iterator[None]:
    try:
        yield
    except ArchiveError:
        raise
    except Exception as error:
        raise ArchiveError(f"cannot {what} {redact(place)}: {redact(reason(error))}") from None
