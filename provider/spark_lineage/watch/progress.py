"""Times and words of status answers, and how far each thing had come when it was told of last."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from spark_lineage.merge.transition import ENDED, Status, StatusReport, Subject

_WAY: tuple[Status, ...] = ("SUBMITTED", "WAITING", "RUNNING")


def now() -> datetime:
    """Return the time at which a source is asked."""
    return datetime.now(UTC)


def from_millis(millis: float | None) -> datetime | None:
    """Return the time of milliseconds since 1970; None for what is no time (0 and -1 mean: not yet)."""
    if millis is None or millis <= 0:
        return None
    try:
        return datetime.fromtimestamp(millis / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def from_text(text: str | None) -> datetime | None:
    """Return the time of ``2026-01-31T23:59:59.123GMT`` (Spark) or ``2026-01-31T23:59:59Z`` (Kubernetes), else None."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text.removesuffix("GMT") + "+00:00" if text.endswith("GMT") else text)
        return None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def later(begin: datetime | None, millis: int | None) -> datetime | None:
    """The time so many milliseconds after another; None for what is no time (a negative number means: not yet)."""
    if begin is None or millis is None or millis < 0:
        return None
    try:
        return begin + timedelta(milliseconds=millis)
    except OverflowError:
        return None


def translated(word: str | None, words: Mapping[str, Status]) -> Status:
    """Return the status that a source's word stands for; ``UNKNOWN`` for a word that nobody told us of."""
    return words.get(word or "", "UNKNOWN")


class StatusProgress:
    """Remembers how far things have come, so that what they went through is told once.

    A thing that is seen for the first time brings the states before its present one; later only those that were missed.
    Without that, a repeated ``SUBMITTED`` after ``RUNNING`` would look like a thing that started anew.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[Subject, str], StatusReport] = {}

    def tell(self, *way: StatusReport, asked: datetime) -> list[StatusReport]:
        """Return the reports that are due.

        :param way: the states of one thing that a source tells, the present one last
        :param asked: the time for a present state whose own time lies before what was told last: it came back to it
        """
        present = way[-1]
        thing = (present.subject, present.subject_id)
        last = self._told.get(thing)
        if last is not None and present.status not in ENDED and present.time < last.time:
            present = msgspec.structs.replace(present, time=asked)
        self._told[thing] = present
        return [*(report for report in way[:-1] if last is None or _is_further(report.status, last.status)), present]

    def last(self, subject: Subject, subject_id: str) -> StatusReport | None:
        """Return what was told last of one thing."""
        return self._told.get((subject, subject_id))


def _is_further(status: Status, last: Status) -> bool:
    return status in _WAY and last in _WAY and _WAY.index(status) > _WAY.index(last)
