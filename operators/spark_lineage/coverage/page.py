"""Serves the page "Lineage coverage", and its rows to those who may read them; in the API server alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep  # noqa: TC002  (FastAPI reads the annotation)
from fastapi import FastAPI, Response

from spark_lineage.coverage.tasks_coverage import coverage
from spark_lineage.view.app import react_apps as tabs
from spark_lineage.view.app import readable_dags

_NAME = "Lineage coverage"
_PREFIX = "/spark-lineage-coverage"
_app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)


@_app.get("/coverage.js")
def module() -> Response:
    """Return the code of the page, which holds no data."""
    content = Path(__file__).with_name("coverage.js").read_bytes()
    return Response(content, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


@_app.get("/tasks")
def tasks(user: GetUserDep) -> dict[str, Any]:
    """Return the rows of the DAGs whose XComs the user may read, as the tab does."""
    is_readable = readable_dags(user)
    return {"tasks": [asdict(row) for row in coverage() if is_readable(row.dag_id)]}


def fastapi_apps() -> list[dict[str, Any]]:
    """Return the app of the page."""
    return [{"app": _app, "url_prefix": _PREFIX, "name": _NAME}]


def react_apps() -> list[dict[str, Any]]:
    """Return the page for the navigation of Airflow 3.1 and newer."""
    path = tabs()[0]["bundle_url"].partition("/spark-lineage/")[0]
    own = {"name": _NAME, "bundle_url": f"{path}{_PREFIX}/coverage.js", "destination": "nav"}
    return [{**tabs()[0], **own, "url_route": "spark-lineage-coverage"}]
