"""Which dialects report the status of an application, by its master and its deploy mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from urllib.parse import quote

from msgspec import structs

from spark_lineage.http_client import HttpClient, NoAnswerError
from spark_lineage.launch.driver import Driver
from spark_lineage.launch.log import Log
from spark_lineage.merge.transition import ENDED, StatusLedger, StatusReport, StatusSummary, TaskNumbers
from spark_lineage.watch.dialect import Dialect, Dialogue, converse
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.spark_api import DriverUi, HistoryServer

log = Log(__name__)


class Sources:
    """The dialects of one launch, as in the table of ``docs/status.md``, and a client, made for the first request.

    A dialect without an address is left out, but for the driver UI, whose address is learnt later.
    """

    def __init__(self, endpoints: Endpoints, driver: Driver) -> None:
        self.endpoints = endpoints
        self._driver = driver
        managers = self.managers = [kind(endpoints, driver) for kind in managers_of(endpoints)]
        history = self._history = [HistoryServer(endpoints, driver)] if endpoints.history_server_url else []
        self.ui = DriverUi(endpoints, driver)
        self.while_running: Sequence[Dialect] = [*managers, self.ui]
        self.at_the_end: Sequence[Dialect] = [*managers, *history]

    @cached_property
    def _log_managers(self) -> Sequence[Dialect]:
        """The managers that read the driver's log; a dialect keeps its last states, so the status has its own."""
        return [kind(self.endpoints, self._driver) for kind in managers_of(self.endpoints)]

    @cached_property
    def client(self) -> HttpClient:
        """The client that sends the credentials of the connection."""
        return self.endpoints.client()

    def kill(self, driver_id: str) -> None:
        """Have the cluster manager end a driver; errors are those of ``kill_driver``."""
        converse(kill_driver(self.managers, driver_id), self.client.send)

    def log_tail(self) -> Mapping[str, str]:
        """Return the last lines of the driver's output, by the names of its files; empty if no source has them."""
        for source in self.managers:
            try:
                if texts := converse(source.log_tail(), self.client.send):
                    return texts
            except NoAnswerError as error:
                log.debug("The %s does not give the driver's log: %s", source.name, error)
        return {}

    def added(self, *, is_last: bool) -> Iterator[bytes | None]:
        """Return the lines that were added to a driver's log since the last call; None where some are lost.

        :param is_last: whether a last line without its end is wanted, too
        :raises NoAnswerError: when who keeps the log does not give it
        """
        for manager in self._log_managers:
            with suppress(NoAnswerError):
                # Its answer says where the log is.
                converse(manager.poll(), self.client.send)
            for place in manager.log_files():
                is_end = False
                while not is_end:
                    lines, is_end = converse(manager.lines_of(place, is_last=is_last), self.client.send)
                    yield from lines

    def numbers(self) -> Iterator[TaskNumbers]:
        """Return what the tasks of the application did, as the History Server knows it; nothing where it does not."""
        for source in self._history:
            with suppress(NoAnswerError):
                yield from converse(source.numbers(), self.client.send)

    def linked(self, summary: StatusSummary, application_id: str | None) -> StatusSummary:
        """Return a summary with the links of an application; that of the UI is dead when the driver has ended."""
        history, attempt_id = self.endpoints.history_server_url, self._driver.attempt_id
        attempt = f"{attempt_id}/" if attempt_id else ""
        pages = [one.answered_url + one.page for one in self.managers if one.page and one.answered_url]
        return structs.replace(
            summary,
            ui_url=self.ui.url,
            history_url=f"{history}/history/{application_id}/{attempt}jobs/" if history and application_id else None,
            logs_url=self._driver.logs_url,
            manager_url=pages[0].replace("{}", quote(application_id, safe="")) if pages and application_id else None,
        )


def driver_end(managers: Sequence[Dialect], ledger: StatusLedger) -> Dialogue[StatusReport | None]:
    """Return the end of a driver in cluster mode, None while it runs; all reports go into the ledger.

    :raises NoAnswerError: when no manager knows the driver
    """
    problems: list[str] = []
    http_status = None
    for source in managers:
        try:
            reports = yield from source.poll()
        except NoAnswerError as error:
            problems.append(str(error))
            http_status = error.http_status
            continue
        for one in reports:
            ledger.add(one)
        last = next((one for one in reversed(reports) if one.subject == "DRIVER"), None)
        if last is not None:
            # A deleted pod reports nothing more.
            is_gone = last.status == "UNKNOWN" and source.is_unknown_the_end
            return last if last.status in ENDED or is_gone else None
    raise NoAnswerError("; ".join(problems) or "the connection names no server that knows it", http_status)


def kill_driver(managers: Sequence[Dialect], driver_id: str) -> Dialogue[None]:
    """Have the first server that takes it end a driver.

    :raises NoAnswerError: when none does
    """
    problems: list[str] = []
    for request in (one for manager in managers for one in manager.kill_requests(driver_id)):
        try:
            yield request
        except NoAnswerError as error:
            problems.append(str(error))
        else:
            return
    raise NoAnswerError("; ".join(problems) or "there is no address to ask")


def managers_of(endpoints: Endpoints) -> list[type[Dialect]]:
    """Return the dialects of the cluster manager; none where nothing is known of it."""
    # A task imports those of its own cluster.
    if endpoints.master.startswith("spark://"):
        from spark_lineage.watch.standalone import StandaloneMaster, StandaloneSubmissions

        return [StandaloneSubmissions, StandaloneMaster] if endpoints.is_cluster else [StandaloneMaster]
    if endpoints.master.startswith("yarn") and endpoints.yarn_urls:
        from spark_lineage.watch.yarn import YarnResourceManager

        return [YarnResourceManager]
    if endpoints.master.startswith("k8s://") and endpoints.is_cluster:
        # In client mode the driver is no pod.
        from spark_lineage.watch.kubernetes import Kubernetes

        return [Kubernetes]
    return []
