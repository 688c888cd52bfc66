"""Check that a file is a listener jar that Spark can load: not a page, half a download, or for another Scala."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

from spark_lineage.inject.class_path import JarNotFoundError
from spark_lineage.inject.installation import SparkInstallation
from spark_lineage.inject.properties import LISTENER
from spark_lineage.launch.directory import without_scheme

_CLASS = LISTENER.replace(".", "/") + ".class"
_SCALA = re.compile(r"openlineage-spark_(?P<scala>\d+\.\d+)")
# What a Scala `Seq` is to a class file that calls Spark.
_SEQUENCES = {"2.13": b"scala/collection/immutable/Seq", "2.12": b"scala/collection/Seq"}


def check_jar(file: Path, origin: str) -> Path:
    """Return ``file`` back if Spark can load it; else raise ``JarNotFoundError``, which names ``origin``."""
    try:
        with file.open("rb") as stream:
            is_zip = stream.read(2) == b"PK" and zipfile.is_zipfile(stream)
    except OSError as error:
        raise JarNotFoundError(
            f"Cannot read the OpenLineage listener jar {origin}: {error.strerror or type(error).__name__}. "
            "Put the jar there, readable for the user that runs the task, or set another place."
        ) from error
    if not is_zip:
        raise JarNotFoundError(
            f"The OpenLineage listener jar {origin} is no jar: it is not a complete zip file. "
            "Look at what it holds, and put a whole jar in its place."
        )
    if any(separator in str(file) for separator in (",", os.pathsep)):
        raise JarNotFoundError(
            f"The path of the OpenLineage listener jar, {file}, holds ',' or {os.pathsep!r}, which separate jars in "
            "Spark's arguments. Choose a path without them."
        )
    return file


def holds_listener(jar: str) -> bool:
    """Whether a local jar holds the listener, whatever it is called; false for what cannot be read."""
    try:
        with zipfile.ZipFile(without_scheme(jar)) as archive:
            return _CLASS in archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def scala_of(jar: str) -> str | None:
    """Return the Scala that a listener is for: by what its class calls, else by the name of the jar or artifact.

    :raises JarNotFoundError: for a jar without the listener
    :raises OSError: when a local file cannot be read
    :raises zipfile.BadZipFile: for a file that is no jar
    """
    if Path(jar).is_file():
        with zipfile.ZipFile(jar) as archive:
            if _CLASS not in archive.namelist():
                raise JarNotFoundError(f"{jar} has no {LISTENER}: it is no listener jar. Correct openlineage_jar.")
            listener = archive.read(_CLASS)
        if found := [scala for scala, sequence in _SEQUENCES.items() if sequence in listener]:
            return found[0]
    named = _SCALA.search(Path(jar).name)
    return named["scala"] if named else None


def check_scala(jar: str, spark: SparkInstallation) -> None:
    """Refuse a listener for another Scala than Spark's, whose first event would stop the job.

    :raises JarNotFoundError: for one, and for a jar without the listener
    """
    try:
        scala = scala_of(jar)
    except (OSError, zipfile.BadZipFile):
        # Of the user's own; Spark says what is wrong with it.
        return
    if scala not in {None, spark.scala_version}:
        raise JarNotFoundError(
            f"{jar} is for Scala {scala}, and Spark {spark.spark_version} has Scala {spark.scala_version}; write "
            "{scala} in openlineage_jar, or bring the listener for that Scala"
        )
