"""Gets event logs of a History Server: ``/api/v1/applications/{id}/logs`` is a zip file of those of all attempts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import BinaryIO
from urllib.parse import quote

from msgspec import Struct

from spark_lineage.http_client import NoAnswerError, Request, place_of
from spark_lineage.watch.dialect import get_json
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.spark_api import Application, Environment, application_url

_RUN_ID = "spark.openlineage.applicationRunId"
_MOST_APPLICATIONS = 100


class _Version(Struct):
    """Of ``VersionInfo``."""

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
