"""Has lost tries closed beside a server: in another process, and late enough for their workers to come first.

The process that schedules, or answers requests, only queries the database. Reading what a driver wrote takes memory
and time, and the OpenLineage client and Spark's REST APIs have waits of their own.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from spark_lineage.launch.log import Log, log_trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from spark_lineage.recover.search import Lost

    # Looks in the database and in the lineage directory for what is over, and whose end was not sent.
    Search = Callable[[], Iterable[Lost]]

log = Log(__name__)

# A worker learns by its next heartbeat (5 s) that its task is over, ends it (5 s until it is killed), and hands over.
GRACE_SECONDS = 20.0
_MAX_WAITING = 10_000
_SECONDS_A_TRY = 60.0
# A process is started for so many tries at once, and for a try that stays open so often.
_BATCH = 50
_ATTEMPTS = 3


class Backlog:
    """One daemon thread and a queue, in each process that adds something; what is too much is left to the next sweep.

    :param grace_seconds: how long the worker of a try is waited for
    """

    def __init__(self, grace_seconds: float = GRACE_SECONDS) -> None:
        self._grace_seconds = grace_seconds
        self._begin()
        # A forked process has neither the thread nor a lock that it could trust.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._waiting: queue.Queue[tuple[float, Search]] = queue.Queue(_MAX_WAITING)
        self._handed: Counter[Lost] = Counter()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, search: Search) -> None:
        """Look for lost tries after the grace; returns at once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="spark-lineage-backlog", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait((time.monotonic() + self._grace_seconds, search))
        except queue.Full:
            log.warning("Too many tasks have ended at once; the ends of lost ones may be sent late, or not at all.")

    def repeat(self, search: Search, every_seconds: float) -> None:
        """Look for lost tries at intervals, as long as this process lives."""

        def add() -> None:
            while True:
                self.add(search)
                time.sleep(every_seconds)

        threading.Thread(target=add, name="spark-lineage-sweep", daemon=True).start()

    def _run(self) -> None:
        while True:
            due, search = self._waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            self.close(search)

    def close(self, search: Search) -> None:
        """Look for lost tries now, and close them; trouble is logged."""
        try:
            lost = [one for one in search() if self._handed[one] < _ATTEMPTS]
            # A try that each search sees anew has another ``seen_at`` each time, and would stay here for good.
            self._handed.update(one for one in lost if not one.seen_at)
            for first in range(0, len(lost), _BATCH):
                close_in_process(lost[first : first + _BATCH])
        except Exception as error:
            log_trouble(log, "The ends of lost tries are not sent", error)


def close_in_process(lost: Sequence[Lost]) -> None:
    """Close lost tries and DAG runs in a Python of its own, which logs to where this one does.

    :raises subprocess.TimeoutExpired: when it takes longer than a minute a try
    """
    environment = {**os.environ, "_AIRFLOW_PROCESS_CONTEXT": "server"}
    subprocess.run(
        [sys.executable, "-m", "spark_lineage.recover"],
        input=msgspec.json.encode(lost),
        env=environment,
        timeout=_SECONDS_A_TRY * (1 + len(lost)),
        check=True,
    )
