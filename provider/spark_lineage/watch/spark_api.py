"""Spark's own REST API, ``/api/v1``, as a driver's UI and a History Server answer it.

Shapes: ``org.apache.spark.status.api.v1`` (``ApplicationInfo``, ``JobData``, ``StageData``, ``sql.ExecutionData``) of
Spark 3.5 to 4.2; what is not read here is left out.

The driver's UI knows what runs, and what has ended while the driver lives, but never the driver's own end. A History
Server reads event logs every 10 s or so (``spark.history.fs.update.interval``): ask it at the end. A killed application
stays incomplete for ever, and no field says whether a complete one succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from msgspec import Struct, field

from spark_lineage.http_client import NoAnswerError, place_of
from spark_lineage.launch.driver import Driver
from spark_lineage.launch.log import Log
from spark_lineage.merge.transition import (
    ENDED,
    MAX_ACCUMULATORS,
    SUMMED,
    StatusReport,
    TaskNumbers,
    accumulators_of,
    own_accumulator,
)
from spark_lineage.watch.dialect import Answer, Dialect, Dialogue, State, from_millis, get, status_of
from spark_lineage.watch.endpoints import Endpoints

_log = Log(__name__)

# Spark keeps a thousand (spark.sql.ui.retainedExecutions), and up to 4.1 gives 20 without a length.
_SQL = "sql?details=false&planDescription=false&length=10000"
# The description of a micro-batch's SparkJobs and SQL executions (StreamExecution.getBatchDescriptionString).
_MICRO_BATCH = re.compile(r"\bid = (?P<id>[\w-]+)\W+runId = (?P<run_id>[\w-]+)\W+batch = (?P<batch>\w+)")
_COMPLETE = "its event log is complete, which says nothing about success"
_INCOMPLETE = "its event log is not complete: it still runs, it was killed, or the log was not read to its end yet"


class Attempt(Struct, rename="camel"):
    """One attempt of an application (``ApplicationAttemptInfo``); times in milliseconds since 1970, -1 is not yet."""

    attempt_id: str | None = None
    start_time_epoch: int | None = None
    end_time_epoch: int | None = None
    completed: bool | None = None


class Application(Struct):
    """One application (``ApplicationInfo``); the latest attempt comes first."""

    id: str
    attempts: list[Attempt] | None = None


class Environment(Struct, rename="camel"):
    """``ApplicationEnvironmentInfo``: pairs of a name and a value, secrets redacted by Spark."""

    spark_properties: list[tuple[str, str]] = field(default_factory=list)


class _SparkJob(Struct, rename="camel"):
    job_id: int
    name: str | None = None
    description: str | None = None
    submission_time: str | None = None
    completion_time: str | None = None
    stage_ids: list[int] | None = None
    status: str | None = None
    num_completed_stages: int | None = None
    num_skipped_stages: int | None = None


class Execution(Struct, rename="camel"):
    """One SQL execution (``sql.ExecutionData``); ``duration`` is in milliseconds, up to now where it runs.

    ``error_message`` is there from Spark 4.2 on.
    """

    id: int
    status: str | None = None
    description: str | None = None
    submission_time: str | None = None
    duration: int | None = None
    error_message: str | None = None
    failed_job_ids: list[int] | None = None


class _Stage(Struct, rename="camel"):
    stage_id: int
    failure_reason: str | None = None


class _Accumulator(Struct):
    """An accumulator of the program's own (``AccumulableInfo``), with its value when the stage had ended."""

    id: int
    name: str | None = None
    value: str | None = None


class _StageNumbers(Struct):
    """The numbers of the tasks of one attempt of a stage (``StageData``), by the names of ``TaskNumbers``."""

    stage_id: int = field(name="stageId")
    completion_time: str | None = field(name="completionTime", default=None)
    finished: int = field(name="numCompleteTasks", default=0)
    failed: int = field(name="numFailedTasks", default=0)
    killed: int = field(name="numKilledTasks", default=0)
    bytes_read: int = field(name="inputBytes", default=0)
    bytes_written: int = field(name="outputBytes", default=0)
    memory_bytes_spilled: int = field(name="memoryBytesSpilled", default=0)
    disk_bytes_spilled: int = field(name="diskBytesSpilled", default=0)
    run_millis: int = field(name="executorRunTime", default=0)
    gc_millis: int = field(name="jvmGcTime", default=0)
    accumulators: list[_Accumulator] = field(name="accumulatorUpdates", default_factory=list)


class SparkApi(Dialect):
    """Requests what one attempt of an application has done, and only once why a SparkJob failed."""

    answer_seconds: float | None = None

    def __init__(self, endpoints: Endpoints, driver: Driver) -> None:
        super().__init__(endpoints, driver)
        self.progress = ""
        """How far the SparkJobs are, by the latest answer; empty before the first."""
        self._known_reasons: dict[str, dict[int, str]] = {}

    def parts(
        self, base_url: str, application: Application, attempt: Attempt, asked: datetime
    ) -> Dialogue[list[StatusReport]]:
        """Return the reports of all SparkJobs, SQL executions and streaming queries.

        The API has no streaming queries, but their micro-batches name them; that a query ends is not known. Only the
        SparkJobs are always there: a UI may close between two questions. ``asked`` is the time of what has none.

        :raises NoAnswerError: when the API does not report the SparkJobs
        """
        key = "/".join(filter(None, (application.id, attempt.attempt_id)))
        url = f"{base_url}/api/v1/applications/{quote(key)}"
        # The latest comes first.
        answer = yield from get(f"{url}/jobs", list[_SparkJob], self.answer_seconds)
        jobs = sorted(answer, key=lambda job: job.job_id)
        self.progress = _progress(jobs) if jobs else ""
        reasons = yield from self._reasons(url, [job for job in jobs if job.status == "FAILED"])
        executions = (yield from self._if_there(f"{url}/{_SQL}", list[Execution])) or []
        reports: list[StatusReport] = []
        for job in jobs:
            name, end = job.name or job.description, time_of(job.completion_time)
            reason = reasons.get(job.job_id, "")
            states = _states(job, name=name, end=end, reason=reason, asked=asked)
            reports += (self.report("SPARK_JOB", str(job.job_id), state, key) for state in states)
        for execution in executions:
            begin, millis = time_of(execution.submission_time), execution.duration
            end = begin + timedelta(milliseconds=millis) if begin and millis is not None and millis >= 0 else None
            causes = (execution.error_message, *(reasons.get(one) for one in execution.failed_job_ids or []))
            reason = next(filter(None, causes), "")
            states = _states(execution, name=execution.description, end=end, reason=reason, asked=asked)
            reports += (self.report("SQL_EXECUTION", str(execution.id), state, key) for state in states)
        queries = _queries([*jobs, *executions], asked)
        reports += (self.report("STREAMING_QUERY", run_id, state, key) for run_id, state in queries.items())
        return reports

    def _reasons(self, url: str, failed: list[_SparkJob]) -> Dialogue[dict[int, str]]:
        known = self._known_reasons.setdefault(url, {})
        new = [job for job in failed if job.job_id not in known]
        # An answer is large: it holds the metrics of each failed stage.
        stages = (yield from self._if_there(f"{url}/stages?status=failed", list[_Stage])) if new else None
        for job in new if stages is not None else ():
            causes = (stage.failure_reason for stage in stages or () if stage.stage_id in (job.stage_ids or ()))
            known[job.job_id] = next(filter(None, causes), "")
        return known

    def _if_there(self, url: str, shape: type[Answer]) -> Dialogue[Answer | None]:
        try:
            return (yield from get(url, shape, self.answer_seconds))
        except NoAnswerError as error:
            _log.debug("Spark's REST API does not report everything: %s", error)
        return None


def application_url(base_url: str, application_id: str) -> str:
    """Return the address of an application."""
    return f"{base_url}/api/v1/applications/{quote(application_id, safe='')}"


def _states(
    part: _SparkJob | Execution, *, name: str | None, end: datetime | None, reason: str, asked: datetime
) -> Iterator[State]:
    """Return the states of a part; one that has ended was RUNNING before, by the time of its submission."""
    status, begin = status_of(part.status), time_of(part.submission_time)
    has_ended = status in ENDED
    if has_ended and begin is not None:
        yield State("RUNNING", begin)
    detail = ": ".join(filter(None, (part.status, name)))
    yield State(status, (end if has_ended else begin) or asked, detail, reason if status == "FAILED" else "")


def _queries(batches: Iterable[_SparkJob | Execution], asked: datetime) -> dict[str, State]:
    """Return each query that a micro-batch names by its run id, since the first batch that is known."""
    first: dict[str, State] = {}
    for batch in batches:
        if match := _MICRO_BATCH.search(batch.description or ""):
            detail = f"id = {match['id']}, batch = {match['batch']}"
            state = State("RUNNING", time_of(batch.submission_time) or asked, detail)
            first[match["run_id"]] = min(first.get(match["run_id"], state), state)
    return first


def _progress(jobs: list[_SparkJob]) -> str:
    """Return the progress of the SparkJobs; failed ones and skipped stages count as done."""
    done = sum(job.status in ("SUCCEEDED", "FAILED") for job in jobs)
    failed = sum(job.status == "FAILED" for job in jobs)
    stages_done = sum((job.num_completed_stages or 0) + (job.num_skipped_stages or 0) for job in jobs)
    stages = f"{stages_done} of {sum(len(job.stage_ids or ()) for job in jobs)} stages done"
    return f"{done} of {len(jobs)} jobs done{f', {failed} failed' if failed else ''}; {stages}"


def time_of(text: str | None) -> datetime | None:
    """Return the time of ``2026-01-31T23:59:59.123GMT``; None for what is none."""
    try:
        return datetime.strptime(text or "", "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC)
    except ValueError:
        return None


class DriverUi(SparkApi):
    """Asks ``/api/v1`` of a driver's UI (4040, 4041, …), or of a proxy in front of it."""

    name = "driver UI"
    # Its first answer costs the driver seconds of CPU, in which it loads what it answers with; the event log covers
    # a short job.
    first_seconds = 30.0
    # A busy driver prints a broken pipe for each answer that nobody has waited for.
    answer_seconds = 60.0

    @property
    def url(self) -> str | None:
        """The UI's present address, None while there is none: of the connection, else of YARN, else of the driver."""
        # On YARN the driver's own address redirects to the proxy.
        driver = self.driver
        named = self.endpoints.driver_ui_of(driver.application_id)
        return named or driver.proxied_ui_url or driver.ui_address or driver.ui_url

    def poll(self) -> Dialogue[list[StatusReport]]:
        """Return what the UI says of its applications, their SparkJobs, SQL executions and streaming queries.

        :raises NoAnswerError: when it does not answer, or is the UI of another application: the next driver takes a
            port that became free
        """
        url, expected = self.url, self.driver.application_id
        if url is None:
            return []
        asked = datetime.now(UTC)
        applications = yield from get(f"{url}/api/v1/applications", list[Application], self.answer_seconds)
        ours = [one for one in applications if expected in (None, one.id)]
        if expected is not None and not ours:
            others = ", ".join(one.id for one in applications) or "no application"
            raise NoAnswerError(f"{place_of(url)} is the UI of {others}, not of {expected}")
        reports: list[StatusReport] = []
        for application in ours:
            attempt = (application.attempts or [Attempt()])[0]
            parts = yield from self.parts(url, application, attempt, asked)
            running = State("RUNNING", from_millis(attempt.start_time_epoch) or asked)
            reports += [self.report("APPLICATION", application.id, running), *parts]
        return reports


class HistoryServer(SparkApi):
    """Asks ``/api/v1/applications/{id}`` of a History Server (18080)."""

    name = "History Server"

    def poll(self) -> Dialogue[list[StatusReport]]:
        """Return what it says of the application, and of what all its attempts did.

        :raises NoAnswerError: when it does not know the application (yet)
        """
        base_url, application_id = self.endpoints.history_server_url, self.driver.application_id
        if application_id is None:
            return []
        asked = datetime.now(UTC)
        application = yield from get(application_url(base_url, application_id), Application)
        if not (attempts := application.attempts):
            return []
        latest, begin = attempts[0], from_millis(attempts[-1].start_time_epoch) or asked
        self.driver.attempt_id = latest.attempt_id
        states = [State("RUNNING", begin, "" if latest.completed else _INCOMPLETE)]
        if latest.completed:
            states.append(State("FINISHED", from_millis(latest.end_time_epoch) or asked, _COMPLETE))
        reports = [self.report("APPLICATION", application.id, state) for state in states]
        for attempt in reversed(attempts):
            reports += yield from self.parts(base_url, application, attempt, asked)
        return reports

    def numbers(self) -> Dialogue[list[TaskNumbers]]:
        """Return what the tasks of each attempt did, by its stages.

        Spark keeps a thousand stages (``spark.ui.retainedStages``): where the first is gone, the sums are not known.

        :raises NoAnswerError: when it does not know the application
        """
        application_id = self.driver.application_id or ""
        url = application_url(self.endpoints.history_server_url, application_id)
        application, numbers = (yield from get(url, Application)), list[TaskNumbers]()
        for attempt in application.attempts or ():
            stages_url = "/".join(filter(None, (url, attempt.attempt_id, "stages")))
            stages = yield from get(stages_url, list[_StageNumbers])
            if any(stage.stage_id == 0 for stage in stages):
                numbers.append(_summed(stages, application_id, attempt.attempt_id or ""))
        return numbers


def _summed(stages: list[_StageNumbers], application_id: str, attempt_id: str) -> TaskNumbers:
    values: dict[int, tuple[str, float]] = {}
    in_order = sorted(stages, key=lambda stage: stage.completion_time or "")
    for one in (one for stage in in_order for one in stage.accumulators):
        if total := own_accumulator(one.name, one.value):
            values[one.id] = total
    accumulators: dict[str, float] = {}
    for name, value in values.values():
        if name in accumulators or len(accumulators) < MAX_ACCUMULATORS:
            accumulators[name] = accumulators.get(name, 0) + value
    sums = {name: sum(getattr(stage, name) for stage in stages) for name in SUMMED}
    name = HistoryServer.name
    return TaskNumbers(application_id, attempt_id, name, **sums, accumulators=accumulators_of(accumulators))
