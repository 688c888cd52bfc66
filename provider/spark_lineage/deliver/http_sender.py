"""Sends events over HTTP: one request an event, and a 2xx that is no login page is a yes."""

from __future__ import annotations

import gzip
import os
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin

import httpx

from spark_lineage.deliver.sender import (
    CLIENT_ERRORS,
    MAX_BODY_BYTES,
    NOT_THE_EVENT,
    SUCCESSES,
    Later,
    Refused,
    description,
    is_page,
    is_refusal,
    retry_after_seconds,
)
from spark_lineage.deliver.spool import Outgoing
from spark_lineage.secrets.redaction import redact

DEFAULT_ENDPOINT = "api/v1/lineage"
# What this sender knows of the configuration of openlineage-python's HTTP transport; ``backend`` is the connection's.
_KEYS = frozenset({
    "type", "name", "priority", "retry", "url", "endpoint", "timeout", "verify", "auth", "compression",
    "custom_headers", "sslContext", "backend",
})  # fmt: skip
_CERTIFICATES = frozenset({"caCertPath", "clientCertPath", "clientKeyPath"})
# Answers of a backend, or of what is in front of it, that has not looked at the event.
_UNSEEN = NOT_THE_EVENT | {503}
# A backend that was sent the event may be slow, and would get it twice; nobody waits for it.
_ANSWER_SECONDS = 120.0
# After the status has come: what trickles is not waited for.
_BODY_SECONDS = 1.0
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
        self._headers = {"Content-Type": "application/json", **headers}
        self._is_compressed = is_compressed
        if is_compressed:
            self._headers["Content-Encoding"] = "gzip"
        limits = httpx.Limits(max_connections=1, keepalive_expiry=_KEPT_SECONDS)
        timeout = httpx.Timeout(connect_seconds, read=max(connect_seconds, _ANSWER_SECONDS))
        self._client = httpx.Client(timeout=timeout, verify=verify, limits=limits)

    def send(self, event: Outgoing) -> None:
        """Send one event; errors as of ``Sender``."""
        body = gzip.compress(event.body) if self._is_compressed else event.body
        is_away = False
        try:
            with self._client.stream("POST", self._url, content=body, headers=self._headers) as response:
                content = _start_of(response)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
            problem, is_away = f"no connection: {error or type(error).__name__}", True
        except httpx.TimeoutException:
            problem = f"no answer within {_ANSWER_SECONDS:g} s"
        except (httpx.HTTPError, UnicodeError, OSError) as error:
            problem = f"no answer: {error or type(error).__name__}"
        else:
            _judge(response, content)
            return
        raise Later(redact(f"{self._url.partition('?')[0]}: {problem}"), is_away=is_away)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def http_sender(config: Mapping[str, Any]) -> HttpSender | None:
    """Return the sender of a configuration of openlineage-python; None for one that only its own transport knows.

    :raises OSError: for certificates that cannot be read
    """
    auth, files = config.get("auth") or {}, config.get("sslContext") or {}
    is_known = config.get("type") in ("http", "async_http") and config.keys() <= _KEYS and files.keys() <= _CERTIFICATES
    if not is_known or auth.get("type", "api_key") != "api_key" or config.get("compression") not in (None, "", "gzip"):
        return None
    headers = dict(config.get("custom_headers") or {})
    if auth:
        headers["Authorization"] = f"Bearer {auth.get('apiKey') or auth.get('api_key') or ''}"
    return HttpSender(
        urljoin(str(config["url"]), str(config.get("endpoint") or DEFAULT_ENDPOINT)),
        headers,
        connect_seconds=float(config.get("timeout") or 5.0),
        verify=_trusted(config.get("verify", True), files),
        is_compressed=bool(config.get("compression")),
    )


def _trusted(verify: Any, files: Mapping[str, str]) -> ssl.SSLContext | bool:
    """Return whom to trust; without files of the connection those that the environment names, as requests does."""
    named = next(filter(None, map(os.environ.get, ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))), None)
    authorities = files.get("caCertPath") or (verify if isinstance(verify, str) else named)
    if not files.get("clientCertPath") and not (verify and authorities):
        return bool(verify)
    context = ssl.create_default_context(cafile=authorities if verify else None)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate := files.get("clientCertPath"):
        context.load_cert_chain(certificate, files.get("clientKeyPath"))
    return context


def _judge(response: httpx.Response, content: bytes) -> None:
    status, headers = response.status_code, response.headers
    if status in SUCCESSES and not is_page(content):
        return
    why = description(str(response.url), status, response.reason_phrase, headers.get("Location"), content)
    if is_refusal(status):
        raise Refused(why)
    # A page of a login or a redirect is a wrong address.
    is_away = status in _UNSEEN or status < CLIENT_ERRORS.start
    raise Later(why, retry_after=retry_after_seconds(headers.get("Retry-After", "")), is_away=is_away)


def _start_of(response: httpx.Response) -> bytes:
    """Return the start of a body, as far as it comes at once."""
    content, end = b"", time.monotonic() + _BODY_SECONDS
    # What comes next may take as long as the answer might have.
    response.request.extensions["timeout"]["read"] = _BODY_SECONDS
    with suppress(httpx.HTTPError):
        for piece in response.iter_bytes():
            content += piece
            if len(content) >= MAX_BODY_BYTES or time.monotonic() > end:
                break
    return content[:MAX_BODY_BYTES]
