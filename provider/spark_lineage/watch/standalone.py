"""Spark's standalone master: what its UI says of applications and drivers, as JSON.

Its word for an application says nothing about the driver: FINISHED is any application that took leave of the master,
also that of a driver that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from spark_lineage.merge.transition import ENDED, Status, StatusReport
from spark_lineage.watch.address import place_of
from spark_lineage.watch.failover import first_answer
from spark_lineage.watch.progress import StatusProgress, from_millis, now, translated
from spark_lineage.watch.rest import NoAnswerError, RestClient

# org.apache.spark.deploy.master.DriverState and ApplicationState.
DRIVER_STATE: dict[str, Status] = {
    "SUBMITTED": "SUBMITTED",
    "RUNNING": "RUNNING",
    "FINISHED": "FINISHED",
    "RELAUNCHING": "RELAUNCHING",
    "UNKNOWN": "UNKNOWN",
    "KILLED": "KILLED",
    "FAILED": "FAILED",
    "ERROR": "FAILED",
}
_APPLICATION: dict[str, Status] = {
    "WAITING": "WAITING",
    "RUNNING": "RUNNING",
    "FINISHED": "FINISHED",
    "FAILED": "FAILED",
    "KILLED": "KILLED",
    "UNKNOWN": "UNKNOWN",
}
_TOOK_LEAVE = "FINISHED: it took leave of the master, which says nothing about the driver"


class _Application(Struct):
    """Of ``JsonProtocol.writeApplicationInfo``; ``starttime`` and ``duration`` in milliseconds."""

    id: str
    state: str | None = None
    starttime: int | None = None
    duration: int | None = None


class _Driver(Struct):
    """Of ``JsonProtocol.writeDriverInfo``; ``starttime`` in milliseconds, which Spark gives as text."""

    id: str
    state: str | None = None
    starttime: int | None = None


class _Master(Struct):
    """Of ``JsonProtocol.writeMasterState``."""

    status: str | None = None
    activeapps: list[_Application] | None = None
    completedapps: list[_Application] | None = None
    activedrivers: list[_Driver] | None = None
    completeddrivers: list[_Driver] | None = None


class StandaloneMaster:
    """Asks ``/json/`` of the masters' UIs (8080): it is there without a REST server, and knows applications too.

    :param urls: of all masters, without ``/`` at their ends; the one that is ALIVE is believed
    :param application_id: gives the id, None while it is not known
    :param driver_id: the same, None for ever in client mode
    """

    name = "standalone master"
    first_seconds = 1.0

    def __init__(
        self,
        client: RestClient,
        urls: Sequence[str],
        application_id: Callable[[], str | None],
        driver_id: Callable[[], str | None],
    ) -> None:
        self._client = client
        self._urls = urls
        self._application_id = application_id
        self._driver_id = driver_id
        self._progress = StatusProgress()

    def poll(self) -> list[StatusReport]:
        """Return what the master says of the driver and of the application.

        :raises NoAnswerError: when no master is ALIVE, or it knows neither (any more); nothing else
        """
        application_id, driver_id = self._application_id(), self._driver_id()
        if application_id is None and driver_id is None:
            return []
        asked = now()
        url, master = first_answer(self._urls, self._ask)
        drivers = [*(master.activedrivers or []), *(master.completeddrivers or [])]
        applications = [*(master.activeapps or []), *(master.completedapps or [])]
        reports = [
            *(report for one in drivers if one.id == driver_id for report in self._of_driver(one, asked)),
            *(report for one in applications if one.id == application_id for report in self._of_app(one, asked)),
        ]
        if not reports:
            ids = " or ".join(filter(None, (driver_id, application_id)))
            # Not UNKNOWN: a master that was restarted without recovery knows none of those that still run.
            raise NoAnswerError(f"{place_of(url)} does not know {ids}")
        return reports

    def _ask(self, url: str) -> tuple[str, _Master]:
        master = self._client.get_json(f"{url}/json/", _Master)
        if master.status != "ALIVE":
            raise NoAnswerError(f"{place_of(url)} is {master.status}, not ALIVE")
        return url, master

    def _of_driver(self, driver: _Driver, asked: datetime) -> list[StatusReport]:
        begin = from_millis(driver.starttime)
        status = translated(driver.state, DRIVER_STATE)
        present = StatusReport("DRIVER", driver.id, status, asked, self.name, detail=driver.state or "")
        if begin is None or status == "UNKNOWN":
            return self._progress.tell(present, asked=asked)
        submitted = StatusReport("DRIVER", driver.id, "SUBMITTED", begin, self.name, detail="SUBMITTED")
        return self._progress.tell(*([submitted] if status == "SUBMITTED" else [submitted, present]), asked=asked)

    def _of_app(self, application: _Application, asked: datetime) -> list[StatusReport]:
        status = translated(application.state, _APPLICATION)
        begin = from_millis(application.starttime)
        time, detail = asked, application.state or ""
        if status in ENDED and application.starttime is not None and application.duration is not None:
            time = from_millis(application.starttime + application.duration) or asked
        if status == "FINISHED":
            detail = _TOOK_LEAVE
        present = StatusReport("APPLICATION", application.id, status, time, self.name, detail=detail)
        if begin is None or status == "UNKNOWN":
            return self._progress.tell(present, asked=asked)
        waiting = StatusReport("APPLICATION", application.id, "WAITING", begin, self.name, detail="WAITING")
        return self._progress.tell(*([waiting] if status == "WAITING" else [waiting, present]), asked=asked)
