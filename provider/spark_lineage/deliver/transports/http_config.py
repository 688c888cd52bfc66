"""Makes the configuration of an HTTP transport from the fields of a connection; pure."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import SplitResult, urlsplit

from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.secrets.redaction import redact

SCHEMES = ("http", "https")
DEFAULT_ENDPOINT = "api/v1/lineage"
# RFC 9110, 5.1 and 5.5: what http.client refuses too, with an error that shows the value.
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[^\r\n\0\u0100-\U0010ffff]*")
# A surrogate: JSON can write it, and UTF-8 cannot.
_HALF_OF_CHARACTER = re.compile(r"[\ud800-\udfff]")


def http_config(fields: ConnectionFields) -> dict[str, Any]:
    """Return ``{"type": "http", "url": …, "endpoint": …, …}``.

    A path of the host comes before the endpoint, unless it ends in ``/lineage``: then it is the endpoint.

    :raises SettingError: for a field that does not fit
    """
    url, parts = _address(fields)
    base = parts.path.strip("/")
    endpoint, question, query = fields.text("endpoint").partition("?")
    endpoint = endpoint.strip("/")
    if "://" in endpoint or "#" in endpoint:
        raise fields.error("endpoint", f"is {redact(endpoint)!r}; give the path alone, like {DEFAULT_ENDPOINT!r}")
    if not endpoint and (base == "lineage" or base.endswith("/lineage")):
        path = f"/{base}" + (f"?{parts.query}" if parts.query else question + query)
    elif parts.query:
        raise fields.error("host", "has a '?'; give what follows it in 'endpoint'")
    else:
        path = "/".join(["", *filter(None, (base, endpoint or DEFAULT_ENDPOINT))]) + question + query
    config = {"type": "http", "url": url, "endpoint": path, **exchange_config(fields)}
    if compression := fields.choice("compression", ("gzip", "none")).replace("none", ""):
        config["compression"] = compression
    return config


def exchange_config(fields: ConnectionFields) -> dict[str, Any]:
    """Return time-out, TLS and credentials, as the configuration of an HTTP transport has them.

    A login makes Basic; a password alone is an API key, which goes out as bearer token, or into a header.

    :raises SettingError: for a field that does not fit
    """
    verify = fields.boolean_or_path("verify")
    certificate, key = fields.certificate()
    files = {
        "caCertPath": verify if isinstance(verify, str) else "",
        "clientCertPath": certificate,
        "clientKeyPath": key,
    }
    given = {name: path for name, path in files.items() if path}
    found: dict[str, Any] = {"timeout": fields.timeout_seconds, "verify": verify is not False}
    if given:
        found["sslContext"] = given
    texts = fields.texts("headers")
    headers = {name: _carried(fields, f"headers.{name}", value) for name, value in fields.filled(texts).items()}
    for name in headers:
        if not _HEADER_NAME.fullmatch(name):
            raise fields.error("headers", f"has {redact(name)!r}, which is no name of a header")
    is_password_alone = fields.password and not fields.login and "{password}" not in str(texts)
    if (fields.login or is_password_alone) and "authorization" in map(str.lower, headers):
        raise fields.error("headers", "has an Authorization beside the connection's password; keep one of the two")
    if fields.login:
        pair = f"{fields.login}:{fields.password}"
        if _HALF_OF_CHARACTER.search(pair):
            raise fields.error("login", "or its password has half of a character; write both anew")
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif is_password_alone:
        # A key that was read from a file often ends in a newline, which no header can carry.
        found["auth"] = {"type": "api_key", "apiKey": _carried(fields, "password", fields.password.strip())}
    return found | ({"custom_headers": headers} if headers else {})


def base_url_of(fields: ConnectionFields) -> str:
    """Return the URL with its path and without a slash at its end.

    :raises SettingError: for a field that does not fit
    """
    url, parts = _address(fields)
    if parts.query:
        raise fields.error("host", "has a '?'; give the URL without it")
    return f"{url}/{parts.path.strip('/')}".rstrip("/")


def _address(fields: ConnectionFields) -> tuple[str, SplitResult]:
    """Return the URL without a path, and its parts; it may be in the host, or in host, schema and port."""
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


def _carried(fields: ConnectionFields, name: str, value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise fields.error(name, "has a line break or a letter that no HTTP header can carry; take it away")
    return value
