"""An auth manager whose users may not read the XComs of the DAG ``hidden``."""

from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


class HiddenDag(SimpleAuthManager):
    """Airflow's simple one, in which all are administrators, but for that."""

    def is_authorized_dag(self, **asked: Any) -> bool:
        is_hidden = asked.get("details") is not None and asked["details"].id == "hidden"
        is_read = asked["method"] == "GET" and asked.get("access_entity") == DagAccessEntity.XCOM
        return not (is_hidden and is_read) and super().is_authorized_dag(**asked)
