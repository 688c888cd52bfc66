"""Copies the events of one run from a receiver elsewhere into the launch's directory."""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

from spark_lineage.http_client import MAX_BYTES, Access, HttpClient, NoAnswerError, Request, origin_of
from spark_lineage.launch.bounded_run import ANSWER_SECONDS
from spark_lineage.launch.directory import append_private, create_private
from spark_lineage.launch.lock import locked, within
from spark_lineage.submission.event_channel import EventSource

ENDPOINT = "/api/v1/lineage/"
# Spark masks properties whose keys hold "token" (`spark.redaction.regex`).
TOKEN_HEADER = "X-Spark-Lineage-Token"  # noqa: S105 - its name
REFUSED_HEADER = "X-Spark-Lineage-Refused"
REFUSED = "refused by the receiver"
DEFAULT_PORT = 8790
# A client with a token may try secrets on it offline, so that short ones would be found.
LEAST_SECRET = 32
# A lost event is not sent again, and the job waits for each answer.
_ANSWER_MILLISECONDS = 3000


class ReceiverError(Exception):
    """A receiver that cannot be used or asked; the text says why, without secrets."""


class AwayError(ReceiverError):
    """A receiver that does not answer, and may do so later."""


def token_of(secret: bytes, run_id: str) -> str:
    """Return the token of a run, derived from the secret, so that it need not be stored."""
    return hmac.new(secret, run_id.encode(), hashlib.sha256).hexdigest()


def listener_transport(url: str, secret: bytes, run_id: str) -> dict[str, str]:
    """Return by which transport the listener reaches a receiver (``HttpConfig`` of openlineage-java)."""
    return {
        "type": "http",
        "url": url,
        "endpoint": f"{ENDPOINT}{run_id}",
        "compression": "gzip",
        "timeoutInMillis": str(_ANSWER_MILLISECONDS),
        f"headers.{TOKEN_HEADER}": token_of(secret, run_id),
    }


@dataclass(frozen=True)
class ReceiverService:
    """A receiver that runs as a service; ``verify`` is a file of certificates that its own is verified with."""

    url: str
    secret: bytes = field(repr=False)
    verify: bool | str = True

    @classmethod
    def of(cls, conn_id: str) -> ReceiverService:
        """Read its connection: schema, host, port and password, and in the extra ``verify``.

        :raises ReceiverError: when it names none
        :raises Exception: what Airflow raises where there is no such connection
        """
        from airflow.providers.common.compat.sdk import BaseHook

        connection = BaseHook.get_connection(conn_id)
        secret = (connection.password or "").encode()
        if len(secret) < LEAST_SECRET:
            text = (
                f"the connection {conn_id} has no password of {LEAST_SECRET} characters or more, which receivers need"
            )
            raise ReceiverError(text)
        host = connection.host or ""
        parts = urlsplit(host if "://" in host else f"{connection.schema or 'http'}://{host}")
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.path.strip("/"):
            raise ReceiverError(f"the connection {conn_id} has no host such as http://receiver, with a port of its own")
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        port = connection.port or parts.port or DEFAULT_PORT
        return cls(f"{parts.scheme}://{name}:{port}", secret, connection.extra_dejson.get("verify", True))


class ReceivedEvents(EventSource):
    """The events of a run that a receiver has taken, copied a piece at a time."""

    def __init__(self, service: ReceiverService, run_id: str, file: Path) -> None:
        super().__init__(run_id, file)
        self.description = f"the receiver {service.url}"
        self._url = f"{service.url}{ENDPOINT}{run_id}"
        headers = {TOKEN_HEADER: token_of(service.secret, run_id)}
        access = Access(headers=headers, verify=service.verify, is_direct=True)
        self._client = HttpClient({origin_of(service.url): access})

    def pull(self, *, is_last: bool = False) -> None:  # noqa: ARG002 - of the protocol
        """Copy what is new.

        :raises ReceiverError: when the service cannot be asked
        :raises OSError: when the file cannot be written
        """
        while piece := self._piece(size := self._file.stat().st_size if self._file.exists() else 0):
            create_private(self._file.parent)
            with locked(self._file, within(ANSWER_SECONDS), flags=os.O_NOFOLLOW) as descriptor:
                if descriptor is None:
                    raise BlockingIOError(errno.EAGAIN, "another process holds it for too long")
                # The worker of a lost try may have appended the same meanwhile.
                if os.fstat(descriptor).st_size == size:
                    append_private(self._file, [piece])

    def check(self) -> None:
        """Ask whether the service knows the token of the run.

        :raises ReceiverError: when it refuses it; not when it is away, for it may be back when the driver sends
        """
        with suppress(AwayError):
            self.pull()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _piece(self, offset: int) -> bytes:
        stream = BytesIO()
        try:
            headers = self._client.save(Request(f"{self._url}?offset={offset}"), stream, MAX_BYTES)
        except NoAnswerError as error:
            if error.http_status is None:
                raise AwayError(f"{self.description} cannot be asked: {error}") from None
            raise ReceiverError(f"{self.description} answered HTTP {error.http_status}") from None
        if refused := int(headers.get(REFUSED_HEADER, "0")):
            self.set_aside[REFUSED] = refused
        return stream.getvalue()
