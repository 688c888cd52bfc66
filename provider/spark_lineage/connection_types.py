"""The connection types ``openlineage`` and ``atlas`` and their forms, as ``provider_info`` declares them to Airflow."""

from __future__ import annotations

from typing import Any


def connection_types() -> list[dict[str, Any]]:
    """Give the value of ``connection-types`` in the provider's metadata."""
    return [_OPENLINEAGE, _ATLAS]


def _field(label: str, description: str, kind: str = "string", **schema: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": [kind, "null"], **schema}}


_VERIFY = _field("Verify TLS", "true (the default), false, or the path of a file of certificate authorities.")
_CERTIFICATE = _field("Client certificate", "Path of a PEM file on the workers; it may hold the key too.")
_KEY = _field("Client key", "Path of a PEM file on the workers, without a passphrase.")
_TIMEOUT = _field("Timeout in seconds", "For the connection, and for each wait for an answer; 10 by default.", "number")
_HEADERS = _field("Headers", 'HTTP: a JSON object, like {"X-Api-Key": "{password}"}.', "object")
_PROPERTIES = _field("Kafka properties", 'Any of librdkafka: {"sasl.kerberos.principal": "airflow@EXAMPLE"}.', "object")
_MECHANISM = _field(
    "SASL mechanism",
    "Kafka: how login and password are proved.",
    enum=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", None],
)
_PROTOCOL = _field(
    "Security protocol",
    "Kafka; made of the other fields where it is empty.",
    enum=["plaintext", "ssl", "sasl_plaintext", "sasl_ssl", None],
)

_OPENLINEAGE: dict[str, Any] = {
    "connection-type": "openlineage",
    "hook-class-name": "spark_lineage.hooks.openlineage.OpenLineageHook",
    "hook-name": "OpenLineage",
    "ui-field-behaviour": {
        "hidden-fields": [],
        "relabeling": {
            "host": "URL, Kafka brokers, or file",
            "schema": "Scheme",
            "login": "Login (basic, SASL)",
            "password": "API key, token, or password",
        },
        "placeholders": {"host": "http://127.0.0.1:5000", "schema": "http, https; may be in the URL"},
    },
    "conn-fields": {
        "kind": _field(
            "Kind",
            "How events leave; http by default.",
            enum=["http", "marquez", "kafka", "file", "console", "composite", None],
        ),
        "namespace": _field("Namespace", "OpenLineage namespace of the jobs; that of Airflow's provider by default."),
        "endpoint": _field("Endpoint", "HTTP: the path that takes events; api/v1/lineage by default."),
        "headers": _HEADERS,
        "compression": _field("Compression", "HTTP: gzip. Kafka: gzip, snappy, lz4 or zstd."),
        "verify": _VERIFY,
        "client_cert": _CERTIFICATE,
        "client_key": _KEY,
        "timeout_seconds": _TIMEOUT,
        "topic": _field("Kafka topic", "The topic that gets the events."),
        "message_key": _field(
            "Kafka message key", "By default of the parent's or the run's job, which keeps their order."
        ),
        "acks": _field("Kafka acks", "all by default.", enum=["all", "1", "0", None]),
        "sasl_mechanism": _MECHANISM,
        "security_protocol": _PROTOCOL,
        "properties": _PROPERTIES,
        "transports": _field(
            "Members", 'Composite: {"name": {"type": "http", "url": "http://127.0.0.1:5000"}}.', "object"
        ),
        "transport": _field("Transport", "A whole configuration of openlineage-python, of any type.", "object"),
    },
}

_ATLAS: dict[str, Any] = {
    "connection-type": "atlas",
    "hook-class-name": "spark_lineage.hooks.atlas.AtlasHook",
    "hook-name": "Apache Atlas",
    "ui-field-behaviour": {
        "hidden-fields": [],
        "relabeling": {"host": "URL, or Kafka brokers", "schema": "Scheme", "password": "Password, or token"},
        "placeholders": {"host": "http://127.0.0.1:21000", "schema": "http, https; may be in the URL"},
    },
    "conn-fields": {
        "kind": _field("Kind", "REST by default, or Kafka notifications.", enum=["rest", "kafka", None]),
        "headers": _HEADERS,
        "verify": _VERIFY,
        "client_cert": _CERTIFICATE,
        "client_key": _KEY,
        "timeout_seconds": _TIMEOUT,
        "topic": _field("Kafka topic", "ATLAS_HOOK by default."),
        "acks": _field("Kafka acks", "all by default.", enum=["all", "1", "0", None]),
        "compression": _field("Kafka compression", "gzip, snappy, lz4 or zstd."),
        "sasl_mechanism": _MECHANISM,
        "security_protocol": _PROTOCOL,
        "properties": _PROPERTIES,
    },
}
