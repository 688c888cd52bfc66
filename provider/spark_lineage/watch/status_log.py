"""Keeps what has become of a launch: takes reports from any thread, and passes each transition on, once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from spark_lineage.collect.directory import TRANSITIONS_FILE
from spark_lineage.collect.line import LineError, decode_transition
from spark_lineage.emit.redaction import redact
from spark_lineage.merge.transition import (
    Status,
    StatusLedger,
    StatusReport,
    StatusSummary,
    StatusTransition,
    Subject,
    report_of,
)

log = logging.getLogger(__name__)


class StatusLog:
    """The transitions of one launch, in memory and in a file beside its lineage, for whoever comes after the try.

    :param directory: of the launch; nothing is written while it is not there
    :param on_transition: called with each transition, in their order, by the thread that brings it
    """

    def __init__(self, directory: Path | None, on_transition: Callable[[StatusTransition], object]) -> None:
        self._file = directory / TRANSITIONS_FILE if directory is not None else None
        self._on_transition = on_transition
        self._ledger = StatusLedger()
        # Reentrant: on_kill runs as the handler of a signal, wherever the main thread is.
        self._lock = threading.RLock()

    def tell(self, report: StatusReport) -> None:
        """Take what a source says; what it, or another, has said already changes nothing."""
        with self._lock:
            kept = len(self._ledger.transitions)
            transition = self._ledger.add(report)
            if transition is None:
                return
            if len(self._ledger.transitions) > kept:
                self._write(transition)
            self._on_transition(transition)

    def restore(self, transitions: Iterator[StatusTransition]) -> None:
        """Take over what an earlier try kept, without passing it on."""
        with self._lock:
            for one in transitions:
                self._ledger.add(report_of(one))

    def status(self, subject: Subject, subject_id: str) -> Status | None:
        """Give the present status of an application or a driver."""
        with self._lock:
            return self._ledger.status(subject, subject_id)

    def has_uncaught_failure(self) -> bool:
        """Whether something failed in an application, after which nothing of it succeeded any more."""
        with self._lock:
            return self._ledger.has_uncaught_failure()

    def summary(self) -> StatusSummary:
        """Give what is known now."""
        with self._lock:
            return StatusSummary(transitions=tuple(self._ledger.transitions), counts=self._ledger.summed())

    def _write(self, transition: StatusTransition) -> None:
        file = self._file
        if file is None or not file.parent.is_dir():
            return
        line = msgspec.json.encode(_redacted(transition)) + b"\n"
        try:
            with file.open("ab", buffering=0) as stream:
                stream.write(line)
        except OSError as error:
            log.debug("A transition is not on disk: %s", error)


def read_transitions(directory: Path) -> Iterator[StatusTransition]:
    """Give the transitions that were kept beside the lineage of a launch; torn lines are passed over.

    :raises OSError: when the file is there and cannot be read
    """
    file = directory / TRANSITIONS_FILE
    if not file.exists():
        return
    for line in file.read_bytes().splitlines():
        try:
            yield decode_transition(line)
        except LineError as error:
            log.debug("Set aside a line of %s: %s", file, error)


def _redacted(transition: StatusTransition) -> StatusTransition:
    return msgspec.structs.replace(transition, detail=redact(transition.detail), exception=redact(transition.exception))
