"""The listener's events over HTTP: by a receiver of this process, or by a service, for drivers elsewhere."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from spark_lineage.secrets.registered_secrets import remember_values

if TYPE_CHECKING:
    from spark_lineage.collect.collector import DirectoryCollector
    from spark_lineage.collect.received_events import ReceivedEvents
    from spark_lineage.collect.receiver_server import OwnReceiver
    from spark_lineage.launch.bounded_run import Deadline
    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.log import Guard
    from spark_lineage.settings import Settings
    from spark_lineage.task.launching import NewLaunch

REFUSED = "refused by the receiver"
NO_END = "events without the application's end"
# The last events of a driver that has ended.
_PATIENCE_SECONDS, _PAUSE_SECONDS = 3.0, 0.5


class Receiving:
    """Has the events of one launch taken over HTTP, where the setting ``collect`` wants that; else it does nothing."""

    def __init__(self, guard: Guard) -> None:
        self.is_asking = False
        """Whether a service is being asked, which may hang."""
        self._guard = guard
        self._run_id = ""
        self._own: OwnReceiver | None = None
        self._source: ReceivedEvents | None = None
        self._said: set[str] = set()

    def begin(self, new: NewLaunch, settings: Settings) -> NewLaunch:
        """Return the launch with a receiver for its events; without one, where none can be had, which is logged."""
        is_client = new.launch.deploy_mode == "client"
        # Without a directory that is said to be shared, drivers elsewhere have nothing else.
        is_first = settings.collect == "auto" and settings.receiver_conn_id and not (is_client or settings.lineage_dir)
        if settings.evidence == "event_log" or not (is_first or settings.collect == "receiver"):
            return new
        with self._guard("The driver's events come by no receiver, but through the lineage directory", can_fail=False):
            return self._begun(new, settings)
        return new

    def _begun(self, new: NewLaunch, settings: Settings) -> NewLaunch:
        # On purpose here: most tasks have no receiver, and Airflow 2 brings no uvicorn.
        from spark_lineage.collect.received_events import ReceiverService, listener_transport

        run_id, file = new.launch.application_run_id, Path(new.lineage.events_file)
        if settings.receiver_conn_id:
            service = ReceiverService.of(settings.receiver_conn_id)
            url, secret, place = service.url, service.secret, settings.receiver_conn_id
        else:
            from spark_lineage.collect.receiver_server import own_receiver

            # In client mode the driver runs on this machine.
            is_client = new.launch.deploy_mode == "client"
            host = settings.receiver_host or ("127.0.0.1" if is_client else socket.getfqdn())
            self._own = own_receiver(host, settings.receiver_ports or (0,))
            self._own.expect(run_id, file)
            url, secret, place = self._own.url, self._own.secret, self._own.url
        transport = listener_transport(url, secret, run_id)
        # Whoever prints the settings of the driver prints the token.
        remember_values(transport)
        launch = structs.replace(new.launch, receiver=place)
        self.attach(launch)
        whose = "the receiver" if settings.receiver_conn_id else "a receiver of this process"
        self._guard.log.info("The driver sends its events to %s at %s (collect=%s).", whose, url, settings.collect)
        return replace(new, launch=launch, lineage=replace(new.lineage, receiver=transport))

    def attach(self, launch: Launch) -> None:
        """Go on with a launch, also with that of an earlier try."""
        self._run_id = launch.application_run_id
        if "://" in launch.receiver:
            if self._own is None:
                text = "The receiver of the earlier try is gone: what its driver has sent since is missing."
                self._guard.log.warning("%s receiver_conn_id names one that outlives tries.", text)
        elif launch.receiver:
            with self._guard("The driver's events cannot be had from the receiver", can_fail=False):
                from spark_lineage.collect.received_events import source_of

                self._source = source_of(launch)

    def poll(self) -> None:
        """Copy what the service has taken since the last call; trouble is logged once."""
        if self._source is None:
            return
        self.is_asking = True
        try:
            self._source.bring()
        except Exception as error:
            if (text := f"{type(error).__name__}: {error}") not in self._said:
                self._said.add(text)
                self._guard.log.warning("The driver's events are not here yet: %s", text)
        finally:
            self.is_asking = False

    def finish(self, collector: DirectoryCollector, until: Deadline) -> None:
        """Copy the rest, wait a little for the end of the application, and say what is lost.

        :raises OSError: when a lineage file cannot be read
        """
        if self._own is None and self._source is None:
            return
        until = until.within(_PATIENCE_SECONDS)
        self.poll()
        collector.poll()
        while (is_cut_off := _is_cut_off(collector)) and until.seconds_left > _PAUSE_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self.poll()
            collector.poll()
        refused = 0
        if self._own is not None:
            refused = self._own.end(self._run_id)
        elif self._source is not None:
            refused = self._source.refused
            self._source.close()
        if refused:
            collector.counts.set_aside[REFUSED] = refused
            self._guard.log.warning(
                "The receiver has refused %d requests of the driver: their events are lost.", refused
            )
        if is_cut_off:
            collector.counts.add(NO_END)
            self._guard.log.warning("The driver's events came without the application's end: later ones are lost.")


def _is_cut_off(collector: DirectoryCollector) -> bool:
    """Whether an application has told of its beginning, and not of its end."""
    applications = collector.state.applications.values()
    return bool(applications) and not any(one.is_ended for one in applications)
