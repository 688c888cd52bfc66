"""YARN's ResourceManager: the status of an application, which in cluster mode is that of the driver."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct, field

from spark_lineage.http_client import NoAnswerError, Request, place_of
from spark_lineage.launch.directory import DECLARED_FILE, EVENTS_FILE
from spark_lineage.merge.transition import Status, StatusReport, Subject
from spark_lineage.watch.dialect import (
    LOG_BYTES,
    PIECE_BYTES,
    Dialogue,
    FilesDialect,
    LogPiece,
    State,
    from_millis,
    status_of,
)

if TYPE_CHECKING:
    from spark_lineage.launch.driver import Driver
    from spark_lineage.watch.endpoints import Endpoints

_CONTAINER = re.compile(r"(https?://[^/\s]+)/node/containerlogs/(container_\w+)/")
# The head that Hadoop puts before a file (ContainerLogsUtils).
_HEAD = re.compile(rb"^LogLength:(\d+)\nLogContents:\n", re.MULTILINE)
_CLIENT_MODE = ", which says nothing about the program in client mode"


class _App(Struct, rename="camel"):
    """The JSON of ``AppInfo``; times in milliseconds since 1970, 0 is not yet."""

    state: str | None = None
    final_status: str | None = None
    diagnostics: str | None = None
    started_time: int | None = None
    launch_time: int | None = None
    finished_time: int | None = None
    tracking_url: str | None = None
    am_container_logs: str | None = None


class _Answer(Struct):
    app: _App = field(default_factory=_App)


class YarnResourceManager(FilesDialect):
    """Asks ``/ws/v1/cluster/apps/{id}`` of the ResourceManagers (8088); a standby one redirects, and is skipped.

    It learns the driver's UI, and the log of the application master's container (of the driver in cluster mode). In
    client mode YARN says SUCCEEDED of programs that failed, and knows no driver.
    """

    name = "YARN ResourceManager"
    page = "/cluster/app/{}"

    def __init__(self, endpoints: Endpoints, driver: Driver) -> None:
        super().__init__(endpoints, driver)
        self._attempts: dict[str, None] = {}
        """The common beginning of the addresses of the files of each attempt."""

    def poll(self) -> Dialogue[list[StatusReport]]:
        """Return what YARN says of the application, and in cluster mode of the driver, which has the same id.

        :raises NoAnswerError: when no ResourceManager knows the application
        """
        driver, is_client = self.driver, not self.endpoints.is_cluster
        # In cluster mode YARN's id is what the driver is found by.
        application_id = driver.application_id if is_client else driver.driver_id or driver.application_id
        if application_id is None:
            return []
        answer = yield from self.first_answer(
            self.endpoints.yarn_urls,
            f"/ws/v1/cluster/apps/{quote(application_id, safe='')}",
            _Answer,
            lambda answer: "" if answer.app.state else f"does not report the state of {application_id}",
        )
        app = answer.app
        asked, tracking_url = datetime.now(UTC), app.tracking_url or ""
        # After the end the proxy redirects to a page for people.
        if app.state == "RUNNING" and tracking_url.startswith(("http://", "https://")):
            driver.proxied_ui_url = tracking_url.rstrip("/")
        driver.logs_url = app.am_container_logs or driver.logs_url
        subjects: list[Subject] = ["APPLICATION"] if is_client else ["DRIVER", "APPLICATION"]
        steps = _steps(app, asked, is_client=is_client)
        return [report for subject in subjects for report in self.news(subject, application_id, steps, asked)]

    def kill_requests(self, driver_id: str) -> list[Request]:
        """Return a ``PUT`` of the state ``KILLED`` for each ResourceManager."""
        path = f"/ws/v1/cluster/apps/{quote(driver_id, safe='')}/state"
        return [Request(f"{url}{path}", "PUT", {"state": "KILLED"}) for url in self.endpoints.yarn_urls]

    @property
    def log_url(self) -> str:
        """``/ws/v1/node/containers/{id}/logs/`` of the NodeManager, until YARN has aggregated or removed them.

        A Python driver prints to its container's stdout.
        """
        container = _CONTAINER.match(self.driver.logs_url or "")
        return "{}/ws/v1/node/containers/{}/logs/".format(*container.groups()) if container is not None else ""

    def log_files(self) -> Iterable[str]:
        """Return the files of events of each attempt, and what the driver prints where it writes none of them."""
        printed = super().log_files()
        self._attempts[self.log_url] = None
        events = [f"{url}{name}" for url in self._attempts for name in (EVENTS_FILE, DECLARED_FILE)]
        yield from events
        if self._offsets.keys().isdisjoint(events):
            yield from printed

    def lines_of(self, place: str, *, is_last: bool) -> Dialogue[tuple[list[bytes | None], bool]]:
        """Request what was added to a file; a driver may write no file of events."""
        try:
            return (yield from super().lines_of(place, is_last=is_last))
        except NoAnswerError as error:
            if error.http_status != HTTPStatus.NOT_FOUND or not place.endswith((EVENTS_FILE, DECLARED_FILE)):
                raise
            return [], True

    def piece(self, url: str, offset: float) -> Dialogue[LogPiece]:
        """Ask for the end of a file, as far back as an offset, if that is not further than ``PIECE_BYTES``.

        A ``size`` below 0 counts from the end.
        """
        wanted = LOG_BYTES
        while True:
            answer = yield Request(f"{url}?size=-{wanted}")
            head = _HEAD.search(answer)
            if head is None:
                raise NoAnswerError(f"{place_of(url)} answered no file of a log")
            size = int(head[1])
            start = max(0, size - wanted)
            if start <= offset or wanted >= PIECE_BYTES:
                return LogPiece(start, size, size, answer[head.end() :][: size - start])
            # It grows meanwhile.
            wanted = min(size - int(offset) + LOG_BYTES, PIECE_BYTES)


def _steps(app: _App, asked: datetime, *, is_client: bool) -> list[State]:
    has_ended = app.state in ("FINISHED", "FAILED", "KILLED")
    status, detail = status_of(app.state), app.state or ""
    if app.state == "FINISHED":
        status = status_of(app.final_status)
        detail = f"FINISHED, finalStatus {app.final_status}{_CLIENT_MODE if is_client else ''}"
    times: dict[Status, datetime | None] = {
        "SUBMITTED": from_millis(app.started_time),
        "RUNNING": from_millis(app.launch_time) if has_ended or status == "RUNNING" else None,
    }
    steps = [State(earlier, time) for earlier, time in times.items() if time is not None and earlier != status]
    time = (from_millis(app.finished_time) if has_ended else times.get(status)) or asked
    exception = (app.diagnostics or "").strip() if status in ("FAILED", "KILLED") else ""
    return [*steps, State(status, time, detail, exception)]
