"""The plugin through which Airflow finds the listener (entry point ``airflow.plugins``)."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import AirflowPlugin

from spark_lineage.listeners.airflow_listener import AirflowListener


class SparkLineagePlugin(AirflowPlugin):
    """Registers the listener; without the OpenLineage provider there is nothing that it could send."""

    name = "spark_lineage"
    listeners = [AirflowListener()]  # noqa: RUF012  (Airflow declares it as an attribute of each plugin)
