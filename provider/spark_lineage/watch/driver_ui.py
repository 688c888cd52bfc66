"""The driver's own UI: what runs, and what has ended while the driver lives; it never tells the driver's own end."""

from __future__ import annotations

from collections.abc import Callable

from spark_lineage.merge.transition import StatusReport
from spark_lineage.watch.address import place_of
from spark_lineage.watch.progress import from_millis, now
from spark_lineage.watch.rest import NoAnswerError, RestClient
from spark_lineage.watch.spark_api import Application, Attempt, SparkApi
from spark_lineage.watch.spark_reports import Progress, progress_of, reports_of


class DriverUi:
    """Asks ``/api/v1`` of a driver's UI (4040, 4041, …), or of a proxy in front of it.

    :param locate: gives the UI's present address, without ``/`` at its end; None while there is none
    :param expected_application: gives the id of the application that it is to be of, None for any: a port that became
        free is taken by the next driver
    """

    name = "driver UI"
    # Its first answer costs the driver a second of CPU, in which it loads what it answers with; a short job is told of
    # by its event log.
    first_seconds = 20.0

    def __init__(
        self,
        client: RestClient,
        locate: Callable[[], str | None],
        expected_application: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._api = SparkApi(client)
        self._locate = locate
        self._expected_application = expected_application
        self.progress: Progress | None = None
        """Of the latest answer; None before the first."""

    def poll(self) -> list[StatusReport]:
        """Return what the UI says of its applications, their SparkJobs, SQL executions and streaming queries.

        :raises NoAnswerError: when it does not answer, or is the UI of another application; nothing else
        """
        base_url = self._locate()
        if base_url is None:
            return []
        asked = now()
        reports: list[StatusReport] = []
        for application in self._applications(base_url):
            attempt = (application.attempts or [Attempt()])[0]
            key = "/".join(filter(None, (application.id, attempt.attempt_id)))
            content = self._api.content(base_url, key)
            self.progress = progress_of(content)
            reports.append(
                StatusReport(
                    subject="APPLICATION",
                    subject_id=application.id,
                    status="RUNNING",
                    time=from_millis(attempt.start_time_epoch) or asked,
                    source=self.name,
                )
            )
            reports += reports_of(content, key, self.name, asked)
        return reports

    def _applications(self, base_url: str) -> list[Application]:
        applications = self._api.applications(base_url)
        expected = self._expected_application()
        if expected is None:
            return applications
        ours = [application for application in applications if application.id == expected]
        if not ours:
            others = ", ".join(application.id for application in applications) or "no application"
            raise NoAnswerError(f"{place_of(base_url)} is the UI of {others}, not of {expected}")
        return ours
