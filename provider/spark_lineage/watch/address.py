"""How a URL is compared with others, and how it may be shown."""

from __future__ import annotations

from urllib.parse import urlsplit

from spark_lineage.secrets.redaction import redact

_DEFAULT_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, always spelled the same; empty text when it has none of its own.

    A host with a placeholder (``{application_id}``) is none: the application tells its name, not the connection.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    host = parts.hostname or ""
    if parts.scheme not in _DEFAULT_PORTS or not host or "{" in parts.netloc:
        return ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port or _DEFAULT_PORTS[parts.scheme]}"


def place_of(url: str) -> str:
    """Return a URL as it may be shown: without login, parameters, and whatever looks like a secret."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    return redact(f"{origin_of(url) or 'an address without scheme or host'}{path}")
