"""Where a connection's HTTP requests go: URL and path, from host, schema, port and ``endpoint``; pure."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.secrets.redaction import redact

SCHEMES = ("http", "https")
DEFAULT_ENDPOINT = "api/v1/lineage"


def address_of(fields: ConnectionFields) -> tuple[str, str]:
    """Return the URL without a path, and the path that takes OpenLineage events, with a slash at its start.

    A path of the host comes before the endpoint, unless it ends in ``/lineage``: then it is the endpoint.

    :raises SettingError: for a field that does not fit
    """
    url, parts = _parts(fields)
    base = parts.path.strip("/")
    endpoint, question, query = fields.text("endpoint").partition("?")
    endpoint = endpoint.strip("/")
    if "://" in endpoint or "#" in endpoint:
        raise fields.error("endpoint", f"is {redact(endpoint)!r}; give the path alone, like {DEFAULT_ENDPOINT!r}")
    if not endpoint and (base == "lineage" or base.endswith("/lineage")):
        return url, f"/{base}" + (f"?{parts.query}" if parts.query else question + query)
    if parts.query:
        raise fields.error("host", "has a '?'; give what follows it in 'endpoint'")
    path = "/".join(part for part in (base, endpoint or DEFAULT_ENDPOINT) if part)
    return url, f"/{path}{question}{query}"


def base_url_of(fields: ConnectionFields) -> str:
    """Return the URL with its path and without a slash at its end.

    :raises SettingError: for a field that does not fit
    """
    url, parts = _parts(fields)
    if parts.query:
        raise fields.error("host", "has a '?'; give the URL without it")
    return f"{url}/{parts.path.strip('/')}".rstrip("/")


def _parts(fields: ConnectionFields) -> tuple[str, SplitResult]:
    """``http://127.0.0.1:5000``, ``127.0.0.1:5000`` and the three fields apart are the same."""
    if not fields.host:
        raise fields.error("host", "is empty; give the URL of the backend, like 'http://127.0.0.1:5000'")
    schema = fields.schema.lower()
    if schema not in ("", *SCHEMES):
        raise fields.error("schema", f"is {redact(fields.schema)!r}; give 'http' or 'https'")
    text = fields.host if "://" in fields.host else f"{schema or 'http'}://{_bracketed(fields.host)}"
    try:
        parts = urlsplit(text)
        port, name = parts.port, parts.hostname
    except ValueError:
        parts, port, name = urlsplit(""), None, None
    if parts.username is not None or parts.password is not None:
        raise fields.error("host", "holds a login; give it in the fields login and password")
    if parts.scheme not in SCHEMES or not name or parts.fragment or any(letter.isspace() for letter in text):
        raise fields.error("host", f"is {redact(fields.host)!r}; give a URL like 'http://127.0.0.1:5000'")
    if schema and schema != parts.scheme:
        raise fields.error("schema", f"is {redact(fields.schema)!r}; the host says another; give it once")
    if fields.port and port not in (None, fields.port):
        raise fields.error("port", f"is {fields.port}, and the host says {port}; give it once")
    host = f"[{name}]" if ":" in name else name
    port = port or fields.port
    return f"{parts.scheme}://{host}" + (f":{port}" if port else ""), parts


def _bracketed(host: str) -> str:
    """An IPv6 address without brackets has several colons, and no slash."""
    return f"[{host}]" if host.count(":") > 1 and "[" not in host and "/" not in host else host
