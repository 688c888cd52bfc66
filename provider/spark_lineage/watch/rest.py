"""Asks a REST endpoint for JSON: in bounded time and size, credentials to named hosts only, no secrets in errors."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Mapping
from typing import Any, TypeVar, overload
from urllib.parse import urljoin, urlsplit

import msgspec
import requests
from requests.utils import get_environ_proxies
from urllib3.exceptions import HTTPError

from spark_lineage.secrets.redaction import redact
from spark_lineage.watch.access import Access, UnreadableTokenError
from spark_lineage.watch.address import origin_of, place_of

Answer = TypeVar("Answer")

MAX_BYTES = 16 * 1024 * 1024
CONNECT_TIMEOUT_SECONDS = 3.0
READ_TIMEOUT_SECONDS = 5.0
# A server that sends a byte now and then keeps every read timeout; this many of them end its answer.
_READS = 4
_CHUNK_BYTES = 64 * 1024
_MAX_REDIRECTS = 3
_REDIRECTS = {301, 302, 303, 307, 308}


class NoAnswerError(Exception):
    """An endpoint gave no answer that can be used; the text says what went wrong and where, without secrets.

    ``http_status`` is the status that it answered with, None when it did not get that far.
    """

    def __init__(self, message: str, http_status: int | None = None) -> None:
        super().__init__(message)
        self.http_status = http_status


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002 - as requests has it
        """Return nothing: requests would read the whole body of an answer that redirects, however large."""
        return None


class RestClient:
    """Asks for JSON over connections that are kept.

    :param named: how the origins are asked that the connection names (``origin_of``); all other URLs, such as those
        that came out of a log line or an event, get no credentials and no client certificate
    :param others: how all other origins are asked; its credentials are not used
    :param timeout_seconds: for each wait for data; to connect it is 3 seconds at most, for a whole answer four times as
        much
    :raises SettingError: for Kerberos where ``requests-kerberos`` is not installed
    """

    def __init__(
        self,
        named: Mapping[str, Access] | None = None,
        *,
        others: Access | None = None,
        timeout_seconds: float = READ_TIMEOUT_SECONDS,
    ) -> None:
        self._named = {origin: (access, access.authentication()) for origin, access in (named or {}).items() if origin}
        self._others = others or Access()
        self._timeout_seconds = timeout_seconds
        # One an origin: cookies know no ports, and that of a Kerberos login is as good as the login.
        self._sessions: dict[str, requests.Session] = {}

    @overload
    def get_json(self, url: str) -> Any: ...
    @overload
    def get_json(self, url: str, shape: type[Answer]) -> Answer: ...
    def get_json(self, url: str, shape: Any = Any) -> Any:
        """Return what a URL answers, decoded as ``shape``.

        :raises NoAnswerError: when no answer came in time, or an error, too much, or not JSON of that shape
        """
        body = self._get(url, time.monotonic() + _READS * self._timeout_seconds)
        try:
            # Not strict: Spark's master gives times of drivers as text.
            return msgspec.json.decode(body, type=shape, strict=False)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            is_json = isinstance(error, msgspec.ValidationError)
            problem = f"JSON of another shape ({redact(str(error))})" if is_json else "no JSON, or only a part of it"
        raise NoAnswerError(f"{place_of(url)} answered {problem}", 200)

    def close(self) -> None:
        """Close the connections."""
        for session in list(self._sessions.values()):
            session.close()

    def _get(self, url: str, deadline: float) -> bytes:
        origin = origin_of(url)
        for _ in range(_MAX_REDIRECTS + 1):
            problem = ""
            try:
                with self._request(url) as response:
                    if response.status_code not in _REDIRECTS:
                        return self._body(url, response, deadline)
                    # YARN's standby ResourceManager names no place, where it knows of no active one.
                    location, status = response.headers.get("Location"), response.status_code
                    target = urljoin(url, location) if location else ""
            except (requests.RequestException, HTTPError, OSError, ValueError, UnreadableTokenError) as error:
                problem = _problem(error)
            if problem:
                raise NoAnswerError(f"{place_of(url)}: {problem}")
            if origin_of(target) != origin:
                raise NoAnswerError(f"{place_of(url)} redirects to {origin_of(target) or 'nowhere'}", status)
            url = target
        raise NoAnswerError(f"{place_of(url)} redirects in a circle", status)

    def _request(self, url: str) -> requests.Response:
        origin = origin_of(url)
        if not origin:
            raise ValueError("no http or https URL")
        access, authentication = self._named.get(origin, (self._others, None))
        return self._session(origin).get(
            url,
            auth=authentication,
            cert=access.certificate if origin in self._named else None,
            verify=access.authorities,
            proxies=_proxies(url),
            timeout=(min(CONNECT_TIMEOUT_SECONDS, self._timeout_seconds), self._timeout_seconds),
            headers={"Accept": "application/json, text/json"},
            allow_redirects=False,
            stream=True,
        )

    def _session(self, origin: str) -> requests.Session:
        if origin not in self._sessions:
            session = _Session()
            # A .netrc would send credentials that the connection does not hold, and a proxy cannot reach our loopback.
            session.trust_env = False
            self._sessions[origin] = session
        return self._sessions[origin]

    def _body(self, url: str, response: requests.Response, deadline: float) -> bytes:
        status = response.status_code
        if status != requests.codes.ok:
            raise NoAnswerError(f"{place_of(url)} answered HTTP {status}", status)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind in ("text/html", "application/xhtml+xml"):
            raise NoAnswerError(f"{place_of(url)} answered an HTML page, not JSON (a login page?)", status)
        body = bytearray()
        # read1 gives what has come, so that the deadline is looked at between the pieces.
        while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > MAX_BYTES:
                raise NoAnswerError(f"{place_of(url)} answered more than {MAX_BYTES // 1024 // 1024} MB", status)
            if time.monotonic() > deadline:
                raise NoAnswerError(f"{place_of(url)} took too long to send its whole answer", status)
        return bytes(body)


def _problem(error: Exception) -> str:
    """Say what went wrong; most texts of ``requests`` hold the whole URL."""
    if isinstance(error, requests.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, (requests.Timeout, TimeoutError)):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return f"TLS failed: {_innermost(error)}"
    if isinstance(error, UnreadableTokenError):
        return redact(str(error))
    if isinstance(error, HTTPError):
        return f"a damaged answer ({type(error).__name__})"
    return _innermost(error)


def _innermost(error: BaseException) -> str:
    """The operating system's or the TLS library's own words, which are the innermost; else only a type's name."""
    seen: set[int] = set()
    words = type(error).__name__
    current: Any = error
    while isinstance(current, BaseException) and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, OSError) and current.strerror and not isinstance(current, requests.RequestException):
            words = redact(current.strerror)
        nested = [getattr(current, "reason", None), *current.args, current.__cause__, current.__context__]
        current = next((each for each in nested if isinstance(each, BaseException) and id(each) not in seen), None)
    return words


def _proxies(url: str) -> dict[str, str]:
    host = urlsplit(url).hostname or ""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    return {} if is_loopback else dict(get_environ_proxies(url, no_proxy=None))
