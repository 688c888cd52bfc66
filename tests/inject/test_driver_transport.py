"""What the Java listener is told of a connection."""

from __future__ import annotations

import re

import pytest

from spark_lineage.deliver.transports.config import transport_config
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.inject.driver_transport import (
    REDACTION,
    REDACTION_KEY,
    driver_configuration,
    driver_properties,
    driver_transport,
    own_topic,
)
from spark_lineage.inject.properties import inject_transport
from spark_lineage.settings import SettingError

SECRET = "hunter2hunter2"  # noqa: S105
T = "spark.openlineage.transport."
HTTP = {"type": "http", "url": "http://127.0.0.1:5000"}
STRINGS = "org.apache.kafka.common.serialization.StringSerializer"


def of_connection(**fields) -> dict[str, str]:
    return driver_properties(transport_config(ConnectionFields("it", **fields)), "it")


def kafka(**config) -> dict[str, str]:
    """The Kafka properties of a configuration, without what all have."""
    given = {"type": "kafka", "topic": "t", "config": {"bootstrap.servers": "b:1", **config}}
    found = driver_configuration(given, "it")["properties"]
    assert (found.pop("key.serializer"), found.pop("value.serializer")) == (STRINGS, STRINGS)
    assert found.pop("bootstrap.servers") == "b:1"
    return found


def test_the_least():
    assert of_connection(host="http://127.0.0.1:5000") == {
        f"{T}type": "http",
        f"{T}url": "http://127.0.0.1:5000",
        f"{T}endpoint": "/api/v1/lineage",
        f"{T}timeoutInMillis": "5000",
    }


def test_http():
    extra = {
        "endpoint": "ol/lineage?a=b&c=d e",
        "compression": "gzip",
        "timeout_seconds": 2.5,
        "headers": {"X-Team": "sales"},
    }
    assert of_connection(host="https://h", password=SECRET, extra=extra) == {
        f"{T}type": "http",
        f"{T}url": "https://h",
        f"{T}endpoint": "/ol/lineage",
        f"{T}urlParams.a": "b",
        f"{T}urlParams.c": "d e",
        f"{T}timeoutInMillis": "2500",
        f"{T}compression": "gzip",
        f"{T}auth.type": "api_key",
        f"{T}auth.apiKey": SECRET,
        f"{T}headers.X-Team": "sales",
        REDACTION_KEY: REDACTION,
    }


@pytest.mark.parametrize(
    ("url", "endpoint", "path"),
    [
        ("http://h/base", "api/v1/lineage", "/api/v1/lineage"),
        ("http://h/base/", "api/v1/lineage", "/base/api/v1/lineage"),
        ("http://h/base/", "/other", "/other"),
    ],
)
def test_paths_are_joined_as_openlineage_python_does(url, endpoint, path):
    found = driver_properties({"type": "http", "url": url, "endpoint": endpoint}, "it")
    assert (found[f"{T}url"], found[f"{T}endpoint"]) == ("http://h", path)


def test_a_token_of_an_endpoint():
    auth = {"type": "jwt", "apiKey": SECRET, "tokenEndpoint": "https://t", "grant_type": "g", "tokenRefreshBuffer": 9}
    found = driver_configuration({**HTTP, "auth": auth}, "it")["auth"]
    assert found == {
        "type": "jwt",
        "apiKey": SECRET,
        "tokenEndpoint": "https://t",
        "grantType": "g",
        "tokenRefreshBuffer": "9",
    }


@pytest.mark.parametrize(
    ("fields", "secret_key"),
    [
        ({"password": SECRET}, "auth.apiKey"),
        ({"login": "me", "password": SECRET}, "headers.Authorization"),
        ({"password": SECRET, "extra": {"headers": {"X-Anything": "{password}"}}}, "headers.X-Anything"),
    ],
)  # fmt: skip
def test_secrets_are_masked_in_the_ui_and_off_the_command_line(fields, secret_key):
    found = of_connection(**{"host": "http://h", **fields})
    assert re.search(found[REDACTION_KEY], T + secret_key)
    conf, private = inject_transport({}, found, {"type": "file", "location": "/lineage/events.ndjson"})
    assert f"{T}transports.user.{secret_key}" in private
    assert not [value for value in conf.values() if SECRET in value]


def test_kafka():
    given = {"type": "kafka", "topic": "t", "messageKey": "k", "config": {"bootstrap.servers": "b:1"}}
    assert driver_properties(given, "it") == {
        f"{T}type": "kafka",
        f"{T}topicName": "t",
        f"{T}messageKey": "k",
        f"{T}properties.bootstrap.servers": "b:1",
        f"{T}properties.key.serializer": STRINGS,
        f"{T}properties.value.serializer": STRINGS,
    }


def test_kafka_names():
    assert kafka(**{"request.required.acks": "all", "compression.codec": "zstd", "client.id": "c"}) == {
        "acks": "all",
        "compression.type": "zstd",
        "client.id": "c",
    }


def test_kafka_properties_of_librdkafka_alone_are_left_to_java_to_pass_over():
    assert kafka(**{"queue.buffering.max.messages": "10"}) == {"queue.buffering.max.messages": "10"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-256", "scram.ScramLoginModule")],
)
def test_kafka_login(mechanism, module):
    login = {"sasl.username": "me", "sasl.password": 'a"b\\c'}
    assert kafka(**{"sasl.mechanisms": mechanism, "security.protocol": "sasl_ssl", **login}) == {
        "sasl.mechanism": mechanism,
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="me" password="a\\"b\\\\c";',
    }


def test_kafka_kerberos():
    given = {"sasl.mechanism": "GSSAPI", "sasl.kerberos.principal": "me@EXAMPLE", "sasl.kerberos.keytab": "/me.keytab"}
    assert kafka(**given)["sasl.jaas.config"] == (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        'keyTab="/me.keytab" principal="me@EXAMPLE";'
    )
    assert kafka(**{"sasl.mechanism": "GSSAPI"})["sasl.jaas.config"].endswith("required useTicketCache=true;")


def test_kafka_tls():
    given = {"ssl.ca.location": "/ca.pem", "ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"}
    assert kafka(**given) == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/me.pem",
    }


def test_kafka_times_fit_together():
    found = kafka(**{"message.timeout.ms": "5000", "linger.ms": "5"})
    assert float(found["delivery.timeout.ms"]) >= float(found["request.timeout.ms"]) + float(found["linger.ms"])
    assert found["max.block.ms"] == "5000"
    assert kafka(**{"message.timeout.ms": "60000"})["max.block.ms"] == "5000", "the job waits meanwhile"
    assert kafka(**{"message.timeout.ms": "700"})["max.block.ms"] == "700"


def test_console_and_file():
    assert driver_properties({"type": "console"}, "it") == {f"{T}type": "console"}
    file = {"type": "file", "log_file_path": "file:///var/e.ndjson", "append": True}
    assert driver_properties(file, "it") == {f"{T}type": "file", f"{T}location": "/var/e.ndjson"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"type": "composite"}, "is of kind 'composite', which the driver does not know; name one of http"),
        ({"type": "datadog"}, "is of kind 'datadog', which the driver does not know"),
        ({"type": "http", "url": f"http://me:{SECRET}@h"}, "has no URL that the listener can use"),
        ({**HTTP, "verify": False}, "has its own TLS settings"),
        ({**HTTP, "sslContext": {"caCertPath": "/ca.pem"}}, "has its own TLS settings"),
        ({**HTTP, "auth": {"type": "oauth2", "client_secret": SECRET}}, "has auth of type 'oauth2'"),
        ({**HTTP, "custom_headers": {"X.Y": "z"}}, "has a header with a dot in its name"),
        (
            {**HTTP, "auth": {"type": "api_key", "apiKey": f"[{SECRET}]"}},
            "has a value for .*auth.apiKey' that the listener",
        ),
        ({"type": "kafka", "config": {}}, "has no Kafka topic"),
        (
            {"type": "kafka", "topic": "t", "config": {"ssl.certificate.location": "/a", "ssl.key.location": "/b"}},
            "has certificate and key in two files",
        ),
        (
            {"type": "kafka", "topic": "t", "config": {"enable.ssl.certificate.verification": "false"}},
            "does not verify TLS",
        ),
        (
            {"type": "kafka", "topic": "t", "config": {"message.timeout.ms": "x"}},
            "has a Kafka time-out that is not a number",
        ),
        ({"type": "file", "log_file_path": "/e"}, "is of kind 'file', and not one local file"),
    ],
)
def test_what_the_driver_cannot_use(config, message):
    with pytest.raises(SettingError, match=f"the connection 'it' {message}") as raised:
        driver_properties(config, "it")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("password", [SECRET, 'with "quotes" and \\ too', "p;q=r, s"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_what_a_job_writes_to_is_read_with_the_same_login(mechanism, password):
    config = {
        "bootstrap.servers": "b:1,c:2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": "etl",
        "sasl.password": password,
    }
    transport = driver_transport({"type": "kafka", "topic": "events", "config": config}, "it", is_alone=True)
    assert transport.file is None
    assert own_topic(transport.properties) == ("events", config)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"properties.sasl.mechanism": "GSSAPI"}, "logs in by GSSAPI"),
        ({"properties.ssl.truststore.location": "/etc/trust.jks"}, "names stores of certificates"),
        ({"topicName": ""}, "names no topic"),
        ({"properties.bootstrap.servers": " "}, "names no topic or no bootstrap.servers"),
    ],
)
def test_a_topic_that_this_machine_cannot_read_as_the_job_does(change, problem):
    given = {"type": "kafka", "topicName": "events", "properties.bootstrap.servers": "b:1", **change}
    with pytest.raises(SettingError, match=f"{problem}.*driver_openlineage_conn_id"):
        own_topic({f"{T}{key}": value for key, value in given.items()})


def test_a_transport_that_is_there_is_taken_as_it_is_and_its_secrets_stay_in_a_file():
    users = {f"{T}type": "kafka", f"{T}topicName": "events", f"{T}properties.sasl.jaas.config": "secret"}
    conf, private = inject_transport({"spark.a": "b"}, users, {"type": "kafka"})
    assert conf == {"spark.a": "b", f"{T}type": "kafka", f"{T}topicName": "events"}
    assert private == {f"{T}properties.sasl.jaas.config": "secret"}
    assert inject_transport(users, {}, {"type": "kafka"}) == (users, {})
