"""Get the OpenLineage listener jar to where Spark can load it, from a path, a URL or a Maven coordinate."""

from __future__ import annotations

import hashlib
import os
import re
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from spark_lineage.http_client import HttpClient, NoAnswerError, Request
from spark_lineage.inject.installation import InstallationNotFoundError, SparkInstallation
from spark_lineage.inject.properties import LISTENER, JarNotFoundError
from spark_lineage.launch.directory import create_private, without_scheme
from spark_lineage.launch.lock import locked, within
from spark_lineage.settings.places import DEFAULT_JAR

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):/")
_COORDINATE = re.compile(r"(?P<group>[\w.][\w.\-]*):(?P<artifact>[\w.][\w.\-]*):(?P<version>[\w.][\w.\-+]*)", re.ASCII)
_SHA256 = {
    "io.openlineage:openlineage-spark_2.12:1.53.0": "9fe28ee2e5b2cb535cd51b6572394bddeb684bf0c58650a698cf7724ce62d94d",
    "io.openlineage:openlineage-spark_2.13:1.53.0": "5d84b0ae7e72909b5aae7ed87df878bf06b28d9ac3005765c3529d0a66dbae6f",
}
"""The digests of ``DEFAULT_JAR``; of other jars a repository has them beside the jar."""
_CHECKSUM_BYTES = 1024
_CHECKSUM = re.compile(r"\s*(?:[0-9a-fA-F]{64}|[0-9a-fA-F]{40})\b")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_BYTES = 1024 * 1024 * 1024
_MOST_REDIRECTS = 10
# In which class Spark's Ivy has the root of Maven Central.
_IVY_CLASS = "org/apache/ivy/plugins/resolver/IBiblioResolver.class"
_ROOT = re.compile(rb"https://[\w.\-/]+/maven2/")
_CLASS = LISTENER.replace(".", "/") + ".class"
_SCALA = re.compile(r"openlineage-spark_(?P<scala>\d+\.\d+)")
# The class of Scala's `Seq` in a class file that calls Spark.
_SEQUENCES = {"2.13": b"scala/collection/immutable/Seq", "2.12": b"scala/collection/Seq"}


def resolve_jar(
    spec: str,
    *,
    installation: Callable[[], SparkInstallation],
    cache_dir: Path,
    repositories: Sequence[str] = (),
    default_repository: str | None = None,
    timeout_seconds: float | None,
) -> str:
    """Return the path of the jar that ``spec`` names, or its URL where only Spark can read it.

    :param installation: asked for ``{scala}`` in ``spec``, which becomes its Scala version, and for Maven Central
    :param repositories: the roots of Maven repositories, asked in this order; they may hold logins
    :param default_repository: asked after them in place of Maven Central
    :param timeout_seconds: of a download, and of the wait for that of another task; None to download nothing
    :raises JarNotFoundError: with the cause and the remedy
    """
    spec = spec.strip()
    if "{scala}" in spec:
        try:
            spec = spec.replace("{scala}", installation().scala_version)
        except InstallationNotFoundError as error:
            raise JarNotFoundError(f"Resolving the OpenLineage listener jar needs Spark. {error}") from error
    found = _SCHEME.match(spec)
    scheme = found["scheme"].lower() if found else ""
    if scheme == "file" or spec.startswith("/"):
        parts = urlsplit(spec) if scheme else None
        if parts and parts.netloc not in ("", "localhost"):
            raise JarNotFoundError(f"The listener jar {spec} is on another machine. Write it as file:///path.")
        path = Path(unquote(parts.path) if parts else spec)
        _check_jar(path, str(path))
        return str(path)
    if scheme in ("http", "https"):
        location, urls = spec, [spec]
    elif scheme:
        return spec
    elif coordinate := _COORDINATE.fullmatch(spec):
        location = _in_repository(*coordinate.groups())
        urls = _repository_urls(spec, location, [*repositories, default_repository or _maven_central(installation)])
    else:
        raise JarNotFoundError(
            f"The OpenLineage listener jar {spec!r} is neither an absolute path, nor a URL, nor a Maven "
            f"coordinate (group:artifact:version). Correct it, or leave it out for {DEFAULT_JAR}."
        )
    folder = cache_folder(cache_dir)
    name = _UNSAFE.sub("_", Path(_origin(location)).stem)[:80]
    file = folder / f"{name}-{hashlib.sha256(spec.encode()).hexdigest()[:16]}.jar"
    try:
        create_private(folder)
        status = folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise JarNotFoundError(
                f"The cache of listener jars, {folder}, belongs to another user or can be written by others, who "
                "could put their code into the driver. Remove it, or set another cache folder."
            )
        _fill(file, urls, timeout_seconds, None if scheme else _SHA256.get(spec, ""))
    except OSError as error:
        raise JarNotFoundError(
            f"Cannot use the cache of listener jars in {folder}: {error.strerror or type(error).__name__}. "
            "Set a cache folder on a local disk that the user who runs the task can write."
        ) from error
    return str(file)


def _in_repository(group: str, artifact: str, version: str) -> str:
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


def _repository_urls(spec: str, location: str, roots: Sequence[str]) -> list[str]:
    urls = [f"{root.rstrip('/')}/{location}" for root in roots if root]
    trusted = [url for url in urls if spec in _SHA256 or not is_plain(url)]
    if urls and not trusted:
        raise JarNotFoundError(
            f"The OpenLineage listener jar {spec} is not downloaded from {_origin(urls[0])}, because whoever is on the "
            "network could put code into the driver. Name a repository over https, or ask for plain http by giving the "
            "whole URL of the jar."
        )
    return trusted


def is_plain(url: str) -> bool:
    """Whether a URL leads over a network without encryption."""
    with suppress(ValueError):
        parts = urlsplit(url)
        return parts.scheme.lower() == "http" and parts.hostname not in _LOOPBACK
    return False


def cache_folder(cache_dir: Path) -> Path:
    """Return the folder of this user: what another user can write is code of another user in the driver."""
    return cache_dir.absolute() / f"jars-{os.geteuid()}"


def _maven_central(installation: Callable[[], SparkInstallation]) -> str:
    """Return the root of Maven Central as the Ivy among Spark's jars knows it, empty where there is none."""
    with suppress(InstallationNotFoundError, OSError, KeyError, zipfile.BadZipFile):
        for jar in installation().jars.glob("ivy-*.jar"):
            with zipfile.ZipFile(jar) as archive:
                found = _ROOT.search(archive.read(_IVY_CLASS))
                return found[0].decode() if found else ""
    return ""


def _fill(file: Path, urls: Sequence[str], timeout_seconds: float | None, sha256: str | None) -> None:
    """Download a jar unless it is there; a task waits for another one that does it already."""
    if zipfile.is_zipfile(file):
        return
    if timeout_seconds is None:
        raise JarNotFoundError(
            f"The OpenLineage listener jar is not in {file.parent} yet. `spark-lineage doctor` downloads it; with "
            "evidence=both the first task does."
        )
    lock = file.with_suffix(".lock")
    with locked(lock, within(0)) as descriptor:
        if descriptor is not None:
            if not zipfile.is_zipfile(file):
                partial = file.with_suffix(".part")
                try:
                    _download(urls, partial, time.monotonic() + timeout_seconds, sha256)
                    partial.replace(file)
                finally:
                    partial.unlink(missing_ok=True)
            return
    with locked(lock, within(timeout_seconds)) as descriptor:
        has_ended = descriptor is not None
    if not zipfile.is_zipfile(file):
        # Trying again in turn would cost each task the time of all those before it.
        what = "has just failed to download" if has_ended else f"still downloads, after {timeout_seconds:g} s,"
        raise JarNotFoundError(f"Another task {what} the listener jar {file.name}; its log says why.")


def _download(urls: Sequence[str], target: Path, deadline: float, sha256: str | None) -> None:
    """Write the jar of the first URL that has it.

    :param sha256: of the jar; empty where a repository has a checksum beside it, None to check nothing
    """
    causes = []
    for url in urls:
        try:
            _download_one(url, target, deadline)
            _check_jar(target, _origin(url))
            return None if sha256 is None else _check_sum(url, target, deadline, sha256)
        except NoAnswerError as error:
            is_said = error.http_status in {None, 200}
            cause = str(error).partition(": ")[2] or str(error) if is_said else f"HTTP {error.http_status}"
        except (TimeoutError, JarNotFoundError) as error:
            cause = str(error)
        causes.append(f"{_origin(url)}: {cause}")
    raise JarNotFoundError(
        f"Cannot download the OpenLineage listener jar, {'; '.join(causes)}. Check the URL from this machine, name a "
        "Maven repository in spark.jars.repositories or DEFAULT_ARTIFACT_REPOSITORY, or set the jar to a local path."
    )


def _check_sum(url: str, jar: Path, deadline: float, sha256: str) -> None:
    """Compare a jar with its checksum (``.sha256``, ``.sha1``), unless its repository has none."""
    algorithm, wanted, beside = "sha256", sha256, jar.with_suffix(".sum")
    for name in ("sha256", "sha1"):
        if not wanted:
            try:
                _download_one(f"{url}.{name}", beside, deadline, _CHECKSUM_BYTES)
                found = _CHECKSUM.match(beside.read_text("ascii", "replace"))
                algorithm, wanted = name, found[0].strip().lower() if found else ""
            except NoAnswerError as error:
                if error.http_status not in {403, 404, 410}:
                    raise JarNotFoundError(f"its {name} cannot be read: {error}") from error
            beside.unlink(missing_ok=True)
    if wanted:
        with jar.open("rb") as stream:
            digest = hashlib.file_digest(stream, algorithm).hexdigest()
        if digest != wanted:
            raise JarNotFoundError(f"its {algorithm} is {digest}, and should be {wanted}")


def _download_one(url: str, target: Path, deadline: float, most_bytes: int = _MOST_BYTES) -> None:
    client, is_secure, was_plain = HttpClient(), url.lower().startswith("https:"), is_plain(url)
    try:
        for _ in range(_MOST_REDIRECTS):
            if (seconds := deadline - time.monotonic()) <= 0:
                raise TimeoutError("no time was left")
            try:
                with target.open("wb") as stream:
                    client.save(Request(url, seconds=seconds), stream, most_bytes)
                    return
            except NoAnswerError as error:
                if not error.location:
                    raise
                url = urljoin(url, error.location)
            if (is_secure and not url.lower().startswith("https:")) or (is_plain(url) and not was_plain):
                # Without encryption, a third party could put code into the driver.
                raise JarNotFoundError("it redirects to a protocol without encryption, or an unknown one")
        raise JarNotFoundError("it redirects too often")
    finally:
        client.close()


def _origin(url: str) -> str:
    """Return a URL without login, query and fragment: a signed one holds its secret in the query."""
    with suppress(ValueError):
        parts = urlsplit(url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    return url


def _check_jar(file: Path, origin: str) -> None:
    """Refuse a page, half a download, and a path that Spark would split; the error names ``origin``."""
    try:
        with file.open("rb") as stream:
            is_zip = stream.read(2) == b"PK" and zipfile.is_zipfile(stream)
    except OSError as error:
        raise JarNotFoundError(
            f"Cannot read the OpenLineage listener jar {origin}: {error.strerror or type(error).__name__}. "
            "Put the jar there, readable for the user that runs the task, or set another place."
        ) from error
    if not is_zip:
        raise JarNotFoundError(f"The OpenLineage listener jar {origin} is not a jar: it is not a complete zip file.")
    if any(separator in str(file) for separator in (",", os.pathsep)):
        raise JarNotFoundError(
            f"The path of the OpenLineage listener jar, {file}, holds ',' or {os.pathsep!r}, which separate jars in "
            "Spark's arguments. Choose a path without them."
        )


def holds_listener(jar: str) -> bool:
    """Whether a local jar holds the listener, whatever it is called; false for what cannot be read."""
    with suppress(OSError, ValueError, zipfile.BadZipFile), zipfile.ZipFile(without_scheme(jar)) as archive:
        return _CLASS in archive.namelist()
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
                raise JarNotFoundError(f"{jar} has no {LISTENER}: it is not a listener jar. Correct openlineage_jar.")
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
        # Spark reports the fault of a jar of the user's own.
        return
    if scala not in {None, spark.scala_version}:
        raise JarNotFoundError(
            f"{jar} is for Scala {scala}, and Spark {spark.spark_version} has Scala {spark.scala_version}; write "
            "{scala} in openlineage_jar, or bring the listener for that Scala"
        )
