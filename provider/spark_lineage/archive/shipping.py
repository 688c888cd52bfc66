"""Gives the executors of a cluster this package and the libraries that it merges with, in one archive."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.archive import on_executor
from spark_lineage.archive.on_executor import DISTRIBUTION, SHIPPED_DIRECTORY

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from pyspark import SparkContext

# What executors import; the rest of what this package depends on stays at home, Airflow first of all.
_LIBRARIES = ("msgspec", "zstandard", "google-re2", "openlineage-python")
_PACKAGE = "spark_lineage"
_PYTHON = "spark.pyspark.python"
_LOCAL = re.compile(r"local(\[.*\])?")
# For 40 MB, of which most are compiled, more than the lightest compression costs seconds and gains little.
_COMPRESSION = 1


class ShippingError(RuntimeError):
    """The executors cannot be given what they need; the text says why, and what to do."""


def ship(spark_context: SparkContext) -> None:
    """Have the executors of this application find this package, for what an ``OnExecutor`` calls.

    With a local master they are this very Python. Otherwise each is sent one archive by the file server of the driver,
    as it is sent what ``--py-files`` names. Spark unpacks it: no compiled library can be imported from an archive.

    :raises ShippingError: when a library is not installed, or nothing tells which files are its own
    """
    from pyspark import SparkFiles, cloudpickle

    # An executor cannot import the class before it has been told where from.
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
    """Write the archive, from what this Python has imported and installed.

    :raises ShippingError: when a library is not installed, or nothing tells which files are its own
    :raises OSError: when it cannot be written
    """
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION, strict_timestamps=False
    ) as archive:
        for name, file in sorted(_content().items()):
            archive.write(file, name)


def _content() -> dict[str, Path]:
    """Return what goes into the archive: where each file is, by its name there."""
    content: dict[str, Path] = {}
    for place in map(Path, import_module(_PACKAGE).__path__):
        for file in place.rglob("*"):
            if file.is_file() and file.suffix != ".pyc":
                content.setdefault(f"{_PACKAGE}/{file.relative_to(place).as_posix()}", file)
    # A source tree need not be installed.
    with suppress(PackageNotFoundError):
        # An event names the version of its producer.
        content |= _files(distribution(DISTRIBUTION), only="METADATA")
    for library in _with_requirements(_LIBRARIES):
        content |= _files(library)
    return content


def _files(of: Distribution, only: str | None = None) -> dict[str, Path]:
    if of.files is None:
        raise ShippingError(
            f"{of.metadata['Name']} does not say which files it has, so it cannot be sent; install it here with pip"
        )
    return {
        file.as_posix(): located
        for file in of.files
        # Commands are installed outside, and a file may be gone.
        if ".." not in file.parts and file.suffix != ".pyc" and only in {None, file.name}
        if (located := Path(str(file.locate()))).is_file()
    }


def _with_requirements(names: tuple[str, ...]) -> Iterator[Distribution]:
    """Return these distributions, and those that they need here in turn."""
    from packaging.requirements import Requirement

    waiting, seen = [Requirement(name) for name in names], set[tuple[str, str]]()
    while waiting:
        wanted = waiting.pop()
        try:
            found = distribution(wanted.name)
        except PackageNotFoundError as error:
            raise ShippingError(f"executors need {wanted.name}, which is not installed here: pip install it") from error
        for extra in ("", *wanted.extras):
            if (wanted.name, extra) not in seen:
                seen.add((wanted.name, extra))
                if not extra:
                    yield found
                waiting += [each for each in map(Requirement, found.requires or ()) if _is_needed(each, extra)]


def _is_needed(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
