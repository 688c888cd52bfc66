"""Sends the child runs of a task through Airflow's OpenLineage provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event
from typing import TYPE_CHECKING, Any

from openlineage.client.generated.base import EventType

from spark_lineage.emit.child_events import child_events
from spark_lineage.emit.openlineage_provider import emission, send
from spark_lineage.emit.task_event import AirflowTry, described
from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.launch.launch import indexed
from spark_lineage.merge.lineage import ParentRun, TaskLineage

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent

    from spark_lineage.settings import Settings


def task_children(lineage: TaskLineage, settings: Settings, task_instance: Any) -> list[RunEvent]:
    """The events of the child runs of a task, with what the OpenLineage provider says of their parent and root."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins import macros

    if settings.granularity == "task":
        return []
    index = task_instance.map_index if settings.map_index_in_job_name else None
    task = ParentRun(
        macros.lineage_run_id(task_instance),
        conf.namespace(),
        indexed(macros.lineage_job_name(task_instance), index),
    )
    root = ParentRun(
        macros.lineage_root_run_id(task_instance),
        macros.lineage_root_job_namespace(task_instance),
        macros.lineage_root_job_name(task_instance),
    )
    own = task_instance.task
    text = described(AirflowTry(task_instance, None, getattr(own, "dag", None), own))
    return child_events(
        lineage,
        settings.granularity,
        task=task,
        root=root,
        limit_bytes=int(settings.max_event_bytes),
        owners=text.get("owners", ()),
        tags=text.get("tags") or (),
        description=text.get("job_description"),
    )


def send_children(events: list[RunEvent], seconds: float, task_instance: Any) -> str:
    """Send child runs over the transport of the OpenLineage provider, if it sends this task at all; return how many."""
    if not events or not all(emission(task_instance.task, task_instance.dag_id, task_instance.task_id)):
        return ""
    return f"{send_within(seconds, events, send)} of {len(events)} events of child runs"


def send_within(seconds: float, events: Iterable[RunEvent], send: Callable[[RunEvent], object]) -> int:
    """Send events one after the other, and return how many were sent when all were, or when the time was over.

    After that no further run is begun; the end of the last one is still sent, if the process lives as long. What
    ``send`` raises ends the sending, and is raised here unless it comes too late.
    """
    is_late = Event()
    sent: list[RunEvent] = []

    def run() -> None:
        for event in events:
            if event.eventType is EventType.START and is_late.is_set():
                break
            send(event)
            sent.append(event)

    try:
        # A backend that hangs holds one event for 39 s (HTTP transport of openlineage-python 1.54).
        BoundedRun(run, "lineage-sender").wait(seconds)
    finally:
        is_late.set()
    return len(sent)
