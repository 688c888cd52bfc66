"""What Spark's own REST API says, as status reports and as progress; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from spark_lineage.merge.transition import ENDED, Status, StatusReport, Subject
from spark_lineage.watch.progress import from_text, later, translated
from spark_lineage.watch.spark_api import Content, SparkJob, SqlExecution, StreamingStatistics

# org.apache.spark.JobExecutionStatus, and SQLExecutionUIData.executionStatus.
_SPARK_JOB: dict[str, Status] = {
    "RUNNING": "RUNNING",
    "SUCCEEDED": "FINISHED",
    "FAILED": "FAILED",
    "UNKNOWN": "UNKNOWN",
}
_SQL_EXECUTION: dict[str, Status] = {"RUNNING": "RUNNING", "COMPLETED": "FINISHED", "FAILED": "FAILED"}
# What a micro-batch calls its SparkJobs and SQL executions (StreamExecution.getBatchDescriptionString).
_MICRO_BATCH = re.compile(r"\bid = (?P<id>[\w-]+)\W+runId = (?P<run_id>[\w-]+)\W+batch = (?P<batch>\w+)")
# DStreams have no id; an application has one StreamingContext at a time.
DSTREAMS = "DStreams"


@dataclass(frozen=True)
class Progress:
    """How far the SparkJobs of an application are; what is known grows while the program goes on.

    A stage is done when it was completed, or skipped because its result was there already.
    """

    jobs_done: int = 0
    jobs_known: int = 0
    jobs_failed: int = 0
    stages_done: int = 0
    stages_known: int = 0

    def __str__(self) -> str:
        """Return it in one line."""
        failed = f", {self.jobs_failed} failed" if self.jobs_failed else ""
        stages = f"{self.stages_done} of {self.stages_known} stages done"
        return f"{self.jobs_done} of {self.jobs_known} jobs done{failed}; {stages}"


def progress_of(content: Content) -> Progress:
    """Return how far the SparkJobs are; a failed one is done too."""
    jobs = content.jobs
    return Progress(
        jobs_done=sum(job.status in ("SUCCEEDED", "FAILED") for job in jobs),
        jobs_known=len(jobs),
        jobs_failed=sum(job.status == "FAILED" for job in jobs),
        stages_done=sum((job.num_completed_stages or 0) + (job.num_skipped_stages or 0) for job in jobs),
        stages_known=sum(len(job.stage_ids or []) for job in jobs),
    )


def reports_of(content: Content, key: str, source: str, asked: datetime) -> list[StatusReport]:
    """Return the reports of all SparkJobs, SQL executions and streaming queries.

    A thing that has ended was RUNNING before, by the time of its submission. The API has no streaming queries, but
    their micro-batches tell them; that a query ends is not told.

    :param key: ``{id}``, or ``{id}/{attempt}``, which becomes the reports' ``application_id``
    :param asked: the time of what has none
    """
    told = _Told(key, source, asked)
    # The API gives the latest first.
    jobs = sorted(content.jobs, key=lambda job: job.job_id)
    reports = [report for job in jobs for report in told.job(job, content.reasons.get(job.job_id, ""))]
    for execution in content.executions:
        reasons = (content.reasons.get(number, "") for number in execution.failed_job_ids or [])
        reports += told.execution(execution, execution.error_message or next(filter(None, reasons), ""))
    reports += told.queries([*jobs, *content.executions])
    if content.streaming is not None:
        reports.append(told.dstreams(content.streaming))
    return reports


@dataclass(frozen=True)
class _Told:
    key: str
    source: str
    asked: datetime

    def job(self, job: SparkJob, reason: str) -> Iterator[StatusReport]:
        status = translated(job.status, _SPARK_JOB)
        begin, end = from_text(job.submission_time), from_text(job.completion_time)
        detail = _detail(job.status, job.name or job.description)
        yield from self._way("SPARK_JOB", job.job_id, status, begin=begin, end=end, detail=detail, reason=reason)

    def execution(self, execution: SqlExecution, reason: str) -> Iterator[StatusReport]:
        status = translated(execution.status, _SQL_EXECUTION)
        begin = from_text(execution.submission_time)
        end = later(begin, execution.duration)
        detail = _detail(execution.status, execution.description)
        yield from self._way("SQL_EXECUTION", execution.id, status, begin=begin, end=end, detail=detail, reason=reason)

    def _way(
        self,
        subject: Subject,
        number: int,
        status: Status,
        *,
        begin: datetime | None,
        end: datetime | None,
        detail: str,
        reason: str,
    ) -> Iterator[StatusReport]:
        has_ended = status in ENDED
        if has_ended and begin is not None:
            yield self._report(subject, str(number), "RUNNING", begin)
        time = (end if has_ended else begin) or self.asked
        exception = reason if status == "FAILED" else ""
        yield self._report(subject, str(number), status, time, detail=detail, exception=exception)

    def queries(self, batches: list[SparkJob | SqlExecution]) -> Iterator[StatusReport]:
        """Return each query that a micro-batch names, since the first of them that is known."""
        first: dict[str, tuple[datetime, str]] = {}
        for batch in batches:
            if match := _MICRO_BATCH.search(batch.description or ""):
                since = from_text(batch.submission_time) or self.asked
                detail = f"id = {match['id']}, batch = {match['batch']}"
                first[match["run_id"]] = min(first.get(match["run_id"], (since, detail)), (since, detail))
        for run_id, (since, detail) in first.items():
            yield self._report("STREAMING_QUERY", run_id, "RUNNING", since, detail=detail)

    def dstreams(self, statistics: StreamingStatistics) -> StatusReport:
        since = from_text(statistics.start_time) or self.asked
        detail = f"a batch every {statistics.batch_duration} ms"
        return self._report("STREAMING_QUERY", DSTREAMS, "RUNNING", since, detail=detail)

    def _report(
        self,
        subject: Subject,
        subject_id: str,
        status: Status,
        time: datetime,
        *,
        detail: str = "",
        exception: str = "",
    ) -> StatusReport:
        return StatusReport(
            subject=subject,
            subject_id=subject_id,
            status=status,
            time=time,
            source=self.source,
            application_id=self.key,
            detail=detail,
            exception=exception,
        )


def _detail(word: str | None, name: str | None) -> str:
    return ": ".join(filter(None, (word, name)))
