"""All checks, in the order in which a task meets what they look at."""

from __future__ import annotations

from spark_lineage.doctor.airflow_openlineage import check_airflow_openlineage
from spark_lineage.doctor.check import Check
from spark_lineage.doctor.connections import check_airflow_transport, check_connections
from spark_lineage.doctor.jar import check_jar
from spark_lineage.doctor.java import check_java
from spark_lineage.doctor.lineage_directory import check_lineage_directory
from spark_lineage.doctor.outbox import check_outbox
from spark_lineage.doctor.same_backend import check_same_backend
from spark_lineage.doctor.settings import check_settings
from spark_lineage.doctor.setup import Setup
from spark_lineage.doctor.spark import check_spark
from spark_lineage.doctor.spark_properties import check_spark_properties
from spark_lineage.doctor.status_endpoints import check_status_endpoints
from spark_lineage.doctor.versions import check_versions

# For each backend, and for each endpoint.
_ANSWER_SECONDS = 30.0
_ENDPOINTS = 6


def checks_for(setup: Setup) -> tuple[Check, ...]:
    """Return the checks, each with the time that it may need."""
    backends = len(setup.conn_ids) + 1
    return (
        Check("versions", check_versions),
        Check("settings", check_settings),
        Check("java", check_java),
        Check("spark", check_spark),
        Check("spark properties", check_spark_properties),
        Check("listener jar", check_jar, setup.settings.jar_timeout_seconds + 10.0),
        Check("lineage directory", check_lineage_directory),
        Check("status endpoints", check_status_endpoints, _ENDPOINTS * _ANSWER_SECONDS),
        Check("airflow openlineage", check_airflow_openlineage),
        Check("outbox", check_outbox),
        Check("connections", check_connections, backends * _ANSWER_SECONDS),
        Check("airflow transport", check_airflow_transport, _ANSWER_SECONDS),
        Check("same backend", check_same_backend),
    )
