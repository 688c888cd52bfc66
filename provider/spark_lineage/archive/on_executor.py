"""Calls functions of this package on executors: with the installed package, or with one that the driver sends."""

from __future__ import annotations

import importlib
import platform
import re
import socket
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage.archive.destination import ArchiveError

if TYPE_CHECKING:
    from pyspark import SparkContext

DISTRIBUTION = "airflow-provider-spark-lineage"
# Where Spark unpacks what was shipped, below the directory of the application's files on each executor.
SHIPPED_DIRECTORY = "spark_lineage_shipped"
PACKAGE = "spark_lineage"
# What executors import; the rest of what this package depends on stays at home, Airflow first of all.
_LIBRARIES = ("msgspec", "zstandard", "google-re2", "openlineage-python")
_PYTHON = "spark.pyspark.python"
_LOCAL = re.compile(r"local(\[.*\])?")


class OnExecutor:
    """A function for ``mapPartitions``: imports its target on the executor, and returns what that returns.

    Spark brings it there by value (see ``ship``), so it needs nothing but the standard library and pyspark.

    :param target: ``module:function`` of this package, as in an entry point; it takes an iterator, and returns one
    :param options: its keyword arguments, which can be pickled
    """

    def __init__(self, target: str, options: Mapping[str, Any] | None = None) -> None:
        self._target = target
        self._options = dict(options or {})
        self._version = installed_version()
        self._driver = _platform()

    def __call__(self, iterator: Iterable[Any]) -> Iterator[Any]:
        """Call the target; an ``ImportError`` says where it cannot be imported, and what to do."""
        module, _, name = self._target.partition(":")
        shipped = _shipped_directory()
        # A driver's package that was never installed has no version that another could have.
        if shipped is not None and (self._version is None or installed_version() != self._version):
            _add_to_path(shipped)
        try:
            function = getattr(importlib.import_module(module), name)
        except ImportError as error:
            sent = "nothing" if shipped is None else f"what the driver has ({self._driver})"
            wanted = DISTRIBUTION if self._version is None else f"{DISTRIBUTION}=={self._version}"
            raise ImportError(
                f"the Python of the executor on {socket.gethostname()} ({_platform()}, {sys.executable}) cannot import "
                f"{module}: {error}. It was sent {sent}. Where platforms differ, install {wanted} and its libraries "
                "there, or send an environment that fits (--conf spark.archives=…): see "
                "docs/archive.md#if-platform-or-python-differ"
            ) from error
        yield from function(iterator, **self._options)


def installed_version() -> str | None:
    """The version of this package that this Python has, None where it has none or one that was never installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return None


def _shipped_directory() -> str | None:
    """Return where the shipped archive was unpacked; None in the driver, and where nothing was shipped."""
    from pyspark import SparkFiles, TaskContext

    directory = None if TaskContext.get() is None else SparkFiles.get(SHIPPED_DIRECTORY)
    return directory if directory and Path(directory).is_dir() else None


def _add_to_path(directory: str) -> None:
    """Put what was shipped before the installed packages: all of it has the driver's versions."""
    if directory not in sys.path:
        sys.path.insert(0, directory)
        importlib.invalidate_caches()
    # The operator ships `spark_lineage.declare` in an archive of its own; a program may have imported that already.
    package, place = sys.modules.get(PACKAGE), f"{directory}/{PACKAGE}"
    if package is not None and place not in package.__path__:
        package.__path__ = [place, *package.__path__]


def _platform() -> str:
    return f"Python {platform.python_version()}, {sys.platform} {platform.machine()}"


def ship(spark_context: SparkContext) -> None:
    """Have the executors of this application find this package, for what an ``OnExecutor`` calls.

    With a local master they are this very Python. Otherwise each is sent one archive by the file server of the driver,
    as it is sent what ``--py-files`` names. Spark unpacks it: no compiled library can be imported from an archive.

    :raises ArchiveError: when a library is not installed, or has no list of its files
    """
    from pyspark import SparkFiles, cloudpickle

    # An executor needs the class before it knows where to import it from.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    if _LOCAL.fullmatch(spark_context.master or ""):
        # And not whatever PYSPARK_PYTHON names, or `python3`, which need not have this package.
        spark_context.pythonExec = sys.executable
        return
    # Of a driver that spark-submit has not started, no other process has requested it yet.
    spark_context.pythonExec = spark_context.getConf().get(_PYTHON, spark_context.pythonExec)
    # A directory that Spark removes at the end, in one of its own: files beside it are those that it has distributed.
    folder = Path(SparkFiles.getRootDirectory()) / "to_ship"
    folder.mkdir(exist_ok=True)
    archive = folder / f"{SHIPPED_DIRECTORY}.zip"
    if not archive.exists():
        write_archive(archive)
        spark_context.addArchive(f"{archive}#{SHIPPED_DIRECTORY}")


def write_archive(path: Path) -> None:
    """Write the archive, from what this Python has imported and installed; errors are those of ``ship``."""
    content: dict[str, Path] = {}
    for place in map(Path, importlib.import_module(PACKAGE).__path__):
        for file in place.rglob("*"):
            content.setdefault(f"{PACKAGE}/{file.relative_to(place).as_posix()}", file)
    # A source tree need not be installed; else an event names the version of its producer.
    if installed_version() is not None:
        own = _files(distribution(DISTRIBUTION))
        content |= {name: file for name, file in own.items() if file.name == "METADATA"}
    for library in _with_requirements():
        content |= _files(library)
    # For 40 MB, of which most are compiled, more than the lightest compression costs seconds and gains little.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as archive:
        for name, file in sorted(content.items()):
            # A file may be gone.
            if file.suffix != ".pyc" and file.is_file():
                archive.write(file, name)


def _files(of: Distribution) -> dict[str, Path]:
    """Return where each file of a distribution is, by its name in the archive."""
    if of.files is None:
        raise ArchiveError(
            f"{of.metadata['Name']} does not say which files it has, so it cannot be sent; install it here with pip"
        )
    # Commands are installed outside.
    return {file.as_posix(): Path(str(file.locate())) for file in of.files if ".." not in file.parts}


def _with_requirements() -> list[Distribution]:
    """Return the libraries, and those that they need here in turn."""
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    waiting = [Requirement(name) for name in _LIBRARIES]
    while waiting:
        wanted = waiting.pop()
        if wanted.name in found or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        try:
            found[wanted.name] = distribution(wanted.name)
        except PackageNotFoundError as error:
            raise ArchiveError(f"executors need {wanted.name}, which is not installed here: pip install it") from error
        waiting += map(Requirement, found[wanted.name].requires or ())
    return list(found.values())
