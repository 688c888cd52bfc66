"""The driver's own UI: what runs, and what has ended while the driver lives; it never tells the driver's own end."""

from __future__ import annotations

from datetime import UTC, datetime

from spark_lineage.merge.transition import StatusReport
from spark_lineage.watch.rest import NoAnswerError, place_of
from spark_lineage.watch.source import State, from_millis
from spark_lineage.watch.spark_api import Application, Attempt, SparkApi


class DriverUi(SparkApi):
    """Asks ``/api/v1`` of a driver's UI (4040, 4041, …), or of a proxy in front of it."""

    name = "driver UI"
    # Its first answer costs the driver a second of CPU, in which it loads what it answers with; the event log tells of
    # a short job.
    first_seconds = 20.0

    @property
    def url(self) -> str | None:
        """The UI's present address, None while there is none: of the connection, else of YARN, else of the driver."""
        # On YARN the driver's own address redirects to the proxy.
        known = self.known
        return self.endpoints.driver_ui_of(known.application_id) or known.proxied_ui_url or known.ui_url

    def poll(self) -> list[StatusReport]:
        """Return what the UI says of its applications, their SparkJobs, SQL executions and streaming queries.

        :raises NoAnswerError: when it does not answer, or is the UI of another application: the next driver takes a
            port that became free
        """
        url, expected = self.url, self.known.application_id
        if url is None:
            return []
        asked = datetime.now(UTC)
        applications = self.client.get_json(f"{url}/api/v1/applications", list[Application])
        ours = [one for one in applications if expected in (None, one.id)]
        if expected is not None and not ours:
            others = ", ".join(one.id for one in applications) or "no application"
            raise NoAnswerError(f"{place_of(url)} is the UI of {others}, not of {expected}")
        reports: list[StatusReport] = []
        for application in ours:
            attempt = (application.attempts or [Attempt()])[0]
            parts = self.parts(url, application, attempt, asked)
            running = State("RUNNING", from_millis(attempt.start_time_epoch) or asked)
            reports += [self.report("APPLICATION", application.id, running), *parts]
        return reports
