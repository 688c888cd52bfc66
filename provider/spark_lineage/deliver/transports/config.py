"""Makes a transport configuration of openlineage-python from the fields of an ``openlineage`` connection; pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.http_address import address_of
from spark_lineage.deliver.transports.http_headers import check_header, headers_of
from spark_lineage.deliver.transports.kafka_config import KAFKA_KEYS, kafka_config
from spark_lineage.secrets.redaction import redact

CONN_TYPE = "openlineage"
KINDS = ("http", "marquez", "kafka", "file", "console", "composite")
MARQUEZ = "marquez"
DEFAULT_TIMEOUT_SECONDS = 10.0

_KEYS = frozenset(
    {
        "kind", "namespace", "transport", "transports", "continue_on_success", "sort_transports", "endpoint", "headers",
        "compression", "timeout_seconds", "verify", "client_cert", "client_key", "log_file_path",
    }
    | KAFKA_KEYS
)  # fmt: skip
# A surrogate: JSON can write it, and UTF-8 cannot.
_HALF_OF_CHARACTER = re.compile(r"[\ud800-\udfff]")


def transport_config(fields: ConnectionFields) -> dict[str, Any]:
    """Return the configuration, with ``type``, as ``openlineage.client.transport`` takes it.

    :raises SettingError: for a field that does not fit
    """
    fields.check_keys(_KEYS)
    if fields.extra.get("transport"):
        return _whole(fields, "transport", fields.mapping("transport"))
    match kind := fields.choice("kind", KINDS, "http"):
        case "kafka":
            return kafka_config(fields, default_timeout_seconds=DEFAULT_TIMEOUT_SECONDS)
        case "file":
            return _file(fields)
        case "console":
            return {"type": "console"}
        case "composite":
            return _composite(fields)
    # HTTP for whoever looks for the backend behind it.
    return _http(fields) | ({"backend": MARQUEZ} if kind == MARQUEZ else {})


def namespace_of(fields: ConnectionFields) -> str | None:
    """The OpenLineage namespace of the jobs that this backend is told of; None for that of Airflow's provider."""
    return fields.text("namespace") or None


def members_of(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the members of a composite by name, each with its own configuration; a list's members have numbers.

    Empty for other transports, and for a composite that ends with the first success, which is one destination.
    """
    if config.get("type") != "composite" or not config.get("continue_on_success", True):
        return {}
    members = config["transports"]
    if isinstance(members, Mapping):
        return {str(name): dict(member) for name, member in members.items()}
    return {str(member.get("name", number)): dict(member) for number, member in enumerate(members, 1)}


def _http(fields: ConnectionFields) -> dict[str, Any]:
    url, endpoint = address_of(fields)
    config: dict[str, Any] = {
        "type": "http",
        "url": url,
        "endpoint": endpoint,
        "timeout": fields.seconds("timeout_seconds", DEFAULT_TIMEOUT_SECONDS),
    }
    if compression := fields.choice("compression", ("gzip", "none")).replace("none", ""):
        config["compression"] = compression
    config |= _tls(fields) | _credentials(fields)
    return config


def _tls(fields: ConnectionFields) -> dict[str, Any]:
    verify, certificate, key = fields.boolean_or_path("verify"), fields.path("client_cert"), fields.path("client_key")
    if key and not certificate:
        raise fields.error("client_key", "is given without 'client_cert'; give the certificate too")
    paths = {
        "caCertPath": verify if isinstance(verify, str) else "", "clientCertPath": certificate, "clientKeyPath": key
    }  # fmt: skip
    given = {name: path for name, path in paths.items() if path}
    return {"verify": verify is not False} | ({"sslContext": given} if given else {})


def _credentials(fields: ConnectionFields) -> dict[str, Any]:
    """A login makes Basic, a password alone is an API key, which goes out as bearer token, or into a header."""
    headers, is_password_in_headers = headers_of(fields)
    found: dict[str, Any] = {}
    if fields.login or (fields.password and not is_password_in_headers):
        if "authorization" in map(str.lower, headers):
            raise fields.error("headers", "has an Authorization beside the connection's password; keep one of the two")
        if fields.login:
            pair = f"{fields.login}:{fields.password}"
            if _HALF_OF_CHARACTER.search(pair):
                raise fields.error("login", "or its password has half of a character; write both anew")
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            # A key that was read from a file often ends in a newline, which no header can carry.
            api_key = check_header(fields, "password", fields.password.strip())
            found["auth"] = {"type": "api_key", "apiKey": api_key}
    return found | ({"custom_headers": headers} if headers else {})


def _file(fields: ConnectionFields) -> dict[str, Any]:
    # openlineage:///var/log/events.ndjson?kind=file has its path, without the first slash, in the schema.
    path = fields.text("log_file_path") or fields.host or (f"/{fields.schema}" if fields.schema else "")
    if not path.startswith("/") and "://" not in path:
        raise fields.error(
            "host", f"is {redact(path)!r}; for kind 'file' give the absolute path of the file that gets the events"
        )
    return {"type": "file", "log_file_path": path, "append": True}


def _composite(fields: ConnectionFields) -> dict[str, Any]:
    given = fields.extra.get("transports")
    members: Any
    if isinstance(given, list | tuple):
        members = [_whole(fields, f"transports[{number}]", member) for number, member in enumerate(given, 1)]
        names = [str(member["name"]) for member in members if "name" in member]
    else:
        mapping = fields.mapping("transports")
        members = {name: _whole(fields, f"transports.{redact(name)}", member) for name, member in mapping.items()}
        names = list(mapping)
    if not members:
        raise fields.error(
            "transports", 'is missing; for kind \'composite\' give an object of transports by name: {"a": {"type": …}}'
        )
    if len(set(names)) < len(names) or any("/" in name or not name for name in names):
        raise fields.error("transports", "has a member whose name is empty, has a '/', or is there twice; name it anew")
    return {
        "type": "composite",
        "transports": members,
        "continue_on_failure": True,
        "continue_on_success": fields.boolean("continue_on_success", default=True),
        "sort_transports": fields.boolean("sort_transports", default=False),
    }


def _whole(fields: ConnectionFields, name: str, given: Any) -> dict[str, Any]:
    """A configuration that the user wrote down whole; only login and password are put in."""
    if not isinstance(given, Mapping) or not isinstance(given.get("type"), str) or not given["type"].strip():
        raise fields.error(
            name, 'has no \'type\'; give the configuration of a transport of openlineage-python: {"type": "http", …}'
        )
    config, is_password_used = fields.filled(given)
    if fields.password and not is_password_used and name == "transport":
        raise fields.error("password", "is not used by 'transport'; write {password} where it belongs, or take it away")
    return dict(config)
