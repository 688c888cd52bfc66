"""What an exception of a transport says about an event: that it is never taken, or that it may be later."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from spark_lineage.deliver.transports.errors import AnswerError, LoginError, NotTakenError, UnreachableError
from spark_lineage.secrets.redaction import redact

_MAX_TEXT = 1000
_CLIENT_ERRORS = range(400, 500)
# Not the fault of an event: address, credentials, rights, a proxy, the method (of a wrong address), being too early or
# too many. Who mends them wants the events to have waited.
_NOT_THE_EVENT = frozenset({401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 426, 429})
# Answers of a backend that has not looked at the event.
_UNSEEN = frozenset({408, 425, 429, 503})
_WORTH_REPEATING = range(500, 600)
_UNREACHABLE = frozenset(
    {
        # urllib3 (below requests), httpx, aiohttp
        *("NewConnectionError", "ConnectTimeoutError", "NameResolutionError", "ConnectTimeout", "ConnectError"),
        *("ProxyError", "ClientConnectorError", "ConnectionRefusedError", "gaierror"),
    }
)
# Of Kafka: the broker never takes this message, whoever sends it.
_KAFKA_REFUSALS = frozenset(
    {"MSG_SIZE_TOO_LARGE", "INVALID_MSG", "INVALID_MSG_SIZE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD"}
)


@dataclass(frozen=True)
class Answer:
    """What a backend answered that did not take an event.

    ``text`` is redacted and short. ``is_refusal``: never send it again. ``is_suspect``: the event itself may be the
    reason. ``is_brief``: the same may succeed a moment later.
    """

    text: str
    is_refusal: bool = False
    is_suspect: bool = True
    is_brief: bool = False
    retry_after_seconds: float | None = None


def answer_of(error: BaseException) -> Answer:
    """Return what an exception says; of an unknown kind, that the event may be taken later."""
    if isinstance(error, ExceptionGroup):
        return _of_several([answer_of(each) for each in error.exceptions])
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, NotTakenError) and (each.is_refusal or not isinstance(each, AnswerError)):
            is_suspect = not isinstance(each, (UnreachableError, LoginError))
            return Answer(_text(error), is_refusal=each.is_refusal, is_suspect=is_suspect)
        if (name := _kafka_name(each)) is not None:
            return Answer(_text(error), is_refusal=name in _KAFKA_REFUSALS, is_suspect=False)
        response = getattr(each, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int):
            return _of_status(status, response)
    if any(type(each).__name__ in _UNREACHABLE for each in chain):
        return Answer(_text(error), is_suspect=False)
    is_timeout = any(isinstance(each, TimeoutError) or "Timeout" in type(each).__name__ for each in chain)
    return Answer(_text(error), is_brief=not is_timeout)


def _of_several(answers: Sequence[Answer]) -> Answer:
    """What the members of a composite said: it has refused an event where nobody takes it later."""
    waits = [one.retry_after_seconds for one in answers if one.retry_after_seconds is not None]
    return Answer(
        "; ".join(one.text for one in answers)[:_MAX_TEXT],
        is_refusal=all(one.is_refusal for one in answers),
        is_suspect=all(one.is_suspect for one in answers),
        retry_after_seconds=max(waits, default=None),
    )


def _of_status(status: int, response: Any) -> Answer:
    reason = getattr(response, "reason", None) or getattr(response, "reason_phrase", None) or ""
    text = _short(f"{status} {reason}: {_body(response)}")
    if status in _CLIENT_ERRORS and status not in _NOT_THE_EVENT:
        return Answer(text, is_refusal=True)
    retry_after = _retry_after(response)
    return Answer(
        text,
        is_suspect=status not in _UNSEEN,
        is_brief=status in _WORTH_REPEATING and retry_after is None,
        retry_after_seconds=retry_after,
    )


def _body(response: Any) -> str:
    try:
        content = response.content
    except Exception:
        # A stream that nobody has read.
        return ""
    return content[: 4 * _MAX_TEXT].decode("utf-8", "replace") if isinstance(content, bytes) else ""


def _retry_after(response: Any) -> float | None:
    """Return the seconds of ``Retry-After``: a number, or a date (RFC 9110, 10.2.3)."""
    value = str((getattr(response, "headers", None) or {}).get("Retry-After") or "").strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _kafka_name(error: object) -> str | None:
    """Return the name of the ``KafkaError`` that confluent-kafka's exception has as its argument."""
    for each in (error, *getattr(error, "args", ())[:1]):
        if type(each).__name__ == "KafkaError":
            return str(each.name()) if hasattr(each, "name") else ""
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return an exception, what it was raised from, and what requests and urllib3 wrap in it."""
    todo: list[Any] = [error]
    seen: set[int] = set()
    while todo:
        current = todo.pop(0)
        if isinstance(current, BaseException) and id(current) not in seen:
            seen.add(id(current))
            yield current
            reason = getattr(current, "reason", None)
            todo += [*current.args[:2], reason, current.__cause__, current.__context__]


def _text(error: BaseException) -> str:
    return _short(f"{type(error).__name__}: {error}")


def _short(text: str) -> str:
    # First what is secret: half of a secret is not found.
    return " ".join(redact(text).split())[:_MAX_TEXT]
