"""Finds where the OpenLineage provider of Airflow sends its own events to.

What reads its configuration also raises what the provider raises where it cannot be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from spark_lineage.deliver.connections import config_of
from spark_lineage.deliver.sender import DEFAULT_ENDPOINT
from spark_lineage.emit.openlineage_provider import is_active

BY_CONNECTION = "spark_lineage.deliver.connection_transport.ConnectionTransport"
_PORTS = {"http": 80, "https": 443}


def provider_backends() -> frozenset[str]:
    """Return where the OpenLineage provider sends its events to, in the words of :func:`backends_of`."""
    return backends_of(airflow_transport()) if is_active() else frozenset()


def airflow_transport() -> Mapping[str, Any]:
    """Return the configuration of the OpenLineage provider's transport; of one that names a connection, that of this.

    Empty where there is none, and where the provider is disabled.
    """
    conn_id = airflow_connection()
    return config_of(conn_id) if conn_id else configured_transport()


def airflow_connection() -> str:
    """Return the connection that all of Airflow's events go to; empty where the transport is another."""
    config = configured_transport()
    return str(config.get("conn_id") or "") if config.get("type") == BY_CONNECTION else ""


def configured_transport() -> Mapping[str, Any]:
    """Return its configuration as it is; empty where there is none, and where the provider is disabled."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter

    if conf.is_disabled():
        return {}
    config = OpenLineageAdapter().get_openlineage_config()
    if config:
        return dict(config.get("transport") or {})
    # What openlineage-python looks at by itself.
    if url := os.environ.get("OPENLINEAGE_URL"):
        return {"type": "http", "url": url, "endpoint": os.environ.get("OPENLINEAGE_ENDPOINT", DEFAULT_ENDPOINT)}
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
            url = urlsplit(urljoin(str(config.get("url", "")), str(config.get("endpoint", DEFAULT_ENDPOINT))))
            try:
                yield f"{url.hostname}:{url.port or _PORTS.get(url.scheme)}{url.path}"
            except ValueError:
                return
        case "kafka":
            servers = str((config.get("config") or {}).get("bootstrap.servers", "")).lower()
            yield from (f"kafka://{each.strip()}/{config.get('topic')}" for each in servers.split(",") if each.strip())
        case "file":
            yield f"file:{Path(str(config.get('log_file_path', ''))).absolute()}"
