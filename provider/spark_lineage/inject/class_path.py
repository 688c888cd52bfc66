"""Bring the listener jar to the driver, without a second one and without hiding anybody's classes; pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_lineage.inject.transport import looks_secret

_ARTIFACT = "openlineage-spark"


class JarNotFoundError(Exception):
    """The OpenLineage listener jar cannot be had; the text says the cause and the remedy."""


@dataclass(frozen=True)
class Jar:
    """The listener jar: an absolute path of this machine, or a URL that only Spark can read (``is_local`` is False)."""

    location: str
    is_local: bool


@dataclass(frozen=True)
class SubmitArguments:
    """What ``spark-submit`` is told, as far as lineage cares; of the user, and as injected."""

    conf: Mapping[str, str]
    """``--conf``, in order."""
    jars: str | None = None
    """``--jars``, separated by commas."""
    driver_class_path: str | None = None
    """``--driver-class-path``, separated by ``os.pathsep``."""
    packages: str | None = None
    """``--packages``, separated by commas."""
    py_files: str | None = None
    """``--py-files``, separated by commas."""


def inject_jar(
    user: SubmitArguments, file_properties: Mapping[str, str], jar: Jar, *, deploy_mode: str
) -> tuple[SubmitArguments, dict[str, str]]:
    """Add ``jar`` unless the user brings an ``openlineage-spark`` already; ``JarNotFoundError`` where Spark cannot.

    Gives the arguments, and the properties that must stay in a file. A flag replaces its property, in spark-submit as
    here, so whatever is effective today is kept in what we set.
    """
    jars, packages, class_path = _effective(user, file_properties)
    if jar.location in _files(jars, class_path) or _listeners(jars, packages, class_path):
        return user, {}
    # On the driver's class path, the 43 MB are not shipped to the executors. But a jar there sees no class of --jars
    # and --packages, which Spark loads in a child class loader: with Iceberg in --packages and the listener on the
    # class path, every Iceberg dataset is lost, silently; with the listener in --jars none is (measured).
    if deploy_mode == "client" and jar.is_local and not jars.strip() and not packages.strip():
        return replace(user, driver_class_path=_append(class_path, jar.location, os.pathsep)), {}
    if jar.is_local and (misread := misread_in_lists(jar.location)):
        raise JarNotFoundError(
            f"the path of the OpenLineage listener jar, {jar.location}, holds {misread}, which --jars does not take as "
            "it is; choose another openlineage_jar or jar_cache_dir"
        )
    all_jars = _append(jars, jar.location, ",")
    if user.jars is None and "spark.jars" not in user.conf and looks_secret("", jars):
        return user, {"spark.jars": all_jars}
    return replace(user, jars=all_jars), {}


def brought_listeners(user: SubmitArguments, file_properties: Mapping[str, str]) -> list[str]:
    """Return what the user brings of ``openlineage-spark``, files and artifacts: then none has to be found."""
    return _listeners(*_effective(user, file_properties))


def brought_files(user: SubmitArguments, file_properties: Mapping[str, str]) -> list[str]:
    """Return the files on the class paths that the user gives."""
    jars, _, class_path = _effective(user, file_properties)
    return _files(jars, class_path)


def misread_in_lists(path: str) -> str:
    """Return what of a path Spark takes for something else in its lists of files: separators, patterns, fragments.

    A list with such a path stops the job, or its Python cannot import the file (measured, Spark 3.5 and 4.2).
    """
    return " ".join(sorted(set(path) & set(",:#?*[]{}\\")))


def _effective(user: SubmitArguments, file_properties: Mapping[str, str]) -> tuple[str, str, str]:
    """Jars, packages and driver class path as spark-submit will see them: a flag replaces its property."""
    effective = {**file_properties, **user.conf}
    jars = effective.get("spark.jars", "") if user.jars is None else user.jars
    packages = effective.get("spark.jars.packages", "") if user.packages is None else user.packages
    class_path = user.driver_class_path
    if class_path is None:
        class_path = effective.get("spark.driver.extraClassPath", "")
    return jars, packages, class_path


def _listeners(jars: str, packages: str, class_path: str) -> list[str]:
    files = _files(jars, class_path)
    artifacts = [coordinate.split(":")[1] for coordinate in _split(packages, ",") if ":" in coordinate]
    # Only the last part of a path counts, or `openlineage-spark/iceberg.jar` would do; `openlineage-spark/*` does.
    return [each for each in (*files, *artifacts) if _ARTIFACT in each.rstrip("/*").rpartition("/")[2]]


def _files(jars: str, class_path: str) -> list[str]:
    return [*_split(jars, ","), *_split(class_path, os.pathsep)]


def _split(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


def _append(text: str, part: str, separator: str) -> str:
    return f"{text.rstrip(separator)}{separator}{part}" if text.strip() else part
