"""One event as it is sent: its JSON without secrets, and the fields that its order depends on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from spark_lineage.secrets.redaction import redact_event

if TYPE_CHECKING:
    from openlineage.client.client import Event

TERMINAL = frozenset({"COMPLETE", "FAIL", "ABORT"})
_TYPES = TERMINAL | {"START", "RUNNING", "OTHER"}
_EMPTY_LISTS = frozenset({b"", b"[]", b"null"})


class SpoolError(Exception):
    """An event cannot be stored, or a stored event cannot be read; the text says what to do."""


class _Named(msgspec.Struct, gc=False):
    namespace: str
    name: str


class _RunId(msgspec.Struct, gc=False):
    runId: str  # noqa: N815 - the names are those of the specification


class _Head(msgspec.Struct, gc=False):
    run: _RunId | None = None
    job: _Named | None = None
    dataset: _Named | None = None
    eventType: str | None = None  # noqa: N815
    eventTime: str | None = None  # noqa: N815
    inputs: msgspec.Raw = msgspec.Raw(b"")
    outputs: msgspec.Raw = msgspec.Raw(b"")


_decode_head = msgspec.json.Decoder(_Head).decode


@dataclass(frozen=True)
class Outgoing:
    """One event.

    ``run_id`` and ``event_type`` are empty for a ``JobEvent`` and a ``DatasetEvent``; ``job`` is ``namespace name``. In
    ``event_time`` a point stands before fractions of a second: the comma of ISO 8601 separates the fields of a note.
    """

    run_id: str
    event_type: str
    event_time: str
    job: str
    has_datasets: bool
    body: bytes

    @classmethod
    def encode(cls, event: Event) -> Outgoing:
        """Return an event of openlineage-python as it leaves: JSON in UTF-8, sorted keys, without secrets."""
        # The courier, which never encodes, saves the memory of this import.
        from openlineage.client.serde import Serde

        # JSON has no NaN and no infinity, which Python writes: they become null.
        redacted = redact_event(json.loads(Serde.to_json(event), parse_constant=lambda _: None))
        text = json.dumps(redacted, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        # A lone surrogate cannot be written in UTF-8, and becomes a question mark.
        return cls.of(text.encode("utf-8", "replace"))

    @classmethod
    def of(cls, body: bytes) -> Outgoing:
        """Return an event by its JSON.

        :raises SpoolError: for JSON that is no event of OpenLineage
        """
        try:
            head = _decode_head(body)
            problem = "no job and no dataset"
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            head, problem = _Head(), str(error)
        subject = head.job or head.dataset
        if subject is None:
            raise SpoolError(f"this is not an event of OpenLineage ({problem}); the outbox stores nothing else")
        return cls(
            run_id=head.run.runId if head.run is not None else "",
            event_type=head.eventType if head.eventType in _TYPES else "",
            event_time=(head.eventTime or "").replace(",", "."),
            job=f"{subject.namespace} {subject.name}",
            has_datasets=not {bytes(head.inputs), bytes(head.outputs)} <= _EMPTY_LISTS,
            body=body,
        )
