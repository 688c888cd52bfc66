"""HTTP to Marquez (0.51), with what it would misread left out.

It takes the time of a RUNNING event for the beginning of its run (``runs.started_at``). And it puts the name of the
parent's job before that of a child, cuts both to 16 characters in its graph, and shows there the state of the parent.
A dataset without a ``dataSource``, as other operators name it, makes its ``/api/v1/sources`` answer 500 from then on.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from openlineage.client.event_v2 import RunEvent

from spark_lineage.deliver.transports.http import AnsweredHttpTransport
from spark_lineage.emit.dataset_facets import data_source
from spark_lineage.emit.openlineage_provider import value_of

if TYPE_CHECKING:
    import requests
    from openlineage.client.client import Event

# Of any other event Marquez believes the time, or, of an end, keeps the beginning.
_RESTARTING = frozenset({"RUNNING", "OTHER"})
# The kinds of jobs of child runs, as ``child_runs`` names them.
_CHILDREN = frozenset({"PATH", "ACTION"})


class MarquezTransport(AnsweredHttpTransport):
    """Posts events: a RUNNING with the time of the START, a child run without parent, each dataset with its source."""

    def emit(self, event: Event) -> requests.Response:
        """Send one event; errors as of ``AnsweredHttpTransport``."""
        return super().emit(_for_marquez(event) if isinstance(event, RunEvent) else event)


def _for_marquez(event: RunEvent) -> RunEvent:
    sent = copy.copy(event)
    facets = event.run.facets or {}
    began = value_of(value_of(facets.get("airflow"), "taskInstance"), "start_date")
    if began and event.eventType is not None and event.eventType.value in _RESTARTING:
        sent.eventTime = str(began)
    if value_of((event.job.facets or {}).get("jobType"), "jobType") in _CHILDREN:
        sent.run = copy.copy(event.run)
        sent.run.facets = {name: facet for name, facet in facets.items() if name != "parent"}
    sent.inputs = [_with_source(each) for each in event.inputs or ()]
    sent.outputs = [_with_source(each) for each in event.outputs or ()]
    return sent


def _with_source(dataset: Any) -> Any:
    facets = dataset.facets or {}
    if "dataSource" in facets:
        return dataset
    sent = copy.copy(dataset)
    sent.facets = {**facets, "dataSource": data_source(dataset.namespace)}
    return sent
