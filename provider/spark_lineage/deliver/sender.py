"""What sends one event to one backend, and how a backend says no."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol

from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

    from spark_lineage.deliver.spool import Outgoing

SUCCESSES, CLIENT_ERRORS = range(200, 300), range(400, 500)
_REDIRECTS = range(300, 400)
MAX_BODY_BYTES = 16_384
_SHOWN_CHARACTERS = 1_000
# Not the fault of an event: address, credentials, rights, a proxy, the method (of a wrong address), being too early or
# too many. Who mends them wants the events to have waited.
NOT_THE_EVENT = frozenset({401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 426, 429})
_PAGE = re.compile(rb"\s*<(?:!doctype html|html)", re.IGNORECASE)
_ADVICE = {
    401: "the credentials are missing or wrong: check the login and the password",
    403: "the credentials do not allow this",
    **dict.fromkeys((404, 405), "nothing accepts events at this address: check the host and the endpoint"),
    407: "the proxy wants credentials",
}


class Later(Exception):  # noqa: N818 - an answer
    """The backend has not taken the event, and may take it later; the text is redacted.

    ``retry_after``: seconds that it asks for. ``is_away``: it has not looked at the event, so that no other event fares
    better.
    """

    def __init__(self, why: str, *, retry_after: float | None = None, is_away: bool = False) -> None:
        super().__init__(why)
        self.retry_after = retry_after
        self.is_away = is_away


class Refused(Exception):  # noqa: N818 - an answer
    """The backend has read the event, and will never take it; the text is redacted."""


class Sender(Protocol):
    """Sends events to one backend, one at a time."""

    def send(self, event: Outgoing) -> None:
        """Send an event; it was taken when this returns.

        :raises Later: when it may be sent again
        :raises Refused: when it may not
        """

    def close(self) -> None:
        """Close connections."""


class TransportSender:
    """Sends by a transport of openlineage-python, whose ``emit`` raises unless the backend took the event."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def send(self, event: Outgoing) -> None:
        """Send one event; errors as of ``Sender``."""
        from spark_lineage.deliver.stored_event import restore_any
        from spark_lineage.deliver.transports.errors import answer_of

        try:
            restored = restore_any(event.body)
        except ValueError as error:
            raise Refused(f"it cannot be sent: {error}") from None
        try:
            self._transport.emit(restored)
        except Exception as error:
            answer = answer_of(error)
        else:
            return
        if answer.is_refusal:
            raise Refused(answer.text)
        raise Later(answer.text, retry_after=answer.retry_after_seconds, is_away=not answer.is_suspect)

    def close(self) -> None:
        """Close the transport."""
        with suppress(Exception):
            self._transport.close(0)


def sender_of(config: Mapping[str, Any]) -> Sender:
    """Return the sender of a configuration, as ``opening.config_of`` gives it.

    :raises SettingError: when it cannot be made
    """
    from spark_lineage.deliver.http_sender import http_sender

    if (sender := http_sender(config)) is not None:
        return sender
    from spark_lineage.deliver.transports.opening import make_transport

    return TransportSender(make_transport(config))


def is_refusal(status: int) -> bool:
    """Whether a backend has read the event, and would refuse it again."""
    return status in CLIENT_ERRORS and status not in NOT_THE_EVENT


def is_page(body: bytes) -> bool:
    """Whether a body is an HTML page; the content type alone says little, for some frameworks it is the default."""
    return _PAGE.match(body) is not None


def description(url: str, status: int, reason: str, location: str | None, body: bytes) -> str:
    """Return what is wrong with an answer, and what to do, redacted."""
    text = f"{url.partition('?')[0]} answered {status} {reason}".rstrip()
    if status in _REDIRECTS:
        target = (location or "nowhere").partition("?")[0]
        return redact(f"{text}, a redirect to {target}: give the address that takes events")
    if status in SUCCESSES:
        return redact(f"{text} with an HTML page, as a login in front of the backend does: no event was accepted")
    advice = f": {_ADVICE[status]}" if status in _ADVICE else ""
    # First what is secret: half of a secret is not found.
    shown = " ".join(redact(body.decode("utf-8", "replace"))[:_SHOWN_CHARACTERS].split())
    return redact(f"{text}{advice}" + (f" ({shown})" if shown and not is_page(body) else ""))


def retry_after_seconds(value: str) -> float | None:
    """Return the seconds of ``Retry-After``: a number, or a date (RFC 9110, 10.2.3); None for neither."""
    value = value.strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
