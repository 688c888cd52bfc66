"""Sends RUNNING events of a task while it runs, with its lineage so far, at an interval."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import structs

from spark_lineage.collect.line import LineCounts
from spark_lineage.merge.task import task_lineage

if TYPE_CHECKING:
    from spark_lineage.collect.collector import Collector
    from spark_lineage.merge.lineage import TaskLineage
    from spark_lineage.merge.transition import StatusSummary
    from spark_lineage.naming.chain import Naming
    from spark_lineage.tolerance import Tolerance


class Tracking:
    """Tells of a task that takes long, as a streaming job does; called by the thread that collects.

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
        tolerating: Tolerance,
    ) -> None:
        self._interval_seconds = interval_seconds
        self._naming = naming
        self._tell = send
        self._status = status
        self._tolerating = tolerating
        self._due = time.monotonic() + interval_seconds
        self._sending: threading.Thread | None = None
        self._is_over = False

    def tell(self, collector: Collector) -> None:
        """Send an event when it is time, and something was read or written."""
        if self._is_over or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._interval_seconds
        if self._sending is not None and self._sending.is_alive():
            # The backend has not taken the last one yet.
            return
        with self._tolerating("The lineage so far is not sent", can_fail=False):
            lineage = task_lineage(collector.state, "RUNNING", naming=self._naming)
            if not (lineage.inputs or lineage.outputs):
                return
            attempted = tuple(one for one in lineage.attempted if one.reason != "unfinished")
            lineage = structs.replace(lineage, attempted=attempted, status=self._status())
            counts = LineCounts(collector.counts.read, dict(collector.counts.set_aside))
            self._sending = threading.Thread(
                target=self._send, args=(lineage, counts), name="spark-lineage-running", daemon=True
            )
            self._sending.start()

    def stop(self, seconds: float) -> bool:
        """Send nothing more, and wait for an event that is being sent, so that it does not come after the last one.

        :return: whether nothing is being sent any more
        """
        self._is_over = True
        sending = self._sending
        if sending is not None:
            sending.join(seconds)
        return sending is None or not sending.is_alive()

    def _send(self, lineage: TaskLineage, counts: LineCounts) -> None:
        if self._is_over:
            return
        with self._tolerating("The lineage so far is not sent", can_fail=False):
            self._tell(lineage, counts)
