"""Collects what the UI of a running driver says of SQL executions, where neither the listener nor an event log can."""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

from spark_lineage.collect.collector import Collector
from spark_lineage.launch.log import Log
from spark_lineage.plans.event_log import EventLogReader

SOURCE = "driver_ui"
# From the first question on to the second; after that always twice as long.
_FIRST_INTERVAL_SECONDS = 20.0


class SqlLines(Protocol):
    """Lines of event logs with the application that they are of; new ones come by another thread when they are wanted.

    ``why_not`` says why they are not to be used.
    """

    is_wanted: bool
    lines: deque[tuple[str, list[bytes]]]
    why_not: str


class UiCollector(Collector):
    """What ``collector`` has, which is declarations or a part of the listener's events, with what the driver's UI says.

    It is apart from ``collector``, so that a log that can be read later stands alone, and nothing counts twice. An
    execution counts when it has ended.
    """

    def __init__(self, sql: SqlLines, collector: Collector, interval_seconds: float, logger: Log) -> None:
        super().__init__(logger)
        self.state.log_name = SOURCE
        self._sql = sql
        self._collector = collector
        self._interval_seconds = interval_seconds
        self._waiting_seconds = min(_FIRST_INTERVAL_SECONDS, interval_seconds)
        self._due = 0.0
        self._readers: dict[str, EventLogReader] = {}

    def poll(self) -> Collector:
        """Take what came, ask for more when it is time, and return the collector that knows most."""
        if (now := time.monotonic()) >= self._due:
            self._sql.is_wanted = True
            self._due = now + self._waiting_seconds
            self._waiting_seconds = min(2 * self._waiting_seconds, self._interval_seconds)
        while self._sql.lines:
            key, lines = self._sql.lines.popleft()
            if not self._readers:
                self._log.debug("RUNNING events rest on the driver's UI: no event log can be read yet.")
            describe = self.state.add_application
            reader = self._readers.setdefault(key, EventLogReader(self.log_counts, describe=describe))
            self.fold(each for line in lines for each in reader.add(line))
        if self._sql.why_not and not self.is_closed:
            self._log.debug("The driver's UI does not serve as evidence: %s.", self._sql.why_not)
            self.close()
        if self.is_closed or not self.state.logged:
            return self._collector
        self.state.merge(self._collector.state)
        self.counts.sources = {SOURCE, *self._collector.counts.sources}
        return self

    def finish(self, *, is_cut_off: bool = False) -> None:
        """Add it to ``collector`` as the last resort, where that has nothing else in the end.

        :param is_cut_off: whether the listener's events are known to be no more than a part
        """
        known = self._collector.state.logged if is_cut_off else self._collector.application_ids
        if known or self.poll() is self._collector:
            return
        self.fold(each for reader in self._readers.values() for each in reader.finish())
        self._log.warning("No event log was found: the lineage rests on what the driver's UI said while the job ran.")
        self._collector.state.merge(self.state)
        self._collector.state.log_name = SOURCE
        self._collector.counts.sources.add(SOURCE)
