"""``DataprocSubmitJobOperator``: a job of a cluster."""

from __future__ import annotations

from typing import Any

from spark_lineage.adapters.dataproc import DataprocAdapter

_SPARK_JOBS = frozenset({"spark_job", "pyspark_job", "spark_r_job", "spark_sql_job"})


def is_spark_job(job: Any) -> bool:
    """Whether a job, as the operator takes it, is one of Spark; others have no Spark properties."""
    from google.cloud.dataproc_v1 import Job

    return Job.pb(Job(job)).WhichOneof("type_job") in _SPARK_JOBS


class DataprocJobAdapter(DataprocAdapter):
    """Adapts the methods of jobs."""

    submit_method, get_method, noun = "submit_job", "get_job", "job"

    @staticmethod
    def message(given: Any) -> Any:
        """Return a copy of a job."""
        from google.cloud.dataproc_v1 import Job

        return Job(given)

    @staticmethod
    def properties(message: Any) -> Any:
        """Return the properties of a job of Spark."""
        raw = type(message).pb(message)
        return getattr(raw, raw.WhichOneof("type_job")).properties

    @staticmethod
    def state(answer: Any) -> tuple[str, str]:
        """Return the state of a job."""
        return answer.status.state.name, answer.status.details

    @staticmethod
    def id_of(answer: Any) -> str:
        """Return the id of a job."""
        return str(answer.reference.job_id)
