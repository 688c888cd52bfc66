"""Reads what a lost try has left, from its driver and the cluster, and judges how it ended."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from spark_lineage.adapters.adapter import service_end
from spark_lineage.adapters.processes import end_processes
from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BRIEF_SECONDS, Deadline
from spark_lineage.launch.driver import Driver
from spark_lineage.launch.launch import read_transitions
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Guard, Log
from spark_lineage.merge.conclusion import EndFacts, conclude, is_kill_asked
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.task import task_lineage
from spark_lineage.merge.transition import ENDED, Status
from spark_lineage.naming.options import DEFAULT_NAMING
from spark_lineage.settings import Settings
from spark_lineage.submission.submission import Submission
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.status_monitor import AIRFLOW

if TYPE_CHECKING:
    from spark_lineage.launch.driver import DriverEnd
    from spark_lineage.launch.launch import Launch
    from spark_lineage.recover.search import LostTry
    from spark_lineage.settings.places import Places
    from spark_lineage.watch.status_monitor import StatusMonitor

_GRACE_SECONDS = 1.0


class Recovered(Struct, frozen=True):
    """The lineage of a lost try, with its status, the counts of the lines that it was made from, and its settings."""

    lineage: TaskLineage
    counts: LineCounts
    settings: Settings


def end_leftovers(launch: Launch) -> int:
    """End the processes of a launch on this host, within some two seconds, and return how many there were.

    A driver in cluster mode is left alone, because the next try takes it over; a spark-submit that has reported
    none yet might still submit it.
    """
    if (launch.deploy_mode != "client" and launch.external_id) or launch.host != socket.gethostname():
        return 0
    return end_processes(launch.application_run_id, _GRACE_SECONDS)


def recover(
    lost: LostTry, places: Places, *, ended_processes: int, logger: Log, end: DriverEnd | None = None
) -> Recovered:
    """Return the lineage of a try that is over; what cannot be read or asked is logged, and missing in it.

    :param places: the connection of the launch, and the section
    :param ended_processes: what :func:`end_leftovers` returned, which comes first
    :param end: what the service of the driver has said; it is asked where that is not known
    """
    launch = lost.launch
    guard = Guard(lambda: False, logger)
    settings, naming = Settings(), DEFAULT_NAMING
    with guard("The settings have their defaults"):
        settings = places.settings()
    with guard("Datasets have their default names"):
        naming = places.naming()
    driver = Driver(application_id=launch.application_id, driver_id=launch.external_id)
    if launch.session_id:
        driver.logged_ids, driver.event_logs = (launch.application_id or "",), launch.event_logs
    # Listeners to the status heard of it from the try itself, as long as it lived. Our own log stays where it is, for
    # whoever else may still read it, until it is too old.
    submission = Submission(launch, endpoints_of(launch, places, guard), settings, driver, guard, is_live=False)
    monitor, collector = submission.monitor, submission.collector
    with guard("The timeline begins with the end"):
        monitor.resume("", read_transitions(collector.directory))
    with guard("Some lineage is missing, because not all files can be read"):
        submission.finish(Deadline(ANSWER_SECONDS + launch.log_delay))
    driver.application_id = max(collector.application_ids, default=None) or driver.application_id
    # As the task calls it.
    process = f"{launch.host}:{'?' if launch.process_id is None else launch.process_id}"
    monitor.driver_id = process if launch.deploy_mode == "client" else launch.external_id or ""
    submission.query_end(Deadline(), lambda: end or service_end(launch))
    status, detail = None, "the driver has ended"
    if launch.deploy_mode == "client":
        status, detail = _client_end(launch, submission, is_ended_here=ended_processes > 0)
    monitor.ended(status, AIRFLOW, submission.application_ids, detail)
    monitor.flush(BRIEF_SECONDS)
    of_driver = monitor.transitions("DRIVER")
    facts = EndFacts(
        is_kill_asked(of_driver),
        monitor.driver_status,
        airflow_end=lost.end,
        is_retried=lost.is_retried,
        has_uncaught_failure=monitor.has_uncaught_failure(),
    )
    state = conclude(facts, [*monitor.transitions("APPLICATION"), *of_driver])
    lineage = task_lineage(collector.state, state, naming=naming)
    error = "" if state == "COMPLETE" else "\n".join(filter(None, (lost.error, _error(launch, monitor, detail))))
    return Recovered(structs.replace(lineage, status=submission.summary(error)), collector.counts, settings)


def _client_end(launch: Launch, submission: Submission, *, is_ended_here: bool) -> tuple[Status, str]:
    """Return how a driver in client mode has ended, as far as that is certain."""
    if is_ended_here:
        return "KILLED", "its task was lost, and it was ended"
    if launch.host != socket.gethostname():
        return "UNKNOWN", f"its task was lost; it may still run on {launch.host}"
    monitor = submission.monitor
    statuses = [monitor.status("APPLICATION", each) for each in monitor.applications(submission.application_ids)]
    if statuses and all(each in ENDED for each in statuses):
        return "UNKNOWN", "its task was lost, and its exit code is unknown"
    return "FAILED", "its task was lost, and it is gone without an end"


def _error(launch: Launch, monitor: StatusMonitor, detail: str) -> str:
    driver = monitor.driver_status
    if launch.child:
        return monitor.driver_error
    if not monitor.driver_id:
        return "The task was lost before its driver was submitted."
    if launch.deploy_mode == "client":
        return f"The driver {monitor.driver_id}: {detail}."
    if driver in ENDED:
        return f"The task was lost; its driver ended as {driver}: {monitor.driver_error}".rstrip(": ")
    if driver in (None, "UNKNOWN"):
        return f"The task was lost; the end of its driver {monitor.driver_id} is not known."
    return f"The task was lost; its driver {monitor.driver_id} still runs ({driver})."
