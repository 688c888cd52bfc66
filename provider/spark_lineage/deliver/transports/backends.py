"""Which backends a transport configuration of openlineage-python leads to, so that none is told a thing twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

# As openlineage-python has it, for a URL without an endpoint.
_ENDPOINT = "api/v1/lineage"
_PORTS = {"http": 80, "https": 443}


def backends_of(config: Mapping[str, Any]) -> frozenset[str]:
    """Return what tells a backend from another: where it listens, without credentials.

    Of a transport that holds others (composite, our outbox) those of the others; nothing for a kind that is not known.
    """
    match config.get("type"):
        case "http" | "async_http":
            return frozenset(_http(config))
        case "kafka":
            return frozenset(_kafka(config))
        case "file":
            return frozenset({f"file:{Path(str(config.get('log_file_path', ''))).absolute()}"})
    inner = config.get("transports") or config.get("transport") or ()
    if isinstance(inner, Mapping):
        inner = [inner] if "type" in inner else inner.values()
    return frozenset().union(*(backends_of(each) for each in inner if isinstance(each, Mapping)))


def _http(config: Mapping[str, Any]) -> Iterable[str]:
    url = urlsplit(urljoin(str(config.get("url", "")), str(config.get("endpoint", _ENDPOINT))))
    try:
        port = url.port or _PORTS.get(url.scheme)
    except ValueError:
        return
    yield f"{url.hostname}:{port}{url.path}"


def _kafka(config: Mapping[str, Any]) -> Iterable[str]:
    properties = config.get("config") or {}
    for server in str(properties.get("bootstrap.servers", "")).split(","):
        if server.strip():
            yield f"kafka://{server.strip().lower()}/{config.get('topic')}"
