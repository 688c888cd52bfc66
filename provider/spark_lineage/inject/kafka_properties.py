"""Translates librdkafka's properties into those of Kafka's Java producer; pure.

Sources: librdkafka's CONFIGURATION.md; ``ProducerConfig``, ``SslConfigs`` and ``SaslConfigs`` of ``org.apache.kafka``.
"""

from __future__ import annotations

from collections.abc import Mapping

# However long the connection may take for an event: the driver's job waits meanwhile, for each.
MAX_WAIT_MILLISECONDS = 5000
_SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer"
_RENAMED = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "request.required.acks": "acks",
    "compression.codec": "compression.type",
    "message.max.bytes": "max.request.size",
    "queue.buffering.max.ms": "linger.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.send.max.retries": "retries",
}
# The same in both.
_SAME = frozenset(
    {
        "acks", "batch.size", "bootstrap.servers", "client.dns.lookup", "client.id", "compression.type",
        "connections.max.idle.ms", "enable.idempotence", "linger.ms", "max.in.flight.requests.per.connection",
        "metadata.max.age.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms", "retries",
        "retry.backoff.ms", "sasl.kerberos.kinit.cmd", "sasl.kerberos.service.name", "sasl.mechanism",
        "security.protocol", "ssl.endpoint.identification.algorithm", "ssl.key.password",
    }
)  # fmt: skip
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
_TRANSLATED = frozenset(
    {
        "delivery.timeout.ms", "enable.ssl.certificate.verification", "message.timeout.ms", "sasl.kerberos.keytab",
        "sasl.kerberos.principal", "sasl.password", "sasl.username", "ssl.ca.location", "ssl.certificate.location",
        "ssl.key.location",
    }
)  # fmt: skip


def java_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a Java producer that writes texts.

    :raises ValueError: for a property that Java has nothing for; the text says which, and what to do
    """
    found = {"key.serializer": _SERIALIZER, "value.serializer": _SERIALIZER}
    for key, value in given.items():
        if key in _SAME:
            found[key] = value
        elif key in _RENAMED:
            found[_RENAMED[key]] = value
        elif key not in _TRANSLATED:
            raise ValueError(
                f"has the Kafka property {key!r}, unknown to the driver's Kafka client; take it out of the "
                f"connection of the driver"
            )
    found |= _timeout(given) | _tls(given)
    # Java's names are in upper case only.
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].upper()
    if jaas := _jaas(found.get("sasl.mechanism", ""), given):
        found["sasl.jaas.config"] = jaas
    return found


def _timeout(given: Mapping[str, str]) -> dict[str, str]:
    text = given.get("message.timeout.ms") or given.get("delivery.timeout.ms")
    if not text:
        return {}
    # ProducerConfig wants delivery.timeout.ms >= linger.ms + request.timeout.ms; max.block.ms holds up the driver.
    request = given.get("request.timeout.ms", text)
    linger = given.get("linger.ms") or given.get("queue.buffering.max.ms") or "0"
    try:
        delivery = max(float(text), float(request) + float(linger))
    except ValueError as error:
        raise ValueError("has a Kafka time-out that is no number; correct it") from error
    return {
        "delivery.timeout.ms": f"{delivery:.0f}",
        "request.timeout.ms": request,
        "max.block.ms": f"{min(float(text), MAX_WAIT_MILLISECONDS):.0f}",
        "linger.ms": linger,
    }


def _tls(given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if given.get("enable.ssl.certificate.verification", "").lower() == "false":
        raise ValueError(
            "does not verify TLS, without which the driver's Kafka client cannot be; give 'verify' a CA file"
        )
    if authority := given.get("ssl.ca.location"):
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    certificate, key = given.get("ssl.certificate.location"), given.get("ssl.key.location")
    if certificate and key and certificate != key:
        raise ValueError(
            "has certificate and key in two files; the driver's Kafka client wants both in one PEM file (with the key "
            "in PKCS#8): give it as 'client_cert', without 'client_key'"
        )
    if certificate:
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate}
    return found


def _jaas(mechanism: str, given: Mapping[str, str]) -> str:
    """The login of ``sasl.jaas.config`` (Kafka's documentation, Security, Authentication using SASL)."""
    if module := _LOGIN.get(mechanism):
        user, password = _quoted(given.get("sasl.username", "")), _quoted(given.get("sasl.password", ""))
        return f"{module} required username={user} password={password};"
    if mechanism != "GSSAPI":
        return ""
    keytab, principal = given.get("sasl.kerberos.keytab"), given.get("sasl.kerberos.principal")
    if not keytab or not principal:
        return f"{_KERBEROS} required useTicketCache=true;"
    options = f"useKeyTab=true storeKey=true keyTab={_quoted(keytab)} principal={_quoted(principal)}"
    return f"{_KERBEROS} required {options};"


def _quoted(text: str) -> str:
    """A text of JAAS, as its ``StreamTokenizer`` reads it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
