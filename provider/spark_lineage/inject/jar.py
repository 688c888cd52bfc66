"""Get the OpenLineage listener jar to where Spark can load it, from a path, a URL or a Maven coordinate."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from spark_lineage.inject.class_path import Jar, JarNotFoundError
from spark_lineage.inject.installation import InstallationNotFoundError, SparkInstallation
from spark_lineage.inject.ivy import COORDINATE, Ivy
from spark_lineage.inject.jar_cache import CacheEntry
from spark_lineage.inject.jar_file import check_jar
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.defaults import DEFAULT_JAR

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):/")
_CHUNK_BYTES = 256 * 1024


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
    """Return the jar that ``spec`` names; ``{scala}`` in it becomes the Scala version of the ``installation``.

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
        entry = _entry_of_url(cache_dir, spec)
        file = entry.get(lambda folder, seconds: _download(spec, entry.origin, folder, seconds), timeout_seconds)
    elif scheme == "file" or spec.startswith("/"):
        path = _path_of(spec) if scheme else Path(spec)
        file = check_jar(path, str(path))
    elif scheme:
        return Jar(spec, is_local=False)
    elif COORDINATE.fullmatch(spec):
        circumstances = "\n".join([_version(ivy_settings), env.get("DEFAULT_ARTIFACT_REPOSITORY", ""), *repositories])
        file = CacheEntry(cache_dir, spec, spec.partition(":")[2].replace(":", "-"), spec, circumstances).get(
            lambda folder, seconds: Ivy(_installed(installation).jars, ivy_settings, repositories, env).resolve(
                spec, folder, seconds
            ),
            timeout_seconds,
        )
    else:
        raise JarNotFoundError(
            f"The OpenLineage listener jar {redact(spec)!r} is neither an absolute path, nor a URL, nor a Maven "
            f"coordinate (group:artifact:version). Correct it, or leave it out for {DEFAULT_JAR}."
        )
    return Jar(str(file), is_local=True)


def _path_of(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise JarNotFoundError(
            f"The OpenLineage listener jar {redact(url)} is on another machine. Write it as file:///path."
        )
    return Path(unquote(parts.path))


def _installed(installation: Callable[[], SparkInstallation]) -> SparkInstallation:
    try:
        return installation()
    except InstallationNotFoundError as error:
        raise JarNotFoundError(f"Resolving the OpenLineage listener jar needs Spark. {error}") from error


def _version(settings: str | None) -> str:
    """Return a settings file and when it was changed: a failure with the old one says nothing about the new one."""
    try:
        return f"{settings} {Path(settings).stat().st_mtime_ns}" if settings else ""
    except OSError:
        return settings or ""


def _entry_of_url(cache_dir: Path, url: str) -> CacheEntry:
    try:
        parts = urlsplit(url)
        # Without login, query and fragment: a signed URL holds its secret in the query.
        origin = redact(urlunsplit((parts.scheme, _host(parts), parts.path, "", "")))
    except ValueError:
        raise JarNotFoundError(f"The OpenLineage listener jar {redact(url)!r} is no valid URL. Correct it.") from None
    return CacheEntry(cache_dir, url, Path(parts.path).stem, origin)


def _download(url: str, origin: str, folder: Path, timeout_seconds: float) -> Path:
    """Write the body of ``url`` to a file in ``folder``; ``origin`` is how errors may call it."""
    deadline = time.monotonic() + timeout_seconds
    parts, target = urlsplit(url), folder / "download"
    try:
        bare = urlunsplit(parts._replace(netloc=_host(parts)))
        request = Request(bare)  # noqa: S310  (http or https)
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            # Unredirected: the login is for this host, not for the storage that it may send us to.
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
        opener = build_opener(_NoDowngrade)
        with opener.open(request, timeout=timeout_seconds) as response, target.open("xb") as stream:
            _copy(response, stream, deadline)
    except (OSError, HTTPException, ValueError) as error:
        # The error's own text and chain may hold the URL with its login.
        raise JarNotFoundError(
            f"Cannot download the OpenLineage listener jar {origin}: {_cause(error)}. "
            "Check the URL from this machine, or set the jar to a local path."
        ) from None
    return target


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _copy(response: HTTPResponse, stream: IO[bytes], deadline: float) -> None:
    # read1 gives what has come; read would wait for a whole chunk, each piece of it with the time limit of its own.
    while chunk := response.read1(_CHUNK_BYTES):
        stream.write(chunk)
        if time.monotonic() > deadline:
            raise TimeoutError
    expected, received = response.headers.get("Content-Length"), stream.tell()
    if expected is not None and received != int(expected):
        raise ValueError(f"the connection ended after {received} of {expected} bytes")


def _cause(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {redact(str(error.reason))}"
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return "the time limit was over"
    return redact(str(reason)) or type(error).__name__


class _NoDowngrade(HTTPRedirectHandler):
    """Follows no redirect from https to http: who listens there could put code into the driver."""

    def redirect_request(  # noqa: PLR0917  (the signature is urllib's)
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            raise ValueError("it redirects from https to another protocol")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
