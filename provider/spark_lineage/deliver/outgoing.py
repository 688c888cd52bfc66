"""One event as it is sent, and the file in the directory of its launch that stores it for later."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import RUN_EVENTS_FILE
from spark_lineage.launch.lock import appending
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
_appending = partial(appending, mode=0o600, flags=os.O_NOFOLLOW)


@dataclass(frozen=True)
class Outgoing:
    """One event: its JSON without secrets, and the fields that its order depends on.

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


@LINEAGE_FILES.bounded
def append_event(directory: Path, content: bytes) -> None:
    """Append the JSON of an event: whole and on disk when this returns, or not at all; nothing without a directory."""
    if directory.is_dir():
        with _appending(directory / RUN_EVENTS_FILE) as append_line:
            append_line(content)


@LINEAGE_FILES.bounded
def append_end(directory: Path, end: Outgoing) -> Outgoing:
    """Append the end of a run, unless there is one already; return the stored end, or this one."""
    if directory.is_dir():
        with _appending(directory / RUN_EVENTS_FILE) as append_line:
            if (stored := stored_end(directory, end.run_id)) is not None:
                return stored
            append_line(end.body)
    return end


@LINEAGE_FILES.bounded
def stored_end(directory: Path, run_id: str) -> Outgoing | None:
    """Return the stored end of a run, None without one."""
    with suppress(FileNotFoundError), (directory / RUN_EVENTS_FILE).open("rb") as lines:
        for line in lines:
            # A line may be torn.
            with suppress(SpoolError):
                event = Outgoing.of(line.strip())
                if event.run_id == run_id and event.event_type in TERMINAL:
                    return event
    return None
