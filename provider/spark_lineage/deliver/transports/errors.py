"""The errors of transports: whether the backend refused the event, or the event may be sent again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import requests

from spark_lineage.deliver import sender
from spark_lineage.secrets.redaction import redact

_MAX_TEXT = 1000
# Answers of a backend that has not looked at the event.
_UNSEEN = frozenset({408, 425, 429, 503})
_WORTH_REPEATING = range(500, 600)


class NotTakenError(Exception):
    """The backend did not accept an event; the text is redacted, and says what to do.

    ``is_refusal``: it has read the event, and would refuse it again. Otherwise another try may succeed. ``response``:
    of an HTTP answer the status, ``Retry-After``, the content type and the start of the body, redacted; nothing else.
    """

    def __init__(self, text: str, *, is_refusal: bool = False, response: requests.Response | None = None) -> None:
        super().__init__(text)
        self.is_refusal = is_refusal
        self.response = response


class UnreachableError(NotTakenError):
    """No connection, no TLS, or no right to connect: the backend has not seen the event."""


@dataclass(frozen=True)
class Answer:
    """The answer of a backend that did not accept an event.

    ``text`` is redacted and short. ``is_refusal``: never send it again. ``is_suspect``: the event itself may be the
    reason. ``is_brief``: the same may succeed a moment later.
    """

    text: str
    is_refusal: bool = False
    is_suspect: bool = True
    is_brief: bool = False
    retry_after_seconds: float | None = None


def answer_of(error: BaseException) -> Answer:
    """Return what the exception of any transport says; of an unknown kind, that the event may be taken later."""
    # First what is secret: half of a secret is not found.
    shown = redact(str(error) if isinstance(error, NotTakenError) else f"{type(error).__name__}: {error}")
    text = " ".join(shown.split())[:_MAX_TEXT]
    for each in _chain(error):
        response = getattr(each, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int):
            return _of_status(text, status, response)
        if isinstance(each, NotTakenError):
            return Answer(text, is_refusal=each.is_refusal, is_suspect=not isinstance(each, UnreachableError))
    is_unreachable = isinstance(error, requests.ConnectionError)
    is_timeout = isinstance(error, TimeoutError) or "Timeout" in type(error).__name__
    return Answer(text, is_suspect=not is_unreachable, is_brief=not (is_unreachable or is_timeout))


def _of_status(text: str, status: int, response: Any) -> Answer:
    if sender.is_refusal(status):
        return Answer(text, is_refusal=True)
    given = str((getattr(response, "headers", None) or {}).get("Retry-After") or "")
    retry_after = sender.retry_after_seconds(given)
    return Answer(
        text,
        is_suspect=status not in _UNSEEN,
        is_brief=status in _WORTH_REPEATING and retry_after is None,
        retry_after_seconds=retry_after,
    )


def cause_of(error: BaseException) -> str:
    """Return the text of the innermost cause, redacted: what is around it repeats host, path, and names of classes."""
    *_, innermost = _chain(error)
    text = innermost.strerror if isinstance(innermost, OSError) and innermost.strerror else str(innermost)
    return redact(text or type(innermost).__name__)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return an exception, and what it was raised from."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__
