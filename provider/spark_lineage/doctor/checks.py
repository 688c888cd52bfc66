"""All checks, in the order in which a task meets their subjects, and how each is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spark_lineage.doctor.backends import (
    check_airflow_openlineage,
    check_airflow_transport,
    check_connections,
    check_same_backend,
)
from spark_lineage.doctor.clouds import check_clouds
from spark_lineage.doctor.directories import check_lineage_directory, check_outbox, check_records
from spark_lineage.doctor.event_log import check_event_log
from spark_lineage.doctor.settings import check_settings
from spark_lineage.doctor.setup import Finding, Setup, problem, warning
from spark_lineage.doctor.spark import check_jar, check_java, check_spark, check_spark_properties
from spark_lineage.doctor.status_endpoints import check_status_endpoints
from spark_lineage.doctor.versions import check_versions
from spark_lineage.launch.bounded_run import BoundedRun

# The time for each backend, and for each endpoint.
_ANSWER_SECONDS = 30.0
_ENDPOINTS = 6


@dataclass(frozen=True)
class Check:
    """One kind of check, and how long it may take."""

    name: str
    run: Callable[[Setup], Iterable[Finding]]
    seconds: float = 20.0


def checks_for(setup: Setup) -> tuple[Check, ...]:
    """Return the checks, each with the time that it may need."""
    backends = len(setup.conn_ids) + 1
    return (
        Check("versions", check_versions),
        Check("settings", check_settings),
        Check("java", check_java),
        Check("spark", check_spark),
        Check("spark properties", check_spark_properties),
        Check("listener jar", check_jar, setup.settings.jar_seconds + 10.0),
        Check("lineage directory", check_lineage_directory),
        Check("records", check_records),
        Check("status endpoints", check_status_endpoints, _ENDPOINTS * _ANSWER_SECONDS),
        Check("event log", check_event_log, _ANSWER_SECONDS),
        Check("cloud services", check_clouds),
        Check("airflow openlineage", check_airflow_openlineage),
        Check("outbox", check_outbox),
        Check("connections", check_connections, backends * _ANSWER_SECONDS),
        Check("airflow transport", check_airflow_transport, _ANSWER_SECONDS),
        Check("same backend", check_same_backend),
    )


def run_check(setup: Setup, check: Check) -> list[Finding]:
    """Return what one check finds within its time; one that fails does not end the others."""
    found: list[Finding] = []

    def run() -> None:
        try:
            found.extend(check.run(setup))
        except BaseException as error:
            # SystemExit too: else a missing check goes unnoticed.
            found.append(warning(f"could not be checked: {type(error).__name__}: {error}", "fix it, then run it again"))

    if not BoundedRun(run, check.name).wait(check.seconds):
        # It is left alone: nothing can end a call that hangs in the file system.
        found = [*found, problem(f"no answer within {check.seconds:g} s", "check that its disk or server answers")]
    return found
