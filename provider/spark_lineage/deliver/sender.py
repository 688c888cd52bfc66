"""What sends one event to one backend, and how a backend says no."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

    from spark_lineage.deliver.spool import Outgoing


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
