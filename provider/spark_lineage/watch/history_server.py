"""The History Server: what event logs tell of an application, in the words of the driver's UI.

It reads logs every 10 s or so (``spark.history.fs.update.interval``): ask it at the end. A killed application stays
incomplete for ever, and no field says whether a complete one succeeded.
"""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

from spark_lineage.merge.transition import StatusReport
from spark_lineage.watch.source import State, from_millis
from spark_lineage.watch.spark_api import Application, SparkApi

_COMPLETE = "its event log is complete, which says nothing about success"
_INCOMPLETE = "its event log is not complete: it still runs, it was killed, or the log was not read to its end yet"


class HistoryServer(SparkApi):
    """Asks ``/api/v1/applications/{id}`` of a History Server (18080)."""

    name = "History Server"

    def poll(self) -> list[StatusReport]:
        """Return what it says of the application, and of what all its attempts did.

        :raises NoAnswerError: when it does not know the application (yet)
        """
        base_url, application_id = self.endpoints.history_server_url, self.known.application_id
        if application_id is None:
            return []
        asked = datetime.now(UTC)
        path = f"/api/v1/applications/{quote(application_id, safe='')}"
        application = self.client.get_json(f"{base_url}{path}", Application)
        if not (attempts := application.attempts):
            return []
        latest, begin = attempts[0], from_millis(attempts[-1].start_time_epoch) or asked
        self.known.attempt_id = latest.attempt_id
        states = [State("RUNNING", begin, "" if latest.completed else _INCOMPLETE)]
        if latest.completed:
            states.append(State("FINISHED", from_millis(latest.end_time_epoch) or asked, _COMPLETE))
        reports = [self.report("APPLICATION", application.id, state) for state in states]
        for attempt in reversed(attempts):
            reports += self.parts(base_url, application, attempt, asked)
        return reports
