"""Download a jar over HTTP(S) within a time limit."""

from __future__ import annotations

import base64
import http.client
import os
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from spark_lineage.inject.errors import JarNotFoundError
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

_CHUNK_BYTES = 256 * 1024
_REMEDY = "Check the URL from this machine, or set the jar to a local path."


def shown_url(url: str) -> str:
    """The URL without login, query and fragment: a signed URL holds its secret in the query."""
    parts = urlsplit(url)
    return redact(urlunsplit((parts.scheme, _host(parts), parts.path, "", "")))


def download(url: str, target: Path, timeout_seconds: float) -> Path:
    """Write the body of ``url`` to ``target`` and give that back. Raises ``JarNotFoundError``, without login."""
    deadline = time.monotonic() + timeout_seconds
    try:
        request = _request(url)
        opener = urllib.request.build_opener(_NoDowngrade)
        with opener.open(request, timeout=timeout_seconds) as response, target.open("xb") as stream:
            _copy(response, stream, deadline)
            stream.flush()
            os.fsync(stream.fileno())
    except (OSError, http.client.HTTPException, ValueError) as error:
        message = f"Cannot download the OpenLineage listener jar {shown_url(url)}: {_cause(error)}. {_REMEDY}"
        # The error's own text and chain may hold the URL with its login.
        raise JarNotFoundError(message) from None
    return target


def _request(url: str) -> urllib.request.Request:
    parts = urlsplit(url)
    bare = urlunsplit(parts._replace(netloc=_host(parts), fragment=""))
    request = urllib.request.Request(bare)  # noqa: S310  (http or https)
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        # Unredirected: the login is for this host, not for the storage that it may send us to.
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    return request


def _copy(response: http.client.HTTPResponse, stream: IO[bytes], deadline: float) -> None:
    expected = response.headers.get("Content-Length")
    received = 0
    # read1 gives what has come; read would wait for a whole chunk, each piece of it with the time limit of its own.
    while chunk := response.read1(_CHUNK_BYTES):
        stream.write(chunk)
        received += len(chunk)
        if time.monotonic() > deadline:
            raise TimeoutError
    if expected is not None and received != int(expected):
        message = f"the connection ended after {received} of {expected} bytes"
        raise ValueError(message)


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _cause(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {redact(str(error.reason))}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return "the time limit was over"
    return redact(str(reason)) or type(error).__name__


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to http: who listens there could put code into the driver."""

    def redirect_request(  # noqa: PLR0917  (the signature is urllib's)
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            message = "it redirects from https to another protocol"
            raise ValueError(message)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
