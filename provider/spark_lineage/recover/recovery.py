"""Reads what a lost try has left: what its driver wrote, what the cluster says; and judges how it ended."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from spark_lineage.collect.collector import DirectoryCollector
from spark_lineage.launch.bounded_run import counting_down
from spark_lineage.launch.directory import EVENT_LOG_DIRECTORY, OWN_EVENT_LOGS
from spark_lineage.launch.guard import Guard
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Log
from spark_lineage.launch.lost_try import TryEnd
from spark_lineage.merge.launch_status import is_kill_asked
from spark_lineage.merge.lineage import TaskLineage, TaskState
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.task import task_lineage
from spark_lineage.merge.transition import Status, StatusSummary
from spark_lineage.plans.event_log_files import EventLogError
from spark_lineage.recover.driver import LostDriver
from spark_lineage.submit.processes import end_processes
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.source import Known
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.status_log import read_transitions
from spark_lineage.watch.task_watch import TaskWatch

if TYPE_CHECKING:
    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.lost_try import LostTry
    from spark_lineage.merge.transition import StatusTransition
    from spark_lineage.recover.configuration import Configuration

# They say that an application ended by itself; cluster managers say so of client programs that failed.
_WITNESSES = ("event log", "History Server")
_GRACE_SECONDS = 1.0
_ASK_SECONDS = 5.0
_FLUSH_SECONDS = 1.0


class Recovered(Struct, frozen=True):
    """The lineage of a lost try, with its status, and the counts of the lines that it was made from."""

    lineage: TaskLineage
    counts: LineCounts


def end_leftovers(launch: Launch) -> int:
    """End the processes of a launch on this host, within some two seconds: nobody is there to wait for them.

    A driver in cluster mode is left alone, because the next try takes it over.

    :return: how many there were
    """
    if launch.deploy_mode != "client" or launch.host != socket.gethostname():
        return 0
    return end_processes(launch.application_run_id, _GRACE_SECONDS)


def recover(lost: LostTry, configuration: Configuration, *, ended_processes: int, logger: Log) -> Recovered:
    """Return the lineage of a try that is over; what cannot be read or asked is logged, and missing in it.

    :param ended_processes: what :func:`end_leftovers` gave, which comes first
    """
    launch = lost.launch
    guard = Guard(lambda: False, logger)
    collector = DirectoryCollector(Path(launch.directory), logger)
    known = Known(application_id=launch.application_id, driver_id=launch.external_id)
    watch = TaskWatch(
        _sources(launch, configuration, known, guard),
        collector.directory,
        deploy_mode=launch.deploy_mode,
        interval_seconds=_ASK_SECONDS,
        on_transition=_nobody_listens,
        logger=logger,
    )
    with guard("The timeline begins with the end"):
        watch.log.restore(read_transitions(collector.directory))
    with guard("Some lineage is missing, because not all files can be read"):
        collector.finish()
    with guard("Some lineage may be missing, because the event log cannot be read"):
        _read_event_log(collector, watch)
    known.application_id = max(collector.application_ids, default=None) or known.application_id
    driver = LostDriver(launch, watch, is_ended_here=ended_processes > 0)
    with guard("The timeline may lack its end"):
        end = time.monotonic() + _ASK_SECONDS
        watch.ask_at_the_end(lambda: end - time.monotonic())
    with guard("The timeline may lack its end"):
        driver.conclude(collector.application_ids)
    is_failed = watch.log.has_uncaught_failure()
    watch.log.flush(counting_down(_FLUSH_SECONDS))
    state = verdict(watch.log.summary(), watch.driver_status, lost.end, has_uncaught_failure=is_failed)
    lineage = task_lineage(collector.state, state, naming=configuration.naming)
    error = "" if state == "COMPLETE" else driver.error(lost.error)
    ui_url = next((one.ui_url for one in lineage.applications if one.ui_url), None)
    status = watch.summary(error, known.application_id, ui_url)
    return Recovered(structs.replace(lineage, status=status), collector.counts)


def _sources(launch: Launch, configuration: Configuration, known: Known, guard: Guard) -> Sources:
    extra, login, password = configuration.extra, configuration.login, configuration.password
    return Sources(endpoints_of(launch, extra, login, password, guard), known)


def _read_event_log(collector: DirectoryCollector, watch: TaskWatch) -> None:
    """Read our own log, if it is there; the user's own may hold those of others, and the launch does not name it.

    It stays where it is, for whoever else may still read it, until it is too old.
    """
    directory = collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        try:
            collector.read_event_log(path, watch.log.tell)
        except EventLogError:
            # A driver that was killed at once leaves an empty one.
            if path.stat().st_size:
                raise


def _nobody_listens(_: StatusTransition) -> None:
    """Listeners to the status were told by the try itself, as long as it lived."""


def verdict(summary: StatusSummary, driver: Status | None, end: TryEnd, *, has_uncaught_failure: bool) -> TaskState:
    """Return the state of the try: asked to be killed, then the driver's final state, then what Airflow says.

    A success that was set by hand is believed only if a witness saw the application end, and nothing tells otherwise.

    :param driver: what the cluster manager says of the driver in cluster mode, None in client mode
    :param has_uncaught_failure: whether a part of the application failed, and nothing of it succeeded any more
    """
    return task_state(
        is_killed=is_kill_asked(summary),
        driver=driver,
        is_succeeded=end != "failed" and not has_uncaught_failure and _is_proven(summary),
    )


def _is_proven(summary: StatusSummary) -> bool:
    whole = [one for one in summary.transitions if one.subject in ("APPLICATION", "DRIVER")]
    has_ended = any(
        one.subject == "APPLICATION" and one.new_status == "FINISHED" and one.source in _WITNESSES for one in whole
    )
    has_failed = any(one.new_status in ("FAILED", "KILLED") for one in whole)
    return has_ended and not has_failed
