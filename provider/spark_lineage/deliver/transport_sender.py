"""Sends by a transport that this package does not know: another one of openlineage-python, or a user's own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from openlineage.client.serde import Serde
from openlineage.client.transport import get_default_factory
from openlineage.client.transport.composite import CompositeTransport
from openlineage.client.transport.console import ConsoleTransport
from openlineage.client.transport.noop import NoopTransport
from openlineage.client.transport.transform import TransformTransport
from openlineage.client.transport.transport import Config, Transport
from openlineage.client.utils import import_from_string

from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import Later, Refused, Sender, rejection_of, sender_of
from spark_lineage.deliver.stored_event import restore_any
from spark_lineage.secrets.redaction import beginning
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from openlineage.client.client import Event

_MAX_TEXT = 1000
# Of the standard library, requests, urllib3 and httpx: the backend was not reached.
_NO_CONNECTION = frozenset({"ConnectionError", "ConnectError", "ConnectTimeout", "NewConnectionError"})
# The spool repeats; a transport that does so too would hold the courier. False: urllib3 says itself what went wrong.
_NO_RETRY: dict[str, Any] = {
    "total": 0, "connect": 0, "read": False, "status": 0, "other": 0, "backoff_factor": 0, "status_forcelist": [],
    "respect_retry_after_header": False,
}  # fmt: skip


class TransportSender:
    """Sends by a transport, whose ``emit`` raises unless the backend accepted the event.

    :raises SettingError: for a configuration of which no transport can be made
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        try:
            self._transport = _build(copy.deepcopy(dict(config)))
        except SettingError:
            raise
        except Exception as error:
            problem = str(error) or type(error).__name__
        else:
            return
        # Outside of the handler: the error of the transport may hold a secret.
        raise SettingError(f"the transport of type {config['type']!r} cannot be made: {problem}")

    def send(self, event: Outgoing) -> None:
        """Send one event; errors as of ``Sender``."""
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
        raise answer

    def probe(self) -> tuple[bool, str]:
        """Say that it was made: only an event shows more."""
        if isinstance(self._transport, ConsoleTransport):
            return True, "events go to the log of the task"
        if isinstance(self._transport, NoopTransport):
            return False, "a transport of type 'noop' sends nothing; give another type"
        inner = getattr(self._transport, "transport", None)
        if isinstance(inner, _SenderTransport):
            return inner.sender.probe()
        return True, f"{type(self._transport).__name__} was made; it cannot be tried without sending an event"

    def close(self) -> None:
        """Close the transport."""
        with suppress(Exception):
            self._transport.close(0)


class _SenderTransport(Transport):
    """A sender inside of a transport that changes events first (``transform``)."""

    kind = "spark_lineage_sender"
    config_class = Config

    def __init__(self, sender: Sender) -> None:
        self.sender = sender

    def emit(self, event: Event) -> None:
        """Send one event; errors as of ``Sender``."""
        self.sender.send(Outgoing.of(Serde.to_json(event).encode("utf-8", "replace")))

    def close(self, timeout: float = -1) -> bool:  # noqa: ARG002 - as openlineage-python has it
        """Close the sender."""
        self.sender.close()
        return True


def _build(config: dict[str, Any]) -> Transport:
    kind = config.get("type")
    if not isinstance(kind, str) or not kind:
        raise SettingError(
            "the transport has no 'type'; give one of http, kafka, file, console, composite, or a class path"
        )
    registered = get_default_factory().transports.get(kind, kind)
    chosen = import_from_string(registered) if isinstance(registered, str) else registered
    if not inspect.isclass(chosen) or not issubclass(chosen, Transport):
        raise SettingError(f"the transport {kind!r} is not a Transport of openlineage-python; give another")
    if issubclass(chosen, CompositeTransport):
        raise SettingError("a composite is several destinations, and cannot be inside another transport")
    for key in ("name", "priority"):
        config.pop(key, None)
    inner = config.get("transport") or {}
    if issubclass(chosen, TransformTransport):
        # The inner transport is replaced below.
        config["transport"] = {"type": "noop"}
    config_class = chosen.config_class
    config_class = import_from_string(config_class) if isinstance(config_class, str) else config_class
    if "retry" in getattr(config_class, "__annotations__", {}):
        config["retry"] = dict(_NO_RETRY)
    # Its from_dict takes what it uses out of the dictionary.
    transport: Transport = chosen(config_class.from_dict(config))  # type: ignore[call-arg]  # as its factory calls it
    if isinstance(transport, TransformTransport):
        transport.transport = _SenderTransport(sender_of(inner))
    return transport


def answer_of(error: BaseException) -> Later | Refused:
    """Return what the exception of any transport means; of an unknown kind, that the event may be taken later."""
    if isinstance(error, Later | Refused):
        return error
    text = " ".join(beginning(f"{type(error).__name__}: {error}", _MAX_TEXT).split())
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int):
            return rejection_of(status, text, str((getattr(response, "headers", None) or {}).get("Retry-After") or ""))
    return Later(text, is_away=any(kind.__name__ in _NO_CONNECTION for kind in type(error).__mro__))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Return an exception, and the exceptions that it was raised from."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
