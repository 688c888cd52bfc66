"""Closes a lost try: reads what it left, claims its end, and sends it as the OpenLineage provider would have.

A worker that begins a try closes those before it; a server, in another process, whatever is left (``__main__``).
"""

from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from msgspec import structs
from openlineage.client.event_v2 import RunState

from spark_lineage.adapters.adapter import service_end
from spark_lineage.deliver.connection_sender import ConnectionSender
from spark_lineage.deliver.outgoing import Outgoing, append_end, stored_end
from spark_lineage.deliver.stored_event import restore
from spark_lineage.emit.child_events import going_on_event
from spark_lineage.emit.task_event import (
    AirflowTry,
    JobDetails,
    emission,
    job_texts,
    operator_lineage,
    send,
    task_event,
)
from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import TaskKey
from spark_lineage.launch.log import Guard, Log, error_text, log_lineage, log_status
from spark_lineage.launch.stores import WorkerStore, claim
from spark_lineage.recover.recovery import Recovered, end_leftovers, recover
from spark_lineage.recover.search import ChildEnd, LostTry, launches_of
from spark_lineage.settings import Settings
from spark_lineage.settings.places import Places
from spark_lineage.watch.status_monitor import AIRFLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import RunEvent

    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.stores import LaunchStore

log = Log(__name__)

guard = Guard(lambda: False, log)

# The task waits no longer than this. It waits at all, because the OpenLineage provider forks its process at the end.
_WAIT_SECONDS = 10.0
_DAY = 24 * 3600.0
# The days after which the end of a job is given up whose service does not answer.
_SILENT_DAYS = 3


def close(
    lost: LostTry, airflow: AirflowTry, store: Callable[[], LaunchStore | None], *, ended_processes: int
) -> bytes | None:
    """Send the end of a try, unless another process does.

    The end is claimed right before it is sent: a worker that was only slow still comes first, and what goes wrong here
    leaves the try to the next who looks.

    :param store: returns where the try is claimed, besides its directory
    :param ended_processes: what ``recovery.end_leftovers`` returned
    :return: the event, None where it was handed neither to a transport nor to the outbox; trouble there is logged
    """
    recovered = recover(lost, _places(lost.launch), ended_processes=ended_processes, logger=log)
    if not claim(lost.launch, store()):
        log.info("Another process sends the end of %s, try %s.", lost.task, lost.launch.try_number)
        return None
    return _send_end(lost, recovered, airflow)


def end_child(child: ChildEnd, airflow: AirflowTry, store: LaunchStore | None) -> bool:
    """Send the ends of the jobs that went on when their task had ended, if all are over; return whether they were sent.

    Their service says how they ended; where it does not know a job any more, the event log does.
    """
    launch, places = child.launch, _places(child.launch)
    ends: list[DriverEnd | None]
    try:
        ends = [service_end(one) for one in launch.children]
    except Exception as error:
        silent_since = launch.silent_since or child.seen_at
        if child.seen_at - silent_since < _SILENT_DAYS * _DAY:
            if store is not None:
                store.touch(silent_since)
            raise
        why = f"its service has not answered for {_SILENT_DAYS} days: {error_text(error)}"
        ends = [DriverEnd("UNKNOWN", AIRFLOW, why)] * len(launch.children)
    if None in ends:
        if store is not None:
            store.touch()
        return False
    recovered = []
    for one, end in zip(launch.children, ends, strict=True):
        with TemporaryDirectory() as folder:
            # A job has a folder of its own where the launch has several jobs, or lies on the disk of a worker.
            is_here = Path(launch.directory).is_dir() and not launch.parts
            here = structs.replace(one, directory=launch.directory if is_here else folder)
            lost = LostTry(child.task, here, end="success")
            recovered.append(recover(lost, places, ended_processes=0, logger=log, end=end))
    events = []
    for one, found in zip(launch.children, recovered, strict=True):
        limit = int(found.settings.max_event_bytes)
        state: Any = "FAIL" if found.lineage.state == "ABORT" else found.lineage.state
        events.append(going_on_event(state, found.lineage, one, limit, **job_texts(airflow)))
    wanted = emission(airflow.task, child.task.dag_id, child.task.task_id)
    # An error before the claim leaves the ends to the next search.
    if not claim(launch, store) or not wanted.is_sent:
        return False
    sent = [_delivered(event, Outgoing.encode(event), launch, recovered[0].settings) for event in events]
    for event, found in zip(events, recovered, strict=True):
        log.info("The job %s of %s has ended (%s).", event.job.name, child.task, found.lineage.state)
        log_lineage(found.lineage, found.counts, log)
    return all(sent)


def _places(launch: Launch) -> Places:
    # A connection that is gone leaves the section.
    with guard("The Spark connection of the try is not read"):
        return Places.of(launch.conn_id, {}) if launch.conn_id else Places()
    return Places()


def _send_end(lost: LostTry, recovered: Recovered, airflow: AirflowTry) -> bytes | None:
    """Send the terminal event of a try, unless the OpenLineage provider is not to send any of that task.

    Where the process of the task had made it, and kept it before it was killed, it is that one: of two that differ, one
    would be wrong. It is unknown whether the provider has sent that one too, from a fork that outlives its process: so
    it goes over the provider's transport as the provider would have it, to which a kill is a failure. At worst it is
    sent twice.
    """
    lineage, launch = recovered.lineage, lost.launch
    wanted = emission(airflow.task, lost.task.dag_id, lost.task.task_id)
    if not wanted.is_sent:
        return None
    directory = Path(launch.directory)
    end = made = None
    with guard("What the task may have said of its end is not known"):
        end = stored_end(directory, launch.run_id)
    if end is None:
        end = made = _made_now(lost, recovered, airflow, has_lineage=wanted.has_lineage)
        with guard("The event cannot be sent again later"):
            end = append_end(directory, end)
    event = restore(end.body)
    event_type = event.eventType.value if event.eventType is not None else lineage.state
    if end != made and event.eventType is RunState.ABORT:
        event.eventType = RunState.FAIL
    if not _delivered(event, end, launch, recovered.settings):
        return None
    log.info("Sent the %s that was missing of %s, try %s.", event_type, lost.task, launch.try_number)
    if lineage.status is not None:
        log_status(lineage.status, log)
    log_lineage(lineage, recovered.counts, log)
    return end.body


def _delivered(event: RunEvent, encoded: Outgoing, launch: Launch, settings: Settings) -> bool:
    """Send an event by the OpenLineage provider and to the connections of a launch; whether any of them took it."""
    is_sent = send(event)
    sender = ConnectionSender(launch.event_conn_ids, settings, guard)
    sender.put(encoded, at_most_seconds=settings.brief_seconds)
    sender.deliver(settings.brief_seconds)
    return is_sent or bool(sender.destinations)


def _made_now(lost: LostTry, recovered: Recovered, airflow: AirflowTry, *, has_lineage: bool) -> Outgoing:
    from airflow.providers.openlineage.extractors import OperatorLineage

    lineage, settings = recovered.lineage, recovered.settings
    said: OperatorLineage[Any, Any] = OperatorLineage()
    if has_lineage:
        details = JobDetails.of(settings, airflow.task)
        said = operator_lineage(lineage, recovered.counts, int(settings.max_event_bytes), log, details=details)
    error = lineage.status.error if lineage.status is not None else lost.error
    return Outgoing.encode(task_event(airflow, said, lineage.state, guard, run_id=lost.launch.run_id, error=error))


def close_earlier(task_instance: Any) -> None:
    """Send the ends of earlier tries that are missing, before this try puts its own launch in the place of theirs.

    Their processes on this host are ended: two drivers would write the same table.
    """
    task, context = TaskKey.of(task_instance), task_instance.get_template_context()
    store = _store(context)
    earlier = [one for one in _open_launches(task, store) if one.try_number < task_instance.try_number]
    lost = [(LostTry(task, one, is_retried=True), end_leftovers(one)) for one in earlier]
    if not lost:
        return
    # The next launch is about to take the place of the last one in the store: then the files alone decide.
    is_late = threading.Event()
    # Airflow 2 has a row of the database.
    is_model = hasattr(task_instance, "model_copy")

    def close_all() -> None:
        for one, ended_processes in lost:
            with guard("The end of an earlier try is not sent"):
                number = {"try_number": one.launch.try_number}
                earlier_try = task_instance.model_copy(update=number) if is_model else task_instance
                airflow = AirflowTry(earlier_try, context["dag_run"], context["dag"], context["task"])
                close(one, airflow, lambda: None if is_late.is_set() else store, ended_processes=ended_processes)

    BoundedRun(close_all, "spark-lineage-earlier-try").wait(_WAIT_SECONDS)
    is_late.set()


def close_own(task_instance: Any) -> None:
    """Close the try that ends here: if its session could not, its event was sent all the same, by the provider."""
    task, store = TaskKey.of(task_instance), _store(task_instance.get_template_context())
    for one in _open_launches(task, store):
        if one.try_number == task_instance.try_number:
            claim(one, store)


def _open_launches(task: TaskKey, store: WorkerStore | None) -> list[Launch]:
    return [one for one in launches_of(task, store) if not (one.is_closed or one.child)]


def _store(context: Mapping[str, Any]) -> WorkerStore | None:
    accessor = context.get("task_state_store")
    return None if accessor is None else WorkerStore(accessor)
