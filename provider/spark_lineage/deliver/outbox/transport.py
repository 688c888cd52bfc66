"""A transport that keeps each event on disk until the transport inside of it has delivered it.

For all of Airflow's events, in ``[openlineage] transport``::

    {"type": "spark_lineage.deliver.outbox.transport.OutboxTransport",
     "transport": {"type": "http", "url": "http://marquez:5000"}}
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attr
from openlineage.client.transport.transport import Config, Transport

from spark_lineage.deliver.outbox.outbox import DEFAULT_BYTES, Outbox, send_unkept
from spark_lineage.secrets.redacted_event import encode
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.defaults import outbox_directory
from spark_lineage.settings.places import section_settings

if TYPE_CHECKING:
    from openlineage.client.client import Event

_log = logging.getLogger(__name__)

CLASS_PATH = "spark_lineage.deliver.outbox.transport.OutboxTransport"
DESTINATION = "[openlineage]"
_SECONDS = 5.0
# Who does not want to wait does not want to lose an event either.
_SECONDS_RATHER_THAN_NONE = 1.0


@attr.define
class OutboxConfig(Config):
    """The configuration: only ``transport`` must be given.

    By default ``directory``, ``max_bytes`` and ``delivery_timeout_seconds`` are ``outbox_dir``, ``outbox_max_bytes``
    and ``delivery_timeout_seconds`` of ``[spark_lineage]``.
    """

    transport: dict[str, Any] = attr.field(repr=False)
    directory: Path = attr.field(factory=lambda: outbox_directory(""))
    max_bytes: int = DEFAULT_BYTES
    delivery_timeout_seconds: float = _SECONDS

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> OutboxConfig:
        """Read it.

        :raises ValueError: for what does not fit; the text says what does
        """
        inner = params.get("transport")
        if not isinstance(inner, Mapping) or not inner.get("type"):
            raise ValueError('the outbox has no transport to deliver with; give "transport": {"type": ..., ...}')
        if inner["type"] == CLASS_PATH:
            raise ValueError("the transport inside of an outbox is an outbox; give the one that delivers")
        settings = section_settings(_log)
        directory = outbox_directory(str(params.get("directory") or settings.outbox_dir))
        max_bytes = _number(params, "max_bytes", settings.outbox_max_bytes)
        seconds = _number(params, "delivery_timeout_seconds", settings.delivery_timeout_seconds, can_be_zero=True)
        return cls(dict(inner), directory, int(max_bytes), seconds)


class OutboxTransport(Transport):
    """Puts an event into the outbox, then delivers what waits, within ``delivery_timeout_seconds``.

    An event that the outbox cannot keep is sent at once. Nothing is opened before the first event, so that it may be
    made in one process and used in another that was forked from it.
    """

    kind = "outbox"
    config_class = OutboxConfig

    def __init__(self, config: OutboxConfig) -> None:
        self.config = config
        self._outbox = Outbox(config.directory, max_bytes=config.max_bytes)

    @property
    def destination(self) -> str:
        """What its events are kept for; several outboxes in one composite have names there."""
        return f"{DESTINATION}/{self.name}" if self.name else DESTINATION

    def emit(self, event: Event) -> None:
        """Keep one event, and deliver it if the backend takes it in time.

        :raises Exception: what the transport raises, when the event could not even be kept
        """
        content = encode(event)
        try:
            self._outbox.put(self.destination, content)
        except Exception as error:
            _log.error("An event is sent without being kept first: %s", redact(str(error)))
            seconds = self.config.delivery_timeout_seconds or _SECONDS_RATHER_THAN_NONE
            send_unkept(content, lambda: self._open(self.destination), seconds)
            self._outbox.sent_unkept(self.destination, content)
            return
        self._deliver(self.config.delivery_timeout_seconds)

    def close(self, timeout: float = -1) -> bool:
        """Deliver what waits, once more.

        :return: whether nothing waits any more
        """
        longest = self.config.delivery_timeout_seconds
        is_empty = self._deliver(longest if timeout < 0 else min(timeout, longest))
        self._outbox.close()
        return is_empty

    def _deliver(self, seconds: float) -> bool:
        delivered = self._outbox.deliver([self.destination], self._open, seconds)
        if delivered.waiting:
            _log.info("%d events wait in the outbox; a later one is sent with them.", delivered.waiting)
        return not delivered.waiting

    def _open(self, destination: str) -> Transport:  # noqa: ARG002 - there is only one
        from spark_lineage.deliver.transports.opening import make_transport

        return make_transport(self.config.transport)


def _number(params: Mapping[str, Any], name: str, default: float, *, can_be_zero: bool = False) -> float:
    value = params.get(name, default)
    number = -1.0
    with suppress(TypeError, ValueError, OverflowError):
        number = float(value)
    # NaN fails the comparisons too.
    if not (0 < number < float("inf") or (can_be_zero and number == 0)):
        raise ValueError(f"{name} of the outbox is {value!r}; give a number above 0")
    return number
