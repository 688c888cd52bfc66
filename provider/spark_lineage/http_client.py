"""Clients of httpx: bounded in time and size, credentials for named servers only, no secrets in errors.

Redirects are not followed, ``.netrc`` is not read, and cookies stay with the server that has set them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from io import BytesIO
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies_environment
from weakref import WeakKeyDictionary, finalize

import httpcore
import httpx

MAX_BYTES = 16 * 1024 * 1024
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 20.0
"""For a whole answer: who hangs up earlier leaves the trace of a broken pipe in the log of a busy driver."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SUCCESSES = {200, 201, 202}
# A proxy cannot reach our loopback.
_LOOPBACK = "localhost,127.0.0.0/8,::1"
_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")
_thread = threading.local()

# They log each request, and the headers of its answer.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class Request(NamedTuple):
    """One request; ``json`` is its body, ``seconds`` how long a whole answer may take where it is not the client's."""

    url: str
    method: str = "GET"
    json: Any = None
    accept: str = "*/*"
    seconds: float | None = None


@dataclass(frozen=True)
class Access:
    """How the URLs of one origin are requested.

    ``verify`` is a file or folder of certificate authorities, true for those of the environment; ``cert`` a file of a
    client certificate, with one of its key.
    """

    auth: httpx.Auth | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    verify: bool | str = True
    cert: tuple[str, str | None] | None = None
    is_blocking: bool = False
    """Whether ``auth`` may wait for a server of its own, as Kerberos does."""
    is_direct: bool = False
    """Whether no proxy is used."""

    @property
    def is_anonymous(self) -> bool:
        """Whether no credentials are sent, but for a client certificate."""
        return self.auth is None and not self.headers


class NoAnswerError(Exception):
    """No answer that can be used; the text has no secrets, but ``location`` may, which is where a redirect leads.

    ``http_status`` is None where none came.
    """

    def __init__(self, message: str, http_status: int | None = None, location: str = "") -> None:
        super().__init__(message)
        self.http_status = http_status
        self.location = location


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
    """Return a URL without login and parameters."""
    origin = origin_of(url)
    return f"{origin}{urlsplit(url).path}" if origin else "an address without scheme or host"


def proxy_of(url: str) -> str | None:
    """Return the proxy of the environment for a URL; ``NO_PROXY`` has ends of host names, addresses and networks."""
    proxies, parts = getproxies_environment(), urlsplit(url)
    host, excepted = parts.hostname or "", f"{_LOOPBACK},{proxies.get('no', '')}".replace(" ", "").split(",")
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    with suppress(ValueError):
        address = ip_address(host)
        for each in excepted:
            with suppress(ValueError):
                if address in ip_network(each, strict=False):
                    return None
    if not proxy or "*" in excepted or any(_ends_with(host, parts.port, each) for each in excepted if each):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _ends_with(host: str, port: int | None, name: str) -> bool:
    return host == name.lstrip(".") or host.endswith(name) or f"{host}:{port}".endswith(name)


def _tls_of(url: str, access: Access) -> ssl.SSLContext | bool:
    """Return what decides on certificates: authorities of the connection, else of the environment, else of certifi.

    :raises OSError: for a file that cannot be read, or that holds no certificate
    """
    if not url.lower().startswith("https:"):
        # Certificates take a while to load, and a plain connection needs none.
        return False
    verify = access.verify
    named = next(filter(None, map(os.environ.get, _CA_VARIABLES)), None)
    authorities = verify if isinstance(verify, str) else named
    if not verify or not authorities:
        context = httpx.create_ssl_context(verify=bool(verify))
    else:
        is_folder = Path(authorities).is_dir()
        folder, file = (authorities, None) if is_folder else (None, authorities)
        context = ssl.create_default_context(cafile=file, capath=folder)
    if access.cert is not None:
        context.load_cert_chain(*access.cert)
    return context


class _BoundedStream:
    """A connection that is read until the deadline of the thread: each byte would begin a read timeout anew."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, max_bytes: int, timeout: float) -> Any:
        left = _thread.until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return self._stream.read(max_bytes, min(timeout, left))

    def start_tls(self, *args: Any, **kwargs: Any) -> Any:
        return _BoundedStream(self._stream.start_tls(*args, **kwargs))


class _BoundedBackend(httpcore.SyncBackend):
    def connect_tcp(self, *args: Any, **kwargs: Any) -> Any:
        return _BoundedStream(super().connect_tcp(*args, **kwargs))


class _Clients:
    """Which credentials go where.

    :param named: how the origins are requested that the connection names (``origin_of``); all other URLs, such as those
        that came out of a log line or an event, get no credentials and no client certificate
    :param verify: for all other URLs
    :param seconds: for a whole answer
    """

    def __init__(
        self, named: Mapping[str, Access] | None = None, *, verify: bool | str = True, seconds: float = ANSWER_SECONDS
    ) -> None:
        self._named = named or {}
        self._others = Access(verify=verify)
        self._seconds = seconds
        self._clients: dict[str, httpx.Client] = {}
        # The end of this client closes its connections, too.
        self.close: Callable[[], object] = finalize(self, _close_all, self._clients)

    def access(self, url: str) -> Access:
        """Return how a URL is requested.

        :raises NoAnswerError: for one without an origin
        """
        if not (origin := origin_of(url)):
            raise NoAnswerError("there is no http or https address to ask")
        return self._named.get(origin, self._others)

    def _sent(self, request: Request, access: Access) -> dict[str, Any]:
        """Return the arguments of ``stream``."""
        seconds = request.seconds or self._seconds
        timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        headers = {"Accept": request.accept, **access.headers}
        sent = {"method": request.method, "url": request.url, "json": request.json, "auth": access.auth}
        return {**sent, "headers": headers, "timeout": timeout}


class HttpClient(_Clients):
    """Sends requests over connections that are kept, one client an origin: cookies know no ports."""

    def send(self, request: Request) -> bytes:
        """Return the answer, at most 16 MB.

        :raises NoAnswerError: when no answer came in time, or an error, a redirect, or too much
        """
        stream = BytesIO()
        self.save(request, stream, MAX_BYTES)
        return stream.getvalue()

    def save(
        self, request: Request, stream: BinaryIO, most_bytes: int, is_over: Callable[[], bool] | None = None
    ) -> Mapping[str, str]:
        """Write an answer of any type, and return its headers; errors are those of ``send``.

        :param is_over: asked between two pieces whether to stop there; then only the headers have a deadline
        """
        url, access, count = request.url, self.access(request.url), 0
        _thread.until = time.monotonic() + (request.seconds or self._seconds)
        try:
            with self._client(url, access).stream(**self._sent(request, access)) as response:
                _check(response, url)
                for piece in response.iter_bytes():
                    count = _counted(count, piece, most_bytes, url)
                    stream.write(piece)
                    if is_over is not None:
                        _thread.until = time.monotonic() + self._seconds
                        if is_over():
                            raise NoAnswerError(f"{place_of(url)} took too long to send its whole answer", 200)
                return response.headers
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
            problem = _problem(error)
        # Out here, so that it does not bring along the error, whose text holds the whole URL.
        raise NoAnswerError(f"{place_of(url)}: {problem}")

    def _client(self, url: str, access: Access) -> httpx.Client:
        origin = origin_of(url)
        if origin not in self._clients:
            proxy = None if access.is_direct else proxy_of(url)
            transport = httpx.HTTPTransport(verify=_tls_of(url, access), proxy=proxy)
            # httpx passes none to the pool that it makes.
            transport._pool._network_backend = _BoundedBackend()  # noqa: SLF001
            self._clients[origin] = httpx.Client(transport=transport, trust_env=False)
        return self._clients[origin]


class AsyncHttpClient(_Clients):
    """Sends requests without a thread for each: all jobs of an event loop share its connections, and no cookie."""

    _loops: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, httpx.AsyncClient]]] = WeakKeyDictionary()

    async def send(self, request: Request) -> bytes:
        """Return the answer, as ``HttpClient.send``."""
        url, access, body = request.url, self.access(request.url), bytearray()
        if access.is_blocking:
            client = HttpClient(self._named, seconds=self._seconds)
            try:
                return await asyncio.to_thread(client.send, request)
            finally:
                client.close()
        try:
            async with (
                asyncio.timeout(request.seconds or self._seconds),
                self._client(url, access).stream(**self._sent(request, access)) as response,
            ):
                _check(response, url)
                async for piece in response.aiter_bytes():
                    _counted(len(body), piece, MAX_BYTES, url)
                    body += piece
                return bytes(body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
            problem = _problem(error)
        raise NoAnswerError(f"{place_of(url)}: {problem}")

    def _client(self, url: str, access: Access) -> httpx.AsyncClient:
        clients = self._loops.setdefault(asyncio.get_running_loop(), {})
        key = (origin_of(url), access.verify, access.cert)
        if key not in clients:
            cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
            verify, proxy = _tls_of(url, access), proxy_of(url)
            clients[key] = httpx.AsyncClient(verify=verify, proxy=proxy, trust_env=False, cookies=cookies)
        return clients[key]


def _close_all(clients: dict[str, httpx.Client]) -> None:
    while clients:
        clients.popitem()[1].close()


def _check(response: httpx.Response, url: str) -> None:
    status = response.status_code
    if status not in _SUCCESSES:
        target = origin_of(location := response.headers.get("Location", ""))
        text = f"{place_of(url)} answered HTTP {status}{target and f', a redirect to {target}'}"
        if "negotiate" in response.headers.get("WWW-Authenticate", "").lower():
            text += ", and asks for a ticket of Kerberos"
        raise NoAnswerError(text, status, location)


def _counted(count: int, piece: bytes, most_bytes: int, url: str) -> int:
    if count + len(piece) > most_bytes:
        raise NoAnswerError(f"{place_of(url)} answered more than {most_bytes // 1024 // 1024} MB", 200)
    return count + len(piece)


def _problem(error: BaseException) -> str:
    """Return what went wrong: the system's or the TLS library's own words, which are the innermost, else a type."""
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return "no connection in time" if isinstance(error, httpx.ConnectTimeout) else "no answer in time"
    if isinstance(error, (httpx.DecodingError, httpx.RemoteProtocolError)):
        return f"a damaged answer ({type(error).__name__})"
    if type(error).__module__.startswith("httpx_gssapi"):
        return str(error)
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.strerror:
            return ("TLS failed: " if isinstance(found, ssl.SSLError) else "") + found.strerror
        found = found.__cause__ or found.__context__
    return type(error).__name__
