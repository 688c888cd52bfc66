"""An event as the outbox keeps it: its JSON, and what of it decides about order and space."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from openlineage.client.client import Event

# After one of these a backend takes START and RUNNING of the run for a new beginning.
TERMINAL = frozenset({"COMPLETE", "FAIL", "ABORT"})


class OutboxError(Exception):
    """An event cannot be kept, or what is kept cannot be read; the text says what to do."""


@dataclass(frozen=True)
class Head:
    """What an event is about; a ``JobEvent`` and a ``DatasetEvent`` have no run, and no type.

    ``has_datasets`` is known of an event that is about to be kept.
    """

    run_id: str
    event_type: str
    event_time: str
    job: str
    has_datasets: bool = False

    @property
    def is_terminal(self) -> bool:
        """Whether it ends its run."""
        return self.event_type in TERMINAL


@dataclass(frozen=True)
class KeptEvent:
    """One event that waits, or that was refused (``is_dead``), with what the backend last answered.

    ``stored_at`` is in seconds since the epoch, for people to see; order is by ``id``. ``attempts``: how often it was
    not taken.
    """

    id: int
    destination: str
    head: Head
    stored_at: float
    size: int
    is_dead: bool
    attempts: int
    answer: str


@dataclass(frozen=True)
class Waiting:
    """What is there for one destination.

    ``oldest_at`` is when the oldest that waits was put, in seconds since the epoch; 0 where nothing waits. While its
    breaker is open, nothing is sent for ``paused_seconds``, because of ``answer``.
    """

    destination: str
    waiting: int = 0
    dead: int = 0
    bytes: int = 0
    oldest_at: float = 0.0
    paused_seconds: float = 0.0
    answer: str = ""


class _Run(msgspec.Struct):
    runId: str  # noqa: N815 - as in the spec, like the other keys here


class _Named(msgspec.Struct):
    namespace: str
    name: str


class _Event(msgspec.Struct):
    run: _Run | None = None
    job: _Named | None = None
    dataset: _Named | None = None
    inputs: list[msgspec.Raw] | None = None
    outputs: list[msgspec.Raw] | None = None
    eventType: str | None = None  # noqa: N815
    eventTime: str | None = None  # noqa: N815


def head_of(content: bytes) -> Head:
    """Return what an event is about.

    :raises OutboxError: for what is no event of OpenLineage
    """
    try:
        event = msgspec.json.decode(content, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OutboxError(f"this is no event of OpenLineage ({error}); the outbox keeps nothing else") from None
    subject = event.job or event.dataset
    if subject is None:
        raise OutboxError("this is no event of OpenLineage (no job, no dataset); the outbox keeps nothing else")
    return Head(
        run_id=event.run.runId if event.run else "",
        event_type=event.eventType or "",
        event_time=event.eventTime or "",
        job=f"{subject.namespace} {subject.name}",
        has_datasets=bool(event.inputs or event.outputs),
    )


def digest_of(content: bytes) -> bytes:
    """Return what is the same for the same content only."""
    return hashlib.blake2b(content, digest_size=16).digest()


def restored(content: bytes) -> Event:
    """Return the event that a transport takes, such that it sends the same content again.

    :raises ValueError: for what no transport can take
    """
    from openlineage.client import event_v2

    from spark_lineage.deliver.stored_event import made, restore

    try:
        event: dict[str, Any] = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if event.get("run") is not None:
        return restore(content)
    if event.get("dataset") is not None:
        return made(event_v2.DatasetEvent, {**event, "dataset": made(event_v2.StaticDataset, event["dataset"])})  # type: ignore[no-any-return]
    return made(event_v2.JobEvent, {**event, "job": made(event_v2.Job, event["job"])})  # type: ignore[no-any-return]
