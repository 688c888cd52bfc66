"""Get the OpenLineage listener jar to where Spark can load it, from a path, a URL or a Maven coordinate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from spark_lineage.inject.download import download, shown_url
from spark_lineage.inject.errors import InstallationNotFoundError, JarNotFoundError
from spark_lineage.inject.ivy import Ivy, is_coordinate
from spark_lineage.inject.jar_cache import CacheEntry
from spark_lineage.inject.jar_file import check_jar
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.defaults import DEFAULT_JAR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from spark_lineage.inject.installation import SparkInstallation

__all__ = ["Jar", "JarNotFoundError", "resolve_jar"]

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):/")


@dataclass(frozen=True)
class Jar:
    """The listener jar: an absolute path of this machine, or a URL that only Spark can read (``is_local`` is False)."""

    location: str
    is_local: bool


def resolve_jar(
    spec: str,
    *,
    installation: Callable[[], SparkInstallation],
    cache_dir: Path,
    ivy_settings: str | None,
    repositories: Sequence[str],
    env: Mapping[str, str],
    timeout_seconds: float,
) -> Jar:
    """The jar that ``spec`` names; ``{scala}`` in it becomes the Scala version of the ``installation``.

    ``ivy_settings`` and ``repositories`` are the user's ``spark.jars.ivySettings`` and ``spark.jars.repositories``,
    ``env`` the environment of ``spark-submit``. The ``installation`` is looked for only where it is needed.
    Raises ``JarNotFoundError`` with the cause and the remedy, after ``timeout_seconds`` at the latest.
    """
    spec, cache_dir = spec.strip(), cache_dir.absolute()
    if "{scala}" in spec:
        spec = spec.replace("{scala}", _installed(installation).scala_version)
    url = _URL.match(spec)
    scheme = url["scheme"].lower() if url else ""
    if scheme in ("http", "https"):
        return Jar(str(_downloaded(spec, cache_dir, timeout_seconds)), is_local=True)
    if scheme == "file":
        return _local(_path_of(spec))
    if scheme:
        return Jar(spec, is_local=False)
    if spec.startswith("/"):
        return _local(Path(spec))
    if not is_coordinate(spec):
        message = (
            f"The OpenLineage listener jar {redact(spec)!r} is neither an absolute path, nor a URL, nor a Maven "
            f"coordinate (group:artifact:version). Correct it, or leave it out for {DEFAULT_JAR}."
        )
        raise JarNotFoundError(message)

    def resolve(folder: Path, seconds: float) -> Path:
        ivy = Ivy(_installed(installation).jars, ivy_settings, repositories, env)
        return ivy.resolve(spec, folder, seconds)

    name = "-".join(spec.split(":")[1:])
    circumstances = "\n".join([_version(ivy_settings), env.get("DEFAULT_ARTIFACT_REPOSITORY", ""), *repositories])
    file = CacheEntry(cache_dir, spec, name, spec, circumstances).get(resolve, timeout_seconds)
    return Jar(str(file), is_local=True)


def _local(path: Path) -> Jar:
    return Jar(str(check_jar(path, str(path))), is_local=True)


def _downloaded(url: str, cache_dir: Path, timeout_seconds: float) -> Path:
    try:
        origin, name = shown_url(url), Path(urlsplit(url).path).stem
    except ValueError:
        message = f"The OpenLineage listener jar {redact(url)!r} is no valid URL. Correct it."
        raise JarNotFoundError(message) from None
    entry = CacheEntry(cache_dir, url, name, origin)
    return entry.get(lambda folder, seconds: download(url, folder / "download", seconds), timeout_seconds)


def _path_of(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        message = f"The OpenLineage listener jar {redact(url)} is on another machine. Write it as file:///path."
        raise JarNotFoundError(message)
    return Path(unquote(parts.path))


def _installed(installation: Callable[[], SparkInstallation]) -> SparkInstallation:
    try:
        return installation()
    except InstallationNotFoundError as error:
        message = f"Resolving the OpenLineage listener jar needs Spark. {error}"
        raise JarNotFoundError(message) from error


def _version(settings: str | None) -> str:
    """A settings file and when it was changed: a failure with the old one says nothing about the new one."""
    if settings is None:
        return ""
    try:
        return f"{settings} {Path(settings).stat().st_mtime_ns}"
    except OSError:
        return settings
