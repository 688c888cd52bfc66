"""Translates a transport configuration of openlineage-python into that of the Java listener; pure.

Names: ``HttpConfig``, ``KafkaConfig`` and ``FileConfig`` of ``io.openlineage.client.transports``; librdkafka's
CONFIGURATION.md; ``ProducerConfig``, ``SslConfigs`` and ``SaslConfigs`` of ``org.apache.kafka``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from spark_lineage.inject.properties import PREFIX, REDACTION_KEY, looks_secret
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

# However long the connection may take for an event: the driver's job waits meanwhile, for each.
_MAX_WAIT_MILLISECONDS = 5000
_JWT = ("token_endpoint", "expires_in_field", "grant_type", "response_type", "token_refresh_buffer")
_SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer"
# Of librdkafka, by the name of Java's producer; None for what is translated together with others.
_KAFKA_NAMES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "request.required.acks": "acks",
    "compression.codec": "compression.type",
    "message.max.bytes": "max.request.size",
    "queue.buffering.max.ms": "linger.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.send.max.retries": "retries",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.certificate.location": "ssl.keystore.location",
    **dict.fromkeys(("ssl.key.location", "enable.ssl.certificate.verification")),
    **dict.fromkeys(("message.timeout.ms", "delivery.timeout.ms", "sasl.username", "sasl.password")),
    **dict.fromkeys(("sasl.kerberos.keytab", "sasl.kerberos.principal")),
}
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
}
# What librdkafka calls as Java does.
_READER_KEYS = ("bootstrap.servers", "security.protocol", "sasl.mechanism", "client.dns.lookup")
_LOGIN_OPTIONS = re.compile(r'\b(username|password)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s;"]+))')
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
# Spark's own, and what the listener's keys are called; the names of headers and of URL parameters are anybody's.
REDACTION = "(?i)secret|password|token|access[.]?key|api[.]?key|authorization|sasl|[.]headers[.]|[.]urlParams[.]"


@dataclass(frozen=True)
class DriverTransport:
    """What the driver sends its raw events with: Spark properties, or what goes into a file; neither for nothing."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    file: Mapping[str, Any] | None = field(default=None, repr=False)


def driver_transport(config: Mapping[str, Any], name: str, *, is_alone: bool = False) -> DriverTransport:
    """Return the driver's own transport, in the form that the listener understands for its kind.

    :param config: as ``OpenLineageHook.transport_config()`` returns it
    :param is_alone: whether it gets no transport of ours beside it
    :raises SettingError: for a configuration that the listener cannot use
    """
    if config.get("type") == "kafka" and not is_alone:
        return DriverTransport(file=driver_configuration(config, name))
    return DriverTransport(properties=driver_properties(config, name))


def own_topic(properties: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the topic that a job's own Kafka transport writes to, and how librdkafka reaches its brokers.

    :raises SettingError: where librdkafka has no such settings
    """
    prefix, given = f"{PREFIX}properties.", {}
    for key, value in properties.items():
        if key.startswith(prefix):
            given[key.removeprefix(prefix)] = value.strip()
    topic = properties.get(f"{PREFIX}topicName", "").strip()
    config = {key: given[key] for key in _READER_KEYS if given.get(key)}
    if login := _LOGIN_OPTIONS.findall(given.get("sasl.jaas.config", "")):
        config |= {f"sasl.{name}": re.sub(r"\\(.)", r"\1", quoted or plain) for name, quoted, plain in login}
    stores = [key for key in given if key.startswith("ssl.") and key.endswith("store.location")]
    problem = "names stores of certificates" if stores else ""
    if config.get("sasl.mechanism", "PLAIN") not in _LOGIN:
        problem = f"logs in by {redact(config['sasl.mechanism'])}"
    if not topic or "bootstrap.servers" not in config:
        problem = "names no topic or no bootstrap.servers in Spark's properties"
    if problem:
        remedy = "name a connection of type openlineage to the same topic as driver_openlineage_conn_id"
        raise SettingError(f"the job's own Kafka transport {problem}, which this machine cannot read with; {remedy}")
    return topic, config


def driver_properties(config: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return ``spark.openlineage.transport.*`` for the driver's own transport.

    With ``spark.redaction.regex`` when a secret is among them, which the driver's UI would show. Arguments and errors
    are those of ``driver_transport``.
    """
    properties = dict(_flat(driver_configuration(config, name), PREFIX))
    for key, value in properties.items():
        if not value.strip() or "\n" in value or (value.startswith("[") and value.endswith("]")):
            # ArgumentParser leaves out what is blank, and reads brackets as a list, with which all is lost.
            problem = f"has a value for {key!r} that the listener misreads: blank, in brackets, or of two lines"
            raise SettingError(f"the connection {name!r} {problem}")
    if any(looks_secret(key, value) for key, value in properties.items()):
        properties[REDACTION_KEY] = REDACTION
    return properties


def driver_configuration(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the same as the nested configuration that ``openlineage.yml`` has below ``transport``."""
    kind = str(config.get("type"))
    if kind not in _KINDS:
        problem = f"is of kind {redact(kind)!r}, which the driver does not know; name one of http or kafka"
        raise SettingError(f"the connection {name!r} {problem}")
    try:
        return _KINDS[kind](config)
    except ValueError as error:
        raise SettingError(f"the connection {name!r} {error}") from error


def _http(config: Mapping[str, Any]) -> dict[str, Any]:
    url, endpoint = _address(config)
    found: dict[str, Any] = {"type": "http", "url": url, "endpoint": endpoint.path}
    if endpoint.query:
        # In the endpoint the question mark would be quoted.
        found["urlParams"] = dict(parse_qsl(endpoint.query, keep_blank_values=True))
    if "timeout" in config:
        # The job waits meanwhile. The listener's own default.
        found["timeoutInMillis"] = str(min(round(float(config["timeout"]) * 1000), _MAX_WAIT_MILLISECONDS))
    if auth := config.get("auth"):
        found["auth"] = _auth(auth)
    if compression := config.get("compression"):
        found["compression"] = str(compression)
    headers = {str(key): str(value) for key, value in (config.get("custom_headers") or {}).items()}
    if any("." in key for key in headers):
        raise ValueError("has a header with a dot in its name, which the listener takes for a key")
    if headers:
        found["headers"] = headers
    tls = config.get("sslContext") or config.get("ssl_context") or {}
    if tls or config.get("verify") not in (None, True):
        raise ValueError(
            "has its own TLS settings, which the listener cannot use: it reads Java's trust store and key store. Put "
            "the certificates there (spark.driver.extraJavaOptions=-Djavax.net.ssl.trustStore=...), and give the "
            "driver a connection without 'verify', 'client_cert' and 'client_key'"
        )
    return found


def _address(config: Mapping[str, Any]) -> tuple[str, Any]:
    parts = urlsplit(str(config.get("url") or ""))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise ValueError("has no URL that the listener can use; give one like http://host:5000, without a login in it")
    endpoint = urlsplit(str(config.get("endpoint") or "/api/v1/lineage"))
    # As urljoin does it: the path of the URL counts only with a slash at its end.
    base = parts.path.rpartition("/")[0]
    path = endpoint.path if endpoint.path.startswith("/") else f"{base}/{endpoint.path}"
    return f"{parts.scheme}://{parts.netloc}", endpoint._replace(path=path)


def _auth(auth: Mapping[str, Any]) -> dict[str, Any]:
    kind = auth.get("type")
    key = auth.get("apiKey") or auth.get("apikey") or auth.get("api_key")
    if kind == "api_key" and key:
        return {"type": "api_key", "apiKey": str(key)}
    # openlineage-python takes both spellings.
    names = {re.sub("_(.)", lambda letter: letter[1].upper(), name): name for name in _JWT}
    told = {name: str(value) for name, other in names.items() if (value := auth.get(name) or auth.get(other))}
    if kind == "jwt" and key and "tokenEndpoint" in told:
        return {"type": "jwt", "apiKey": str(key), **told}
    raise ValueError(f"has auth of type {redact(str(kind))!r}, which the driver does not know; give api_key or jwt")


def _kafka(config: Mapping[str, Any]) -> dict[str, Any]:
    topic = config.get("topic")
    if not topic:
        raise ValueError("has no Kafka topic; give one")
    given = {str(key): str(value) for key, value in (config.get("config") or {}).items()}
    found: dict[str, Any] = {"type": "kafka", "topicName": str(topic)}
    if key := config.get("messageKey") or config.get("message_key"):
        found["messageKey"] = str(key)
    if given.get("enable.ssl.certificate.verification", "").lower() == "false":
        raise ValueError(
            "does not verify TLS, without which the driver's Kafka client cannot be; give 'verify' a CA file"
        )
    certificate, private_key = given.get("ssl.certificate.location"), given.get("ssl.key.location")
    if certificate and private_key and certificate != private_key:
        raise ValueError(
            "has certificate and key in two files; the driver's Kafka client wants both in one PEM file (with the key "
            "in PKCS#8): give it as 'client_cert', without 'client_key'"
        )
    found["properties"] = _java_properties(given)
    return found


def _java_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a Java producer that writes texts; it passes over those that it does not know."""
    found = {"key.serializer": _SERIALIZER, "value.serializer": _SERIALIZER}
    found |= {name: value for key, value in given.items() if (name := _KAFKA_NAMES.get(key, key))}
    if timeout := given.get("message.timeout.ms") or given.get("delivery.timeout.ms"):
        # ProducerConfig wants delivery.timeout.ms >= linger.ms + request.timeout.ms; max.block.ms holds up the driver.
        found = {"request.timeout.ms": timeout, "linger.ms": "0", **found}
        try:
            delivery = max(float(timeout), float(found["request.timeout.ms"]) + float(found["linger.ms"]))
        except ValueError as error:
            raise ValueError("has a Kafka time-out that is not a number; correct it") from error
        found["delivery.timeout.ms"] = f"{delivery:.0f}"
        found["max.block.ms"] = f"{min(float(timeout), _MAX_WAIT_MILLISECONDS):.0f}"
    for key, store in (("ssl.ca.location", "truststore"), ("ssl.certificate.location", "keystore")):
        if key in given:
            found[f"ssl.{store}.type"] = "PEM"
    # Java's names are in upper case only.
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].upper()
    if jaas := _jaas(found.get("sasl.mechanism", ""), given):
        found["sasl.jaas.config"] = jaas
    return found


def _jaas(mechanism: str, given: Mapping[str, str]) -> str:
    """Return the login of ``sasl.jaas.config`` (Kafka's documentation, Security, Authentication using SASL)."""
    if module := _LOGIN.get(mechanism):
        user, password = _quoted(given.get("sasl.username", "")), _quoted(given.get("sasl.password", ""))
        return f"{module} required username={user} password={password};"
    if mechanism != "GSSAPI":
        return ""
    keytab, principal = given.get("sasl.kerberos.keytab"), given.get("sasl.kerberos.principal")
    options = "useTicketCache=true"
    if keytab and principal:
        options = f"useKeyTab=true storeKey=true keyTab={_quoted(keytab)} principal={_quoted(principal)}"
    return f"{_KERBEROS} required {options};"


def _quoted(text: str) -> str:
    # As the ``StreamTokenizer`` of JAAS reads it.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _file(config: Mapping[str, Any]) -> dict[str, Any]:
    path = str(config.get("log_file_path") or "").removeprefix("file://")
    if not path.startswith("/") or not config.get("append"):
        raise ValueError(
            "is of kind 'file', and not one local file that is appended to, which is all that the driver can"
        )
    return {"type": "file", "location": path}


def _flat(given: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in given.items():
        yield from _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else [(f"{prefix}{key}", value)]


_KINDS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "http": _http,
    "async_http": _http,
    "kafka": _kafka,
    "console": lambda _: {"type": "console"},
    "file": _file,
}
