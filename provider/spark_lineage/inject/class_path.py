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
class SubmitArguments:
    """What ``spark-submit`` is told, as far as lineage cares, of the user and as injected."""

    conf: Mapping[str, str]
    jars: str | None = None
    driver_class_path: str | None = None
    packages: str | None = None
    py_files: str | None = None


def inject_jar(
    user: SubmitArguments, file_properties: Mapping[str, str], jar: str, *, deploy_mode: str
) -> tuple[SubmitArguments, dict[str, str]]:
    """Return the arguments with ``jar``, a local path or a URL, and the properties that must stay in a file.

    A flag replaces its property, in spark-submit as here, so whatever is effective today is kept in what we set.

    :raises JarNotFoundError: where Spark would misread its path
    """
    jars, packages, class_path = _effective(user, file_properties)
    is_local = jar.startswith("/")
    # On the driver's class path, the 43 MB are not shipped to the executors. But a jar there sees no class of --jars
    # and --packages, which Spark loads in a child class loader: with Iceberg in --packages and the listener on the
    # class path, every Iceberg dataset is lost, silently; with the listener in --jars none is (measured).
    if deploy_mode == "client" and is_local and not jars.strip() and not packages.strip():
        return replace(user, driver_class_path=_append(class_path, jar, os.pathsep)), {}
    if is_local and (misread := misread_in_lists(jar)):
        raise JarNotFoundError(
            f"the path of the OpenLineage listener jar, {jar}, holds {misread}, which --jars does not take as "
            "it is; choose another openlineage_jar or jar_cache_dir"
        )
    all_jars = _append(jars, jar, ",")
    if user.jars is None and "spark.jars" not in user.conf and looks_secret("", jars):
        return user, {"spark.jars": all_jars}
    return replace(user, jars=all_jars), {}


def brought(user: SubmitArguments, file_properties: Mapping[str, str]) -> list[str]:
    """Return what the user has on the driver's class path: files, and the names of artifacts."""
    jars, packages, class_path = _effective(user, file_properties)
    artifacts = [coordinate.split(":")[1] for coordinate in _split(packages, ",") if ":" in coordinate]
    return [*_split(jars, ","), *_split(class_path, os.pathsep), *artifacts]


def is_listener(name: str) -> bool:
    """Whether a file or an artifact is an ``openlineage-spark`` by its name."""
    # Only the last part of a path counts, or `openlineage-spark/iceberg.jar` would do; `openlineage-spark/*` does.
    return _ARTIFACT in name.rstrip("/*").rpartition("/")[2]


def misread_in_lists(path: str) -> str:
    """Return what of a path Spark takes for something else in its lists of files: separators, patterns, fragments.

    A list with such a path stops the job, or its Python cannot import the file (measured, Spark 3.5 and 4.2).
    """
    return " ".join(sorted(set(path) & set(",:#?*[]{}\\")))


def _effective(user: SubmitArguments, file_properties: Mapping[str, str]) -> tuple[str, str, str]:
    """Return jars, packages and driver class path as spark-submit sees them: a flag replaces its property."""
    properties = {**file_properties, **user.conf}
    flags = (
        (user.jars, "spark.jars"),
        (user.packages, "spark.jars.packages"),
        (user.driver_class_path, "spark.driver.extraClassPath"),
    )
    jars, packages, class_path = (properties.get(key, "") if flag is None else flag for flag, key in flags)
    return jars, packages, class_path


def _split(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


def _append(text: str, part: str, separator: str) -> str:
    return f"{text.rstrip(separator)}{separator}{part}" if text.strip() else part
