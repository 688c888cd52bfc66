"""What the OpenLineage backend can be told to answer instead of judging the event."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """Judge the event as always; the others below do something else."""

    seconds: float = 0.0
    """To wait before anything else: a slow backend."""


@dataclass(frozen=True)
class Refuse(Answer):
    """Answer a status without looking at the event, such as 503 with ``Retry-After``."""

    status: int = 503
    retry_after: str | None = None
    """Seconds, or a date as HTTP writes it."""
    body: str = '{"message": "told to refuse"}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang(Answer):
    """Take the request and never answer; the connection stays open until the client or the backend goes."""


@dataclass(frozen=True)
class Close(Answer):
    """Take the request and close the connection without a word."""


@dataclass(frozen=True)
class Lose(Answer):
    """Keep the event, then close the connection: the sender cannot know."""
