"""What the fields of a connection become."""

from __future__ import annotations

import base64
import json

import pytest
from airflow.models.connection import Connection as CoreConnection
from airflow.sdk import Connection as SdkConnection

from spark_lineage.deliver.connections import ConnectionFields, members_of, namespace_of, transport_config
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

URL = "http://127.0.0.1:5000"
ENDPOINT = "/api/v1/lineage"
SECRET = "hunter2hunter2"  # noqa: S105


def config(**fields) -> dict:
    return transport_config(ConnectionFields("marquez", **fields))


def http(**fields) -> dict:
    return config(host=URL, **fields)


def kafka(**extra) -> dict:
    login = {name: extra.pop(name) for name in ("host", "login", "password", "port", "schema") if name in extra}
    return config(**{"host": "b1:9092", **login}, extra={"kind": "kafka", "topic": "events", **extra})


def test_the_least_that_works():
    assert http() == {"type": "http", "url": URL, "endpoint": ENDPOINT, "timeout": 10.0, "verify": True}


@pytest.mark.parametrize("connection", [CoreConnection, SdkConnection])
@pytest.mark.parametrize(
    "uri",
    [
        "openlineage://http%3A%2F%2F127.0.0.1%3A5000",
        "openlineage://http://127.0.0.1:5000",
        "openlineage://127.0.0.1:5000/http",
        "openlineage://127.0.0.1:5000",
        "openlineage://127.0.0.1:5000/?endpoint=api%2Fv1%2Flineage",
        "openlineage://@/?__extra__=" + "%7B%22transport%22%3A+%7B%22type%22%3A+%22http%22%2C+%22url%22%3A+"
        "%22http%3A%2F%2F127.0.0.1%3A5000%22%2C+%22endpoint%22%3A+%22%2Fapi%2Fv1%2Flineage%22%7D%7D",
    ],
)
def test_uris(connection, uri):
    found = transport_config(ConnectionFields.of(connection(conn_id="marquez", uri=uri)))
    assert (found["url"], found["endpoint"]) == (URL, ENDPOINT)


@pytest.mark.parametrize("connection", [CoreConnection, SdkConnection])
def test_a_uri_has_numbers_and_booleans_as_text_or_not(connection):
    # The core reads them as JSON, the SDK does not.
    uri = f"openlineage://:{SECRET}@host:443/https?timeout_seconds=2&verify=false&compression=gzip"
    found = transport_config(ConnectionFields.of(connection(conn_id="marquez", uri=uri)))
    assert found["url"] == "https://host:443"
    assert (found["timeout"], found["verify"], found["compression"]) == (2.0, False, "gzip")
    assert found["auth"] == {"type": "api_key", "apiKey": SECRET}


@pytest.mark.parametrize("connection", [CoreConnection, SdkConnection])
def test_what_airflow_makes_of_a_connection_and_back(connection):
    extra = json.dumps({"kind": "kafka", "topic": "t", "sasl_mechanism": "PLAIN", "properties": {"linger.ms": 5}})
    given = connection(
        conn_id="c",
        conn_type="openlineage",
        host="b1:9092,b2:9093",
        login="me",
        password="p@/:",  # noqa: S106
        extra=extra,
    )
    again = connection(conn_id="c", uri=given.get_uri())
    assert transport_config(ConnectionFields.of(again)) == transport_config(ConnectionFields.of(given))


@pytest.mark.parametrize(
    ("host", "endpoint", "url", "path"),
    [
        ("http://h", "", "http://h", ENDPOINT),
        ("http://h/", "", "http://h", ENDPOINT),
        ("h", "", "http://h", ENDPOINT),
        ("h:80", "", "http://h:80", ENDPOINT),
        ("https://h/base", "", "https://h", "/base/api/v1/lineage"),
        ("https://h/base/", "events", "https://h", "/base/events"),
        ("https://h", "/openapi/openlineage/api/v1/lineage", "https://h", "/openapi/openlineage/api/v1/lineage"),
        ("https://h", "v1:lineage?a=b", "https://h", "/v1:lineage?a=b"),
        ("http://[::1]:5000", "", "http://[::1]:5000", ENDPOINT),
        ("::1", "", "http://[::1]", ENDPOINT),
    ],
)
def test_addresses(host, endpoint, url, path):
    found = config(host=host, extra={"endpoint": endpoint})
    assert (found["url"], found["endpoint"]) == (url, path)


def test_host_schema_and_port_apart():
    assert config(host="h", schema="https", port=8443)["url"] == "https://h:8443"
    assert config(host="https://h", schema="https", port=8443)["url"] == "https://h:8443"
    assert config(host="https://h:8443", port=8443)["url"] == "https://h:8443"


def test_a_password_alone_is_an_api_key():
    assert http(password=f"{SECRET}\n")["auth"] == {"type": "api_key", "apiKey": SECRET}


def test_a_login_makes_basic():
    found = http(login="me", password="ümläut")["custom_headers"]["Authorization"]  # noqa: S106
    assert base64.b64decode(found.removeprefix("Basic ")).decode() == "me:ümläut"


def test_a_password_in_a_header():
    found = http(password=SECRET, extra={"headers": '{"X-Api-Key": "{password}", "X-Team": 7}'})
    assert found["custom_headers"] == {"X-Api-Key": SECRET, "X-Team": "7"}
    assert "auth" not in found


def test_tls():
    extra = {"verify": "/ca.pem", "client_cert": "/cert.pem", "client_key": "/key.pem"}
    assert http(extra=extra)["sslContext"] == {
        "caCertPath": "/ca.pem",
        "clientCertPath": "/cert.pem",
        "clientKeyPath": "/key.pem",
    }
    assert http(extra={"verify": False})["verify"] is False


def test_empty_fields_of_a_form_are_not_given():
    extra = dict.fromkeys(("kind", "endpoint", "headers", "compression", "verify", "properties", "transport"), "")
    assert http(extra={**extra, "topic": None, "timeout_seconds": None}) == http()


def test_namespace():
    assert namespace_of(ConnectionFields("c", extra={"namespace": "prod"})) == "prod"
    assert namespace_of(ConnectionFields("c")) is None


def test_kafka():
    assert kafka() == {
        "type": "kafka",
        "topic": "events",
        "config": {
            "bootstrap.servers": "b1:9092",
            "message.timeout.ms": "10000",
            "security.protocol": "plaintext",
        },
    }


@pytest.mark.parametrize(
    ("host", "port", "brokers"),
    [
        ("b1, b2:9093", None, "b1:9092,b2:9093"),
        ("b1", 9999, "b1:9999"),
        ("[::1],[::1]:1", None, "[::1]:9092,[::1]:1"),
        ("SSL://b1,SSL://b2:1", None, "SSL://b1:9092,SSL://b2:1"),
    ],
)
def test_kafka_brokers(host, port, brokers):
    assert kafka(host=host, port=port)["config"]["bootstrap.servers"] == brokers


def test_kafka_with_a_login():
    found = kafka(login="me", password=SECRET, sasl_mechanism="scram-sha-512", verify="/ca.pem", acks="all")["config"]
    assert found["sasl.mechanism"] == "SCRAM-SHA-512"
    assert (found["sasl.username"], found["sasl.password"]) == ("me", SECRET)
    assert (found["security.protocol"], found["ssl.ca.location"], found["acks"]) == ("sasl_ssl", "/ca.pem", "all")


def test_kafka_with_kerberos():
    properties = {"sasl.kerberos.principal": "me@EXAMPLE", "sasl.kerberos.keytab": "/me.keytab"}
    found = kafka(sasl_mechanism="GSSAPI", properties=properties)["config"]
    assert found["security.protocol"] == "sasl_plaintext"
    assert found.items() >= properties.items()
    assert "sasl.username" not in found


def test_kafka_properties_win_whatever_they_are_called():
    properties = {
        "metadata.broker.list": "b9:1",
        "delivery.timeout.ms": 7,
        "request.required.acks": 1,
        "enable.idempotence": False,
        "ssl.key.password": "{password}",
    }
    found = kafka(host="", acks="all", password=SECRET, properties=properties)["config"]
    assert found == {
        "metadata.broker.list": "b9:1",
        "delivery.timeout.ms": "7",
        "request.required.acks": "1",
        "enable.idempotence": "false",
        "ssl.key.password": SECRET,
        "security.protocol": "ssl",
    }


def test_file():
    found = config(host="/var/events.ndjson", extra={"kind": "file"})
    assert found == {"type": "file", "log_file_path": "/var/events.ndjson", "append": True}


def test_console():
    assert config(extra={"kind": "Console"}) == {"type": "console"}


def test_composite():
    members = {
        "a": {"type": "http", "url": URL, "auth": {"type": "api_key", "apiKey": "{password}"}},
        "b": {"type": "console"},
    }
    found = config(password=SECRET, extra={"kind": "composite", "transports": json.dumps(members)})
    assert members_of(found) == {
        "a": {"type": "http", "url": URL, "auth": {"type": "api_key", "apiKey": SECRET}},
        "b": {"type": "console"},
    }


def test_members_of_a_list():
    members = [{"type": "console", "name": "log"}, {"type": "http", "url": URL}]
    assert list(members_of(config(extra={"transport": {"type": "composite", "transports": members}}))) == ["log", "2"]


def test_a_whole_transport():
    transport = {"type": "our.module.Transport", "token": "{password}", "nested": [{"user": "{login}", "n": 1}]}
    found = config(login="{password}", password=SECRET, extra={"transport": transport})
    assert found == {"type": "our.module.Transport", "token": SECRET, "nested": [{"user": "{password}", "n": 1}]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "'host' of the connection 'marquez' is empty; give the URL"),
        ({"host": "ftp://h"}, r"'host' .* is 'ftp://h'; give a URL like"),
        ({"host": "http://"}, "'host' .* give a URL like"),
        ({"host": "http://h:x"}, "'host' .* give a URL like"),
        ({"host": f"http://me:{SECRET}@h"}, "'host' .* holds a login; give it in the fields login and password"),
        ({"host": "http://h?a=b"}, "'host' .* has a '\\?'; give the URL without it"),
        ({"host": "http://h/api/v1/lineage"}, "'host' .* give that path in 'endpoint'"),
        ({"host": "http://h", "schema": "https"}, "'schema' .* is 'https'; the host says another"),
        ({"host": "h", "schema": "kafka"}, "'schema' .* is 'kafka'; give 'http' or 'https'"),
        ({"host": "h:1", "port": 2}, "'port' .* is 2, and the host says 1"),
        ({"host": "h", "extra": {"endpoint": "http://h/x"}}, "'endpoint' .* give the path alone"),
        (
            {"host": "h", "extra": {"kind": "ftp"}},
            "'kind' .* is 'ftp'; give one of http, marquez, kafka, file, console, composite",
        ),
        ({"host": "h", "extra": {"endpont": "x"}}, "'endpont' .* is not known; did you mean 'endpoint'"),
        ({"host": "h", "extra": {"endpoint": ["x"]}}, "'endpoint' .* is a list; give text"),
        ({"host": "h", "extra": {"compression": "zip"}}, "'compression' .* is 'zip'; give one of gzip"),
        ({"host": "h", "extra": {"timeout_seconds": "soon"}}, "'timeout_seconds' .* is 'soon'; give seconds above 0"),
        ({"host": "h", "extra": {"timeout_seconds": 0}}, "'timeout_seconds' .* give seconds above 0"),
        ({"host": "h", "extra": {"timeout_seconds": "nan"}}, "'timeout_seconds' .* give seconds above 0"),
        ({"host": "h", "extra": {"verify": "ca.pem"}}, "'verify' .* is 'ca.pem'; give an absolute path"),
        ({"host": "h", "extra": {"client_key": "/k"}}, "'client_key' .* without 'client_cert'"),
        ({"host": "h", "extra": {"headers": "X: y"}}, r"'headers' .* is not a JSON object \(at character 0\)"),
        ({"host": "h", "extra": {"headers": ["x"]}}, "'headers' .* is a list; give a JSON object"),
        ({"host": "h", "extra": {"headers": {"X Y": "z"}}}, "'headers' .* has 'X Y', which is not a header name"),
        ({"host": "h", "extra": {"headers": {"X": {"y": 1}}}}, "'headers.X' .* is a dict; give text"),
        ({"host": "h", "extra": {"headers": {"X": f"{SECRET}\r\ny"}}}, "'headers.X' .* line break"),
        ({"host": "h", "password": f"{SECRET}☃"}, "'password' .* no HTTP header can carry"),
        (
            {"host": "h", "password": SECRET, "extra": {"headers": {"authorization": SECRET}}},
            "'headers' .* has an Authorization beside the connection's password",
        ),
        ({"host": "b", "extra": {"kind": "kafka"}}, "'topic' .* is missing; give the Kafka topic"),
        ({"extra": {"kind": "kafka", "topic": "t"}}, "'host' .* is empty; give the Kafka brokers"),
        ({"host": f"me:{SECRET}@b", "extra": {"kind": "kafka", "topic": "t"}}, "'host' .* give Kafka brokers"),
        ({"host": "b", "login": "me", "extra": {"kind": "kafka", "topic": "t"}}, "'sasl_mechanism' .* is missing"),
        (
            {"host": "b", "extra": {"kind": "kafka", "topic": "t", "sasl_mechanism": "MD5"}},
            "'sasl_mechanism' .* is 'md5'; give one of plain, scram",
        ),
        (
            {"host": "b", "login": "me", "extra": {"kind": "kafka", "topic": "t", "sasl_mechanism": "PLAIN"}},
            "'login' .* or the password is empty; PLAIN needs both",
        ),
        (
            {"host": "b", "schema": "http", "extra": {"kind": "kafka", "topic": "t"}},
            "'schema' .* give 'ssl' or nothing",
        ),
        ({"host": "http://h", "login": "\ud800", "password": SECRET}, "'login' .* has half of a character"),
        ({"host": "events.ndjson", "extra": {"kind": "file"}}, "'host' .* give the absolute path of the file"),
        ({"extra": {"kind": "composite"}}, "'transports' .* is missing"),
        ({"extra": {"kind": "composite", "transports": {"a": {}}}}, "'transports.a' .* has no 'type'"),
        ({"extra": {"kind": "composite", "transports": {"a/b": {"type": "console"}}}}, "'transports' .* has a '/'"),
        ({"extra": {"transport": {"url": "x"}}}, "'transport' .* has no 'type'"),
        (
            {"password": SECRET, "extra": {"transport": {"type": "http", "url": "http://h"}}},
            "'password' .* is not used by 'transport'; write {password} where it belongs",
        ),
    ],
)
def test_wrong_fields(fields, message):
    with pytest.raises(SettingError, match=message) as raised:
        config(**fields)
    assert SECRET not in redact(str(raised.value))
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.parametrize("extra", ["not json", "[1]"])
def test_an_extra_that_is_no_object(extra):
    connection = SdkConnection(conn_id="marquez", conn_type="openlineage", extra=extra)
    with pytest.raises(SettingError, match="the extra of the connection 'marquez' is not a JSON object"):
        ConnectionFields.of(connection)


def test_the_fields_show_no_secret():
    fields = ConnectionFields("c", host=f"http://{SECRET}@h", password=SECRET, extra={"headers": {"X": SECRET}})
    assert SECRET not in repr(fields)
