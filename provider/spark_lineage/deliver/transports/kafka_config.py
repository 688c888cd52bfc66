"""Makes the configuration of a Kafka transport from the fields of a connection; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_lineage.deliver.hooks.connection_types import ACKS, MECHANISMS, PROTOCOLS
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.secrets.redaction import redact

_WITH_LOGIN = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_DEFAULT_PORT = 9092
# Several names of one property (librdkafka's CONFIGURATION.md); ours first.
_ALIASES = {
    "bootstrap.servers": ("metadata.broker.list",),
    "sasl.mechanism": ("sasl.mechanisms",),
    "message.timeout.ms": ("delivery.timeout.ms",),
    "acks": ("request.required.acks",),
    "compression.type": ("compression.codec",),
}


def kafka_config(fields: ConnectionFields, *, default_topic: str = "") -> dict[str, Any]:
    """Return ``{"type": "kafka", "topic": …, "config": {…}}``; what ``properties`` says wins over the other keys.

    :raises SettingError: for a field that does not fit
    """
    topic = fields.text("topic") or default_topic
    if not topic:
        raise fields.error("topic", "is missing; give the Kafka topic that gets the events")
    properties = fields.filled(fields.texts("properties"))
    config = {
        "bootstrap.servers": _brokers(fields, properties),
        "message.timeout.ms": str(round(fields.timeout_seconds * 1000)),
        "acks": fields.choice("acks", ACKS),
        "compression.type": fields.choice("compression", _CODECS),
        **_tls(fields),
    }
    config |= _security(fields, properties, has_tls=any("ssl." in key for key in (*config, *properties)))
    overruled = {key for key, aliases in _ALIASES.items() if any(alias in properties for alias in aliases)}
    config = {key: value for key, value in config.items() if value and key not in overruled} | properties
    message_key = fields.text("message_key")
    return {"type": "kafka", "topic": topic, **({"messageKey": message_key} if message_key else {}), "config": config}


def _brokers(fields: ConnectionFields, properties: Mapping[str, str]) -> str:
    if properties.get("bootstrap.servers") or properties.get("metadata.broker.list"):
        return ""
    brokers = [broker.strip() for broker in fields.host.split(",") if broker.strip()]
    if not brokers:
        raise fields.error("host", "is empty; give the Kafka brokers, like 'broker1:9092,broker2:9092'")
    for broker in brokers:
        address = broker.rpartition("://")[2]
        if "@" in address or "/" in address or any(letter.isspace() for letter in address):
            raise fields.error(
                "host", f"is {redact(fields.host)!r}; give Kafka brokers, like 'broker1:9092,broker2:9092'"
            )
    return ",".join(broker if _has_port(broker) else f"{broker}:{fields.port or _DEFAULT_PORT}" for broker in brokers)


def _has_port(broker: str) -> bool:
    return broker.rpartition("://")[2].rpartition("]")[2].rpartition(":")[2].isdigit() and ":" in broker


def _tls(fields: ConnectionFields) -> dict[str, str]:
    found: dict[str, str] = {}
    verify = fields.boolean_or_path("verify")
    if isinstance(verify, str):
        found["ssl.ca.location"] = verify
    elif not verify:
        found["enable.ssl.certificate.verification"] = "false"
    certificate, key = fields.certificate()
    if certificate:
        # One file may hold both.
        found |= {"ssl.certificate.location": certificate, "ssl.key.location": key or certificate}
    return found


def _security(fields: ConnectionFields, properties: Mapping[str, str], *, has_tls: bool) -> dict[str, str]:
    chosen = fields.choice("sasl_mechanism", [each.lower() for each in MECHANISMS]).upper()
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or chosen
    found = {"sasl.mechanism": mechanism}
    if mechanism in _WITH_LOGIN and not properties.get("sasl.username"):
        if not fields.login or not (fields.password or properties.get("sasl.password")):
            raise fields.error("login", f"or the password is empty; {mechanism} needs both")
        found |= {"sasl.username": fields.login, "sasl.password": fields.password}
    elif fields.login and not mechanism:
        raise fields.error("sasl_mechanism", f"is missing, and there is a login; give one of {', '.join(MECHANISMS)}")
    if fields.schema.lower() not in ("", "ssl", "tls"):
        raise fields.error("schema", f"is {redact(fields.schema)!r}; for kind 'kafka' give 'ssl' or nothing")
    derived = ("sasl_" if mechanism else "") + ("ssl" if has_tls or fields.schema else "plaintext")
    found["security.protocol"] = fields.choice("security_protocol", PROTOCOLS, derived)
    return found
