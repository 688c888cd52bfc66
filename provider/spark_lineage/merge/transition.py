"""What the sources say about an application and its parts, and the transitions that follow from that; pure.

``REATTACHED``: the next try of the task takes the driver over; ``KILLING``: its end was asked for. Each REST dialect
translates its words (YARN's ``ACCEPTED``, standalone's ``WAITING``, a pod's ``Pending``) into ``Status``, and keeps the
original in ``detail``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

# Names come from the program, which may make them up without end.
MAX_ACCUMULATORS = 100
_NAME_LENGTH = 200
_DIGITS = 30


class Accumulator(Struct, frozen=True, gc=False):
    """A number that the program's own tasks add up: of all its accumulators that are called ``label`` together."""

    label: str
    value: float


class TaskNumbers(Struct, frozen=True, gc=False):
    """What all tasks of one attempt of an application have done so far, failed and speculative ones too.

    ``finished``, ``failed`` and ``killed`` are tasks, as Spark's UI counts them, retries too. Bytes are those that
    Spark's sources and sinks count (Hadoop's file systems; not JDBC). ``gc_millis`` is that part of ``run_millis``, the
    time for which tasks ran on executors, in which their JVM collected garbage. ``accumulators`` are sorted by name.
    """

    application_id: str
    attempt_id: str
    source: str
    finished: int = 0
    failed: int = 0
    killed: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    memory_bytes_spilled: int = 0
    disk_bytes_spilled: int = 0
    run_millis: int = 0
    gc_millis: int = 0
    accumulators: tuple[Accumulator, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The attempt that they are of."""
        return self.application_id, self.attempt_id

    @property
    def tasks(self) -> int:
        """How many tasks have ended."""
        return self.finished + self.failed + self.killed

    @property
    def gc_share(self) -> float | None:
        """The part of the tasks' time in which garbage was collected, None while no task has taken any."""
        return self.gc_millis / self.run_millis if self.run_millis else None


SUMMED = TaskNumbers.__struct_fields__[3:-1]
"""The fields that are sums over tasks."""


def own_accumulator(name: str | None, value: object) -> tuple[str, float] | None:
    """Return name and value of an accumulator; None for one without a name, or that is no number, as collections."""
    if not name or not isinstance(value, str) or len(value) > _DIGITS:
        return None
    for kind in (int, float):
        with suppress(ValueError):
            if math.isfinite(found := kind(value)):
                return name[:_NAME_LENGTH], found
    return None


def accumulators_of(sums: Mapping[str, float]) -> tuple[Accumulator, ...]:
    """Return sums by their names."""
    return tuple(Accumulator(name, sums[name]) for name in sorted(sums))


# A time without an offset could not be compared with the others.
AwareTime = Annotated[datetime, Meta(tz=True)]

Subject = Literal["APPLICATION", "DRIVER", "SPARK_JOB", "SQL_EXECUTION", "STREAMING_QUERY"]
Status = Literal[
    "SUBMITTED", "WAITING", "RUNNING", "RELAUNCHING", "REATTACHED", "UNKNOWN", "KILLING", "FINISHED", "FAILED", "KILLED"
]

ENDED: frozenset[Status] = frozenset({"FINISHED", "FAILED", "KILLED"})
# These may come at any time, and say nothing of how far the thing is.
_BETWEEN: frozenset[Status] = frozenset({"UNKNOWN", "REATTACHED"})
# An application may have any number of these.
PARTS: frozenset[Subject] = frozenset({"SPARK_JOB", "SQL_EXECUTION"})
_SUMMED: frozenset[Subject] = PARTS | {"STREAMING_QUERY"}
MAX_FAILED = 20
MAX_KEPT = 60
_Thing = tuple[Subject, str, str]
# The number grows with the progress of a thing; one that is relaunched, or lost sight of, begins anew.
_PROGRESS: dict[Status, int] = {
    **dict.fromkeys(_BETWEEN, 0),
    "RELAUNCHING": 0,
    "SUBMITTED": 1,
    "WAITING": 2,
    "RUNNING": 3,
    "KILLING": 4,
    **dict.fromkeys(ENDED, 5),
}


class StatusReport(Struct, frozen=True):
    """What one source says of one thing.

    ``subject_id`` is the application id (``local-…``, ``app-…``, ``application_…``, ``spark-…``), the driver id, the
    number of a SparkJob or SQL execution, or the run id of a streaming query. ``application_id`` is the application of
    the last three, with ``/attempt`` where Spark's REST API has it. ``time`` is aware, in UTC: when it happened by the
    source's clock, or when it was asked. ``detail`` and ``exception`` are the source's own words, not redacted.
    """

    subject: Subject
    subject_id: str
    status: Status
    time: datetime
    source: str
    application_id: str = ""
    detail: str = ""
    exception: str = ""


class StatusTransition(Struct, frozen=True):
    """One change of status of one thing; the fields are those of ``StatusReport``, ``old_status`` is None at first."""

    subject: Subject
    subject_id: str
    old_status: Status | None
    new_status: Status
    time: AwareTime
    source: str
    application_id: str = ""
    detail: str = ""
    exception: str = ""


Report = StatusReport | TaskNumbers


def report_of(transition: StatusTransition) -> StatusReport:
    """Return what a source must have said to make a transition."""
    subject, subject_id, _, *rest = structs.astuple(transition)
    return StatusReport(subject, subject_id, *rest)


def sort_key(transition: StatusTransition) -> tuple[Any, ...]:
    """Return what transitions of several sources are sorted by: their times, and within one how far they lead."""
    old = transition.old_status
    subject, subject_id, _, new, time, *rest = structs.astuple(transition)
    return (time, _PROGRESS[new], -1 if old is None else _PROGRESS[old], subject, subject_id, *rest)


class StatusLedger:
    """Makes transitions out of what several sources say about the same things: each one once, and never back.

    A source that lags behind another changes nothing; one that takes back its own word does (``RELAUNCHING``). Each
    take-over (``REATTACHED``) is one of its own, by its detail, which names the try. What has ended has ended.
    ``transitions`` keeps, for applications, drivers and streaming queries, of each subject the first and the last
    ``MAX_KEPT / 2``; for SparkJobs and SQL executions the first ``MAX_FAILED`` failures.
    """

    def __init__(self) -> None:
        self.transitions: list[StatusTransition] = []
        self._failures: Counter[Subject] = Counter()
        self._statuses: dict[_Thing, Status] = {}
        self._reports: dict[tuple[_Thing, str], Status] = {}
        self._times: dict[_Thing, datetime] = {}
        self._reached: dict[_Thing, int] = {}
        self._taken_over: set[tuple[_Thing, str]] = set()
        # When the last part of an application has failed, and when the last one has succeeded.
        self._failed_at: dict[str, datetime] = {}
        self._succeeded_at: dict[str, datetime] = {}

    def add(self, report: StatusReport) -> StatusTransition | None:
        """Return the transition that a report makes, None when it says nothing new."""
        thing = (report.subject, report.application_id, report.subject_id)
        is_part = report.subject in PARTS
        word = self._reports.get((thing, report.source))
        if not is_part:
            self._reports[thing, report.source] = report.status
        old = self._statuses.get(thing)
        if old is not None and not self._is_news(report, thing, old, word):
            if report.exception:
                self._explain(thing, report)
            return None
        self._statuses[thing] = report.status
        self._note(report, thing)
        if not is_part:
            self._times[thing] = report.time
            if report.status not in _BETWEEN:
                self._reached[thing] = _PROGRESS[report.status]
        subject, subject_id, *rest = structs.astuple(report)
        transition = StatusTransition(subject, subject_id, old, *rest)
        if not is_part:
            self.transitions.append(transition)
            # The middle of what changes without end is left out, such as a query that is started anew each minute.
            places = [place for place, one in enumerate(self.transitions) if one.subject == report.subject]
            if len(places) > MAX_KEPT:
                del self.transitions[places[MAX_KEPT // 2]]
        elif report.status == "FAILED" and self._failures[report.subject] < MAX_FAILED:
            self._failures[report.subject] += 1
            self.transitions.append(transition)
        return transition

    def _is_news(self, report: StatusReport, thing: _Thing, old: Status, word: Status | None) -> bool:
        """Whether a status comes after another; ``word`` is what the same source had said before."""
        new, is_between = report.status, old in _BETWEEN
        if old in ENDED or (new == old != "REATTACHED"):
            # The driver of an application that YARN has killed stops its context, as one that finishes.
            return (report.subject, old, new) == ("APPLICATION", "FINISHED", "KILLED")
        if new == "REATTACHED":
            return (thing, report.detail) not in self._taken_over
        if new == "UNKNOWN":
            return new != word
        if new == word:
            # A source that repeats itself says nothing new, unless others had lost sight of the thing meanwhile.
            return is_between
        reached = self._reached.get(thing, _PROGRESS[old])
        if _PROGRESS[new] > reached or (is_between and _PROGRESS[new] == reached):
            return True
        # Back again, and not just repeated by a source that is asked for the first time.
        return (word == old or is_between) and report.time >= self._times.get(thing, report.time)

    def _note(self, report: StatusReport, thing: _Thing) -> None:
        application, time = report.application_id, report.time
        if report.status == "REATTACHED":
            self._taken_over.add((thing, report.detail))
        elif report.status == "FAILED" and report.subject in _SUMMED:
            self._failed_at[application] = max(time, self._failed_at.get(application, time))
        elif report.status == "FINISHED" and report.subject in PARTS:
            self._succeeded_at[application] = max(time, self._succeeded_at.get(application, time))

    def _explain(self, thing: _Thing, report: StatusReport) -> None:
        """Add why something failed, where another source said only that it did."""
        for place, one in enumerate(self.transitions):
            is_same = (one.subject, one.application_id, one.subject_id) == thing and one.new_status == report.status
            if is_same and not one.exception:
                self.transitions[place] = structs.replace(one, exception=report.exception)

    def summed(self) -> tuple[tuple[Subject, Status, int], ...]:
        """Return how many SparkJobs, SQL executions and streaming queries there are, by subject and status, sorted.

        A driver's UI may close before it reports their last ends: with their application over, they are UNKNOWN.
        """
        counts: Counter[tuple[Subject, Status]] = Counter()
        for (subject, application, _), status in self._statuses.items():
            if subject in _SUMMED:
                is_over = self.status("APPLICATION", application.partition("/")[0]) in ENDED
                counts[subject, "UNKNOWN" if is_over and status not in ENDED else status] += 1
        return tuple(sorted((*key, count) for key, count in counts.items()))

    def has_uncaught_failure(self) -> bool:
        """Whether something failed in an application, and none of its SparkJobs and SQL executions succeeded later.

        A failure that nothing catches ends the program. That a streaming query ends well proves nothing: all of them
        are stopped with the program, however it ends.
        """
        return any(
            application not in self._succeeded_at or self._succeeded_at[application] <= failed
            for application, failed in self._failed_at.items()
        )

    def status(self, subject: Subject, subject_id: str, application_id: str = "") -> Status | None:
        """Return the present status of one thing, None when no source has reported it."""
        return self._statuses.get((subject, application_id, subject_id))


class StatusSummary(Struct, frozen=True):
    """What is known of the status when the task ends: the ``transitions`` that a ledger keeps, in order, and counts.

    ``counts`` has the number of SparkJobs, SQL executions and streaming queries by subject and status, sorted.
    ``error`` is why the application failed, from the best source, not redacted. ``numbers`` are those of the tasks of
    each application.
    """

    transitions: tuple[StatusTransition, ...] = ()
    counts: tuple[tuple[Subject, Status, int], ...] = ()
    error: str = ""
    ui_url: str | None = None
    history_url: str | None = None
    logs_url: str | None = None
    manager_url: str | None = None
    numbers: tuple[TaskNumbers, ...] = ()
