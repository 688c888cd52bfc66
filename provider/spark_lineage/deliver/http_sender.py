"""Sends events over HTTP: one request an event, and a 2xx that is no login page is a yes."""

from __future__ import annotations

import gzip
import os
import ssl
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin

import httpx

from spark_lineage.deliver.sender import (
    DEFAULT_ENDPOINT,
    MAX_BODY_BYTES,
    SUCCESSES,
    Later,
    answer_text,
    is_page,
    rejection_of,
)
from spark_lineage.deliver.spool import Outgoing
from spark_lineage.settings import SettingError

# The keys of openlineage-python's HTTP transport that this sender reads; ``backend`` is the connection's.
_KEYS = frozenset({
    "type", "name", "priority", "retry", "url", "endpoint", "timeout", "verify", "auth", "compression",
    "custom_headers", "sslContext", "backend",
})  # fmt: skip
_CERTIFICATES = frozenset({"caCertPath", "clientCertPath", "clientKeyPath"})
# The answers to a body that is no event: 400, 422, and others that only a reader of bodies gives.
_REFUSALS = frozenset({400, 406, 411, 415, 422})
_SERVER_ERRORS = range(500, 600)
# A backend that was sent the event may be slow, and would get it twice; nobody waits for it.
_ANSWER_SECONDS = 120.0
# The limits of the body after the status: a trickle is not waited for.
_BODY_SECONDS, _PAGE_SECONDS = 1.0, 10.0
# An idle connection may be closed by then.
_KEPT_SECONDS = 1.0


class HttpSender:
    """Posts events to one URL. Redirects are not followed: event and credentials would be lost on the way.

    :param connect_seconds: for a connection, and for sending; an answer is awaited for two minutes
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        connect_seconds: float,
        verify: ssl.SSLContext | bool,
        is_compressed: bool = False,
    ) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip", **headers}
        self._is_compressed = is_compressed
        if is_compressed:
            self._headers["Content-Encoding"] = "gzip"
        limits = httpx.Limits(max_connections=1, keepalive_expiry=_KEPT_SECONDS)
        self._connect_seconds = connect_seconds
        self._client = httpx.Client(verify=verify, limits=limits)

    def send(self, event: Outgoing) -> None:
        """Send one event; errors as of ``Sender``."""
        body = gzip.compress(event.body) if self._is_compressed else event.body
        response, content = self._answer(body, self._headers, _ANSWER_SECONDS)
        if response.status_code not in SUCCESSES or is_page(content):
            retry_after = response.headers.get("Retry-After", "")
            raise rejection_of(response.status_code, _described(response, content), retry_after)

    def probe(self) -> tuple[bool, str]:
        """Post an empty body, with the credentials.

        No backend takes that for an event: they answer 400 or 422, and 401 before they look at it where the credentials
        are wrong.
        """
        headers = {name: value for name, value in self._headers.items() if name != "Content-Encoding"}
        response, content = self._answer(b"", headers, self._connect_seconds)
        status, reached = response.status_code, f"{self._shown_url} is reached, and"
        if status in _REFUSALS:
            return True, f"{reached} refuses an empty event as it should ({status})"
        if status in SUCCESSES and not is_page(content):
            return True, f"{reached} takes any body ({status}): whether it reads OpenLineage is unknown"
        advice = ": the backend answers with an error; check its log" if status in _SERVER_ERRORS else ""
        return False, f"{_described(response, content)}{advice}"

    def _answer(self, body: bytes, headers: Mapping[str, str], seconds: float) -> tuple[httpx.Response, bytes]:
        """Return the answer and the start of its body.

        :raises Later: where there is none
        """
        is_away, timeout = False, httpx.Timeout(self._connect_seconds, read=max(self._connect_seconds, seconds))
        try:
            with self._client.stream("POST", self._url, content=body, headers=headers, timeout=timeout) as response:
                return response, _start_of(response)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
            problem, is_away = f"no connection: {error or type(error).__name__}", True
        except httpx.TimeoutException:
            problem = f"no answer within {timeout.read:g} s"
        except (httpx.HTTPError, UnicodeError, OSError) as error:
            problem = f"no answer: {error or type(error).__name__}"
        # Outside of the handlers: the error of httpx holds the request.
        raise Later(f"{self._shown_url}: {problem}", is_away=is_away)

    @property
    def _shown_url(self) -> str:
        return self._url.partition("?")[0]

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def http_sender(config: Mapping[str, Any]) -> HttpSender | None:
    """Return the sender of a configuration of openlineage-python; None for one that only its own transport knows.

    :raises SettingError: when it cannot be made
    """
    auth, files = config.get("auth") or {}, config.get("sslContext") or {}
    is_known = config.keys() <= _KEYS and files.keys() <= _CERTIFICATES
    if not is_known or auth.get("type", "api_key") != "api_key" or config.get("compression") not in (None, "", "gzip"):
        return None
    url = urljoin(str(config.get("url") or ""), str(config.get("endpoint") or DEFAULT_ENDPOINT))
    if not url.startswith(("http://", "https://")):
        raise SettingError("the transport of type 'http' has no 'url' like 'http://127.0.0.1:5000'; give one")
    return HttpSender(
        url,
        http_headers(config),
        connect_seconds=float(config.get("timeout") or 5.0),
        verify=trusted(config),
        is_compressed=bool(config.get("compression")),
    )


def http_headers(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a configuration, with its API key."""
    headers, auth = dict(config.get("custom_headers") or {}), config.get("auth")
    if auth:
        headers["Authorization"] = f"Bearer {auth.get('apiKey') or auth.get('api_key') or ''}"
    return headers


def trusted(config: Mapping[str, Any]) -> ssl.SSLContext | bool:
    """Return whom to trust; without files of the connection those that the environment names, as requests does.

    :raises SettingError: for certificates that cannot be read
    """
    verify, files = config.get("verify", True), config.get("sslContext") or {}
    named = next(filter(None, map(os.environ.get, ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))), None)
    authorities = files.get("caCertPath") or (verify if isinstance(verify, str) else named)
    certificate, key = files.get("clientCertPath"), files.get("clientKeyPath")
    if not certificate and not (verify and authorities):
        return bool(verify)
    try:
        context = ssl.create_default_context(cafile=authorities if verify else None)
        if certificate:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        paths = ", ".join(filter(None, (authorities, certificate, key)))
        raise SettingError(f"the certificates in {paths} cannot be used: {error.strerror or error}") from None
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _described(response: httpx.Response, content: bytes) -> str:
    location = response.headers.get("Location")
    return answer_text(str(response.url), response.status_code, response.reason_phrase, location, content)


def _start_of(response: httpx.Response) -> bytes:
    """Return the start of a body, as far as it comes at once; a page of a login may come late."""
    is_html = "html" in response.headers.get("Content-Type", "")
    seconds = _PAGE_SECONDS if is_html and response.status_code in SUCCESSES else _BODY_SECONDS
    content, end = b"", time.monotonic() + seconds
    # Else each further piece could take as long as the answer.
    response.request.extensions["timeout"]["read"] = seconds
    with suppress(httpx.HTTPError):
        for piece in response.iter_raw():
            content += piece
            if len(content) >= MAX_BODY_BYTES or time.monotonic() > end:
                break
    with suppress(zlib.error):
        # Where it is what its header says; a few bytes may unpack to any number.
        if response.headers.get("Content-Encoding") == "gzip":
            content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, MAX_BODY_BYTES)
    return content[:MAX_BODY_BYTES]
