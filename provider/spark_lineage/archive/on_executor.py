"""Calls a function of this package on an executor: with the package that is there, or with the one that was shipped."""

from __future__ import annotations

import importlib
import platform
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTION = "airflow-provider-spark-lineage"
# Where Spark unpacks what was shipped, below the directory of the application's files on each executor.
SHIPPED_DIRECTORY = "spark_lineage_shipped"
PACKAGE = "spark_lineage"


class OnExecutor:
    """A function for ``mapPartitions``: imports its target on the executor, and returns what that returns.

    Spark brings it there by value (see ``shipping.ship``), so it needs nothing but the standard library and pyspark.

    :param target: ``module:function`` of this package, as in an entry point; it takes an iterator, and returns one
    :param options: its keyword arguments, which can be pickled
    """

    def __init__(self, target: str, options: Mapping[str, Any] | None = None) -> None:
        self._target = target
        self._options = dict(options or {})
        self._version = installed_version()
        self._driver = _platform()

    def __call__(self, iterator: Iterable[Any]) -> Iterator[Any]:
        """Call the target.

        :raises ImportError: when it cannot be imported here; the text says where that is, and what to do
        """
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
                "there, or send an environment that fits (--conf spark.archives=…): see docs/archive-cluster.md"
            ) from error
        yield from function(iterator, **self._options)


def installed_version() -> str | None:
    """The version of this package that this Python has, None where it has none or one that was never installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None


def _shipped_directory() -> str | None:
    """Return where the shipped archive was unpacked; None in the driver, and where nothing was shipped."""
    from pyspark import SparkFiles, TaskContext

    directory = None if TaskContext.get() is None else SparkFiles.get(SHIPPED_DIRECTORY)
    return directory if directory and Path(directory).is_dir() else None


def _add_to_path(directory: str) -> None:
    """Let what was shipped come before what is there: all of it is of the driver's versions."""
    if directory not in sys.path:
        sys.path.insert(0, directory)
        importlib.invalidate_caches()
    # The operator ships `spark_lineage.declare` in an archive of its own; a program may have imported that already.
    package, place = sys.modules.get(PACKAGE), f"{directory}/{PACKAGE}"
    if package is not None and place not in package.__path__:
        package.__path__ = [place, *package.__path__]


def _platform() -> str:
    return f"Python {platform.python_version()}, {sys.platform} {platform.machine()}"
