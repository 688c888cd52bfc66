"""Asks the sources of a launch, each in its own time, from one thread, until it is stopped."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable

from spark_lineage.merge.transition import StatusReport
from spark_lineage.secrets.redaction import redact_error
from spark_lineage.watch.rest import NoAnswerError
from spark_lineage.watch.source import Source

# The second answer is wanted soon after the first, when things still change.
_SECOND_SECONDS = 1.0
_GROWTH = 1.5
_MAX_SECONDS = 60.0
# So that the tasks of a worker do not ask all at once; by the system's chance, for a DAG file may seed that of Python.
_JITTER = 0.2
_chance = random.SystemRandom()
_STOP_SECONDS = 0.8

log = logging.getLogger(__name__)


class Watcher:
    """Polls sources while a job runs.

    The time between two polls of a source grows to ``interval_seconds``, and doubles, up to a minute, each time that it
    does not answer; both by a fifth more or less.
    """

    def __init__(
        self, sources: Iterable[Source], tell: Callable[[StatusReport], object], *, interval_seconds: float
    ) -> None:
        self._watched = [_Watched(source, interval_seconds) for source in sources]
        self._tell = tell
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-lineage-watcher", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        if self._watched:
            self._thread.start()

    def stop(self) -> None:
        """Stop within a second; an answer that comes after that is not passed on any more."""
        if not self._stopping.is_set():
            self._stopping.set()
            if self._thread.is_alive():
                self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            now = time.monotonic()
            for watched in self._watched:
                if watched.due <= now and not self._stopping.is_set():
                    self._pass_on(watched.poll())
            due = min(watched.due for watched in self._watched)
            self._stopping.wait(max(0.05, due - time.monotonic()))

    def _pass_on(self, reports: Iterable[StatusReport]) -> None:
        try:
            for report in reports:
                if not self._stopping.is_set():
                    self._tell(report)
        except Exception as error:
            # The watch goes on, whatever becomes of its reports.
            _log_trouble("A status is not passed on", error)


def answer_of(source: Source) -> list[StatusReport] | None:
    """Return what a source says, None where it gives no answer; others are asked whatever is wrong with it."""
    try:
        return list(source.poll())
    except NoAnswerError as error:
        log.debug("No answer from the %s: %s", source.name, error)
    except Exception as error:
        _log_trouble(f"Trouble with what the {source.name} says", error)
    return None


class _Watched:
    """A source, and when it is asked next."""

    def __init__(self, source: Source, interval_seconds: float) -> None:
        self.due = time.monotonic() + _jittered(source.first_seconds)
        self._source = source
        self._interval_seconds = interval_seconds
        self._wait_seconds = min(_SECOND_SECONDS, interval_seconds)
        self._unanswered = 0

    def poll(self) -> list[StatusReport]:
        """Ask, and return the answer, empty where there is none."""
        reports = answer_of(self._source)
        self._unanswered = self._unanswered + 1 if reports is None else 0
        self._wait_seconds = min(self._wait_seconds * _GROWTH, self._interval_seconds)
        backoff = min(self._wait_seconds * 2 ** min(self._unanswered, 10), max(_MAX_SECONDS, self._interval_seconds))
        self.due = time.monotonic() + _jittered(backoff)
        return reports or []


def _log_trouble(what: str, error: Exception) -> None:
    log.warning("%s: %s", what, type(error).__name__)
    redact_error(error)
    log.debug("Where it happened:", exc_info=error)


def _jittered(seconds: float) -> float:
    return seconds * _chance.uniform(1 - _JITTER, 1 + _JITTER)
