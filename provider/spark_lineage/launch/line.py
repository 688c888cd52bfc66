"""Decodes one line of a lineage file, or says what is wrong with it.

Imports neither Airflow nor pyspark, because it runs on executors too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC
from typing import Literal, Self

import msgspec
from msgspec import structs

from spark_lineage.merge.event import (
    Dataset,
    ForeignFacet,
    Job,
    JobFacets,
    RawDataset,
    Run,
    RunEvent,
    RunFacets,
    foreign,
    foreign_facets,
    observe,
)
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.transition import StatusTransition

MAX_LINE_BYTES = 64 * 1024 * 1024
_SPARK = "SPARK"
# Producers of OpenLineage's own repository are named by their directory, those of others by no rule.
_INTEGRATION = re.compile(r"https?://[^?#]*/integration/(?P<name>\w{1,32})/?")
# The limit of the memo of dataset lists, in bytes of JSON; a full memo is dropped whole.
_MEMO_BYTES = 4 * 1024 * 1024
_NONE = msgspec.Raw(b"null")


class _OwnRunFacets(
    RunFacets,
    gc=False,
    forbid_unknown_fields=True,
    rename={"plan": "spark.logicalPlan", "environment": "environment-properties"},
):
    """The run facets that the listener itself makes, and no others."""

    plan: msgspec.Raw = _NONE
    environment: msgspec.Raw = _NONE
    debug: msgspec.Raw = _NONE
    errorMessage: msgspec.Raw = _NONE  # noqa: N815 - the names are those of the specification
    spark_jobDetails: msgspec.Raw = _NONE  # noqa: N815
    spark_unknown: msgspec.Raw = _NONE


class _OwnRun(Run, gc=False):
    facets: _OwnRunFacets | None = None


class _OwnJobFacets(JobFacets, gc=False, forbid_unknown_fields=True):
    sql: msgspec.Raw = _NONE


class _OwnJob(Job, gc=False):
    facets: _OwnJobFacets | None = None


class _Event(RunEvent, gc=False):
    """An event whose datasets are still JSON, because most events repeat those of another one."""

    inputs: msgspec.Raw = msgspec.Raw(b"[]")
    outputs: msgspec.Raw = msgspec.Raw(b"[]")


class _OwnEvent(_Event, gc=False):
    """An event without facets of others on its run and its job; nearly all are such."""

    run: _OwnRun
    job: _OwnJob


class _Facets(msgspec.Struct, gc=False):
    facets: dict[str, msgspec.Raw] | None = None


class _FacetsOfEvent(msgspec.Struct, gc=False):
    run: _Facets
    job: _Facets


_Datasets = tuple[tuple[Observed, ...], tuple[ForeignFacet, ...]]
_EMPTY: _Datasets = ((), ())
_decode_own_event = msgspec.json.Decoder(_OwnEvent).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_facets = msgspec.json.Decoder(_FacetsOfEvent).decode
_decode_datasets = msgspec.json.Decoder(list[Dataset]).decode
_decode_raw_datasets = msgspec.json.Decoder(list[RawDataset]).decode
_QUOTED = re.compile(r"'.*'", re.DOTALL)
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
    ``receiver``: over HTTP; ``driver_log``: what the driver has printed."""

    @classmethod
    def of(cls, reason: str) -> Self | None:
        """Return the count of one reason; None without one."""
        return cls(set_aside={reason: 1}) if reason else None

    def add(self, reason: str, count: int = 1) -> None:
        """Count lines that were set aside."""
        self.set_aside[reason] = self.set_aside.get(reason, 0) + count

    @property
    def set_aside_total(self) -> int:
        """All lines set aside."""
        return sum(self.set_aside.values())


def no_event_log(why: str) -> str:
    """Return the reason, as it is counted, of a job whose event log is not read; empty where there is none."""
    return f"no event log is read: {why}" if why else ""


Line = tuple[RunEvent, tuple[Observed, ...], tuple[Observed, ...], tuple[ForeignFacet, ...]]
"""An event, its inputs, its outputs and the facets that pass through, as ``LineageState.add`` takes them."""


class LineDecoder:
    """Turns lines into events and their datasets.

    An action repeats its facets and datasets on each of its events, and a program repeats them on each action, so
    lists of datasets are decoded once and shared: equal JSON gives the identical tuple.
    """

    def __init__(self) -> None:
        self._memo: dict[tuple[str, bytes], _Datasets] = {}
        self._memo_bytes = 0
        # Consecutive events mostly repeat their predecessor: comparing is far cheaper than hashing.
        self._last_inputs = self._last_outputs = msgspec.Raw(b"[]")
        self._inputs = self._outputs = _EMPTY

    def decode(self, line: bytes) -> Line:
        """Return the event on a line, its inputs, its outputs, and the facets that the merge does not read.

        Of a JSON key that is repeated the last value counts, as in every common JSON reader.

        :param line: one line without its newline
        :raises LineError: ``empty``, ``oversized``, ``not UTF-8``, ``not JSON`` (torn), ``not a RunEvent``, or ``not of
            Spark`` for other producers' events, and what has been merged already
        """
        if not line.isascii() or len(line) > MAX_LINE_BYTES:
            _check_text(line)
        try:
            try:
                event: _Event = _decode_own_event(line)
                passing: tuple[ForeignFacet, ...] = ()
            except msgspec.ValidationError:
                # A facet of somebody else on the run or the job, or no event at all.
                event, passing = _decode_event(line), _passing(line)
            facets = event.job.facets
            if facets is None or facets.jobType is None or facets.jobType.integration != _SPARK:
                _check_producer(event)
            if event.inputs != self._last_inputs:
                self._inputs = self._datasets("inputs", bytes(event.inputs))
                self._last_inputs = event.inputs
            if event.outputs != self._last_outputs:
                self._outputs = self._datasets("outputs", bytes(event.outputs))
                self._last_outputs = event.outputs
        except (msgspec.DecodeError, RecursionError) as error:
            raise _line_error(line, error) from error
        (inputs, of_inputs), (outputs, of_outputs) = self._inputs, self._outputs
        if passing or of_inputs or of_outputs:
            passing = (*passing, *of_inputs, *of_outputs)
        return event, inputs, outputs, passing

    def _datasets(self, place: Literal["inputs", "outputs"], raw: bytes) -> _Datasets:
        known = self._memo.get((place, raw))
        if known is None:
            datasets = _decode_datasets(raw)
            known = observe(datasets), tuple(foreign_facets(place, datasets, _decode_raw_datasets(raw)))
            if self._memo_bytes > _MEMO_BYTES:
                self._memo = {}
                self._memo_bytes = 0
            self._memo[place, raw] = known
            self._memo_bytes += len(raw)
        return known


def _passing(line: bytes) -> tuple[ForeignFacet, ...]:
    """Return the facets of a run and its job that the merge does not read."""
    event = _decode_facets(line)
    return (*foreign("run", event.run.facets), *foreign("job", event.job.facets))


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


def _check_producer(event: RunEvent) -> None:
    """Check that an event is of Spark, by the type of its job, else by its producer; it is where neither says it."""
    facets = event.job.facets
    made_by = facets.jobType.integration if facets is not None and facets.jobType is not None else None
    if not made_by:
        match = _INTEGRATION.fullmatch(event.producer)
        made_by = match["name"] if match else _SPARK
    if made_by.upper() != _SPARK:
        raise LineError("not of Spark", f"it is an event of {made_by.upper()[:32]!r}, as backends get them")


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
