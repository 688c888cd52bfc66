"""Copies event logs from a History Server, whose ``/logs`` of an application is a zip file of those of all attempts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import BinaryIO
from urllib.parse import quote
from zipfile import BadZipFile, ZipFile

from msgspec import Struct

from spark_lineage.http_client import NoAnswerError, Request, place_of
from spark_lineage.launch.directory import ROLLING
from spark_lineage.submission.copies import Copies, SourceError, Wanted
from spark_lineage.watch.dialect import get_json
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.spark_api import Application, Environment, application_url

_PIECE_BYTES = 4 * 1024 * 1024
_RUN_ID = "spark.openlineage.applicationRunId"
_MOST_APPLICATIONS = 100


class _Version(Struct):
    """The class ``VersionInfo``."""

    spark: str


class HistoryLogs:
    """The logs of one launch on a History Server; every method raises ``NoAnswerError`` when it does not answer."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.place = place_of(endpoints.history_server_url)
        self._base_url = endpoints.history_server_url
        self._url = partial(application_url, self._base_url)
        self._client = endpoints.client()
        self._others: set[str] = set()
        """Applications of other runs, which are not asked for again."""

    def version(self) -> str:
        """Return the release of Spark that it is of."""
        version: _Version = get_json(self._client, f"{self._base_url}/api/v1/version", _Version)
        return version.spark

    def is_over(self, application_id: str) -> bool:
        """Whether it has read the log of the latest attempt to its end."""
        attempts = get_json(self._client, self._url(application_id), Application).attempts
        return bool(attempts and attempts[0].completed)

    def applications_of(self, run_id: str, earliest: float) -> set[str]:
        """Return the applications that were submitted as an OpenLineage run, not before a time in epoch seconds."""
        first = datetime.fromtimestamp(earliest, UTC)
        query = f"?minDate={first:%Y-%m-%dT%H:%M:%S}.000GMT&limit={_MOST_APPLICATIONS}"
        found = get_json(self._client, f"{self._base_url}/api/v1/applications{query}", list[Application])
        return {one.id for one in found if one.id not in self._others and self._is_of(one, run_id)}

    def _is_of(self, application: Application, run_id: str) -> bool:
        attempt = next(iter(application.attempts or ()), None)
        path = f"/{quote(attempt.attempt_id, safe='')}" if attempt is not None and attempt.attempt_id else ""
        try:
            answer = get_json(self._client, f"{self._url(application.id)}{path}/environment", Environment)
        except NoAnswerError:
            # One whose log cannot be read hides no other.
            return False
        if not (is_of := dict(answer.spark_properties).get(_RUN_ID) == run_id):
            self._others.add(application.id)
        return is_of

    def download(self, application_id: str, stream: BinaryIO, most_bytes: int, is_over: Callable[[], bool]) -> None:
        """Write the zip file of the logs of an application, which must not be larger; ``is_over`` ends that."""
        url = f"{self._url(application_id)}/logs"
        self._client.save(Request(url), stream, most_bytes, is_over)


class HistoryLog:
    """The logs of the applications of a launch, copied when they are over; the same in use as ``StoredEventLog``."""

    name = "history"
    is_growing = False
    # It looks for logs every 10 s by default (spark.history.fs.update.interval), and then has to read them.
    patience_seconds = 60.0

    def __init__(self, api: HistoryLogs, copies: Copies, wanted: Wanted) -> None:
        self.description = f"the History Server ({api.place})"
        self._api = api
        self._copies = copies
        self._wanted = wanted
        self._copied: set[str] = set()

    def pull(self, *, is_last: bool = False) -> bool:
        """Copy the logs of applications that are over, and return whether all of them are."""
        wanted = self._wanted
        ids = wanted.application_ids() or self._api.applications_of(wanted.run_id, wanted.earliest)
        if not ids:
            raise SourceError(f"it knows no application of the run {wanted.run_id} yet")
        ends = [self._pull(one, is_last=is_last) for one in sorted(ids)]
        return all(ends)

    def _pull(self, application_id: str, *, is_last: bool) -> bool:
        is_whole = self._api.is_over(application_id)
        # An unfinished log has no more here than another source has copied.
        if (is_whole or (is_last and not self._copies.names)) and application_id not in self._copied:
            with tempfile.TemporaryFile() as stream:
                free_bytes = shutil.disk_usage(tempfile.gettempdir()).free // 2
                self._api.download(application_id, stream, free_bytes, self._copies.is_over)
                try:
                    with ZipFile(stream) as archive:
                        self._unpack(archive)
                except BadZipFile as error:
                    raise SourceError(f"{self._api.place} gave no zip file, or a part of one") from error
            self._copied |= {application_id} if is_whole else set()
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
