"""YARN's ResourceManager: what it says of an application, which in cluster mode is what it says of the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from spark_lineage.merge.transition import Status, StatusReport, Subject
from spark_lineage.watch.address import place_of
from spark_lineage.watch.failover import first_answer
from spark_lineage.watch.progress import StatusProgress, from_millis, now, translated
from spark_lineage.watch.rest import NoAnswerError, RestClient

# org.apache.hadoop.yarn.api.records.YarnApplicationState, and FinalApplicationStatus for what is FINISHED.
_STATE: dict[str, Status] = {
    "NEW": "SUBMITTED",
    "NEW_SAVING": "SUBMITTED",
    "SUBMITTED": "SUBMITTED",
    "ACCEPTED": "WAITING",
    "RUNNING": "RUNNING",
    "FINISHED": "FINISHED",
    "FAILED": "FAILED",
    "KILLED": "KILLED",
}
_FINAL_STATUS: dict[str, Status] = {"SUCCEEDED": "FINISHED", "FAILED": "FAILED", "KILLED": "KILLED"}
_SAYS_NOTHING = "which says nothing about the program in client mode"


class _App(Struct, rename="camel"):
    """Of ``AppInfo``; times in milliseconds since 1970, 0 is not yet."""

    id: str | None = None
    state: str | None = None
    final_status: str | None = None
    diagnostics: str | None = None
    started_time: int | None = None
    launch_time: int | None = None
    finished_time: int | None = None
    tracking_url: str | None = None
    am_container_logs: str | None = None


class _Answer(Struct):
    app: _App | None = None


class YarnResourceManager:
    """Asks ``/ws/v1/cluster/apps/{id}`` of the ResourceManagers (8088).

    :param urls: of all ResourceManagers, without ``/`` at their ends; a standby one redirects, and is passed over
    :param deploy_mode: in ``client`` mode YARN says SUCCEEDED of programs that failed, and knows no driver
    :param application_id: gives the id, None while it is not known
    """

    name = "YARN ResourceManager"
    first_seconds = 1.0

    def __init__(
        self,
        client: RestClient,
        urls: Sequence[str],
        deploy_mode: Literal["client", "cluster"],
        application_id: Callable[[], str | None],
    ) -> None:
        self._client = client
        self._urls = urls
        self._deploy_mode = deploy_mode
        self._application_id = application_id
        self._progress = StatusProgress()
        self.proxied_ui_url: str | None = None
        """The driver's UI through YARN's proxy, without ``/`` at its end; None while the driver does not run."""
        self.logs_url: str | None = None
        """The log of the application master's container; of the driver in cluster mode."""

    def poll(self) -> list[StatusReport]:
        """Return what YARN says of the application, and in cluster mode of the driver, which has the same id.

        :raises NoAnswerError: when no ResourceManager knows the application; nothing else
        """
        application_id = self._application_id()
        if application_id is None:
            return []
        app = first_answer(self._urls, lambda url: self._ask(url, application_id))
        asked = now()
        is_running = app.state == "RUNNING" and (app.tracking_url or "").startswith(("http://", "https://"))
        self.proxied_ui_url = (app.tracking_url or "").rstrip("/") if is_running else None
        self.logs_url = app.am_container_logs or self.logs_url
        subjects: list[Subject] = ["APPLICATION"] if self._deploy_mode == "client" else ["DRIVER", "APPLICATION"]
        return [report for subject in subjects for report in self._of(subject, application_id, app, asked)]

    def _ask(self, url: str, application_id: str) -> _App:
        app = self._client.get_json(f"{url}/ws/v1/cluster/apps/{quote(application_id, safe='')}", _Answer).app
        if app is None or not app.state:
            raise NoAnswerError(f"{place_of(url)} does not tell the state of {application_id}")
        return app

    def _of(self, subject: Subject, application_id: str, app: _App, asked: datetime) -> list[StatusReport]:
        status = _status(app)
        has_ended = app.state in ("FINISHED", "FAILED", "KILLED")
        times: dict[Status, datetime | None] = {
            "SUBMITTED": from_millis(app.started_time),
            "RUNNING": from_millis(app.launch_time) if has_ended or status == "RUNNING" else None,
        }
        way = [
            StatusReport(subject, application_id, earlier, time, self.name)
            for earlier, time in times.items()
            if time is not None and earlier != status
        ]
        present = StatusReport(
            subject=subject,
            subject_id=application_id,
            status=status,
            time=(from_millis(app.finished_time) if has_ended else times.get(status)) or asked,
            source=self.name,
            detail=self._detail(app),
            exception=(app.diagnostics or "").strip() if status in ("FAILED", "KILLED") else "",
        )
        return self._progress.tell(*way, present, asked=asked)

    def _detail(self, app: _App) -> str:
        if app.state != "FINISHED":
            return app.state or ""
        words = f"FINISHED, finalStatus {app.final_status}"
        return f"{words}, {_SAYS_NOTHING}" if self._deploy_mode == "client" else words


def _status(app: _App) -> Status:
    if app.state == "FINISHED":
        return translated(app.final_status, _FINAL_STATUS)
    return translated(app.state, _STATE)
