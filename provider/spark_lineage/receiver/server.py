"""Runs the receiver on uvicorn, as a service of an installation.

Import it only to open a receiver: Airflow 2 does not bring uvicorn.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from spark_lineage.launch.bounded_run import ANSWER_SECONDS
from spark_lineage.launch.directory import create_private
from spark_lineage.receiver.service import SUFFIX, Receiver

SILENCE_SECONDS, _REQUEST_SECONDS = 10.0, 60.0
_HEAD_BYTES = 64 * 1024
# Connections that no token has come over: with one more, the oldest of them is cut off.
_MOST_STRANGERS = 500
_HOUR, _DAY = 3600.0, 86400.0


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's own, which by itself waits for a request, once it has begun or not, for ever, however long its head.

    :param strangers: the protocols of this server by the addresses of clients that have not shown a token yet
    :param silence_seconds: how long a client may send nothing at all
    """

    def __init__(
        self,
        *args: Any,
        strangers: dict[Any, PatientProtocol],
        silence_seconds: float = SILENCE_SECONDS,
        **others: Any,
    ) -> None:
        super().__init__(*args, **others)
        self._strangers = strangers
        self._silence_seconds = silence_seconds
        self._heard = self._begun = 0.0
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look whether the client is still there."""
        super().connection_made(transport)
        self._strangers[self.client] = self
        if len(self._strangers) > _MOST_STRANGERS:
            oldest = next(iter(self._strangers.values()))
            oldest.transport.abort()
            self._strangers.pop(oldest.client)
        self._heard = self.loop.time()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._strangers.pop(self.client, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        self._heard = self.loop.time()
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > _HEAD_BYTES:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Begin to count the time of a request."""
        self._begun = self._heard
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Give the request to the application."""
        self._head_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, which the application bounds."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next one."""
        self._begun = 0.0
        self._head_bytes = 0
        super().on_message_complete()

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        now = self.loop.time()
        left = self._heard + self._silence_seconds - now
        if self._begun:
            left = min(left, self._begun + _REQUEST_SECONDS - now)
        if left <= 0:
            self.transport.abort()
        else:
            self.loop.call_later(left, self._look)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_ready.set()


def server_of(
    receiver: Receiver,
    *,
    certfile: str | None = None,
    keyfile: str | None = None,
    silence_seconds: float = SILENCE_SECONDS,
) -> _Server:
    """Return the server of a receiver, which ``run(sockets=…)`` runs until ``should_exit``; it logs no request."""
    strangers: dict[Any, PatientProtocol] = {}
    receiver.on_token = lambda client: strangers.pop(client, None)
    protocol: Any = partial(PatientProtocol, strangers=strangers, silence_seconds=silence_seconds)
    return _Server(
        uvicorn.Config(
            receiver,
            http=protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            server_header=False,
            log_config=None,
            log_level="error",
            access_log=False,
            # The protocol's own timeout comes first.
            timeout_keep_alive=int(_REQUEST_SECONDS),
            timeout_graceful_shutdown=int(ANSWER_SECONDS),
            ssl_certfile=certfile,
            ssl_keyfile=keyfile,
        )
    )


def bound(host: str, ports: Sequence[int]) -> socket.socket:
    """Return a socket that listens on the first of the ports that is free.

    :param host: empty for all addresses of this machine
    :raises OSError: when none is
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bind = partial(socket.create_server, family=family, backlog=2048)
    for port in ports[:-1]:
        with suppress(OSError):
            return bind((host, port))
    return bind((host, ports[-1]))


class KeptFiles:
    """The files of a service's runs, for their owner alone, and removed when nothing has come for so long.

    :raises OSError: when the directory cannot be made
    """

    def __init__(self, root: Path, retention_days: float) -> None:
        # It may be a link; what is in it may not.
        self._root = root.resolve()
        create_private(self._root)
        self._retention_seconds = retention_days * _DAY
        self._cleaned = float("-inf")

    def file_of(self, run_id: str) -> Path:
        """Return the file of a run."""
        if time.monotonic() > self._cleaned + _HOUR:
            self._cleaned = time.monotonic()
            oldest = time.time() - self._retention_seconds
            for file in self._root.glob(f"*{SUFFIX}"):
                # A file that cannot be read or removed now is for the next clean-up.
                with suppress(OSError):
                    if file.stat().st_mtime < oldest:
                        file.unlink()
        return self._root / f"{run_id}{SUFFIX}"
