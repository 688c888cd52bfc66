"""The events of one task's run: START, RUNNING, its child runs, and the one that ends it.

A START repeats the datasets of the last successful end.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from msgspec import structs
from openlineage.client.generated.base import EventType as RunState

from spark_lineage import add_ons
from spark_lineage.adapters.adapter import NO_SPARK
from spark_lineage.deliver.connection_sender import ConnectionSender
from spark_lineage.deliver.outgoing import Outgoing, append_end, append_event
from spark_lineage.emit.child_events import child_events, going_on_event
from spark_lineage.emit.run_event import collection_facet
from spark_lineage.emit.task_event import (
    NO_DETAILS,
    AirflowTry,
    Emission,
    EventType,
    JobDetails,
    emission,
    job_texts,
    operator_lineage,
    send,
    task_event,
    transport_text,
)
from spark_lineage.launch.bounded_run import BRIEF_SECONDS, BoundedRun, Kill
from spark_lineage.launch.launch import indexed
from spark_lineage.launch.line import LineCounts, no_event_log
from spark_lineage.launch.log import Guard, error_text
from spark_lineage.merge.conclusion import reported_end
from spark_lineage.merge.lineage import ParentRun, TaskLineage
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.places import TaskSettings
from spark_lineage.task.last_end import LastEnd, ListenerNeed, Record, with_last_end, with_last_types

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.generated.base import RunEvent

    from spark_lineage.launch.launch import Launch
    from spark_lineage.settings import Settings
    from spark_lineage.task.links import TaskLinks

# The OpenLineage provider sends child runs one after another.
_CHILDREN_SECONDS = 10.0


class TaskEvents:
    """Makes and sends what is known of a task: at its beginning, while it runs, and once at its end.

    They go to the connections that the task names, RUNNING and child runs to the OpenLineage provider's backend too;
    ``operator_lineage`` is what that provider asks the operator for after the end. From any thread. Trouble is logged.
    """

    def __init__(self, context: Context, kill: Kill, settings: Settings, guard: Guard, links: TaskLinks) -> None:
        self.operator_lineage: OperatorLineage[Any, Any] | None = None
        self._has_begun = self._has_ended = False
        self._context = context
        self._kill = kill
        self._settings = settings
        self._guard = guard
        self._links = links
        self._lock = threading.Lock()
        instance = context["ti"]
        self._airflow = AirflowTry(instance, context["dag_run"], context["dag"], context["task"])
        self._details = NO_DETAILS
        self._emission = Emission(is_sent=True, has_lineage=True)
        self._sender: ConnectionSender | None = None
        # The line "Delivery" of the log needs these.
        self._types: list[str] = []
        self._provider = self._children = ""
        self._asset_count = 0
        self._last: tuple[EventType, Outgoing | None, str] | None = None
        self._record: Record | None = None
        self.last_end: LastEnd | None = None
        self.listener_need: ListenerNeed | None = None
        """What is known of the program, to be kept with the end."""
        with guard("The task's events are not sent to its connections"):
            self._details = JobDetails.of(settings, context["task"], instance)
            self._emission = emission(context["task"], instance.dag_id, instance.task_id)
            if settings.lineage_conn_id and self._emission.is_sent:
                self._sender = ConnectionSender(settings.lineage_conn_id, settings, guard)
        with guard("The log does not say what the OpenLineage provider sends", can_fail=False):
            self._provider = transport_text() if self._emission.is_sent else ""
        with guard("The next START repeats no datasets", can_fail=False):
            self._record = Record(settings, context["task"])
            self.last_end = self._record.end
            self.listener_need = None if self.last_end is None else self.last_end.listener_need

    def begin(self, declared: TaskLineage | None, counts: LineCounts | None = None) -> None:
        """Send START to the connections, once; the provider has done so already.

        :param declared: the task's inlets and outlets, None where it has none
        :param counts: of a job that has no source of lineage, with the reason; None where it has one
        """
        if self._has_begun or self._sender is None or not self._sender.destinations:
            return
        self._has_begun = True
        with self._guard("The START of the task is not sent", can_fail=False):
            lineage = declared or TaskLineage("RUNNING")
            if self.last_end is not None and self.last_end.is_streaming:
                lineage = structs.replace(lineage, is_streaming=True)
            self._put("START", with_last_end(self._operator_lineage(lineage, counts), self.last_end))

    def resume(self) -> None:
        """Learn that the process that has begun the task has sent its START."""
        self._has_begun = True

    def go_on(self, lineage: TaskLineage, counts: LineCounts) -> None:
        """Send what is known so far, beside what the START has repeated, unless the end was sent."""
        if self._has_ended or not self._emission.is_sent:
            return
        known = with_last_end(self._operator_lineage(with_last_types(lineage, self.last_end), counts), self.last_end)
        event = self._put("RUNNING", known)
        if event is not None and not self._has_ended:
            self._links.show_event("RUNNING", event.body)
        if lineage.is_streaming:
            # A stream has no end but a kill.
            self._keep_end(event)

    def end(
        self,
        lineage: TaskLineage,
        counts: LineCounts | None,
        error: BaseException | None,
        directory: Path | None,
        why: str = "",
    ) -> None:
        """Send the end, once: what comes after it changes nothing.

        :param counts: of the lines that were read, None where nothing was collected: then the provider looks elsewhere
        :param error: what ended the task, None where it succeeded
        :param directory: of the launch, where the end is kept first: whoever finds the process of the task killed
            reports what is there, so that no two ends of a run differ
        :param why: why there is no lineage
        """
        if self._has_ended:
            return
        earlier = self.last_end
        is_idle = earlier is not None and earlier.is_streaming and not (lineage.inputs or lineage.outputs)
        if is_idle:
            # An idle stream stays a stream, with its last datasets: else Marquez would take it for a batch.
            lineage = structs.replace(lineage, is_streaming=True)
        known = self._operator_lineage(lineage, counts)
        known = with_last_end(known, earlier) if is_idle else known
        if counts is not None:
            self.operator_lineage = known
        end, event = reported_end(lineage.state, error), None
        seconds = self._kill.deadline.within(self._settings.brief_seconds).seconds_left
        with self._lock, self._guard("The end of the task is not sent", can_fail=False):
            text = error_text(error) if error is not None else ""
            event = Outgoing.encode(task_event(self._airflow, known, end, self._guard, error=text))
            with self._guard("The end cannot be sent again later", can_fail=False):
                if directory is not None:
                    # A recovery that took this process for lost may have kept an end: then that one is sent.
                    event = append_end(directory, event)
            if self._sender is not None:
                self._sender.put(event, at_most_seconds=seconds)
            self._types.append(end)
            # An interruption before this line has the end sent again, with the lineage known then.
            self._has_ended = True
        self._keep_end(event if end == "COMPLETE" or lineage.is_streaming else None)
        if end == "COMPLETE" and self._settings.emit_assets:
            with self._guard("The task makes no asset events", can_fail=False):
                if (assets := add_ons.part("assets")) is not None:
                    self._asset_count = assets.emit_assets(lineage, self._context, self._guard.log)
        if self._settings.granularity != "task":
            with self._guard("Child runs are not sent", can_fail=False):
                self._send_all(task_children(lineage, self._settings, self._airflow), directory)
        self._last = end, event, why

    def begin_children(self, launch: Launch) -> str:
        """Send the START of each job that goes on when the task has ended; return their names."""
        limit, texts = int(self._settings.max_event_bytes), job_texts(self._airflow)
        running = TaskLineage("RUNNING")
        begun = [going_on_event("START", running, each, limit, **texts) for each in launch.children]
        self._send_all(begun, Path(launch.directory))
        return ", ".join(str(event.job.name) for event in begun)

    def deliver(self) -> None:
        """Wait until the connections have taken everything, but no longer than the settings and a kill allow.

        After the end of the task, log what was delivered.
        """
        left, destinations = "", list[str]()
        if self._sender is not None:
            left = self._sender.deliver(self._kill.deadline.within(self._settings.brief_seconds).seconds_left)
            destinations = list(self._sender.destinations)
        if self._last is None:
            return
        parts = [
            self._provider and f"Airflow's OpenLineage provider sends the end by {self._provider}",
            self._children,
        ]
        if destinations:
            types = ", ".join(f"{count} {name}" if count > 1 else name for name, count in Counter(self._types).items())
            where = ", ".join(destinations)
            parts.insert(0, f"{types} for {where} ({left})" if left else f"{types} to {where}")
        if self._asset_count:
            parts.append(f"outputs given to Airflow as assets: {self._asset_count}")
        why_not = "no backend is named" if self._emission.is_sent else "an emission policy silences this task"
        log = self._guard.log.warning if left else self._guard.log.info
        log("Delivery: %s", "; ".join(filter(None, parts)) or f"none, because {why_not}")
        state, event, why = self._last
        if event is not None:
            self._links.show_event(state, event.body, why)

    def _put(self, event_type: EventType, known: OperatorLineage[Any, Any]) -> Outgoing | None:
        """Send an event that is not the end; return it, None where it could not be made or the end was sent."""
        encoded = None
        with self._guard(f"The {event_type} of the task is not sent", can_fail=False):
            event = task_event(self._airflow, known, event_type, self._guard)
            with self._lock:
                if self._has_ended:
                    return None
                encoded = Outgoing.encode(event)
                if self._sender is not None:
                    self._sender.put(encoded, at_most_seconds=BRIEF_SECONDS)
                self._types.append(event_type)
            if self._sender is not None:
                self._sender.deliver_meanwhile()
            if event_type == "RUNNING":
                send(event)
        return encoded

    def _keep_end(self, event: Outgoing | None) -> None:
        # The record of a failed run says only whether the listener has harmed it.
        is_kept = event is not None or (self.listener_need is not None and self.listener_need.is_harmed)
        if self._record is not None and is_kept:
            with self._guard("The next START repeats no datasets", can_fail=False):
                self._record.keep(None if event is None else event.body, self.last_end, self.listener_need)

    def _operator_lineage(self, lineage: TaskLineage, counts: LineCounts | None) -> OperatorLineage[Any, Any]:
        limit, log = int(self._settings.max_event_bytes), self._guard.log
        return operator_lineage(lineage, counts, limit, log, details=self._details, deadline=self._kill.deadline)

    def _send_all(self, events: list[RunEvent], directory: Path | None) -> None:
        for each in map(Outgoing.encode, events):
            with self._guard("An event cannot be sent again later", can_fail=False):
                if directory is not None:
                    append_event(directory, each.body)
            if self._sender is not None:
                self._sender.put(each, at_most_seconds=BRIEF_SECONDS)
        if events and all(self._emission):
            seconds = self._kill.deadline.within(_CHILDREN_SECONDS).seconds_left
            self._children = f"{send_within(seconds, events, send)} of {len(events)} events of child runs"


def task_children(lineage: TaskLineage, settings: Settings, airflow: AirflowTry) -> list[RunEvent]:
    """Return the events of the child runs of a task, with its parent and root as the OpenLineage provider has them."""
    task_instance = airflow.task_instance
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins import macros

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
    return child_events(
        lineage,
        settings.granularity,
        task=task,
        root=root,
        limit_bytes=int(settings.max_event_bytes),
        **job_texts(airflow),
    )


def send_within(seconds: float, events: Iterable[RunEvent], send: Callable[[RunEvent], object]) -> int:
    """Send events one after the other, and return how many were sent when all were, or when the time was over.

    After that no further run is begun; the end of the last one is still sent, if the process lives as long. What
    ``send`` raises ends the sending, and is raised here unless it comes too late.
    """
    is_late = Event()
    sent: list[RunEvent] = []

    def run() -> None:
        for event in events:
            if event.eventType is RunState.START and is_late.is_set():
                break
            send(event)
            sent.append(event)

    try:
        # A backend that hangs holds one event for 39 s (HTTP transport of openlineage-python 1.54).
        BoundedRun(run, "lineage-sender").wait(seconds)
    finally:
        is_late.set()
    return len(sent)


def lineage_at_start(
    task: Any,
    arguments: Mapping[str, Any],
    conn_id: str,
    logger: Any,
    *,
    task_instance: Any = None,
    why_unreached: Callable[[], str] = lambda: "",
) -> OperatorLineage[Any, Any]:
    """Return the lineage for the OpenLineage provider's START; after an error, which is logged, it is empty.

    :param task: the operator, whose ``arguments`` are those for lineage
    :param why_unreached: returns why nothing can be added to its job, empty where that can be
    """
    from airflow.providers.openlineage.extractors import OperatorLineage

    settled = TaskSettings(arguments, conn_id)
    if settled.is_off():
        return lineage_of_stock(task)
    if why := why_unreached():
        return lineage_of_stock(task, why)
    with Guard(lambda: False, logger)("START names no datasets", can_fail=False):
        settled.settle()
        settings = settled.settings
        end = Record(settings, task).end
        details = JobDetails.of(settings, task, task_instance)
        facets = details.facets(is_streaming=end is not None and end.is_streaming)
        return with_last_end(OperatorLineage(job_facets=facets), end)
    return OperatorLineage()


def lineage_of_stock(task: Any, why: str = "") -> OperatorLineage[Any, Any]:
    """Return what the OpenLineage provider puts into the events of an operator that it does not know.

    :param why: why no lineage is collected, where it is wanted
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.providers.openlineage.utils.utils import get_unknown_source_attribute_run_facet

    facets = get_unknown_source_attribute_run_facet(task=task)
    if why not in ("", NO_SPARK):
        counts = LineCounts(set_aside={redact(no_event_log(why)): 1})
        facets |= collection_facet(TaskLineage("COMPLETE"), counts)
    return OperatorLineage(run_facets=facets)
