"""The History Server: what event logs tell of an application, in the words of the driver's UI.

It reads logs every 10 s or so (``spark.history.fs.update.interval``): ask it at the end. A killed application stays
incomplete for ever, and no field says whether a complete one succeeded.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from spark_lineage.merge.transition import StatusReport
from spark_lineage.watch.progress import from_millis, now
from spark_lineage.watch.rest import RestClient
from spark_lineage.watch.spark_api import Application, SparkApi
from spark_lineage.watch.spark_reports import reports_of

_COMPLETE = "its event log is complete, which says nothing about success"
_INCOMPLETE = "its event log is not complete: it still runs, it was killed, or the log was not read to its end yet"


class HistoryServer:
    """Asks ``/api/v1/applications/{id}`` of a History Server (18080).

    :param base_url: of the server, without ``/`` at its end
    :param application_id: gives the id, None while it is not known
    """

    name = "History Server"
    first_seconds = 1.0

    def __init__(self, client: RestClient, base_url: str, application_id: Callable[[], str | None]) -> None:
        self._api = SparkApi(client)
        self._base_url = base_url
        self._application_id = application_id
        self.attempt_id: str | None = None
        """The latest attempt, where attempts have ids (YARN in cluster mode); it is a part of the links."""

    def poll(self) -> list[StatusReport]:
        """Return what it says of the application, and of what all its attempts did.

        :raises NoAnswerError: when it does not answer, or does not know the application (yet); nothing else
        """
        application_id = self._application_id()
        if application_id is None:
            return []
        asked = now()
        application = self._api.application(self._base_url, application_id)
        reports = self._of_application(application, asked)
        for attempt in reversed(application.attempts or []):
            key = "/".join(filter(None, (application.id, attempt.attempt_id)))
            reports += reports_of(self._api.content(self._base_url, key), key, self.name, asked)
        return reports

    def _of_application(self, application: Application, asked: datetime) -> list[StatusReport]:
        attempts = application.attempts or []
        if not attempts:
            return []
        latest = attempts[0]
        self.attempt_id = latest.attempt_id
        running = StatusReport(
            subject="APPLICATION",
            subject_id=application.id,
            status="RUNNING",
            time=from_millis(attempts[-1].start_time_epoch) or asked,
            source=self.name,
            detail=_INCOMPLETE if not latest.completed else "",
        )
        if not latest.completed:
            return [running]
        finished = StatusReport(
            subject="APPLICATION",
            subject_id=application.id,
            status="FINISHED",
            time=from_millis(latest.end_time_epoch) or asked,
            source=self.name,
            detail=_COMPLETE,
        )
        return [running, finished]
