"""Which transport a destination gets."""

from __future__ import annotations

import copy
import json
import logging
import sys
import time
import types

import pytest
from openlineage.client.transport.noop import NoopTransport
from openlineage.client.transport.transform import TransformTransport
from openlineage.client.transport.transport import Config, Transport

from spark_lineage.deliver.transports.file import DurableFileTransport
from spark_lineage.deliver.transports.http import AnsweredHttpTransport
from spark_lineage.deliver.transports.kafka import AcknowledgedKafkaTransport, AcknowledgedMskIamTransport
from spark_lineage.deliver.transports.opening import config_of, config_of_destination, destinations_of, make_transport
from spark_lineage.settings import SettingError

SECRET = "hunter2hunter2"  # noqa: S105
HTTP = {"type": "http", "url": "http://127.0.0.1:1"}
KAFKA = {"type": "kafka", "topic": "t", "config": {"bootstrap.servers": "127.0.0.1:1"}}


class Broken(Transport):
    """A user's own transport that says too much."""

    config_class = Config

    def __init__(self, config: Config) -> None:
        raise ValueError(f"password={SECRET} is wrong")


@pytest.fixture
def connection(monkeypatch):
    """Sets a connection in the environment."""

    def give(conn_id: str, **fields) -> None:
        fields = {"conn_type": "openlineage", **fields}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    return give


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (HTTP, AnsweredHttpTransport),
        ({**HTTP, "type": "openlineage.client.transport.http.HttpTransport"}, AnsweredHttpTransport),
        (KAFKA, AcknowledgedKafkaTransport),
        ({"type": "file", "log_file_path": "/tmp/events.ndjson", "append": True}, DurableFileTransport),  # noqa: S108
        ({"type": "noop"}, NoopTransport),
    ],
)
def test_kinds(config, kind):
    given = copy.deepcopy(config)
    transport = make_transport(given)
    assert type(transport) is kind
    assert given == config, "the configuration was consumed"
    transport.close()


def test_kafka_with_the_credentials_of_aws(monkeypatch):
    """AWS gives the token; its package is optional."""
    signer = types.ModuleType("aws_msk_iam_sasl_signer")
    signer.MSKAuthTokenProvider = types.SimpleNamespace(
        generate_auth_token=lambda region, **_: (f"token of {region}", (time.time() + 600) * 1000)
    )
    monkeypatch.setitem(sys.modules, signer.__name__, signer)
    transport = make_transport({**KAFKA, "type": "msk-iam", "region": "eu-central-1"})
    assert type(transport) is AcknowledgedMskIamTransport
    transport.close()


def test_a_name_and_a_priority_are_those_of_a_member():
    assert type(make_transport({**HTTP, "name": "one", "priority": 3})) is AnsweredHttpTransport


def test_async_http_is_replaced(caplog):
    with caplog.at_level(logging.DEBUG):
        transport = make_transport({**HTTP, "type": "async_http", "max_queue_size": 3})
    assert type(transport) is AnsweredHttpTransport
    assert "async_http loses events" in caplog.text


def test_a_transport_inside_of_another_is_ours_too():
    inner = {**KAFKA, "config": {**KAFKA["config"], "message.timeout.ms": "100"}}
    package = "openlineage.client.transport.transform.transformers"
    transformer = f"{package}.job_namespace_replace_transformer.JobNamespaceReplaceTransformer"
    given = {"type": "transform", "transport": inner, "transformer_class": transformer,
        "transformer_properties": {"new_job_namespace": "new"}}  # fmt: skip
    transport = make_transport(given)
    assert isinstance(transport, TransformTransport)
    assert type(transport.transport) is AcknowledgedKafkaTransport
    transport.close()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "the transport has no 'type'; give one of http, kafka"),
        ({"type": "nowhere.Transport"}, "the transport of type 'nowhere.Transport' cannot be made: Failed to import"),
        ({"type": "json.JSONDecoder"}, "the transport 'json.JSONDecoder' is not a Transport of openlineage-python"),
        ({"type": "http"}, "the transport of type 'http' cannot be made: `url` key not passed"),
        ({"type": "http", "url": "nowhere"}, "the transport of type 'http' cannot be made: Need valid url"),
        ({"type": f"{__name__}.Broken"}, "cannot be made: "),
    ],
)
def test_what_cannot_be_made(config, message, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, types.SimpleNamespace(Broken=Broken))
    with pytest.raises(SettingError, match=message) as raised:
        make_transport(config)
    assert SECRET not in str(raised.value)
    assert raised.value.__context__ is None


def test_a_composite_is_no_transport_of_its_own():
    members = {"one": HTTP}
    composite = {"type": "composite", "transports": members}
    package = "openlineage.client.transport.transform.transformers"
    transformer = f"{package}.job_namespace_replace_transformer.JobNamespaceReplaceTransformer"
    inside = {"type": "transform", "transport": composite, "transformer_class": transformer,
        "transformer_properties": {"new_job_namespace": "new"}}  # fmt: skip
    for config in (composite, inside):
        with pytest.raises(SettingError, match="a composite is several destinations"):
            make_transport(config)


def test_a_destination_is_a_connection(backend, connection, event):
    connection("marquez", host=backend.url, password=SECRET)
    assert list(destinations_of("marquez")) == ["marquez"]
    make_transport(config_of_destination("marquez")).emit(event)
    assert backend.requests[0].headers["Authorization"] == f"Bearer {SECRET}"


def test_a_composite_has_a_destination_each(connection):
    extra = {"kind": "composite", "transports": {"a": HTTP, "b": KAFKA}}
    connection("both", extra=extra)
    assert destinations_of("both") == {"both/a": HTTP, "both/b": KAFKA}
    with pytest.raises(SettingError, match="the connection 'both' has no member 'c'; it has a, b"):
        make_transport(config_of_destination("both/c"))


def test_a_connection_whose_id_has_a_slash(connection):
    connection("team/marquez", host="http://127.0.0.1:5000")
    assert list(destinations_of("team/marquez")) == ["team/marquez"]
    assert config_of("team/marquez")["url"] == "http://127.0.0.1:5000"
    assert type(make_transport(config_of_destination("team/marquez"))) is AnsweredHttpTransport


def test_a_connection_that_is_not_there():
    with pytest.raises(SettingError, match=r"the connection 'nobody' cannot be read: .*nobody.* isn't defined"):
        make_transport(config_of_destination("nobody"))


def test_a_connection_of_another_type(connection):
    connection("spark", conn_type="spark", host="local")
    with pytest.raises(SettingError, match="the connection 'spark' is of type 'spark'; give one of type 'openlineage'"):
        make_transport(config_of_destination("spark"))


def test_a_connection_that_airflow_cannot_read(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", f"openlineage://:{SECRET}@http://127.0.0.1:5000")
    with pytest.raises(SettingError, match="the connection 'broken' cannot be read: ") as raised:
        make_transport(config_of_destination("broken"))
    assert SECRET not in str(raised.value)
