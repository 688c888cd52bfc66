"""Copies the event logs of Databricks' clusters from where it delivers them.

Below the destination, a cluster has ``<cluster>/eventlog/<node>/<context>/eventlog``, beside the parts that were
archived before, ``eventlog-<time>.gz``. They are delivered every five minutes, and when the cluster ends. The id of a
cluster begins with the time at which it was made.
"""

from __future__ import annotations

import gzip
import math
import posixpath
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spark_lineage.launch.directory import ROLLING
from spark_lineage.plans.event_log_files import HEAD_OF_LOG_BYTES, EventLogError, run_id_of
from spark_lineage.submission.copies import Copies, Wanted
from spark_lineage.submission.stored_event_log import END, open_file_system

CURRENT = "eventlog"
_CLUSTER = re.compile(r"(\d{4}-\d{6})-\w+\Z")
# The ids have no year; this one is a leap year.
_MADE_AT, _YEAR = "%Y%m%d-%H%M%S", "2000"
_A_YEAR = timedelta(days=366)
_LOOK_SECONDS = 5.0


class DeliveredLogs:
    """The logs of a launch below one destination; ``_ends`` says of the directory of each whether it has its end."""

    def __init__(self, url: str, *, copies: Copies, wanted: Wanted) -> None:
        self._copies, self._wanted = copies, wanted
        self._fs, self._root = open_file_system(posixpath.dirname(posixpath.dirname(url)), ())
        self._ends: dict[str, bool] = {}
        self._others: set[str] = set()
        self._archived: set[str] = set()
        self._looked = -math.inf

    def pull(self, *, is_last: bool) -> bool | None:
        """Copy what was added, and return whether the logs are whole; None where there is none.

        :param is_last: whether the task waits for nothing but this
        """
        if time.monotonic() >= self._looked + (_LOOK_SECONDS if is_last else 12 * _LOOK_SECONDS):
            self._looked = time.monotonic()
            for path in self._contexts():
                if path not in self._ends and self._is_of_run(path):
                    self._ends[path] = False
            for path in self._ends:
                self._copy(path)
        return all(self._ends.values()) if self._ends else None

    def _contexts(self) -> Iterator[str]:
        """Return the directories of the contexts of clusters that were made since the launch."""
        for cluster in self._directories(self._root):
            match = _CLUSTER.match(posixpath.basename(cluster))
            if match is not None and self._is_later(match[1]):
                for node in self._directories(f"{cluster}/{CURRENT}"):
                    yield from self._directories(node)

    def _directories(self, path: str) -> list[str]:
        with suppress(FileNotFoundError):
            found = self._fs.ls(path, detail=True)
            return [one["name"].rstrip("/") for one in found if one["type"] == "directory"]
        return []

    def _is_later(self, made_at: str) -> bool:
        earliest = datetime.fromtimestamp(self._wanted.earliest, UTC).strftime(_MADE_AT)[4:]
        made, begun = (datetime.strptime(_YEAR + one, _MADE_AT).replace(tzinfo=UTC) for one in (made_at, earliest))
        return (made - begun) % _A_YEAR < _A_YEAR / 2

    def _is_of_run(self, path: str) -> bool:
        if path in self._others or not (names := self._parts(path)):
            return False
        with tempfile.TemporaryDirectory() as folder, suppress(FileNotFoundError, EventLogError):
            head = Path(folder, CURRENT)
            head.write_bytes(self._content(f"{path}/{names[0]}")[:HEAD_OF_LOG_BYTES])
            if (run_id := run_id_of(head)) is None:
                return False
            if run_id == self._wanted.run_id:
                return True
        self._others.add(path)
        return False

    def _parts(self, path: str) -> list[str]:
        """Return the names of the parts of a log, in their order."""
        names = [posixpath.basename(one) for one in self._fs.ls(path, detail=False)]
        archived = sorted(one for one in names if one.startswith(f"{CURRENT}-"))
        return [*archived, *(one for one in names if one == CURRENT)]

    def _content(self, path: str) -> bytes:
        content: bytes = self._fs.cat_file(path)
        return gzip.decompress(content) if path.endswith(".gz") else content

    def _copy(self, path: str) -> None:
        """Copy what was added; what the current part had is in an archived one later, which has its number."""
        cluster, context = path.split("/")[-4], posixpath.basename(path)
        log = f"{ROLLING}{cluster}_{context}"
        for number, name in enumerate(self._parts(path), 1):
            part = f"events_{number}_{cluster}"
            if f"{path}/{name}" in self._archived:
                continue
            content = self._content(f"{path}/{name}")
            if added := content[self._copies.size(log, part) :]:
                self._copies.add(log, part, [added])
            self._ends[path] |= END in content
            if name != CURRENT:
                self._archived.add(f"{path}/{name}")
