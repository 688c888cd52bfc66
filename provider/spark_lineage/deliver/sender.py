"""The protocol of a sender to one backend, the answers that do not accept an event, and the choice of the sender."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol

from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from spark_lineage.deliver.outgoing import Outgoing

DEFAULT_ENDPOINT = "api/v1/lineage"
_CLIENT_ERRORS = range(400, 500)
# Answers that are not the fault of an event: address, credentials, rights, a proxy, the method (of a wrong address),
# being too early or too many. The events wait until that is corrected.
_NOT_THE_EVENT = frozenset({401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 426, 429})
# A backend, or a proxy in front of it, that is overloaded.
_BUSY = 503
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
    if module := _OF_OPENLINEAGE.fullmatch(kind):
        kind = module[1].replace("msk_iam", "msk-iam")
    sender: Sender | None = None
    # Each is imported where it is used: the courier over HTTP has no memory for the others.
    match kind:
        case "http" | "async_http":
            from spark_lineage.deliver.http_sender import HttpSender

            sender = HttpSender.of(config)
        case "kafka" | "msk-iam":
            from spark_lineage.deliver.kafka_sender import KafkaSender

            sender = KafkaSender(config, has_aws_login=kind == "msk-iam")
        case "file":
            from spark_lineage.deliver.file_sender import FileSender

            sender = FileSender.of(config)
        case "atlas":
            from spark_lineage import add_ons

            if (atlas := add_ons.part("atlas")) is None:
                raise SettingError("a connection of type 'atlas' needs the package spark_lineage.atlas")
            sender = atlas.AtlasSender(config["conn_id"])
    if sender is None:
        from spark_lineage.deliver.transport_sender import TransportSender

        sender = TransportSender(config)
    return sender


def rejection_of(status: int, why: str, retry_after: str = "") -> Later | Refused:
    """Return the meaning of an HTTP answer that does not take the event.

    :param retry_after: the header
    """
    if status in _CLIENT_ERRORS and status not in _NOT_THE_EVENT:
        return Refused(why)
    # A page or a redirect is no error of the backend: a login is in front of it, or the address is wrong.
    is_away = status in _NOT_THE_EVENT or status == _BUSY or status < _CLIENT_ERRORS.start
    return Later(why, retry_after=_seconds(retry_after), is_away=is_away)


def _seconds(retry_after: str) -> float | None:
    """Return the seconds of ``Retry-After``: a number, or a date (RFC 9110, 10.2.3); None for neither."""
    retry_after = retry_after.strip()
    if retry_after.isdecimal():
        return float(retry_after[:9])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
