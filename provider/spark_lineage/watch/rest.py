"""Requests JSON or a file from a REST endpoint: bounded size, credentials to named hosts only, no secrets in errors."""

from __future__ import annotations

import http.client
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, BinaryIO, TypeVar, overload
from urllib.parse import urlsplit

import msgspec
import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies, should_bypass_proxies
from urllib3.exceptions import HTTPError

from spark_lineage.secrets.redaction import redact

Answer = TypeVar("Answer")

MAX_BYTES = 16 * 1024 * 1024
CONNECT_TIMEOUT_SECONDS = 3.0
READ_TIMEOUT_SECONDS = 5.0
# A server that sends a byte now and then keeps every read timeout; this many of them end its answer.
READS = 4
_CHUNK_BYTES = 64 * 1024
_DEFAULT_PORTS = {"http": 80, "https": 443}
_JSON = "application/json, text/json"
LOOPBACK = "localhost,127.0.0.0/8,::1"


@dataclass(frozen=True)
class Access:
    """How the URLs of one origin are asked, in the terms of ``requests``."""

    auth: requests.auth.AuthBase | None = field(default=None, repr=False)
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None


class NoAnswerError(Exception):
    """No answer that can be used; the text has no secrets. ``http_status`` is None where none came."""

    def __init__(self, message: str, http_status: int | None = None) -> None:
        super().__init__(message)
        self.http_status = http_status


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, always spelled the same; empty text when it has none of its own.

    A host with a placeholder (``{application_id}``) is none: the application gives its name, not the connection.
    """
    try:
        parts = urlsplit(url)
        port, host = parts.port or _DEFAULT_PORTS[parts.scheme], parts.hostname
    except (ValueError, KeyError):
        return ""
    if not host or "{" in parts.netloc:
        return ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def place_of(url: str) -> str:
    """Return a URL as it may be shown: without login, parameters, and everything that looks like a secret."""
    origin = origin_of(url)
    return redact(f"{origin}{urlsplit(url).path}") if origin else "an address without scheme or host"


class RestClient:
    """Asks for JSON over connections that are kept.

    :param named: how the origins are asked that the connection names (``origin_of``); all other URLs, such as those
        that came out of a log line or an event, get no credentials and no client certificate
    :param timeout_seconds: for each wait for data; to connect it is 3 seconds at most, for a whole answer four times as
        much
    """

    def __init__(
        self,
        named: Mapping[str, Access] | None = None,
        *,
        verify: bool | str = True,
        timeout_seconds: float = READ_TIMEOUT_SECONDS,
    ) -> None:
        self._named = named or {}
        self._others = Access(verify=verify)
        self._timeout_seconds = timeout_seconds
        # One an origin: cookies know no ports, and that of a Kerberos login is as good as the login.
        self._sessions: dict[str, requests.Session] = {}

    @overload
    def get_json(self, url: str) -> Any: ...
    @overload
    def get_json(self, url: str, shape: type[Answer]) -> Answer: ...
    def get_json(self, url: str, shape: Any = Any) -> Any:
        """Return what a URL answers, decoded as ``shape``.

        :raises NoAnswerError: when no answer came in time, or an error, a redirect, too much, or not JSON of that shape
        """
        return decoded(url, self.get_bytes(url, _JSON), shape)

    def get_bytes(self, url: str, accept: str = "*/*") -> bytes:
        """Return what a URL answers, at most 16 MB; raises as ``get_json``."""
        deadline, stream = time.monotonic() + READS * self._timeout_seconds, BytesIO()
        self.save(url, stream, MAX_BYTES, lambda: time.monotonic() > deadline, accept)
        return stream.getvalue()

    def save(
        self, url: str, stream: BinaryIO, most_bytes: int, is_over: Callable[[], bool], accept: str = "*/*"
    ) -> None:
        """Write what a URL answers, a file of any type.

        :param is_over: asked between two pieces whether to stop there, for a whole file has no deadline
        :raises NoAnswerError: when no answer came in time, or an error, a redirect, or more than ``most_bytes``
        """
        timeouts = (min(CONNECT_TIMEOUT_SECONDS, self._timeout_seconds), self._timeout_seconds)
        session, headers = self._session(url), {"Accept": accept}
        try:
            with session.get(url, headers=headers, timeout=timeouts, allow_redirects=False, stream=True) as response:
                return _copy(response, stream, place_of(url), most_bytes, is_over)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            problem = _problem(error)
        # Out here, so that it does not bring along the error, whose text holds the whole URL.
        raise NoAnswerError(f"{place_of(url)}: {problem}")

    def access(self, url: str) -> Access:
        """Return how a URL is asked."""
        return self._named.get(origin_of(url), self._others)

    def close(self) -> None:
        """Close the connections."""
        for session in list(self._sessions.values()):
            session.close()

    def _session(self, url: str) -> requests.Session:
        origin = origin_of(url)
        if not origin:
            raise NoAnswerError("there is no http or https address to ask")
        if origin not in self._sessions:
            session, access = requests.Session(), self.access(url)
            # Else requests would read the whole body of an answer that redirects, however large.
            vars(session)["get_redirect_target"] = lambda _: None
            session.mount(f"{urlsplit(url).scheme}://", _Adapter())
            # A .netrc would send credentials that the connection does not hold, and a proxy cannot reach our loopback.
            session.trust_env = False
            if not should_bypass_proxies(url, no_proxy=LOOPBACK):
                session.proxies = dict(get_environ_proxies(url, no_proxy=None))
            bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
            session.verify = bundle if access.verify is True else access.verify
            session.auth, session.cert = access.auth, access.cert
            self._sessions[origin] = session
        return self._sessions[origin]


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._seconds = READS * (sock.gettimeout() or READ_TIMEOUT_SECONDS)

    def begin(self) -> None:
        """Read the headers, for as long as a whole answer may take: each byte of them keeps the socket's timeout."""
        raw: Any = self.fp.raw
        read, deadline = raw.readinto, time.monotonic() + self._seconds

        def readinto(buffer: memoryview) -> int:
            if time.monotonic() > deadline:
                raise TimeoutError("the headers come too slowly")
            count: int = read(buffer)
            return count

        raw.readinto = readinto
        try:
            super().begin()
        finally:
            del raw.readinto


class _Adapter(HTTPAdapter):
    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return the pool for a request, of connections that wait for headers no longer than for a whole answer."""
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        if not hasattr(pool.ConnectionCls, "is_bounded"):
            ours = {"response_class": _Response, "is_bounded": True}
            pool.ConnectionCls = type("BoundedConnection", (pool.ConnectionCls,), ours)
        return pool


def decoded(url: str, body: bytes, shape: type[Answer]) -> Answer:
    """Return what a URL has answered, as ``shape``.

    :raises NoAnswerError: when it is no JSON of that shape
    """
    try:
        # Not strict: Spark's master gives times of drivers as text.
        return msgspec.json.decode(body, type=shape, strict=False)
    except msgspec.ValidationError as error:
        problem = f"JSON of another shape ({redact(str(error))})"
    except (msgspec.DecodeError, ValueError, RecursionError):
        problem = "not JSON, or only a part of it (a login page?)"
    raise NoAnswerError(f"{place_of(url)} answered {problem}", 200)


def _copy(
    response: requests.Response, stream: BinaryIO, place: str, most_bytes: int, is_over: Callable[[], bool]
) -> None:
    status, count = response.status_code, 0
    if status != requests.codes.ok:
        target = origin_of(response.headers.get("Location", ""))
        raise NoAnswerError(f"{place} answered HTTP {status}{target and f', a redirect to {target}'}", status)
    # read1 gives what has come, so that the time is looked at between the pieces.
    while piece := response.raw.read1(_CHUNK_BYTES, decode_content=True):
        count += len(piece)
        if count > most_bytes:
            raise NoAnswerError(f"{place} answered more than {most_bytes // 1024 // 1024} MB", status)
        stream.write(piece)
        if is_over():
            raise NoAnswerError(f"{place} took too long to send its whole answer", status)


def _problem(error: BaseException) -> str:
    """Say what went wrong: the system's or the TLS library's own words, which are the innermost, else a type's name."""
    if isinstance(error, (requests.Timeout, TimeoutError)):
        return "no connection in time" if isinstance(error, requests.ConnectTimeout) else "no answer in time"
    if isinstance(error, HTTPError):
        return f"a damaged answer ({type(error).__name__})"
    words = "TLS failed: " if isinstance(error, requests.exceptions.SSLError) else ""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return words + redact(inner.strerror)
        inner = inner.__cause__ or inner.__context__
    return words + type(error).__name__
