"""Keeps the timeline of a launch: takes reports from any thread, and passes each transition on, once."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.launch.deadline import Deadline
from spark_lineage.launch.directory import TRANSITIONS_FILE
from spark_lineage.launch.line import LineError, decode_transition
from spark_lineage.merge.transition import (
    Status,
    StatusLedger,
    StatusReport,
    StatusSummary,
    StatusTransition,
    Subject,
    report_of,
)
from spark_lineage.secrets.redaction import redact

log = logging.getLogger(__name__)
_encoder = msgspec.json.Encoder()


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
        self._unwritten: list[StatusTransition] = []
        self._writing: BoundedRun | None = None

    def tell(self, report: StatusReport) -> None:
        """Take what a source says; what it, or another, has said already changes nothing."""
        with self._lock:
            kept = len(self._ledger.transitions)
            transition = self._ledger.add(report)
            if transition is None:
                return
            if len(self._ledger.transitions) > kept and self._file is not None:
                self._unwritten.append(transition)
                if self._writing is None or not self._writing.is_running:
                    self._writing = BoundedRun(partial(self._write, self._file), "spark-lineage-status")
            self._on_transition(transition)

    def flush(self, deadline: Deadline | float) -> None:
        """Wait until the file has what is known, as long as there is time: its disk may hang."""
        if (writing := self._writing) is not None:
            writing.wait(deadline)

    def restore(self, transitions: Iterable[StatusTransition]) -> None:
        """Take over what an earlier try kept, without passing it on."""
        with self._lock:
            for one in transitions:
                self._ledger.add(report_of(one))

    def status(self, subject: Subject, subject_id: str) -> Status | None:
        """Return the present status of an application or a driver."""
        with self._lock:
            return self._ledger.status(subject, subject_id)

    def has_uncaught_failure(self) -> bool:
        """Whether something failed in an application, after which nothing of it succeeded any more."""
        with self._lock:
            return self._ledger.has_uncaught_failure()

    def summary(self) -> StatusSummary:
        """Return what is known now."""
        with self._lock:
            return StatusSummary(transitions=tuple(self._ledger.transitions), counts=self._ledger.summed())

    def _write(self, file: Path) -> None:
        """Write what there is, in a thread of its own: a report does not wait for a disk."""
        while True:
            with self._lock:
                transitions, self._unwritten = self._unwritten, []
                if not transitions:
                    self._writing = None
                    return
            lines = _encoder.encode_lines(
                msgspec.structs.replace(one, detail=redact(one.detail), exception=redact(one.exception))
                for one in transitions
            )
            try:
                if file.parent.is_dir():
                    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                    with os.fdopen(os.open(file, flags, 0o600), "ab", buffering=0) as stream:
                        stream.write(lines)
            except OSError as error:
                log.debug("A transition is not on disk: %s", error)


def read_transitions(directory: Path) -> Iterator[StatusTransition]:
    """Return the transitions that were kept beside the lineage of a launch; torn lines are passed over.

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
