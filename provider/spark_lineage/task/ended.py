"""A task whose job is over: how it ended, and its lineage, for backends, listeners and the log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from spark_lineage.adapters.driver_output import DriverError, LineRedaction
from spark_lineage.adapters.submission_digest import is_known
from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BRIEF_SECONDS, BoundedRun
from spark_lineage.launch.log import (
    LineageRequiredError,
    error_text,
    incompleteness,
    log_group,
    log_lineage,
    log_status,
)
from spark_lineage.merge.conclusion import EndFacts, conclude, reported_end
from spark_lineage.merge.lineage import Application
from spark_lineage.merge.log_alone import lacking_in_log
from spark_lineage.merge.task import task_lineage
from spark_lineage.merge.transition import Status
from spark_lineage.secrets.redaction import explain_error
from spark_lineage.submission.declared import add_inlets_and_outlets
from spark_lineage.submission.log_mirror import CUT_OFF
from spark_lineage.task.last_end import CHANGING_NAMES, ListenerNeed, with_last_types
from spark_lineage.task.links import JOB
from spark_lineage.watch.dialect import LOG_BYTES, LOG_LINES
from spark_lineage.watch.status_monitor import AIRFLOW, SUBMIT

if TYPE_CHECKING:
    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.line import LineCounts
    from spark_lineage.merge.lineage import TaskLineage, TaskState
    from spark_lineage.task.running import Running
    from spark_lineage.task.task_events import TaskEvents

_STATUS_OF: dict[TaskState, Status] = {"COMPLETE": "FINISHED", "FAIL": "FAILED", "ABORT": "KILLED"}
_UNREACHED = {
    "": "the driver ran on another host, or as another user, and could not write to that directory: in cluster mode "
    "set lineage_dir to a path that worker and driver share, or choose another way to collect",
    "receiver": "the driver could not reach the receiver that is named above: look for HttpTransport in its log",
    "driver_log": "the driver's log could not be read, as is logged above, or its level leaves out the lines of "
    "ConsoleTransport, which are of INFO (spark.log.level, setLogLevel, log4j2.properties)",
}
"""Why no event came, by how it was to come."""
# Drivers and cluster managers report a lack of memory in these words.
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|OOMKilled|beyond the '?(?:PHYSICAL|VIRTUAL)")
_IN_STORE = re.compile(r"(?:s3[an]?|gs|abfss?)://")
_CLOSED_LATE = " An object store shows a file when it is closed: a driver that was killed has left nothing to read."


@dataclass(frozen=True)
class Ended:
    """The end of a task with its merged ``lineage``.

    :param error: what ended the task, None where it succeeded
    :param lacking: why there is no lineage, None where there is
    """

    running: Running
    lineage: TaskLineage
    error: BaseException | None
    lacking: LineageRequiredError | None

    @classmethod
    def of(cls, running: Running, error: BaseException | None) -> Ended:
        """Read to the last line, ask the cluster how the driver ended, and merge; the error gets the driver's words."""
        prepared, collector = running.prepared, running.submission.collector
        is_whole = False
        with running.guard("Some lineage is missing, because a file cannot be read", can_fail=error is None):
            is_whole = running.read_all()
            if not is_whole:
                collector.counts.add("not read in time")
            if not is_whole and not prepared.kill.why:
                raise TimeoutError("not all was read in time (lineage_timeout), or the lineage directory hangs")
        if why := prepared.lacking():
            collector.counts.add(why)
        add_inlets_and_outlets(collector.state, prepared.context, prepared.started, running.guard)
        state, reason = _conclude(running, error)
        if isinstance(error, Exception):
            explain_error(error, reason)
        has_actions = prepared.task.settings.granularity != "task"
        lineage = task_lineage(collector.state, state, naming=prepared.task.naming, has_actions=has_actions)
        unread = {one.part for one in lineage.unread}
        for why, count in collector.log_counts.set_aside.items():
            # The lineage's own ``unread`` counts the others.
            if why not in unread:
                collector.counts.add(why, count)
        application_id = running.submission.driver.application_id
        if running.is_injected and application_id is not None and not lineage.applications:
            # The events do not have the id that spark-submit logged.
            application = Application(running.launch.application_run_id, "", "", application_id=application_id)
            lineage = structs.replace(lineage, applications=(application,))
        with running.guard("Nothing is learnt of the program", can_fail=False):
            prepared.events.listener_need = _listener_need(running, lineage, reason, is_whole=is_whole)
            lineage = with_last_types(lineage, prepared.events.last_end)
        lineage = structs.replace(lineage, status=running.submission.summary(reason))
        # The error reports that the service took no job.
        is_refused = error is not None and running.launch.service and running.submission.driver.driver_id is None
        has_source = collector.counts.read or collector.state.logged or is_refused
        lacking = None
        if running.is_injected and is_whole and not has_source:
            text = nothing_came(running.launch, collector.counts, has_listener=running.has_listener)
            lacking = LineageRequiredError(text)
            if running.launch.service and not collector.counts.set_aside:
                collector.counts.add(CUT_OFF)
        return cls(running, lineage, error, lacking)

    def report(self, events: TaskEvents) -> None:
        """Give the lineage to the backends, the listeners and the log.

        :raises LineageRequiredError: when the task asked for more lineage than there is; its event says so, too
        """
        running, lineage, lacking = self.running, self.lineage, self.lacking
        collector, log = running.submission.collector, running.guard.log
        required = running.prepared.task.settings.lineage_required
        failure = self.error or unmet(lineage, lacking, required=required)
        events.end(lineage, collector.counts, failure, Path(running.launch.directory), str(lacking or ""))
        if running.notifications is not None:
            text = error_text(failure) if failure is not None else ""
            with running.guard("The listeners do not get the lineage", can_fail=False):
                running.notifications.ended(reported_end(lineage.state, failure), lineage, text)
        if lineage.status is not None:
            log_status(lineage.status, log)
        if not running.is_injected and not collector.state.logged:
            log.warning("The driver wrote no lineage: it ran without the listener, as is logged above.")
        elif lacking is None:
            has_listener = running.injection is not None and running.has_listener
            url = running.prepared.links.urls.get(JOB.name, "")
            log_lineage(lineage, collector.counts, log, running.launch if has_listener else None, url)
        elif failure is self.error:
            log.warning(str(lacking))
        if failure is not None and failure is not self.error:
            raise failure


def unmet(
    lineage: TaskLineage, lacking: LineageRequiredError | None, *, required: bool | str
) -> LineageRequiredError | None:
    """Return why the lineage of a task is less than the task asked for, None where it is not.

    :param lacking: why there is no lineage, None where there is one
    :param required: the setting ``lineage_required``
    """
    if lacking is not None:
        return lacking if required else None
    incomplete = incompleteness(lineage) if required == "complete" else ""
    return LineageRequiredError(f"lineage_required is complete. {incomplete}") if incomplete else None


def nothing_came(launch: Launch, counts: LineCounts, *, has_listener: bool) -> str:
    """Return the text of a missing lineage: where the task looked, and what to check."""
    if launch.session_id:
        return "No lineage came from the Spark Connect server: its log cannot be read, or has nothing of the session."
    if not has_listener:
        return (
            f"No lineage came from the driver: no event log of it in {' and '.join(launch.event_logs)}. The three most "
            "likely causes: (1) the program ended before it made a SparkSession, or never stopped one; "
            "(2) it sets spark.eventLog.* itself: a directory elsewhere, or a codec other than zstd; "
            "(3) the driver ran on another host, or as another user, and could not write there."
            f"{_CLOSED_LATE if any(map(_IN_STORE.match, launch.event_logs)) else ''}"
        )
    return (
        f"No lineage came from the driver: no event in {launch.directory}/*.ndjson "
        f"({counts.set_aside_total} lines set aside). A program that ended before it made a SparkSession leaves none. "
        "Else the three most likely causes: "
        "(1) the listener jar was not resolved or not loaded: look for 'openlineage' in the driver's log; "
        f"(2) {_UNREACHED[launch.events_from]}; (3) the listener was switched off: look for "
        "spark.openlineage.disabled, spark.extraListeners or spark.openlineage.transport.* set by the program itself."
    )


def _listener_need(running: Running, lineage: TaskLineage, reason: str, *, is_whole: bool) -> ListenerNeed | None:
    """Return the need of the program from now on, None where the next run is to have both sources."""
    prepared = running.prepared
    need, end, made_with = prepared.events.listener_need, prepared.events.last_end, prepared.made_with
    if prepared.task.settings.evidence != "auto" or not is_known(prepared.context["task"]):
        return None
    if lineage.state == "FAIL" and running.has_listener and _OUT_OF_MEMORY.search(reason):
        return ListenerNeed(datetime.now(UTC), "", made_with, is_harmed=True)
    if lineage.state != "COMPLETE" or not is_whole or (need and need.lacking and need.made_with == made_with):
        return need
    if "listener" in lineage.evidence:
        lacking = lacking_in_log(running.submission.collector.state, lineage, naming=prepared.task.naming)
        if end is not None and end.has_new_datasets(lineage):
            lacking = CHANGING_NAMES
        running.guard.log.debug("The event log alone lacks: %s", lacking or "nothing, so that it is enough from now on")
        return ListenerNeed(datetime.now(UTC), lacking, made_with)
    return need.after(lineage, end) if need and end and lineage.evidence else need


def _conclude(running: Running, error: BaseException | None) -> tuple[TaskState, str]:
    """Return how the task ended (M4), and why its driver failed; both are noted in the timeline."""
    submission, kill = running.submission, running.prepared.kill
    monitor, is_client = submission.monitor, running.launch.deploy_mode == "client"
    exit_code = submission.driver.exit_code if is_client else None
    submission.query_end(kill.deadline, running.prepared.adapter.end)
    state = conclude(EndFacts(kill.is_asked, monitor.driver_status, exit_code, is_succeeded=error is None))
    reason = _reason(running, state, error)
    ids = submission.application_ids
    with running.guard("The timeline may lack its end", can_fail=False):
        if is_client:
            detail = "" if exit_code is None else f"exit code {exit_code}"
            monitor.ended(_STATUS_OF[state], SUBMIT, ids, detail, reason)
        elif state == "COMPLETE":
            monitor.ended("FINISHED", AIRFLOW, ids, "the Spark provider saw its end")
        elif state == "FAIL":
            monitor.ended("UNKNOWN", AIRFLOW, ids, "not watched any more", reason)
        else:
            monitor.ended(None, AIRFLOW, ids)
        # The transitions are on disk before the end is sent: after a kill, the recovery reads them.
        monitor.flush(kill.deadline.within(BRIEF_SECONDS))
    return state, reason


def _reason(running: Running, state: TaskState, error: BaseException | None) -> str:
    """Return why the driver failed, or was killed; empty where it succeeded."""
    kill, driver, adapter = running.prepared.kill, running.submission.driver, running.prepared.adapter
    is_client = running.launch.deploy_mode == "client"
    if kill.is_asked:
        return f"killed by Airflow ({kill.why})"
    if driver.process_id is None and is_client and error is not None:
        # No process could be started.
        return error_text(error)
    if state == "COMPLETE":
        return ""
    reason = running.submission.monitor.driver_error
    if not reason and (is_client or driver.exit_code):
        # The driver was not submitted, or spark-submit has waited for its end.
        reason = adapter.explain()
    if not is_client:
        with running.guard("The end of the driver's log is not shown", can_fail=False):
            reason = _shown_log(running, reason)
    return reason


def _shown_log(running: Running, reason: str) -> str:
    """Log the end of a remote driver's output, and return why it failed, if the output shows it in time."""
    seen, texts, log = DriverError(), dict[str, str](), running.guard.log
    deadline = running.prepared.kill.deadline.within(ANSWER_SECONDS)
    BoundedRun(lambda: texts.update(running.submission.sources.log_tail()), "spark-lineage-log").wait(deadline)
    for name, text in dict(texts).items():
        # The first line of a cut text is torn.
        lines = text.splitlines()[1 if len(text.encode()) >= LOG_BYTES else 0 :]
        redact_line = LineRedaction()
        for line in lines:
            seen.feed(line)
        log_group(f"The end of the driver's log: {name}", map(redact_line, lines[-LOG_LINES:]), log.info)
    if not texts and (url := running.submission.driver.logs_url):
        log.debug("The driver's log: %s", url)
    return seen.explain(None, reason or "the driver failed") if texts else reason
