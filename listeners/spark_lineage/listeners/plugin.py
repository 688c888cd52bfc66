"""The plugin through which Airflow finds the listener, the tab and the page (entry point ``airflow.plugins``)."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin

from spark_lineage import add_ons
from spark_lineage.listeners.airflow_listener import AirflowListener


class _Parts:
    """The parts of add-ons under the name of the attribute; the API server asks for them, no worker does."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> list[Any]:
        parts = filter(None, map(add_ons.part, self._names))
        return [each for part in parts for each in getattr(part, self._name)()]


class SparkLineagePlugin(AirflowPlugin):
    """Registers the listener, which is idle without the OpenLineage provider, the tab, the page and the links of tasks.

    Airflow 2 asks for neither of the apps, and Airflow 3.0 does not know ``react_apps``.
    """

    name = "spark_lineage"
    listeners = [AirflowListener()]  # noqa: RUF012  (Airflow declares it as an attribute of each plugin)
    fastapi_apps = _Parts("tab's apps", "coverage's apps")
    react_apps = _Parts("tab's apps", "coverage's apps")
    operator_extra_links = _Parts("operators' links")
