"""Hadoop's file system of one directory, so that an output may lie wherever Spark writes: disks, HDFS, S3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spark_lineage.archive.pointer import DestinationError
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


class FileSystem:
    """The files of one directory, by their names in it; every method raises ``DestinationError`` for what fails.

    :param path: the directory as a path or URI; it need not be there yet
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        if _GLOB.search(path):
            raise DestinationError(f"{redact(path)} has one of []{{}}*?\\ in it, which Spark takes for a pattern")
        if (jvm := getattr(spark, "_jvm", None)) is None:
            raise DestinationError("a Spark Connect session has no JVM of its own, which this needs: use a classic one")
        context: Any = spark.sparkContext
        self.jvm: Any = jvm
        self._gateway: Any = context._gateway  # noqa: SLF001
        self._hadoop: Any = jvm.org.apache.hadoop.fs
        self._conf: Any = context._jsc.hadoopConfiguration()  # noqa: SLF001
        with _told("use", path):
            system, root = located(spark, path)
            self._scheme: str = system.getScheme()
            self.root: str = root.toString().rstrip("/")
        # A local file and its checksum cannot be replaced at once.
        self._system: Any = system.getRawFileSystem() if self._scheme == _LOCAL else system

    def child(self, *names: str) -> str:
        """Return the URI of what is in the directory; of the directory itself without names."""
        return "/".join((self.root, *names))

    def exists(self, name: str) -> bool:
        """Say whether there is such a file or directory."""
        with _told("look for", self.child(name)):
            return bool(self._system.exists(self._path(name)))

    def find(self, glob: str) -> list[str]:
        """Return the names that match, relative to the directory, sorted; none where the directory is not there."""
        with _told("list", self.child(glob)):
            statuses = self._system.globStatus(self._path(glob))
            if statuses is None:
                return []
            paths = self._hadoop.FileUtil.stat2Paths(statuses)
            # One call of the JVM, however many there are. No name of ours has a line end in it.
            text: str = self.jvm.scala.Predef.genericWrapArray(paths).mkString("\n")
        return [path.removeprefix(f"{self.root}/") for path in text.split("\n") if path]

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None where there is none."""
        with _told("read", self.child(name)):
            try:
                stream = self._system.open(self._path(name))
            except Exception as error:
                if _is_missing(error):
                    return None
                raise
            try:
                return bytes(self.jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def write(self, name: str, content: bytes, *, is_durable: bool = False) -> None:
        """Write a small file, over one that is there; who reads meanwhile may get half of it.

        :param is_durable: whether it is to survive a loss of power; not every file system can
        """
        with _told("write", self.child(name)):
            self._put(self._system.create(self._path(name), _OVERWRITE), content, is_durable=is_durable)

    def replace(self, name: str, content: bytes) -> None:
        """Put one content in the place of another: whoever reads, and whatever dies, finds the one or the other."""
        if self._scheme in _OBJECT_STORES:
            self.write(name, content)
            return
        draft = f"{name}.draft"
        self.write(draft, content, is_durable=True)
        with _told("replace", self.child(name)):
            if self._scheme == _LOCAL:
                # rename(2), where Hadoop's FileContext would remove the old file first.
                if not self._system.rename(self._path(draft), self._path(name)):
                    raise DestinationError(f"cannot replace {redact(self.child(name))}: may this user write there?")
                return
            context = self._hadoop.FileContext.getFileContext(self._system.getUri(), self._conf)
            options = self._gateway.new_array(self._hadoop.Options.Rename, 1)
            options[0] = self._hadoop.Options.Rename.OVERWRITE
            context.rename(self._path(draft), self._path(name), options)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one; False where there is. Of those who try at once one succeeds."""
        with _told("write", self.child(name)):
            if self._scheme == _LOCAL:
                # Hadoop looks, and then writes: two may find nothing.
                self._system.mkdirs(self._hadoop.Path(self.root))
                local = self._path(name).toUri().getPath()
                if not self.jvm.java.io.File(local).createNewFile():
                    return False
                self.write(name, content)
                return True
            try:
                stream = self._system.create(self._path(name), not _OVERWRITE)
            except Exception:
                if self._system.exists(self._path(name)):
                    return False
                raise
            self._put(stream, content)
            return True

    def age_seconds(self, name: str) -> float | None:
        """Say how long ago a file was written, by the clock of the file system; None where there is none."""
        probe = f"{name}.clock"
        self.write(probe, b"")
        with _told("look for", self.child(name)):
            now = self._system.getFileStatus(self._path(probe)).getModificationTime()
            self._system.delete(self._path(probe), not _RECURSIVE)
            try:
                written = self._system.getFileStatus(self._path(name)).getModificationTime()
            except Exception as error:
                if _is_missing(error):
                    return None
                raise
        return float(now - written) / 1000

    def delete(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it; nothing happens where there is none."""
        with _told("remove", self.child(name)):
            self._system.delete(self._path(name), _RECURSIVE)

    def delete_empty(self, name: str) -> None:
        """Remove a directory that has nothing in it."""
        with _told("remove", self.child(name)):
            if not self._system.listStatus(self._path(name)):
                self._system.delete(self._path(name), not _RECURSIVE)

    def _path(self, name: str) -> Any:
        return self._hadoop.Path(self.child(name))

    @staticmethod
    def _put(stream: Any, content: bytes, *, is_durable: bool = False) -> None:
        try:
            stream.write(bytearray(content))
            if is_durable:
                stream.hsync()
        finally:
            stream.close()


@contextmanager
def _told(what: str, place: str) -> Iterator[None]:
    try:
        yield
    except DestinationError:
        raise
    except Exception as error:
        why = str(getattr(error, "java_exception", error)).partition("\n")[0]
        raise DestinationError(f"cannot {what} {redact(place)}: {redact(why)}") from None


def _is_missing(error: Exception) -> bool:
    java: Any = getattr(error, "java_exception", None)
    return java is not None and java.getClass().getSimpleName() == "FileNotFoundException"
