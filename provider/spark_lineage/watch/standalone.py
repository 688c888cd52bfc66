"""Spark's standalone master: what its UI says of applications and drivers, and its REST server of drivers.

Its status of an application says nothing about the driver: an application that unregisters is FINISHED, even if its
driver failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isinf
from urllib.parse import quote

from msgspec import Struct

from spark_lineage.http_client import NoAnswerError, Request, place_of
from spark_lineage.merge.transition import ENDED, Status, StatusReport, Subject
from spark_lineage.watch.dialect import (
    LOG_BYTES,
    PIECE_BYTES,
    Dialect,
    Dialogue,
    FilesDialect,
    LogPiece,
    State,
    from_millis,
    status_of,
)

# Where its log is not in the worker's own encoding, a byte is answered as three.
_PIECE_BYTES = PIECE_BYTES // 4
_COMMAND = re.compile(r"^Launch Command: .*\n?", re.MULTILINE)
_BYTES = re.compile(rb"==== Bytes (\d+)-(\d+) of (\d+) of [^\n]*\n")
_UNREGISTERED = "FINISHED: it unregistered, which says nothing about the driver"


class _Thing(Struct):
    """The JSON of ``JsonProtocol.writeApplicationInfo`` and ``writeDriverInfo``, where drivers have no duration.

    ``starttime`` and ``duration`` are in milliseconds.
    """

    id: str
    state: str | None = None
    starttime: int | None = None
    duration: int | None = None
    worker: str | None = None


class _Worker(Struct):
    """The JSON of ``JsonProtocol.writeWorkerInfo``."""

    id: str
    webuiaddress: str = ""


class _Master(Struct):
    """The JSON of ``JsonProtocol.writeMasterState``."""

    status: str | None = None
    workers: list[_Worker] = []
    activeapps: list[_Thing] = []
    completedapps: list[_Thing] = []
    activedrivers: list[_Thing] = []
    completeddrivers: list[_Thing] = []


class _Submission(Struct, rename="camel"):
    """The JSON of ``org.apache.spark.deploy.rest.SubmissionStatusResponse``."""

    success: bool | None = None
    driver_state: str | None = None
    message: str | None = None


class StandaloneMaster(FilesDialect):
    """Asks ``/json/`` of the masters' UIs (8080): it is there without a REST server, and knows applications too.

    The master that is ALIVE counts. In client mode it knows no driver.
    """

    name = "standalone master"
    page = "/app/?appId={}"

    def poll(self) -> Dialogue[list[StatusReport]]:
        """Return what the master says of the driver and of the application.

        :raises NoAnswerError: when no master is ALIVE, or it knows neither (any more)
        """
        application_id = self.driver.application_id
        driver_id = self.driver.driver_id if self.endpoints.is_cluster else None
        if application_id is None and driver_id is None:
            return []
        asked = datetime.now(UTC)
        master = yield from self.first_answer(
            self.endpoints.master_ui_urls,
            "/json/",
            _Master,
            lambda master: "" if master.status == "ALIVE" else f"is {master.status}, not ALIVE",
        )
        things: list[tuple[Subject, _Thing]] = [
            *(("DRIVER", one) for one in master.activedrivers + master.completeddrivers if one.id == driver_id),
            *(("APPLICATION", one) for one in master.activeapps + master.completedapps if one.id == application_id),
        ]
        for subject, thing in things:
            of_it = [one.webuiaddress for one in master.workers if subject == "DRIVER" and one.id == thing.worker]
            if of_it:
                self.driver.logs_url = f"{of_it[0]}/logPage/?driverId={quote(thing.id, safe='')}&logType=stderr"
        reports = [report for subject, thing in things for report in self._of(subject, thing, asked)]
        if not reports:
            ids = " or ".join(filter(None, (driver_id, application_id)))
            # Not UNKNOWN: a master that was restarted without recovery knows none of those that still run.
            raise NoAnswerError(f"the standalone master does not know {ids}")
        return reports

    @property
    def log_url(self) -> str:
        """``/log/`` of the worker (``org.apache.spark.deploy.worker.ui.LogPage``), which joins rolled files."""
        return (self.driver.logs_url or "").removesuffix("stderr").replace("/logPage/?", "/log/?")

    def piece(self, url: str, offset: float) -> Dialogue[LogPiece]:
        """Ask for what follows an offset; without one, the page gives the end."""
        part = f"byteLength={LOG_BYTES}" if isinf(offset) else f"byteLength={_PIECE_BYTES}&offset={offset}"
        answer = yield Request(f"{url}&{part}")
        head = _BYTES.match(answer)
        if head is None:
            raise NoAnswerError(f"{place_of(url)} answered no page of a log")
        start, end, size = map(int, head.groups())
        return LogPiece(start, end, size, answer[head.end() :])

    def log_tail(self) -> Dialogue[Mapping[str, str]]:
        """Request the ends of the files; DriverRunner begins with a command in quotes of its own."""
        texts = yield from super().log_tail()
        return {name: _COMMAND.sub("", text) for name, text in texts.items()}

    def _of(self, subject: Subject, thing: _Thing, asked: datetime) -> list[StatusReport]:
        status, begin, time = status_of(thing.state), from_millis(thing.starttime), asked
        if status in ENDED and thing.starttime is not None and thing.duration is not None:
            time = from_millis(thing.starttime + thing.duration) or asked
        is_over = subject == "APPLICATION" and status == "FINISHED"
        steps = [State(status, time, _UNREGISTERED if is_over else thing.state or "")]
        if begin is not None and status != "UNKNOWN":
            first: Status = "SUBMITTED" if subject == "DRIVER" else "WAITING"
            steps = [State(first, begin, first), *(steps if status != first else [])]
        return self.news(subject, thing.id, steps, asked)


class StandaloneSubmissions(Dialect):
    """Asks ``/v1/submissions/status/{driverId}`` of the masters' REST servers (6066), which report errors too."""

    name = "standalone REST server"

    def poll(self) -> Dialogue[list[StatusReport]]:
        """Return what the first master that knows the driver says of it; it has no times.

        :raises NoAnswerError: when no master knows it
        """
        driver_id = self.driver.driver_id
        if driver_id is None:
            return []
        answer = yield from self.first_answer(
            self.endpoints.master_rest_urls,
            f"/v1/submissions/status/{quote(driver_id, safe='')}",
            _Submission,
            lambda answer: "" if answer.success and answer.driver_state else f"does not know {driver_id}",
        )
        word = answer.driver_state
        state = State(status_of(word), datetime.now(UTC), word or "", answer.message or "")
        return [self.report("DRIVER", driver_id, state)]

    def kill_requests(self, driver_id: str) -> list[Request]:
        """Return a ``POST`` for each master."""
        path = f"/v1/submissions/kill/{quote(driver_id, safe='')}"
        return [Request(f"{url}{path}", "POST") for url in self.endpoints.master_rest_urls]
