"""Asks Spark's own REST API, ``/api/v1``, which driver UIs and History Servers have in common.

Shapes: ``org.apache.spark.status.api.v1`` (``ApplicationInfo``, ``JobData``, ``StageData``, ``sql.ExecutionData``,
``streaming.StreamingStatistics``) of Spark 3.5 to 4.2; what is not read here is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

from msgspec import Struct

from spark_lineage.watch.rest import NoAnswerError, RestClient

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)

# Up to 4.1 Spark gives 20 executions where it is not told how many. Ours come without their plans, and are small.
_PAGE = 500


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


class SparkJob(Struct, rename="camel"):
    """One SparkJob (``JobData``)."""

    job_id: int
    name: str | None = None
    description: str | None = None
    submission_time: str | None = None
    completion_time: str | None = None
    stage_ids: list[int] | None = None
    status: str | None = None
    num_completed_stages: int | None = None
    num_skipped_stages: int | None = None


class SqlExecution(Struct, rename="camel"):
    """One SQL execution (``ExecutionData``); ``duration`` in milliseconds, ``error_message`` from Spark 4.2 on."""

    id: int
    status: str | None = None
    description: str | None = None
    submission_time: str | None = None
    duration: int | None = None
    error_message: str | None = None
    failed_job_ids: list[int] | None = None


class Stage(Struct, rename="camel"):
    """One attempt of a stage (``StageData``)."""

    stage_id: int
    failure_reason: str | None = None


class StreamingStatistics(Struct, rename="camel"):
    """What is said of the DStreams of an application; ``batch_duration`` in milliseconds."""

    start_time: str | None = None
    batch_duration: int | None = None


class Content(Struct):
    """What one attempt of an application has done; ``reasons`` says why SparkJobs failed, by their number."""

    jobs: list[SparkJob]
    reasons: dict[int, str]
    executions: list[SqlExecution]
    streaming: StreamingStatistics | None


class SparkApi:
    """Reads the API of driver UIs or History Servers; remembers why SparkJobs failed, so as to ask that once."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._reasons: dict[str, dict[int, str]] = {}

    def applications(self, base_url: str) -> list[Application]:
        """Return all that there are (``/api/v1/applications``).

        :raises NoAnswerError: when the API does not tell
        """
        return self._client.get_json(f"{base_url}/api/v1/applications", list[Application])

    def application(self, base_url: str, application_id: str) -> Application:
        """Return one (``/api/v1/applications/{id}``).

        :raises NoAnswerError: when the API does not tell, or does not know it
        """
        return self._client.get_json(f"{base_url}/api/v1/applications/{quote(application_id, safe='')}", Application)

    def content(self, base_url: str, key: str) -> Content:
        """Return what one attempt of an application has done (``/jobs``, ``/stages``, ``/sql``, ``/streaming``).

        Only the SparkJobs are always there: the API knows no ``/streaming`` where nothing streams, and a UI may close
        between two questions.

        :param key: ``{id}``, or ``{id}/{attempt}``
        :raises NoAnswerError: when the API does not tell the SparkJobs
        """
        url = f"{base_url}/api/v1/applications/{quote(key)}"
        jobs = self._client.get_json(f"{url}/jobs", list[SparkJob])
        return Content(
            jobs=jobs,
            reasons=self._why(url, [job for job in jobs if job.status == "FAILED"]),
            executions=_or_nothing(lambda: self._executions(url)) or [],
            streaming=_or_nothing(lambda: self._client.get_json(f"{url}/streaming/statistics", StreamingStatistics)),
        )

    def _why(self, url: str, failed: list[SparkJob]) -> dict[int, str]:
        known = self._reasons.setdefault(url, {})
        new = [job for job in failed if job.job_id not in known]
        if new:
            # An answer is large: it holds the metrics of each failed stage.
            stages = _or_nothing(lambda: self._client.get_json(f"{url}/stages?status=failed", list[Stage]))
            for job in new if stages is not None else []:
                of_job = [stage for stage in stages or [] if stage.stage_id in (job.stage_ids or [])]
                known[job.job_id] = next((stage.failure_reason for stage in of_job if stage.failure_reason), "")
        return known

    def _executions(self, url: str) -> list[SqlExecution]:
        executions: dict[int, SqlExecution] = {}
        while True:
            parameters = f"details=false&planDescription=false&offset={len(executions)}&length={_PAGE}"
            page = self._client.get_json(f"{url}/sql?{parameters}", list[SqlExecution])
            before = len(executions)
            executions.update((execution.id, execution) for execution in page)
            # The second holds for a server that does not page, and gives the same again.
            if len(page) < _PAGE or len(executions) == before:
                return list(executions.values())


def _or_nothing(ask: Callable[[], Answer]) -> Answer | None:
    try:
        return ask()
    except NoAnswerError as error:
        _log.debug("Spark's REST API does not tell everything: %s", error)
        return None
