"""The listener's events of a driver that writes no file: from a receiver, or from its log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from spark_lineage.collect.event_sources import EventSource, source_of
from spark_lineage.inject.properties import APP_RUN_ID, TRANSPORT_TYPE
from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BoundedRun
from spark_lineage.launch.log import words_of
from spark_lineage.secrets.redaction import remember_values
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from spark_lineage.collect.collector import DirectoryCollector
    from spark_lineage.collect.driver_log import GrowingLog
    from spark_lineage.launch.bounded_run import Deadline
    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.log import Guard
    from spark_lineage.settings import Settings
    from spark_lineage.settings.places import TaskSettings
    from spark_lineage.task.launching import NewLaunch

NOTHING_RETURNS = (
    "No lineage can come back from YARN: no event log is read (%s), and the listener's events stay on the driver's "
    "host. Set spark.eventLog.enabled=true and a spark.eventLog.dir that webhdfs_url or history_server_url in the "
    "extra of the Spark connection leads to; or a lineage_dir that all hosts mount, receiver_conn_id or "
    "collect=driver_log."
)
NO_END = "events without the application's end"
NO_EVENTS = "no event of the driver"
# The last events of a driver that has ended.
_PATIENCE_SECONDS, _PAUSE_SECONDS = 3.0, 0.5


class Receiving:
    """Has the events of one launch brought into its directory, if the driver sends them elsewhere.

    :param driver_log: returns the log of a launch's driver
    """

    def __init__(self, task: TaskSettings, driver_log: Callable[[Launch], GrowingLog], guard: Guard) -> None:
        self.is_asking = False
        """Whether a source is being asked, which may hang."""
        self._task = task
        self._driver_log = driver_log
        self._guard = guard
        self._source: EventSource | None = None
        self._said: set[str] = set()
        self.words = ""
        """Where the driver sends its events to, empty for the lineage directory."""

    def begin(self, new: NewLaunch) -> NewLaunch:
        """Return the launch with where its events come from; without, if that cannot be used, which is logged."""
        if self._task.settings.evidence == "event_log" or not (way := self._way(new)):
            return new
        with self._guard(f"The driver's events come through the lineage directory, and not by {way}", can_fail=False):
            return {"receiver": self._to_receiver, "driver_log": self._to_log}[way](new)
        self._source = None
        return new

    def _way(self, new: NewLaunch) -> str:
        """Return how the events come, empty for through the directory."""
        settings, is_client = self._task.settings, new.launch.deploy_mode == "client"
        own = new.properties.get(TRANSPORT_TYPE, "").strip()
        if settings.collect == "driver_log" and is_client:
            self._guard.log.debug("The driver runs on this machine and writes its events into the lineage directory.")
            return ""
        if settings.collect != "auto":
            return settings.collect if settings.collect in {"receiver", "driver_log"} else ""
        if is_client or settings.lineage_dir:
            return ""
        # Without a directory that is said to be shared, drivers elsewhere have nothing else. Only what the job prints
        # anyway is taken from its log.
        return "receiver" if settings.receiver_conn_id else "driver_log" if own == "console" else ""

    def _to_receiver(self, new: NewLaunch) -> NewLaunch:
        # On purpose here: most tasks have no receiver.
        from spark_lineage.collect.received_events import ReceivedEvents, ReceiverService, listener_transport

        conn_id, run_id = self._task.settings.receiver_conn_id, new.launch.application_run_id
        if not conn_id:
            raise SettingError("collect is receiver: receiver_conn_id must name the connection of one")
        service = ReceiverService.of(conn_id)
        self._source = received = ReceivedEvents(service, run_id, Path(new.lineage.events_file))
        BoundedRun(received.check, "spark-lineage-receiver").wait(ANSWER_SECONDS)
        transport = listener_transport(service.url, service.secret, run_id)
        # Whoever prints the settings of the driver prints the token.
        remember_values(transport)
        return self._begun(new, "receiver", conn_id, transport, f"the receiver at {service.url}")

    def _to_log(self, new: NewLaunch) -> NewLaunch:
        return self._begun(new, "driver_log", "", {"type": "console"}, "its log, which is read from the cluster")

    def _begun(self, new: NewLaunch, way: str, place: str, transport: Mapping[str, str], words: str) -> NewLaunch:
        launch = structs.replace(new.launch, events_from=way, receiver=place)
        if self._source is None:
            self._source = self._source_of(launch, new.properties)
        self.words = f"the driver sends its events to {words} (collect={self._task.settings.collect})"
        return replace(new, launch=launch, lineage=replace(new.lineage, instead=transport))

    def attach(self, launch: Launch, properties: Mapping[str, str]) -> None:
        """Go on with a launch, also with that of an earlier try.

        :param properties: the user's own Spark properties
        """
        if launch.events_from:
            with self._guard(f"The driver's events cannot be collected by {launch.events_from}", can_fail=False):
                self._source = self._source_of(launch, properties)

    def _source_of(self, launch: Launch, properties: Mapping[str, str]) -> EventSource:
        return source_of(launch, lambda: self._driver_log(launch), properties.get(APP_RUN_ID, ""))

    def poll(self, *, is_last: bool = False) -> None:
        """Copy what has come since the last call; trouble is logged once."""
        if self._source is None:
            return
        self.is_asking = True
        try:
            self._source.bring(is_last=is_last)
        except Exception as error:
            text = f"The driver's events are not collected{'' if is_last else ' yet'}: {words_of(error)}"
            if text not in self._said:
                self._said.add(text)
                # Before the driver has begun, the place of its log is unknown.
                (self._guard.log.warning if is_last else self._guard.log.debug)("%s", text)
        finally:
            self.is_asking = False

    def finish(self, collector: DirectoryCollector, until: Deadline) -> None:
        """Copy the rest, wait a little for the end of the application, and say what is lost.

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
        for reason, count in self._source.set_aside.items():
            collector.counts.set_aside[reason] = count
            self._guard.log.warning("Events of the driver may be lost (%s): %d", reason, count)
        if lost:
            collector.counts.add(lost)
            collector.counts.sources.add(collector.source)
            self._guard.log.warning("The driver's events did not all come: %s.", lost)


def nothing_returns(launch: Launch, settings: Settings, *, has_event_log: bool) -> bool:
    """Whether nothing that a driver in a container of YARN writes can be read: what it leaves there is removed."""
    is_in_container = launch.deploy_mode == "cluster" and launch.master.startswith("yarn")
    return is_in_container and not (has_event_log or launch.events_from or settings.lineage_dir)


def _lost(collector: DirectoryCollector) -> str:
    """Return what says that events are missing; empty once an application has reported its end."""
    applications = collector.state.applications.values()
    if any(one.is_ended for one in applications):
        return ""
    return NO_END if applications else NO_EVENTS
