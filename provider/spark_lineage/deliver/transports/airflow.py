"""The transport that Airflow's OpenLineage provider sends its events with, wherever that is configured."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

OUTBOX = "spark_lineage.deliver.outbox.transport.OutboxTransport"
BY_CONNECTION = "spark_lineage.deliver.connection_transport.ConnectionTransport"


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
        return {"type": "http", "url": url, "endpoint": os.environ.get("OPENLINEAGE_ENDPOINT", "api/v1/lineage")}
    from openlineage.client import OpenLineageClient

    found = OpenLineageClient().config.transport
    return dict(found) if isinstance(found, Mapping) else {}


def without_outbox(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is inside of our outbox, the transport itself where there is none."""
    inner = config.get("transport")
    return inner if config.get("type") == OUTBOX and isinstance(inner, Mapping) else config


def all_of(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return a transport and all that it holds (composite, transform, our outbox)."""
    yield config
    inner = config.get("transports") or config.get("transport") or ()
    if isinstance(inner, Mapping):
        inner = [inner] if "type" in inner else list(inner.values())
    for each in inner:
        if isinstance(each, Mapping):
            yield from all_of(each)
