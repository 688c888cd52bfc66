"""The connection types ``openlineage`` and ``atlas`` and their forms, as ``provider_info`` declares them to Airflow.

A form has sections of fields: label and description, and for a choice the text of no choice (Airflow would show
``null``) before the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KINDS = ("http", "marquez", "kafka", "file", "console", "composite")
ACKS = ("all", "1", "0")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")

_Form = Mapping[str, Mapping[str, tuple[str, ...]]]
# The types of the fields that are no text.
_TYPES = {"timeout_seconds": "number", **dict.fromkeys(("headers", "properties", "transports", "transport"), "object")}
_TIMEOUT = ("Timeout in seconds", "For the whole request and its answer; 10 by default.")
_HEADERS = ("Headers", 'A JSON object, like {"X-Api-Key": "{password}"}.')
_KAFKA = {
    "acks": ("Acks", "Which brokers must have an event.", "all (default)", *ACKS),
    "sasl_mechanism": ("SASL mechanism", "The SASL mechanism for login and password.", "none (default)", *MECHANISMS),
    "security_protocol": (
        *("Security protocol", "Whether TLS and a login are used.", "as the other fields say (default)", *PROTOCOLS),
    ),
    "properties": ("Properties", 'Any of librdkafka: {"sasl.kerberos.principal": "airflow@EXAMPLE"}.'),
}
_TLS = {
    "verify": ("Verify TLS", "true (the default), false, or the path of a file of certificate authorities."),
    "client_cert": ("Client certificate", "Path of a PEM file on the workers; it may hold the key too."),
    "client_key": ("Client key", "Path of a PEM file on the workers, without a passphrase."),
}
_MESSAGE_KEY = "By default the name of the parent's or the run's job, which keeps events in order."
_OPENLINEAGE: _Form = {
    "": {
        "kind": ("Kind", "Where events are sent.", "http (default)", *KINDS),
        "namespace": ("Namespace", "OpenLineage namespace of the jobs; that of Airflow's provider by default."),
        "timeout_seconds": _TIMEOUT,
        "compression": ("Compression", "None by default. Over HTTP: gzip. Over Kafka: gzip, snappy, lz4 or zstd."),
    },
    "HTTP": {
        "endpoint": ("Endpoint", "The path that takes events; api/v1/lineage by default."),
        "headers": _HEADERS,
    },
    "Kafka": {
        "topic": ("Topic", "The topic that gets the events."),
        "message_key": ("Message key", _MESSAGE_KEY),
        **_KAFKA,
    },
    "TLS of HTTP and Kafka": _TLS,
    "Composite and others": {
        "transports": ("Members", 'Of kind composite: {"name": {"type": "http", "url": "http://127.0.0.1:5000"}}.'),
        "transport": ("Transport", "A complete transport configuration of openlineage-python."),
    },
}
_NAMESPACE = "What follows @ in a qualified name where no host pattern fits; primary by default."
_WAREHOUSE = "Directories of Hive's tables; a path in one is the table. One a line, or ; between."
_ATLAS: _Form = {
    "": {
        "kind": ("Kind", "The REST API, or notifications over Kafka.", "rest (default)", "rest", "kafka"),
        "namespace": ("Namespace", _NAMESPACE),
        "granularity": (
            "Granularity",
            "A process for the task, or one for each output.",
            "task (default)",
            "task",
            "path",
        ),
        "columns": ("Columns", "Whether columns have lineage.", "lineage (default)", "lineage", "none"),
        "warehouse": ("Warehouse", _WAREHOUSE),
        "timeout_seconds": _TIMEOUT,
    },
    "HTTP": {"headers": _HEADERS},
    "Kafka": {
        "topic": ("Topic", "ATLAS_HOOK by default."),
        "rest_conn_id": ("REST connection", "The atlas connection that creates types."),
        "compression": ("Compression", "None by default; gzip, snappy, lz4 or zstd."),
        **_KAFKA,
    },
    "TLS of HTTP and Kafka": _TLS,
}
OPENLINEAGE_KEYS, ATLAS_KEYS = (frozenset[str]().union(*form.values()) for form in (_OPENLINEAGE, _ATLAS))


def connection_types() -> list[dict[str, Any]]:
    """Return the value of ``connection-types`` in the provider's metadata."""
    labels = {"host": "URL, Kafka brokers, or file", "login": "Login (basic, SASL)"}
    labels |= {"password": "API key, token, or password"}
    of_atlas = {"host": "URL, or Kafka brokers", "password": "Password, or token"}
    return [
        _declared("openlineage", "deliver.hooks.OpenLineageHook", labels, _OPENLINEAGE, name="OpenLineage", port=5000),
        _declared("atlas", "atlas.hook.AtlasHook", of_atlas, _ATLAS, name="Apache Atlas", port=21000),
    ]


def _declared(
    conn_type: str, hook: str, labels: Mapping[str, str], form: _Form, *, name: str, port: int
) -> dict[str, Any]:
    return {
        "connection-type": conn_type,
        "hook-class-name": f"spark_lineage.{hook}",
        "hook-name": name,
        "ui-field-behaviour": {
            "hidden-fields": [],
            "relabeling": {"schema": "Scheme", **labels},
            "placeholders": {"host": f"http://127.0.0.1:{port}", "schema": "http, https; may be in the URL"},
        },
        "conn-fields": {
            key: _field(key, section, *texts) for section, fields in form.items() for key, texts in fields.items()
        },
    }


def _field(key: str, section: str, label: str, description: str, unset: str = "", *choices: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": [_TYPES.get(key, "string"), "null"]}
    if choices:
        schema |= {"enum": [None, *choices], "values_display": {"null": unset}}
    if section:
        schema["section"] = section
    return {"label": label, "description": description, "schema": schema}
