"""Makes a transport configuration of openlineage-python from the fields of an ``openlineage`` connection; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_lineage.deliver.hooks.connection_types import KINDS, OPENLINEAGE_KEYS
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.http_config import http_config
from spark_lineage.deliver.transports.kafka_config import kafka_config
from spark_lineage.secrets.redaction import redact

CONN_TYPE = "openlineage"
MARQUEZ = "marquez"
_KEYS = OPENLINEAGE_KEYS | {"log_file_path"}


def transport_config(fields: ConnectionFields) -> dict[str, Any]:
    """Return the configuration, with ``type``, as ``openlineage.client.transport`` takes it.

    :raises SettingError: for a field that does not fit
    """
    fields.check_keys(_KEYS)
    if fields.extra.get("transport"):
        return _whole(fields, "transport", fields.mapping("transport"))
    match kind := fields.choice("kind", KINDS, "http"):
        case "kafka":
            return kafka_config(fields)
        case "file":
            return _file(fields)
        case "console":
            return {"type": "console"}
        case "composite":
            return _composite(fields)
    # HTTP for whoever looks for the backend behind it.
    return http_config(fields) | ({"backend": MARQUEZ} if kind == MARQUEZ else {})


def namespace_of(fields: ConnectionFields) -> str | None:
    """Return the OpenLineage namespace of the jobs for this backend; None for that of Airflow's provider."""
    return fields.text("namespace") or None


def members_of(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the members of a composite by name, each with its own configuration; a list's members have numbers.

    Empty for other transports.
    """
    if config.get("type") != "composite":
        return {}
    members = config.get("transports") or {}
    if isinstance(members, Mapping):
        return {str(name): dict(member) for name, member in members.items()}
    return {str(member.get("name", number)): dict(member) for number, member in enumerate(members, 1)}


def _file(fields: ConnectionFields) -> dict[str, Any]:
    # openlineage:///var/log/events.ndjson?kind=file has its path, without the first slash, in the schema.
    path = fields.text("log_file_path") or fields.host or (f"/{fields.schema}" if fields.schema else "")
    if not path.startswith("/") and "://" not in path:
        raise fields.error(
            "host", f"is {redact(path)!r}; for kind 'file' give the absolute path of the file that gets the events"
        )
    return {"type": "file", "log_file_path": path, "append": True}


def _composite(fields: ConnectionFields) -> dict[str, Any]:
    given = fields.mapping("transports")
    if not given:
        raise fields.error(
            "transports", 'is missing; for kind \'composite\' give an object of transports by name: {"a": {"type": …}}'
        )
    if any("/" in name or not name for name in given):
        raise fields.error("transports", "has a member whose name is empty or has a '/'; name it anew")
    members = {name: _whole(fields, f"transports.{redact(name)}", member) for name, member in given.items()}
    return {"type": "composite", "transports": members}


def _whole(fields: ConnectionFields, name: str, given: Any) -> dict[str, Any]:
    """Return a configuration that the user wrote down whole; only login and password are put in."""
    if not isinstance(given, Mapping) or not isinstance(given.get("type"), str) or not given["type"].strip():
        raise fields.error(
            name, 'has no \'type\'; give the configuration of a transport of openlineage-python: {"type": "http", …}'
        )
    if fields.password and "{password}" not in str(given) and name == "transport":
        raise fields.error("password", "is not used by 'transport'; write {password} where it belongs, or take it away")
    return dict(fields.filled(given))
