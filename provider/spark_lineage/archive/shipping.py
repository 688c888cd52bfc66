"""Sends the executors of a cluster this package and the libraries that it merges with, in one archive."""

from __future__ import annotations

import re
import sys
import zipfile
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.archive import on_executor
from spark_lineage.archive.on_executor import DISTRIBUTION, PACKAGE, SHIPPED_DIRECTORY, installed_version
from spark_lineage.archive.pointer import ArchiveError

if TYPE_CHECKING:
    from pyspark import SparkContext

# What executors import; the rest of what this package depends on stays at home, Airflow first of all.
_LIBRARIES = ("msgspec", "zstandard", "google-re2", "openlineage-python")
_PYTHON = "spark.pyspark.python"
_LOCAL = re.compile(r"local(\[.*\])?")


def ship(spark_context: SparkContext) -> None:
    """Have the executors of this application find this package, for what an ``OnExecutor`` calls.

    With a local master they are this very Python. Otherwise each is sent one archive by the file server of the driver,
    as it is sent what ``--py-files`` names. Spark unpacks it: no compiled library can be imported from an archive.

    :raises ArchiveError: when a library is not installed, or nothing tells which files are its own
    """
    from pyspark import SparkFiles, cloudpickle

    # An executor needs the class before it knows where to import it from.
    cloudpickle.register_pickle_by_value(on_executor)  # type: ignore[no-untyped-call]
    if _LOCAL.fullmatch(spark_context.master or ""):
        # And not whatever PYSPARK_PYTHON names, or `python3`, which need not have this package.
        spark_context.pythonExec = sys.executable
        return
    # Of a driver that spark-submit has not started, nobody has asked for it yet.
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
    for place in map(Path, import_module(PACKAGE).__path__):
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
