"""HTTP to Marquez, which takes the time of a RUNNING event for the beginning of its run (0.51: ``runs.started_at``)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from openlineage.client.event_v2 import RunEvent

from spark_lineage.emit.provider_event import value_of
from spark_lineage.emit.transports.http import AnsweredHttpTransport

if TYPE_CHECKING:
    import requests
    from openlineage.client.client import Event

# Of any other event Marquez believes the time, or, of an end, keeps the beginning.
_RESTARTING = frozenset({"RUNNING", "OTHER"})


class MarquezTransport(AnsweredHttpTransport):
    """Posts events; those that are no beginning have the time of the beginning, where they say when that was."""

    def emit(self, event: Event) -> requests.Response:
        """Send one event; errors as of ``AnsweredHttpTransport``."""
        return super().emit(_at_its_beginning(event))


def _at_its_beginning(event: Event) -> Event:
    if not isinstance(event, RunEvent) or event.eventType is None or event.eventType.value not in _RESTARTING:
        return event
    airflow = (event.run.facets or {}).get("airflow")
    began = value_of(value_of(airflow, "taskInstance"), "start_date")
    if not began:
        return event
    sent = copy.copy(event)
    sent.eventTime = str(began)
    return sent
