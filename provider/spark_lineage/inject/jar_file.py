"""Tell a jar from what only has its name: an error page, half a download, a folder."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

from spark_lineage.inject.errors import JarNotFoundError

if TYPE_CHECKING:
    from pathlib import Path


def check_jar(file: Path, origin: str) -> Path:
    """Give ``file`` back if Spark can load it; else raise ``JarNotFoundError``, which names ``origin``."""
    try:
        with file.open("rb") as stream:
            is_zip = stream.read(2) == b"PK" and zipfile.is_zipfile(stream)
    except OSError as error:
        message = (
            f"Cannot read the OpenLineage listener jar {origin}: {error.strerror or type(error).__name__}. "
            "Put the jar there, readable for the user that runs the task, or set another place."
        )
        raise JarNotFoundError(message) from error
    if not is_zip:
        message = (
            f"The OpenLineage listener jar {origin} is no jar: it is not a complete zip file. "
            "Look at what it holds, and put a whole jar in its place."
        )
        raise JarNotFoundError(message)
    if any(separator in str(file) for separator in (",", os.pathsep)):
        message = (
            f"The path of the OpenLineage listener jar, {file}, holds ',' or {os.pathsep!r}, which separate jars in "
            "Spark's arguments. Choose a path without them."
        )
        raise JarNotFoundError(message)
    return file
