"""Serves the module that draws the tab, and names it to Airflow's UI; in the API server alone."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import conf

if TYPE_CHECKING:
    from starlette.requests import Request

_NAME = "Lineage"
_PREFIX = "/spark-lineage"
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


@cache
def fastapi_apps() -> list[dict[str, Any]]:
    """Return the app that serves the module to whoever asks: it is code, and holds no data."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    def module(request: Request) -> Response:
        # Another version has another URL; of two API servers one may still be the older.
        kept = "public, max-age=31536000" if request.url.query == _version() else "no-store"
        return Response(_module(), media_type="text/javascript", headers={"Cache-Control": kept})

    return [{"app": Starlette(routes=[Route("/lineage.js", module)]), "url_prefix": _PREFIX, "name": _NAME}]


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
