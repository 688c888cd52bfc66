"""An event as one backend gets it: in the namespace of its connection, and as Marquez understands it."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct
from openlineage.client.serde import Serde

from spark_lineage.emit.run_event import data_source

# The types whose time Marquez takes for the beginning of the run.
_RESTARTING = frozenset({"RUNNING", "OTHER"})
# The kind of the jobs of child runs, as ``child_runs`` names it.
_CHILD = "PATH"


class Profile(Struct, frozen=True):
    """The backend that an event is encoded for; equal for all backends that get the same bytes.

    Marquez (0.51) takes the time of a RUNNING event for the beginning of its run (``runs.started_at``). And it puts the
    name of the parent's job before that of a child, cuts both to 16 characters in its graph, and shows there the state
    of the parent. A dataset without a ``dataSource``, as other operators name it, makes its ``/api/v1/sources`` answer
    500 from then on.
    """

    namespace: str | None = None
    is_marquez: bool = False

    def encoded(self, content: bytes) -> bytes:
        """Return the JSON of an event as this backend gets it."""
        if self.namespace is None and not self.is_marquez:
            return content
        event = json.loads(content)
        if self.namespace is not None:
            _move(event, self.namespace)
        if self.is_marquez:
            _adapt(event)
        return json.dumps(event, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _move(event: dict[str, Any], namespace: str) -> None:
    """Give an event's job, and the parents that are of the same namespace, another one."""
    job = event.get("job", {})
    before, job["namespace"] = job.get("namespace"), namespace
    parent = event.get("run", {}).get("facets", {}).get("parent", {})
    for other in (parent.get("job"), parent.get("root", {}).get("job")):
        if other is not None and other.get("namespace") == before:
            other["namespace"] = namespace


def _adapt(event: dict[str, Any]) -> None:
    run_facets = event.get("run", {}).get("facets") or {}
    began = ((run_facets.get("airflow") or {}).get("taskInstance") or {}).get("start_date")
    if began and event.get("eventType") in _RESTARTING:
        event["eventTime"] = began
    if ((event.get("job", {}).get("facets") or {}).get("jobType") or {}).get("jobType") == _CHILD:
        run_facets.pop("parent", None)
    for dataset in (*(event.get("inputs") or ()), *(event.get("outputs") or ())):
        facets = dataset["facets"] = dataset.get("facets") or {}
        if "dataSource" not in facets:
            facets["dataSource"] = json.loads(Serde.to_json(data_source(dataset["namespace"])))
