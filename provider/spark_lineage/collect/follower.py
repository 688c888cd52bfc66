"""Follows a directory from a thread while the driver runs, so that the end has little left to read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from spark_lineage.collect.collector import DirectoryCollector
from spark_lineage.secrets.redaction import redact_error

log = logging.getLogger(__name__)


class Follower:
    """Polls a collector every ``interval_seconds`` until it is stopped; trouble is left to the final read.

    :param after_poll: called by the same thread after each poll, while nobody else looks at what was collected
    """

    def __init__(
        self,
        collector: DirectoryCollector,
        interval_seconds: float,
        after_poll: Callable[[DirectoryCollector], object] = lambda _: None,
    ) -> None:
        self.collector = collector
        self._after_poll = after_poll
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-lineage-follower", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following, wait for the thread, and read to the last line.

        :raises OSError: when a file is there and cannot be read
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self.collector.finish()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_seconds):
            try:
                self.collector.poll()
            except OSError as error:
                log.debug("Lineage files cannot be read yet: %s", error)
            try:
                self._after_poll(self.collector)
            except Exception as error:
                log.warning("What was collected so far is not told: %s", type(error).__name__)
                redact_error(error)
                log.debug("Where it happened:", exc_info=True)
