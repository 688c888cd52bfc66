"""The transport of Airflow's OpenLineage provider, and the backends that a transport leads to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

BY_CONNECTION = "spark_lineage.deliver.connection_transport.ConnectionTransport"
# As openlineage-python has it, for a URL without an endpoint.
_ENDPOINT = "api/v1/lineage"
_PORTS = {"http": 80, "https": 443}


def airflow_connection() -> str:
    """Return the connection that all of Airflow's events go to; empty where the transport is another.

    :raises Exception: what the provider raises where its configuration cannot be read
    """
    config = configured_transport()
    return str(config.get("conn_id") or "") if config.get("type") == BY_CONNECTION else ""


def configured_transport() -> Mapping[str, Any]:
    """Return its configuration as it is; empty where there is none, and where the provider is disabled.

    :raises Exception: what the provider raises where it cannot be read
    """
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter

    if conf.is_disabled():
        return {}
    config = OpenLineageAdapter().get_openlineage_config()
    if config:
        return dict(config.get("transport") or {})
    # What openlineage-python looks at by itself.
    if url := os.environ.get("OPENLINEAGE_URL"):
        return {"type": "http", "url": url, "endpoint": os.environ.get("OPENLINEAGE_ENDPOINT", _ENDPOINT)}
    from openlineage.client import OpenLineageClient

    found = OpenLineageClient().config.transport
    return dict(found) if isinstance(found, Mapping) else {}


def all_of(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return a transport and all that it holds (composite, transform)."""
    yield config
    inner = config.get("transports") or config.get("transport") or ()
    if isinstance(inner, Mapping):
        inner = [inner] if "type" in inner else list(inner.values())
    for each in inner:
        if isinstance(each, Mapping):
            yield from all_of(each)


def backends_of(config: Mapping[str, Any]) -> frozenset[str]:
    """Return where a transport and those inside of it send to, without credentials; nothing for an unknown kind."""
    return frozenset(backend for each in all_of(config) for backend in _backends(each))


def _backends(config: Mapping[str, Any]) -> Iterator[str]:
    match config.get("type"):
        case "http" | "async_http":
            url = urlsplit(urljoin(str(config.get("url", "")), str(config.get("endpoint", _ENDPOINT))))
            try:
                yield f"{url.hostname}:{url.port or _PORTS.get(url.scheme)}{url.path}"
            except ValueError:
                return
        case "kafka":
            servers = str((config.get("config") or {}).get("bootstrap.servers", "")).lower()
            yield from (f"kafka://{each.strip()}/{config.get('topic')}" for each in servers.split(",") if each.strip())
        case "file":
            yield f"file:{Path(str(config.get('log_file_path', ''))).absolute()}"
