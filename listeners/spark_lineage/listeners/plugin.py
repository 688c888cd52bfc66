"""The plugin through which Airflow finds the listener, the tab and the page (entry point ``airflow.plugins``)."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin

from spark_lineage import add_ons
from spark_lineage.listeners.airflow_listener import AirflowListener


class _Apps:
    """What add-ons have under the name of the attribute: asked for by the API server, not by a worker."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> list[dict[str, Any]]:
        apps = filter(None, map(add_ons.part, ("tab's apps", "coverage's apps")))
        return [each for app in apps for each in getattr(app, self._name)()]


class SparkLineagePlugin(AirflowPlugin):
    """Registers the listener, which is idle without the OpenLineage provider, the tab and the page.

    Airflow 2 asks for neither of the apps, and Airflow 3.0 does not know ``react_apps``.
    """

    name = "spark_lineage"
    listeners = [AirflowListener()]  # noqa: RUF012  (Airflow declares it as an attribute of each plugin)
    fastapi_apps = _Apps()
    react_apps = _Apps()
