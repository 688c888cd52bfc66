"""The protocol of what sends one event to one backend, and the answers that do not take it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol

from spark_lineage.secrets.redaction import beginning
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from spark_lineage.deliver.spool import Outgoing

SUCCESSES = range(200, 300)
_REDIRECTS, _CLIENT_ERRORS = range(300, 400), range(400, 500)
DEFAULT_ENDPOINT = "api/v1/lineage"
MAX_BODY_BYTES = 16_384
_SHOWN_CHARACTERS = 1_000
# Answers that are not the fault of an event: address, credentials, rights, a proxy, the method (of a wrong address),
# being too early or too many. The events wait until that is mended.
_NOT_THE_EVENT = frozenset({401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 426, 429})
# A backend, or a proxy in front of it, that is overloaded.
_BUSY = 503
# A byte order mark, an XML declaration and comments may come before it.
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:(?:<\?xml[^>]*>|<!--.*?-->)\s*)*<(?:!doctype html|html)", re.IGNORECASE | re.DOTALL
)
_ADVICE = {
    401: "the credentials are missing or wrong: check the login and the password",
    403: "the credentials do not allow this",
    **dict.fromkeys((404, 405), "nothing accepts events at this address: check the host and the endpoint"),
    407: "the proxy wants credentials",
}
# The module of openlineage-python that has a transport, by which users may name it too.
_OF_OPENLINEAGE = re.compile(r"openlineage\.client\.transport\.(\w+)\.\w+Transport")


class Later(Exception):  # noqa: N818 - an answer
    """The backend has not taken the event, and may take it later.

    ``retry_after``: seconds that it asks for. ``is_away``: it has not looked at the event, so that no other event fares
    better.
    """

    def __init__(self, why: str, *, retry_after: float | None = None, is_away: bool = False) -> None:
        super().__init__(why)
        self.retry_after = retry_after
        self.is_away = is_away


class Refused(Exception):  # noqa: N818 - an answer
    """The backend has read the event, and will never take it."""


class Sender(Protocol):
    """Sends events to one backend, one at a time."""

    def send(self, event: Outgoing) -> None:
        """Send an event; it was taken when this returns.

        :raises Later: when it may be sent again
        :raises Refused: when it may not
        """

    def probe(self) -> tuple[bool, str]:
        """Contact the backend without sending an event, and return whether events would arrive, and what was found.

        :raises Later: where nobody answers
        """

    def close(self) -> None:
        """Close connections."""


def sender_of(config: Mapping[str, Any]) -> Sender:
    """Return the sender of a transport configuration of openlineage-python.

    Its transports that lose events silently (Kafka, ``async_http``) are replaced, and so are HTTP and local files.
    ``{"type": "atlas", "conn_id": …}`` is Atlas.

    :raises SettingError: when it cannot be made
    """
    kind = str(config.get("type") or "")
    if found := _OF_OPENLINEAGE.fullmatch(kind):
        kind = found[1].replace("msk_iam", "msk-iam")
    # Each is imported where it is used: the courier over HTTP has no memory for the others.
    match kind:
        case "http" | "async_http":
            from spark_lineage.deliver.http_sender import http_sender

            found_sender: Sender | None = http_sender(config)
        case "kafka" | "msk-iam":
            from spark_lineage.deliver.kafka_sender import KafkaSender

            found_sender = KafkaSender(config, has_aws_login=kind == "msk-iam")
        case "file":
            from spark_lineage.deliver.file_sender import file_sender

            found_sender = file_sender(config)
        case "atlas":
            from spark_lineage import add_ons

            if (atlas := add_ons.part("atlas")) is None:
                raise SettingError("a connection of type 'atlas' needs the package spark_lineage.atlas")
            found_sender = atlas.AtlasSender(config["conn_id"])
        case _:
            found_sender = None
    if found_sender is not None:
        return found_sender
    from spark_lineage.deliver.transport_sender import TransportSender, transport_of

    return TransportSender(transport_of(config))


def rejection_of(status: int, why: str, retry_after: str = "") -> Later | Refused:
    """Return the meaning of an HTTP answer that does not take the event.

    :param retry_after: the header
    """
    if status in _CLIENT_ERRORS and status not in _NOT_THE_EVENT:
        return Refused(why)
    # A page or a redirect is no error of the backend: a login is in front of it, or the address is wrong.
    is_away = status in _NOT_THE_EVENT or status == _BUSY or status < _CLIENT_ERRORS.start
    return Later(why, retry_after=_seconds(retry_after), is_away=is_away)


def is_page(body: bytes) -> bool:
    """Whether a body is an HTML page; the content type alone says little, for some frameworks it is the default."""
    return _PAGE.match(body) is not None


def answer_text(url: str, status: int, reason: str, location: str | None, body: bytes) -> str:
    """Return what is wrong with an answer, and what to do."""
    text = f"{url.partition('?')[0]} answered {status} {reason}".rstrip()
    if status in _REDIRECTS:
        target = (location or "nowhere").partition("?")[0]
        return f"{text}, a redirect to {target}: give the address that takes events"
    if status in SUCCESSES:
        return f"{text} with an HTML page, as a login in front of the backend does: no event was accepted"
    advice = f": {_ADVICE[status]}" if status in _ADVICE else ""
    shown = " ".join(beginning(body.decode("utf-8", "replace"), _SHOWN_CHARACTERS).split())
    return f"{text}{advice}" + (f" ({shown})" if shown and not is_page(body) else "")


def _seconds(retry_after: str) -> float | None:
    """Return the seconds of ``Retry-After``: a number, or a date (RFC 9110, 10.2.3); None for neither."""
    retry_after = retry_after.strip()
    if retry_after.isdecimal():
        return float(retry_after[:9])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
