"""Decodes one line of a lineage file, or says what is wrong with it.

Imports neither Airflow nor pyspark, because it runs on executors too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC

import msgspec
from msgspec import structs

from spark_lineage.merge.event import Dataset, RunEvent, observe
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.transition import StatusTransition

MAX_LINE_BYTES = 64 * 1024 * 1024
_SPARK = "SPARK"
# Producers of OpenLineage's own repository are named by their directory, those of others by no rule.
_INTEGRATION = re.compile(r"https?://[^?#]*/integration/(?P<name>\w{1,32})/?")
# What the memo of dataset lists may hold, in bytes of JSON; it is dropped whole when full.
_MEMO_BYTES = 4 * 1024 * 1024

_EMPTY: tuple[Observed, ...] = ()
_QUOTED = re.compile(r"'.*'", re.DOTALL)
_decode_event = msgspec.json.Decoder(RunEvent).decode
_decode_transition = msgspec.json.Decoder(StatusTransition).decode


class LineError(ValueError):
    """A line that is set aside; ``reason`` is a short fixed word for counting, the text says more."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


@dataclass
class LineCounts:
    """How many lines were read as events, how many were set aside, by reason, and where they were collected from."""

    read: int = 0
    set_aside: dict[str, int] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    """``directory``: one that this machine sees; ``event_log``: where the log lies; ``history``: a History Server;
    ``receiver``: over HTTP; ``driver_log``: what the driver has printed; ``kafka``: a topic."""

    def add(self, reason: str) -> None:
        """Count one line that was set aside."""
        self.set_aside[reason] = self.set_aside.get(reason, 0) + 1

    @property
    def set_aside_total(self) -> int:
        """All lines set aside."""
        return sum(self.set_aside.values())


class LineDecoder:
    """Turns lines into events and their datasets.

    An action repeats its datasets on each of its events, and a program repeats them on each action, so lists of
    datasets are decoded once and shared: equal JSON gives the identical tuple.
    """

    def __init__(self) -> None:
        self._decode_datasets = msgspec.json.Decoder(list[Dataset]).decode
        self._memo: dict[bytes, tuple[Observed, ...]] = {b"[]": _EMPTY}
        self._memo_bytes = 0
        self._last_inputs = self._last_outputs = msgspec.Raw(b"[]")
        self._inputs = self._outputs = _EMPTY

    def decode(self, line: bytes) -> tuple[RunEvent, tuple[Observed, ...], tuple[Observed, ...]]:
        """Return the event on a line, its inputs and its outputs.

        Of a JSON key that is repeated the last value counts, as in every common JSON reader.

        :param line: one line without its newline
        :raises LineError: ``empty``, ``oversized``, ``not UTF-8``, ``not JSON`` (torn), ``not a RunEvent``, or ``not of
            Spark`` for other producers' events, and what has been merged already
        """
        if not line.isascii() or len(line) > MAX_LINE_BYTES:
            _check_text(line)
        try:
            event = _decode_event(line)
            if (integration := _integration(event)) != _SPARK:
                raise LineError("not of Spark", f"it is an event of {integration[:32]!r}, as backends get them")
            # Consecutive events mostly repeat their predecessor: comparing is far cheaper than hashing.
            if event.inputs != self._last_inputs:
                self._inputs = self._datasets(bytes(event.inputs))
                self._last_inputs = event.inputs
            if event.outputs != self._last_outputs:
                self._outputs = self._datasets(bytes(event.outputs))
                self._last_outputs = event.outputs
        except (msgspec.DecodeError, RecursionError) as error:
            raise _line_error(line, error) from error
        return event, self._inputs, self._outputs

    def _datasets(self, raw: bytes) -> tuple[Observed, ...]:
        known = self._memo.get(raw)
        if known is None:
            known = observe(self._decode_datasets(raw))
            if self._memo_bytes > _MEMO_BYTES:
                self._memo = {b"[]": _EMPTY}
                self._memo_bytes = 0
            self._memo[raw] = known
            self._memo_bytes += len(raw)
        return known


def is_of_run(event: bytes, run_id: str) -> bool:
    """Whether an event is of the run of a Spark application, or of one of its children.

    :raises msgspec.DecodeError: when it is no event
    """
    run = _decode_event(event).run
    parent = run.facets.parent if run.facets is not None else None
    return run_id in {run.runId, parent.run.runId if parent is not None else ""}


def decode_transition(line: bytes) -> StatusTransition:
    """Return the ``StatusTransition`` on a line of a status file.

    :raises LineError: as for an event, ``not a StatusTransition`` for other JSON
    """
    if not line.isascii() or len(line) > MAX_LINE_BYTES:
        _check_text(line)
    try:
        transition = _decode_transition(line)
        return structs.replace(transition, time=transition.time.astimezone(UTC))
    except OverflowError as error:
        raise LineError("not a StatusTransition", "its offset moves the time out of all years") from error
    except msgspec.DecodeError as error:
        raise _line_error(line, error, "StatusTransition") from error


def _integration(event: RunEvent) -> str:
    """Return what made an event, by the type of its job, else by its producer; Spark where neither says it."""
    facets = event.job.facets
    if facets is not None and facets.jobType is not None and facets.jobType.integration:
        return facets.jobType.integration.upper()
    match = _INTEGRATION.fullmatch(event.producer)
    return match["name"].upper() if match else _SPARK


class LineSplitter:
    """Cuts chunks of bytes into lines, holding no more than one line; an oversized one comes as a ``LineError``."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes | LineError]:
        """Return the lines that end in this chunk."""
        head, *rest = chunk.split(b"\n")
        self._pending.append(head)
        self._size += len(head)
        if not rest:
            if self._size > MAX_LINE_BYTES:
                # Keep counting, stop keeping: the line is lost anyway and may have no end.
                self._pending.clear()
            return []
        lines: list[bytes | LineError] = [self._joined(), *rest[:-1]]
        self._pending, self._size = [rest[-1]], len(rest[-1])
        return lines

    def finish(self) -> list[bytes | LineError]:
        """Return the last line, which may lack its newline; nothing after the last newline is no line."""
        lines = [self._joined()] if self._size else []
        self._pending, self._size = [], 0
        return lines

    def _joined(self) -> bytes | LineError:
        if self._size > MAX_LINE_BYTES:
            return _oversized(self._size)
        return self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)


def _oversized(size: int) -> LineError:
    return LineError("oversized", f"{size} bytes, at most {MAX_LINE_BYTES} are read")


def _check_text(line: bytes) -> None:
    if len(line) > MAX_LINE_BYTES:
        raise _oversized(len(line))
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LineError("not UTF-8", f"byte {error.start}: {error.reason}") from error


def _line_error(line: bytes, error: Exception, wanted: str = "RunEvent") -> LineError:
    if not line.strip():
        return LineError("empty")
    if isinstance(error, msgspec.ValidationError):
        # The text quotes the value that does not fit, which may be anything.
        return LineError(f"not a {wanted}", _QUOTED.sub("'…'", str(error)))
    return LineError("not JSON", f"{error}; the line is torn or was never JSON")
