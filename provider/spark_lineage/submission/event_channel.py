"""The listener's events of a driver that writes no file here: they come from a receiver, or the driver's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BoundedRun
from spark_lineage.launch.directory import EVENTS_FILE, LOG_DIRECTORY
from spark_lineage.launch.log import error_line
from spark_lineage.secrets.redaction import remember_values

if TYPE_CHECKING:
    from spark_lineage.launch.bounded_run import Deadline
    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.log import Guard
    from spark_lineage.settings import Settings
    from spark_lineage.submission.collector import DirectoryCollector
    from spark_lineage.submission.driver_log import GrowingLog

NO_END = "events without the application's end"
NO_EVENTS = "no event of the driver"
# The time for the last events of a driver that has ended, and between two requests.
_PATIENCE_SECONDS, _PAUSE_SECONDS = 3.0, 0.5


@dataclass(frozen=True)
class Route:
    """How the listener's events leave the driver: ``transport`` is the listener's, without its prefix.

    The other fields are those of the launch's record, but ``place``, which names the route in a log.
    """

    events_from: str
    transport: Mapping[str, str]
    place: str
    receiver: str = ""


def route_of(
    launch: Launch, settings: Settings, own_transport: str, guard: Guard, *, has_log_server: Callable[[], bool]
) -> Route | None:
    """Return the route of the listener's events; None where the driver writes them into the launch's directory.

    :param own_transport: the type of the transport that the user's own properties name
    :param has_log_server: whether a server is known that has the logs of drivers
    """
    if settings.evidence == "event_log" or settings.lineage_dir or launch.deploy_mode == "client":
        return None
    if settings.receiver_conn_id:
        consequence = "The driver's events come through the lineage directory, and not by a receiver"
        with guard(consequence, can_fail=False):
            return _to_receiver(launch, settings.receiver_conn_id)
        return None
    # Without a shared directory, a log server is the only source of events from elsewhere.
    if not has_log_server():
        return None
    is_file = launch.master.startswith("yarn") and own_transport != "console"
    transport = {"type": "file", "location": f"{LOG_DIRECTORY}/{EVENTS_FILE}"} if is_file else {"type": "console"}
    return Route("driver_log", transport, "its log, which is read from the cluster")


def _to_receiver(launch: Launch, conn_id: str) -> Route:
    # On purpose here: most tasks have no receiver.
    from spark_lineage.submission.received_events import ReceivedEvents, ReceiverService, listener_transport

    service, run_id = ReceiverService.of(conn_id), launch.application_run_id
    received = ReceivedEvents(service, run_id, Path(launch.directory, EVENTS_FILE))
    try:
        BoundedRun(received.check, "spark-lineage-receiver").wait(ANSWER_SECONDS)
    finally:
        received.close()
    transport = listener_transport(service.url, service.secret, run_id)
    # The settings of the driver hold the token, so its log may.
    remember_values(transport)
    return Route("receiver", transport, f"the receiver at {service.url}", conn_id)


class EventSource:
    """Copies the events of one run to a file; after ``close``, ``set_aside`` has the known losses by reason."""

    def __init__(self, run_id: str, file: Path) -> None:
        self.set_aside: dict[str, int] = {}
        self._run_id = run_id
        self._file = file

    def pull(self, *, is_last: bool = False) -> None:
        """Copy what is new; some of it may come twice.

        :param is_last: whether nothing more is asked for: what is there is to be had, whole or not
        :raises Exception: when it cannot be used, now or at all
        """

    def close(self) -> None:
        """Release its resources."""


class EventChannel:
    """Pulls the listener's events of one launch into its directory, where its driver sends them elsewhere.

    :param driver_log: the log of the launch's driver
    """

    def __init__(self, launch: Launch, driver_log: GrowingLog, guard: Guard) -> None:
        self.is_asking = False
        """Whether the source is being asked, which may hang."""
        self._guard = guard
        self._source: EventSource | None = None
        self._logged: set[str] = set()
        if launch.events_from:
            with guard(f"The driver's events cannot be collected by {launch.events_from}", can_fail=False):
                self._source = _source_of(launch, driver_log)

    def poll(self, *, is_last: bool = False) -> None:
        """Copy what has come since the last call; trouble is logged once."""
        if self._source is None:
            return
        self.is_asking = True
        try:
            self._source.pull(is_last=is_last)
        except Exception as error:
            text = f"The driver's events are not collected{'' if is_last else ' yet'}: {error_line(error)}"
            if text not in self._logged:
                self._logged.add(text)
                # Before the driver has begun, the place of its log is unknown.
                (self._guard.log.warning if is_last else self._guard.log.debug)("%s", text)
        finally:
            self.is_asking = False

    def finish(self, collector: DirectoryCollector, until: Deadline) -> None:
        """Copy the rest, wait a little for the end of the application, and count and log what is lost.

        :raises OSError: when a lineage file cannot be read
        """
        if self._source is None:
            return
        self.poll(is_last=True)
        collector.poll()
        until = until.within(_PATIENCE_SECONDS)
        while (lost := _lost(collector)) and until.seconds_left > _PAUSE_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self.poll(is_last=True)
            collector.poll()
        self._source.close()
        collector.state.is_torn = bool(lost or self._source.set_aside)
        for reason, count in self._source.set_aside.items():
            collector.counts.set_aside[reason] = count
            self._guard.log.warning("Events of the driver may be lost (%s): %d", reason, count)
        if lost:
            collector.counts.add(lost)
            collector.counts.sources.add(collector.source)
            self._guard.log.warning("The driver's events did not all come: %s.", lost)


def _source_of(launch: Launch, driver_log: GrowingLog) -> EventSource:
    run_id, file = launch.application_run_id, Path(launch.directory, EVENTS_FILE)
    if launch.events_from == "driver_log":
        from spark_lineage.submission.driver_log import LoggedEvents

        return LoggedEvents(driver_log, launch.own_run_id or run_id, file)
    from spark_lineage.submission.received_events import ReceivedEvents, ReceiverService

    return ReceivedEvents(ReceiverService.of(launch.receiver), run_id, file)


def _lost(collector: DirectoryCollector) -> str:
    """Return the reason, as it is counted, of missing events; empty once an application has reported its end."""
    applications = collector.state.applications.values()
    if any(one.is_ended for one in applications):
        return ""
    return NO_END if applications else NO_EVENTS
