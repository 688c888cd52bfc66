"""The connection types ``openlineage`` and ``atlas`` and their forms, as ``provider_info`` declares them to Airflow.

The form has a section for each section of a field, where its first field stands; fields without a section come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

KINDS = ("http", "marquez", "kafka", "file", "console", "composite")
ACKS = ("all", "1", "0")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_HTTP, _KAFKA, _OTHERS = "HTTP", "Kafka", "Composite and others"
_TLS = "TLS of HTTP and Kafka"


class _Field(NamedTuple):
    """A key of the extra; ``unset`` is shown where none of the ``choices`` is chosen, for Airflow would show null."""

    label: str
    description: str
    section: str = ""
    type: str = "string"
    choices: tuple[str, ...] = ()
    unset: str = ""


_VERIFY = "true (the default), false, or the path of a file of certificate authorities."
_CERTIFICATE = "Path of a PEM file on the workers; it may hold the key too."
_MEMBERS = 'Of kind composite: {"name": {"type": "http", "url": "http://127.0.0.1:5000"}}.'
_PROPERTIES = 'Any of librdkafka: {"sasl.kerberos.principal": "airflow@EXAMPLE"}.'
_WAREHOUSE = "Directories of Hive's tables; a path in one is the table. One a line, or ; between."
_NAMESPACE = "What follows @ in a qualified name where no host pattern fits; primary by default."
_SHARED = {
    "timeout_seconds": _Field("Timeout in seconds", "For the whole request and its answer; 10 by default.", "", "number"),
    "headers": _Field("Headers", 'A JSON object, like {"X-Api-Key": "{password}"}.', _HTTP, "object"),
    "acks": _Field("Acks", "Which brokers must have an event.", _KAFKA, "string", ACKS, "all (default)"),
    "sasl_mechanism": _Field(
        *("SASL mechanism", "The SASL mechanism for login and password.", _KAFKA, "string", MECHANISMS, "none (default)")
    ),
    "security_protocol": _Field(
        *("Security protocol", "Whether TLS and a login are used.", _KAFKA, "string", PROTOCOLS),
        "as the other fields say (default)",
    ),
    "properties": _Field("Properties", _PROPERTIES, _KAFKA, "object"),
    "verify": _Field("Verify TLS", _VERIFY, _TLS),
    "client_cert": _Field("Client certificate", _CERTIFICATE, _TLS),
    "client_key": _Field("Client key", "Path of a PEM file on the workers, without a passphrase.", _TLS),
}
