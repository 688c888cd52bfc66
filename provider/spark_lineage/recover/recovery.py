"""Reads what a lost try has left, from its driver and the cluster, and judges how it ended."""

from __future__ import annotations

import socket
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from spark_lineage.collect.bringing import Bringing
from spark_lineage.collect.collector import DirectoryCollector, FollowedEventLogs
from spark_lineage.collect.event_sources import source_of
from spark_lineage.collect.history_log import HistoryLogs
from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BRIEF_SECONDS, Deadline
from spark_lineage.launch.launch import TryEnd, application_ids, read_transitions
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Guard, Log
from spark_lineage.merge.lineage import TaskLineage, TaskState
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.task import is_kill_asked, task_lineage
from spark_lineage.merge.transition import ENDED, Status, StatusReport, StatusSummary
from spark_lineage.naming.options import DEFAULT_NAMING
from spark_lineage.submit.processes import end_processes
from spark_lineage.watch.dialect import Known
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.status_monitor import StatusMonitor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_lineage.launch.launch import Launch, LostTry
    from spark_lineage.settings.places import Places

_AIRFLOW = "Airflow"
_ENDED = "the driver has ended"
# They say that an application ended by itself; cluster managers say so of client programs that failed.
_WITNESSES = ("event log", "History Server")
_GRACE_SECONDS = 1.0


class Recovered(Struct, frozen=True):
    """The lineage of a lost try, with its status, and the counts of the lines that it was made from."""

    lineage: TaskLineage
    counts: LineCounts


def end_leftovers(launch: Launch) -> int:
    """End the processes of a launch on this host, within some two seconds, and return how many there were.

    A driver in cluster mode is left alone, because the next try takes it over; a spark-submit that has reported
    none yet might still submit it.
    """
    if (launch.deploy_mode != "client" and launch.external_id) or launch.host != socket.gethostname():
        return 0
    return end_processes(launch.application_run_id, _GRACE_SECONDS)


def recover(lost: LostTry, places: Places, *, ended_processes: int, logger: Log) -> Recovered:
    """Return the lineage of a try that is over; what cannot be read or asked is logged, and missing in it.

    :param places: the connection of the launch, and the section
    :param ended_processes: what :func:`end_leftovers` returned, which comes first
    """
    launch = lost.launch
    guard = Guard(lambda: False, logger)
    collector = DirectoryCollector(Path(launch.directory), logger)
    known = Known(application_id=launch.application_id, driver_id=launch.external_id)
    endpoints = endpoints_of(launch, places, guard)
    sources = Sources(endpoints, known)
    watch = StatusMonitor(
        sources,
        collector.directory,
        interval_seconds=ANSWER_SECONDS,
        # Listeners to the status heard of it from the try itself, as long as it lived.
        on_transition=lambda _: None,
        logger=logger,
    )
    naming, detail, collect = DEFAULT_NAMING, _ENDED, "auto"
    with guard("The settings have their defaults"):
        collect = places.settings().collect_log
    with guard("Datasets have their default names"):
        naming = places.naming()
    with guard("The timeline begins with the end"):
        watch.resume("", read_transitions(collector.directory))
    if launch.events_from:
        collector.source = launch.events_from
        why = f"Some lineage is missing, because the driver's events cannot be collected by {launch.events_from}"
        with guard(why), closing(source_of(launch, lambda: sources)) as source:
            source.bring(is_last=True)
            collector.counts.set_aside |= source.set_aside
    with guard("Some lineage is missing, because not all files can be read"):
        collector.finish()
    bringing = Bringing(
        launch,
        collect,
        collector,
        application_ids=lambda: application_ids(launch.application_id, launch.external_id),
        history=HistoryLogs(endpoints) if endpoints.history_server_url else None,
        webhdfs_urls=endpoints.webhdfs_urls,
        logger=logger,
    )
    with guard("Some lineage may be missing, because an event log is not copied"):
        # In a directory that this machine sees, it lies or it does not.
        bringing.finish(Deadline(ANSWER_SECONDS), is_missing=False)
    # Our own log stays where it is, for whoever else may still read it, until it is too old.
    FollowedEventLogs(collector, watch.report, launch, is_removing=False, copies=bringing.names).finish(guard)
    known.application_id = max(collector.application_ids, default=None) or known.application_id
    # As the session calls it.
    process = f"{launch.host}:{'?' if launch.process_id is None else launch.process_id}"
    watch.driver_id = process if launch.deploy_mode == "client" else launch.external_id or ""
    with guard("The timeline may lack its end"):
        watch.finish(ANSWER_SECONDS)
    with guard("The timeline may lack its end"):
        detail = _conclude(launch, watch, collector.application_ids, is_ended_here=ended_processes > 0)
    is_failed = watch.has_uncaught_failure()
    watch.flush(BRIEF_SECONDS)
    state = verdict(watch.summary(), watch.driver_status, lost.end, has_uncaught_failure=is_failed)
    if lost.is_retried and state == "COMPLETE":
        state = "FAIL"
    lineage = task_lineage(collector.state, state, naming=naming)
    error = "" if state == "COMPLETE" else "\n".join(filter(None, (lost.error, _error(launch, watch, detail))))
    ui_url = next((one.ui_url for one in lineage.applications if one.ui_url), None)
    status = watch.summary(error, known.application_id, ui_url)
    return Recovered(structs.replace(lineage, status=status), collector.counts)


def _conclude(launch: Launch, watch: StatusMonitor, applications: Iterable[str], *, is_ended_here: bool) -> str:
    """Report the ends that are still missing, as far as they are certain; return what is known of the driver's.

    In cluster mode only the cluster manager knows the end of the driver.

    :param is_ended_here: whether processes of the driver were found on this host, and ended
    """
    known = watch.applications(applications)
    status, detail = watch.driver_status or "UNKNOWN", _ENDED
    if launch.deploy_mode == "client":
        statuses = [watch.status("APPLICATION", each) for each in known]
        is_over = bool(statuses) and all(each in ENDED for each in statuses)
        status, detail = _client_end(launch, is_ended_here=is_ended_here, is_over=is_over)
        watch.report(StatusReport("DRIVER", watch.driver_id, status, datetime.now(UTC), _AIRFLOW, detail=detail))
    if status in ENDED:
        watch.end_applications(status, _AIRFLOW, detail, known)
    return detail


def _client_end(launch: Launch, *, is_ended_here: bool, is_over: bool) -> tuple[Status, str]:
    if is_ended_here:
        return "KILLED", "its task was lost, and it was ended"
    if launch.host != socket.gethostname():
        return "UNKNOWN", f"its task was lost; it may still run on {launch.host}"
    if is_over:
        return "UNKNOWN", "its task was lost, and its exit code is unknown"
    return "FAILED", "its task was lost, and it is gone without an end"


def _error(launch: Launch, watch: StatusMonitor, detail: str) -> str:
    driver = watch.driver_status
    if not watch.driver_id:
        return "The task was lost before its driver was submitted."
    if launch.deploy_mode == "client":
        return f"The driver {watch.driver_id}: {detail}."
    if driver in ENDED:
        return f"The task was lost; its driver ended as {driver}: {watch.driver_error}".rstrip(": ")
    if driver in (None, "UNKNOWN"):
        return f"The task was lost; the end of its driver {watch.driver_id} is not known."
    return f"The task was lost; its driver {watch.driver_id} still runs ({driver})."


def verdict(summary: StatusSummary, driver: Status | None, end: TryEnd, *, has_uncaught_failure: bool) -> TaskState:
    """Return the state of the try: asked to be killed, then the driver's final state, then what Airflow says.

    A success that was set by hand is believed only if a source saw the application end, and nothing contradicts it.

    :param driver: what the cluster manager says of the driver in cluster mode, None in client mode
    :param has_uncaught_failure: whether a part of the application failed, and nothing of it succeeded any more
    """
    whole = [one for one in summary.transitions if one.subject in ("APPLICATION", "DRIVER")]
    ended = (one for one in whole if one.subject == "APPLICATION" and one.new_status == "FINISHED")
    has_ended = any(one.source in _WITNESSES for one in ended)
    has_failed = has_uncaught_failure or any(one.new_status in ("FAILED", "KILLED") for one in whole)
    is_succeeded = end != "failed" and has_ended and not has_failed
    return task_state(is_killed=is_kill_asked(summary), driver=driver, is_succeeded=is_succeeded)
