"""Serves the module that draws the tab, and the last writer of a dataset; names both to Airflow's UI.

It runs in the API server alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep  # noqa: TC002  (FastAPI reads the annotation)
from airflow.models.xcom import XComModel
from airflow.providers.common.compat.sdk import conf
from airflow.utils.session import create_session
from fastapi import FastAPI, Request, Response
from sqlalchemy import select

from spark_lineage.view import XCOM_KEY, written_at

_NAME = "Lineage"
_PREFIX = "/spark-lineage"
# The newest XComs in which a writer is looked for, and how many of them are in memory at once.
_SEARCHED, _FETCHED = 2_000, 50
_IDS = ("dag_id", "run_id", "task_id", "map_index")
# In each the module gets the ids of what the page is about.
_DESTINATIONS = ("task_instance", "dag")
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='none' stroke='{colour}' "
    "stroke-width='1.5'%3E%3Cpath d='M5 4h3v8h3M8 8H5'/%3E%3Crect x='1' y='2.5' width='4' height='3'/%3E%3Crect x='1' "
    "y='6.5' width='4' height='3'/%3E%3Crect x='11' y='10.5' width='4' height='3'/%3E%3C/svg%3E"
)


@cache
def _module() -> bytes:
    return Path(__file__).with_name("lineage.js").read_bytes()


def _version() -> str:
    return f"{zlib.crc32(_module()):08x}"


_app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)


@_app.get("/lineage.js")
def module(request: Request) -> Response:
    """Return the code of the tab to any caller: it holds no data."""
    # Another version has another URL; of two API servers one may still be the older.
    kept = "public, max-age=31536000" if request.url.query == _version() else "no-store"
    return Response(_module(), media_type="text/javascript", headers={"Cache-Control": kept})


@_app.get("/writer")
def writer(namespace: str, name: str, user: GetUserDep) -> dict[str, Any]:
    """Return the task instance that wrote a dataset last, among the DAGs whose XComs the user may read."""
    is_readable = readable_dags(user)
    columns = [getattr(XComModel, each) for each in (*_IDS, "value")]
    query = select(*columns).filter_by(key=XCOM_KEY).order_by(XComModel.timestamp.desc()).limit(_SEARCHED)
    with create_session() as session:
        for *ids, value in session.execute(query.execution_options(yield_per=_FETCHED)):
            if is_readable(ids[0]) and (time := written_at(value, namespace, name)):
                return {"writer": {**dict(zip(_IDS, ids, strict=True)), "time": time}}
    return {"writer": None}


def readable_dags(user: Any) -> Callable[[str], bool]:
    """Return whether a user may read the XComs of a DAG, as a function of its id."""
    manager = get_auth_manager()
    dag_ids = manager.get_authorized_dag_ids(user=user, method="GET")

    @cache
    def is_readable(dag_id: str) -> bool:
        return dag_id in dag_ids and manager.is_authorized_dag(
            method="GET", access_entity=DagAccessEntity.XCOM, details=DagDetails(id=dag_id), user=user
        )

    return is_readable


def fastapi_apps() -> list[dict[str, Any]]:
    """Return the app of the tab."""
    return [{"app": _app, "url_prefix": _PREFIX, "name": _NAME}]


@cache
def react_apps() -> list[dict[str, Any]]:
    """Return the tabs, for Airflow 3.1 and newer: 3.1 does not resolve a URL that is relative."""
    path = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return [
        {
            "name": _NAME,
            "bundle_url": f"{path}{_PREFIX}/lineage.js?{_version()}",
            "destination": destination,
            "url_route": f"spark-lineage-{destination.replace('_', '-')}",
            "icon": _ICON.format(colour="%2352525b"),
            "icon_dark_mode": _ICON.format(colour="%23a1a1aa"),
        }
        for destination in _DESTINATIONS
    ]
