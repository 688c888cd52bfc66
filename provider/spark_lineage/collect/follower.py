"""Reads a directory in one thread: while the driver runs, so that the end has little left to read, and to its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from spark_lineage.collect.collector import DirectoryCollector
from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.secrets.redaction import redact_error

log = logging.getLogger(__name__)


class Follower:
    """Polls a collector every ``interval_seconds`` until it is ended.

    The callbacks are called by its thread, while nobody else looks at what was collected.

    :param between: called before the first poll and after each; trouble is left to the end
    :param at_end: called when the last line was read
    """

    def __init__(
        self,
        collector: DirectoryCollector,
        interval_seconds: float,
        *,
        between: Callable[[], object] = lambda: None,
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        self.is_ending = threading.Event()
        self._collector = collector
        self._interval_seconds = interval_seconds
        self._between = between
        self._at_end = at_end
        self._run: BoundedRun | None = None

    def start(self) -> BoundedRun:
        """Begin to follow, and return what ends when all is read."""
        self._run = self._run or BoundedRun(self._follow, "spark-lineage-follower")
        return self._run

    def end(self) -> BoundedRun:
        """Have the rest read; return what to wait for, which raises an ``OSError`` where a file cannot be read."""
        self.is_ending.set()
        return self.start()

    def _follow(self) -> None:
        self._try(self._between)
        while not self.is_ending.wait(self._interval_seconds):
            self._try(self._collector.poll)
            self._try(self._between)
        try:
            self._collector.finish()
        finally:
            self._at_end()

    def _try(self, step: Callable[[], object]) -> None:
        try:
            step()
        except OSError as error:
            log.debug("Lineage files cannot be read yet: %s", error)
        except Exception as error:
            log.warning("What was collected so far is not told: %s", type(error).__name__)
            redact_error(error)
            log.debug("Where it happened:", exc_info=True)
