"""Sends RUNNING events of a task while it runs, with its lineage so far, at growing intervals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec import structs

from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Guard
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.task import task_lineage
from spark_lineage.merge.transition import StatusSummary
from spark_lineage.naming.options import Naming
from spark_lineage.submission.collector import Collector

# The least time between the first two events; it doubles with each further event.
_FIRST_INTERVAL_SECONDS = 10.0
# The next merge begins after this many times the duration of the last one.
_REST_FACTOR = 20.0


class Tracking:
    """Sends RUNNING events of a task; called by the thread that collects.

    The first one goes out when the first datasets are known, the next ones when others have come, each after twice the
    time, and one whenever ``interval_seconds`` have passed, which is also the longest time that something new waits.
    What has not ended yet is no output (M5), and has not been attempted in vain. ``send`` is called in a thread of its
    own.
    """

    def __init__(
        self,
        interval_seconds: float,
        *,
        naming: Naming,
        send: Callable[[TaskLineage, LineCounts], None],
        status: Callable[[], StatusSummary | None],
        guard: Guard,
    ) -> None:
        self._interval_seconds = interval_seconds
        self._naming = naming
        self._deliver = send
        self._status = status
        self._guard = guard
        self._waiting_seconds = min(_FIRST_INTERVAL_SECONDS, interval_seconds)
        # The earliest time to send a change, to merge again, and to send the same once more.
        self._due = self._next_look = time.monotonic()
        self._latest = self._due + interval_seconds
        self._lines = -1
        self._sent: frozenset[object] = frozenset()
        self._sending: threading.Thread | None = None
        self._is_over = False

    def report(self, collector: Collector, *, is_logged: bool = False) -> None:
        """Send an event when it is time, and something was read or written.

        :param is_logged: whether the event log is read besides, which knows more of streams
        """
        now = time.monotonic()
        lines = collector.counts.read + collector.log_counts.read
        is_repeating = now >= self._latest
        if self._is_over or now < max(self._due, self._next_look) or (lines == self._lines and not is_repeating):
            return
        if self._sending is not None and self._sending.is_alive():
            # The backend has not taken the last event yet.
            return
        self._lines = lines
        with self._guard("The lineage so far is not sent", can_fail=False):
            lineage = task_lineage(collector.state, "RUNNING", naming=self._naming, is_logged=is_logged)
            self._next_look = now + _REST_FACTOR * (time.monotonic() - now)
            lineage = _what_stays(lineage, are_columns_awaited=not is_repeating)
            datasets = _datasets(lineage)
            if not datasets or (datasets == self._sent and not is_repeating):
                return
            attempted = tuple(one for one in lineage.attempted if one.reason != "unfinished")
            lineage = structs.replace(lineage, attempted=attempted, status=self._status())
            counts = LineCounts(collector.counts.read, dict(collector.counts.set_aside), set(collector.counts.sources))
            self._sent = datasets
            self._due, self._latest = now + self._waiting_seconds, now + self._interval_seconds
            self._waiting_seconds = min(2 * self._waiting_seconds, self._interval_seconds)
            if self._is_over:
                return
            # A BoundedRun would switch off the limits that the outbox sets for this thread.
            sending = threading.Thread(
                target=self._send, args=(lineage, counts), name="spark-lineage-running", daemon=True
            )
            # It raises where the host gives no more threads.
            sending.start()
            self._sending = sending

    def stop(self, seconds: float) -> bool:
        """Send nothing more, and wait for an event that is being sent, so that it does not come after the last one.

        :return: whether nothing is being sent any more
        """
        self._is_over = True
        sending = self._sending
        if sending is not None:
            sending.join(seconds)
        return sending is None or not sending.is_alive()

    def repeat(self) -> None:
        """Send the next event also where nothing is new: another process has sent those before."""
        self._latest = self._due

    def _send(self, lineage: TaskLineage, counts: LineCounts) -> None:
        with self._guard("The lineage so far is not sent", can_fail=False):
            self._deliver(lineage, counts)


def _what_stays(lineage: TaskLineage, *, are_columns_awaited: bool) -> TaskLineage:
    """Leave out what the end may say otherwise: a backend adds up what the events of a run name.

    A table that a task has written may be dropped before it ends. Of an input Marquez keeps the columns with which it
    is named first, and the job may just be looking for them.
    """
    if lineage.is_streaming:
        return lineage
    inputs = tuple(one for one in lineage.inputs if one.schema or not are_columns_awaited)
    return structs.replace(lineage, inputs=inputs, outputs=())


def _datasets(lineage: TaskLineage) -> frozenset[object]:
    """Return what makes the graph: the datasets, and what they and their columns come from."""
    return frozenset(
        (side, one.dataset, one.fed_by, one.column_lineage)
        for side, datasets in (("inputs", lineage.inputs), ("outputs", lineage.outputs))
        for one in datasets
    )
