"""Copies event logs from a History Server, which returns those of one application as a zip file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Protocol
from zipfile import BadZipFile, ZipFile

from spark_lineage.collect.copies import Copies, SourceError, Wanted
from spark_lineage.launch.directory import ROLLING

_PIECE_BYTES = 4 * 1024 * 1024


class HistoryApi(Protocol):
    """What is asked of a History Server; ``place`` is its address as it may be shown.

    All methods raise an error when it does not answer.
    """

    place: str

    def is_over(self, application_id: str) -> bool:
        """Whether it knows an application to its end."""

    def applications_of(self, run_id: str, earliest: float) -> set[str]:
        """Return the applications that were submitted as a run, not before a time in epoch seconds."""

    def download(self, application_id: str, stream: BinaryIO, most_bytes: int, is_over: Callable[[], bool]) -> None:
        """Write the zip file of the logs of an application, which must not be larger; ``is_over`` ends that."""


class HistoryLog:
    """The logs of the applications of a launch, copied when they are over; the same in use as ``StoredEventLog``."""

    name = "history"
    is_growing = False
    # It looks for logs every 10 s by default (spark.history.fs.update.interval), and then has to read them.
    patience_seconds = 60.0

    def __init__(self, api: HistoryApi, copies: Copies, wanted: Wanted) -> None:
        self.words = f"the History Server ({api.place})"
        self._api = api
        self._copies = copies
        self._wanted = wanted
        self._brought: set[str] = set()

    def bring(self, *, is_last: bool = False) -> bool:
        """Copy the logs of applications that are over, and return whether all of them are."""
        wanted = self._wanted
        ids = wanted.application_ids() or self._api.applications_of(wanted.run_id, wanted.earliest)
        if not ids:
            raise SourceError(f"it knows no application of the run {wanted.run_id} yet")
        ends = [self._bring(one, is_last=is_last) for one in sorted(ids)]
        return all(ends)

    def _bring(self, application_id: str, *, is_last: bool) -> bool:
        is_whole = self._api.is_over(application_id)
        # What another source has copied is as much as an unfinished log gives here.
        if (is_whole or (is_last and not self._copies.names)) and application_id not in self._brought:
            with tempfile.TemporaryFile() as stream:
                room = shutil.disk_usage(tempfile.gettempdir()).free // 2
                self._api.download(application_id, stream, room, self._copies.is_over)
                try:
                    with ZipFile(stream) as archive:
                        self._unpack(archive)
                except BadZipFile as error:
                    raise SourceError(f"{self._api.place} gave no zip file, or a part of one") from error
            self._brought |= {application_id} if is_whole else set()
        return is_whole

    def _unpack(self, archive: ZipFile) -> None:
        """Append what is new: another source may have copied the beginning."""
        logs: dict[str, list[str]] = {}
        for name in archive.namelist():
            log, _, part = name.partition("/")
            logs.setdefault(log, []).append(part)
        for log, names in logs.items():
            for part in self._copies.parts(log, names) if log.startswith(ROLLING) else [""]:
                with archive.open(f"{log}/{part}".rstrip("/")) as stream:
                    stream.seek(self._copies.size(log, part))
                    self._copies.add(log, part, iter(partial(stream.read, _PIECE_BYTES), b""))
