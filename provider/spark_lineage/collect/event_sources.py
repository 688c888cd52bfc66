"""The sources of the listener's events when the driver does not write them into the launch's directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.launch.directory import EVENTS_FILE

if TYPE_CHECKING:
    from spark_lineage.collect.driver_log import GrowingLog
    from spark_lineage.launch.launch import Launch


class EventSource:
    """Copies the events of one run to a file; after ``close``, ``set_aside`` has the known losses by reason."""

    def __init__(self, run_id: str, file: Path) -> None:
        self.set_aside: dict[str, int] = {}
        self._run_id = run_id
        self._file = file

    def bring(self, *, is_last: bool = False) -> None:
        """Copy what is new; some of it may come twice.

        :param is_last: whether nothing more is asked for: what is there is to be had, whole or not
        :raises Exception: when it cannot be used, now or at all
        """

    def close(self) -> None:
        """Release its resources."""


def source_of(launch: Launch, driver_log: Callable[[], GrowingLog], own_run_id: str = "") -> EventSource:
    """Return what copies the events of a launch from where its driver sends them.

    :param own_run_id: what the user's own properties have the application's run be
    :raises Exception: when it cannot be used
    """
    run_id, file = launch.application_run_id, Path(launch.directory) / EVENTS_FILE
    if launch.events_from == "driver_log":
        from spark_lineage.collect.driver_log import LoggedEvents

        return LoggedEvents(driver_log(), own_run_id or run_id, file)
    from spark_lineage.collect.received_events import ReceivedEvents, ReceiverService

    return ReceivedEvents(ReceiverService.of(launch.receiver), run_id, file)
