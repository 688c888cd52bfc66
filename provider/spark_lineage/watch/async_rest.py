"""Polls the sources of status without a thread for each: all jobs of an event loop share its connections."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import httpx
import requests
from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_environ_proxies, should_bypass_proxies

from spark_lineage.merge.transition import StatusReport
from spark_lineage.secrets.redaction import redact
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.kubernetes import pod_url
from spark_lineage.watch.rest import (
    CONNECT_TIMEOUT_SECONDS,
    LOOPBACK,
    MAX_BYTES,
    READ_TIMEOUT_SECONDS,
    READS,
    Access,
    NoAnswerError,
    RestClient,
    decoded,
    place_of,
)
from spark_lineage.watch.source import Source

_OK = {200, 201, 202}
_Key = tuple[Any, Any, str]
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, httpx.AsyncClient]] = WeakKeyDictionary()


class _WantedError(Exception):
    """A source asks for a URL, which is the argument."""


class _Answers(RestClient):
    """Gives the answers that have come, and raises what is wanted besides."""

    def __init__(self) -> None:
        super().__init__()
        self.come: dict[str, bytes | NoAnswerError] = {}

    def get_json(self, url: str, shape: Any = Any) -> Any:
        """Return what a URL has answered."""
        if (answer := self.come.get(url)) is None:
            raise _WantedError(url)
        if isinstance(answer, NoAnswerError):
            raise answer
        return decoded(url, answer, shape)


class AsyncRest:
    """Sends requests with the settings of a job's connection."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._named = endpoints.client()

    async def poll(self, source: Source) -> list[StatusReport]:
        """Return what a source says now; raises as its ``poll``, which runs again with each answer that it wants."""
        source.client = answers = _Answers()
        while True:
            try:
                return list(source.poll())
            except _WantedError as wanted:
                (url,) = wanted.args
            try:
                answers.come[url] = await self._ask("GET", url)
            except NoAnswerError as error:
                answers.come[url] = error

    async def kill(self, driver_id: str) -> None:
        """Ask the cluster manager to end a driver: the first of its servers that takes it.

        :raises NoAnswerError: when none does
        """
        found, name = self._endpoints, quote(driver_id, safe="")
        asked: list[tuple[str, str, Any]]
        if found.master.startswith("yarn"):
            asked = [("PUT", f"{url}/ws/v1/cluster/apps/{name}/state", {"state": "KILLED"}) for url in found.yarn_urls]
        elif found.master.startswith("k8s://"):
            asked = [("DELETE", pod_url(found, driver_id), None)]
        else:
            asked = [("POST", f"{url}/v1/submissions/kill/{name}", None) for url in found.master_rest_urls]
        words: list[str] = []
        for method, url, content in asked:
            try:
                await self._ask(method, url, content)
            except NoAnswerError as error:
                words.append(str(error))
            else:
                return
        raise NoAnswerError("; ".join(words) or "there is no address to ask")

    async def _ask(self, method: str, url: str, content: Any = None) -> bytes:
        access = self._named.access(url)
        try:
            request = requests.Request(method, url, {"Accept": "application/json"}, json=content, auth=access.auth)
            prepared = request.prepare()
            if access.auth is not None and "Authorization" not in prepared.headers:
                # Kerberos, which answers what the server asks.
                return await asyncio.to_thread(_in_thread, prepared, access)
            return await self._send(prepared, access)
        except (httpx.HTTPError, httpx.InvalidURL, requests.RequestException, OSError, ValueError) as error:
            problem = redact(str(error)) or type(error).__name__
        raise NoAnswerError(f"{place_of(url)}: {problem}")

    async def _send(self, prepared: requests.PreparedRequest, access: Access) -> bytes:
        url, body = str(prepared.url), bytearray()
        headers = {key: value for key, value in prepared.headers.items() if isinstance(value, str)}
        stream = _client(url, access).stream(prepared.method or "GET", url, headers=headers, content=prepared.body)
        # A server that sends a byte now and then keeps every read timeout.
        async with asyncio.timeout(READS * READ_TIMEOUT_SECONDS), stream as answer:
            if answer.status_code not in _OK:
                raise _refused(url, answer.status_code)
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > MAX_BYTES:
                    raise NoAnswerError(f"{place_of(url)} answered more than {MAX_BYTES // 1024 // 1024} MB", 200)
        return bytes(body)


def _refused(url: str, status: int) -> NoAnswerError:
    return NoAnswerError(f"{place_of(url)} answered HTTP {status}", status)


def _in_thread(prepared: requests.PreparedRequest, access: Access) -> bytes:
    with requests.Session() as session:
        answer = session.send(
            prepared,
            timeout=(CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS),
            verify=access.verify,
            cert=access.cert,
            allow_redirects=False,
        )
    if answer.status_code not in _OK:
        raise _refused(str(prepared.url), answer.status_code)
    return answer.content


def _client(url: str, access: Access) -> httpx.AsyncClient:
    """Return the client of this loop; nothing of the environment counts but its proxies."""
    proxies = {} if should_bypass_proxies(url, no_proxy=LOOPBACK) else get_environ_proxies(url, no_proxy=None)
    proxy = proxies.get(url.partition(":")[0], "")
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    key = (access.verify, access.cert, proxy)
    if key not in clients:
        # It logs a line for each question at INFO.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        timeout = httpx.Timeout(READ_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS, pool=None)
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
        clients[key] = httpx.AsyncClient(
            verify=_context(access), proxy=proxy or None, trust_env=False, timeout=timeout, limits=limits
        )
    return clients[key]


def _context(access: Access) -> ssl.SSLContext:
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or DEFAULT_CA_BUNDLE_PATH
    place = access.verify if isinstance(access.verify, str) else bundle
    is_folder = Path(place).is_dir()
    context = ssl.create_default_context(cafile=None if is_folder else place, capath=place if is_folder else None)
    if access.verify is False:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if access.cert:
        context.load_cert_chain(*([access.cert] if isinstance(access.cert, str) else access.cert))
    return context
