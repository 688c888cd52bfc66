"""Sends events over HTTP: one request an event, and a 2xx that is no login page is a yes."""

from __future__ import annotations

import gzip
import os
import re
import ssl
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin

import httpx

from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import DEFAULT_ENDPOINT, Later, rejection_of
from spark_lineage.secrets.redaction import beginning
from spark_lineage.settings import SettingError

# The keys of openlineage-python's HTTP transport that this sender reads; ``backend`` is the connection's.
_KEYS = frozenset({
    "type", "name", "priority", "retry", "url", "endpoint", "timeout", "verify", "auth", "compression",
    "custom_headers", "sslContext", "backend",
})  # fmt: skip
_CERTIFICATES = frozenset({"caCertPath", "clientCertPath", "clientKeyPath"})
# The answers to a body that is no event: 400, 422, and others that only a reader of bodies gives.
_REFUSALS = frozenset({400, 406, 411, 415, 422})
_SUCCESSES, _REDIRECTS, _SERVER_ERRORS = range(200, 300), range(300, 400), range(500, 600)
_ADVICE = {
    401: "the credentials are missing or wrong: check the login and the password",
    403: "the credentials do not allow this",
    **dict.fromkeys((404, 405), "nothing accepts events at this address: check the host and the endpoint"),
    407: "the proxy wants credentials",
}
# An HTML page; its content type is the default of some frameworks. A byte order mark, an XML declaration and comments
# may come before it.
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:(?:<\?xml[^>]*>|<!--.*?-->)\s*)*<(?:!doctype html|html)", re.IGNORECASE | re.DOTALL
)
_MAX_BODY_BYTES, _SHOWN_CHARACTERS = 16_384, 1_000
# A backend that was sent the event may be slow, and would get it twice; nobody waits for it.
_ANSWER_SECONDS = 120.0
# The limits of the body after the status: a trickle is not waited for.
_BODY_SECONDS, _PAGE_SECONDS = 1.0, 10.0
# An idle connection may be closed by then.
_KEPT_SECONDS = 1.0


class HttpSender:
    """Posts events to one URL. Redirects are not followed: event and credentials would be lost on the way.

    :param config: of the HTTP transport of openlineage-python; its ``timeout`` is for a connection, and for sending
    :raises SettingError: when it cannot be used
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._url = urljoin(str(config.get("url") or ""), str(config.get("endpoint") or DEFAULT_ENDPOINT))
        if not self._url.startswith(("http://", "https://")):
            raise SettingError("the transport of type 'http' has no 'url' like 'http://127.0.0.1:5000'; give one")
        self._shown_url = self._url.partition("?")[0]
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip", **http_headers(config)}
        self._encoding = {"Content-Encoding": "gzip"} if config.get("compression") else {}
        self._connect_seconds = float(config.get("timeout") or 5.0)
        limits = httpx.Limits(max_connections=1, keepalive_expiry=_KEPT_SECONDS)
        self._client = httpx.Client(verify=trusted(config), limits=limits)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> HttpSender | None:
        """Return the sender of a configuration; None for one that only openlineage-python's own transport knows."""
        auth, files = config.get("auth") or {}, config.get("sslContext") or {}
        is_known = config.keys() <= _KEYS and files.keys() <= _CERTIFICATES
        is_known &= auth.get("type", "api_key") == "api_key" and config.get("compression") in (None, "", "gzip")
        return cls(config) if is_known else None

    def send(self, event: Outgoing) -> None:
        """Send one event; errors as of ``Sender``."""
        body = gzip.compress(event.body) if self._encoding else event.body
        response, content = self._answer(body, self._encoding, _ANSWER_SECONDS)
        if response.status_code not in _SUCCESSES or _PAGE.match(content):
            retry_after = response.headers.get("Retry-After", "")
            raise rejection_of(response.status_code, _described(response, content), retry_after)

    def probe(self) -> tuple[bool, str]:
        """Post an empty body, with the credentials.

        No backend takes that for an event: they answer 400 or 422, and 401 before they look at it where the credentials
        are wrong.
        """
        response, content = self._answer(b"", {}, self._connect_seconds)
        status, reached = response.status_code, f"{self._shown_url} is reached, and"
        if status in _REFUSALS:
            return True, f"{reached} refuses an empty event as it should ({status})"
        if status in _SUCCESSES and not _PAGE.match(content):
            return True, f"{reached} takes any body ({status}): whether it reads OpenLineage is unknown"
        advice = ": the backend answers with an error; check its log" if status in _SERVER_ERRORS else ""
        return False, f"{_described(response, content)}{advice}"

    def _answer(self, body: bytes, encoding: Mapping[str, str], seconds: float) -> tuple[httpx.Response, bytes]:
        """Return the answer and the start of its body.

        :raises Later: where there is none
        """
        headers = {**self._headers, **encoding}
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

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


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
    """Return what is wrong with an answer, and what to do."""
    status = response.status_code
    text = f"{str(response.url).partition('?')[0]} answered {status} {response.reason_phrase}".rstrip()
    if status in _REDIRECTS:
        target = (response.headers.get("Location") or "nowhere").partition("?")[0]
        return f"{text}, a redirect to {target}: give the address that takes events"
    if status in _SUCCESSES:
        return f"{text} with an HTML page, as a login in front of the backend does: no event was accepted"
    advice = f": {_ADVICE[status]}" if status in _ADVICE else ""
    shown = " ".join(beginning(content.decode("utf-8", "replace"), _SHOWN_CHARACTERS).split())
    return f"{text}{advice}" + (f" ({shown})" if shown and not _PAGE.match(content) else "")


def _start_of(response: httpx.Response) -> bytes:
    """Return the start of a body, as far as it comes at once; a page of a login may come late."""
    is_html = "html" in response.headers.get("Content-Type", "")
    seconds = _PAGE_SECONDS if is_html and response.status_code in _SUCCESSES else _BODY_SECONDS
    content, end = b"", time.monotonic() + seconds
    # Else each further piece could take as long as the answer.
    response.request.extensions["timeout"]["read"] = seconds
    with suppress(httpx.HTTPError):
        for piece in response.iter_raw():
            content += piece
            if len(content) >= _MAX_BODY_BYTES or time.monotonic() > end:
                break
    with suppress(zlib.error):
        # Where it is what its header says; a few bytes may unpack to any number.
        if response.headers.get("Content-Encoding") == "gzip":
            content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, _MAX_BODY_BYTES)
    return content[:_MAX_BODY_BYTES]
