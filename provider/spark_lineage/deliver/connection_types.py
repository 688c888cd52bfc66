"""The connection types ``openlineage`` and ``atlas`` and their forms, as ``provider_info`` declares them to Airflow.

The form has a section for each ``section`` of a schema, where its first field stands; fields without one come first.
"""

from __future__ import annotations

from typing import Any

KINDS = ("http", "marquez", "kafka", "file", "console", "composite")
ACKS = ("all", "1", "0")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_HTTP, _KAFKA, _OTHERS = "HTTP", "Kafka", "Composite and others"
_TLS = "TLS of HTTP and Kafka"


def connection_types() -> list[dict[str, Any]]:
    """Return the value of ``connection-types`` in the provider's metadata."""
    return [_OPENLINEAGE, _ATLAS]


def _field(label: str, description: str, kind: str = "string", **schema: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": [kind, "null"], **schema}}


def _choice(label: str, description: str, unset: str, *values: str, **schema: Any) -> dict[str, Any]:
    """Return a field with a list; ``unset`` is shown where nothing is chosen, for Airflow would show ``null``."""
    return _field(label, description, enum=[None, *values], values_display={"null": unset}, **schema)


_TIMEOUT = _field("Timeout in seconds", "To connect, or for the acknowledgement of Kafka; 10 by default.", "number")
_HEADERS = _field("Headers", 'A JSON object, like {"X-Api-Key": "{password}"}.', "object", section=_HTTP)
_VERIFY = "true (the default), false, or the path of a file of certificate authorities."
_CERTIFICATE = "Path of a PEM file on the workers; it may hold the key too."
_MEMBERS = 'Of kind composite: {"name": {"type": "http", "url": "http://127.0.0.1:5000"}}.'
_PROPERTIES = 'Any of librdkafka: {"sasl.kerberos.principal": "airflow@EXAMPLE"}.'
_PROTOCOL = ("Security protocol", "Whether TLS and a login are used.", "as the other fields say (default)")
_KEY = "By default the name of the parent's or the run's job, which keeps events in order."
_TLS_FIELDS = {
    "verify": _field("Verify TLS", _VERIFY, section=_TLS),
    "client_cert": _field("Client certificate", _CERTIFICATE, section=_TLS),
    "client_key": _field("Client key", "Path of a PEM file on the workers, without a passphrase.", section=_TLS),
}
_KAFKA_FIELDS = {
    "acks": _choice("Acks", "Which brokers must have an event.", "all (default)", *ACKS, section=_KAFKA),
    "sasl_mechanism": _choice(
        "SASL mechanism", "The SASL mechanism for login and password.", "none (default)", *MECHANISMS, section=_KAFKA
    ),
    "security_protocol": _choice(*_PROTOCOL, *PROTOCOLS, section=_KAFKA),
    "properties": _field("Properties", _PROPERTIES, "object", section=_KAFKA),
}


def _declared(conn_type: str, hook: str, name: str, labels: dict[str, str], url: str, **fields: Any) -> dict[str, Any]:
    return {
        "connection-type": conn_type,
        "hook-class-name": hook,
        "hook-name": name,
        "ui-field-behaviour": {
            "hidden-fields": [],
            "relabeling": {"schema": "Scheme", **labels},
            "placeholders": {"host": url, "schema": "http, https; may be in the URL"},
        },
        "conn-fields": fields,
    }


_OPENLINEAGE = _declared(
    "openlineage",
    "spark_lineage.deliver.hooks.OpenLineageHook",
    "OpenLineage",
    {
        "host": "URL, Kafka brokers, or file",
        "login": "Login (basic, SASL)",
        "password": "API key, token, or password",
    },
    "http://127.0.0.1:5000",
    kind=_choice("Kind", "Where events are sent.", "http (default)", *KINDS),
    namespace=_field("Namespace", "OpenLineage namespace of the jobs; that of Airflow's provider by default."),
    timeout_seconds=_TIMEOUT,
    compression=_field("Compression", "None by default. Over HTTP: gzip. Over Kafka: gzip, snappy, lz4 or zstd."),
    endpoint=_field("Endpoint", "The path that takes events; api/v1/lineage by default.", section=_HTTP),
    headers=_HEADERS,
    topic=_field("Topic", "The topic that gets the events.", section=_KAFKA),
    message_key=_field("Message key", _KEY, section=_KAFKA),
    **_KAFKA_FIELDS,
    **_TLS_FIELDS,
    transports=_field("Members", _MEMBERS, "object", section=_OTHERS),
    transport=_field(
        "Transport", "A complete transport configuration of openlineage-python.", "object", section=_OTHERS
    ),
)

_ATLAS = _declared(
    "atlas",
    "spark_lineage.atlas.hook.AtlasHook",
    "Apache Atlas",
    {"host": "URL, or Kafka brokers", "password": "Password, or token"},
    "http://127.0.0.1:21000",
    kind=_choice("Kind", "The REST API, or notifications over Kafka.", "rest (default)", "rest", "kafka"),
    namespace=_field("Namespace", "What follows @ in a qualified name where no host pattern fits; primary by default."),
    granularity=_choice(
        "Granularity", "A process for the task, or one for each output.", "task (default)", "task", "path"
    ),
    columns=_choice("Columns", "Whether columns have lineage.", "lineage (default)", "lineage", "none"),
    warehouse=_field(
        "Warehouse", "Directories of Hive's tables; a path in one is the table. One a line, or ; between."
    ),
    timeout_seconds=_TIMEOUT,
    headers=_HEADERS,
    topic=_field("Topic", "ATLAS_HOOK by default.", section=_KAFKA),
    rest_conn_id=_field("REST connection", "The atlas connection that creates types.", section=_KAFKA),
    compression=_field("Compression", "None by default; gzip, snappy, lz4 or zstd.", section=_KAFKA),
    **_KAFKA_FIELDS,
    **_TLS_FIELDS,
)

OPENLINEAGE_KEYS, ATLAS_KEYS = (frozenset(each["conn-fields"]) for each in (_OPENLINEAGE, _ATLAS))
