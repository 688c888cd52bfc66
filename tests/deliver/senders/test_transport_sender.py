"""Transports that are not ours: which there are, and what their errors mean."""

from __future__ import annotations

import copy
import sys
import time
import types
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import requests
from openlineage.client.transport.transform import TransformTransport
from openlineage.client.transport.transport import Config, Transport

from spark_lineage.deliver.file_sender import FileSender
from spark_lineage.deliver.http_sender import HttpSender
from spark_lineage.deliver.kafka_sender import KafkaSender
from spark_lineage.deliver.sender import Later, Refused, sender_of
from spark_lineage.deliver.transport_sender import TransportSender, answer_of
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

SECRET = "hunter2hunter2"  # noqa: S105
HTTP = {"type": "http", "url": "http://127.0.0.1:1"}
KAFKA = {"type": "kafka", "topic": "t", "config": {"bootstrap.servers": "127.0.0.1:1"}}


def http_error(status: int, body: bytes = b"", **headers: str) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    response.reason = "Reason"
    response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    response._content = body
    return requests.HTTPError(f"{status} Reason: {body.decode()}", response=response)


def raised(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("status", [400, 406, 409, 410, 411, 413, 414, 415, 418, 422, 431, 451])
def test_what_the_event_is_to_blame_for_is_a_refusal(status: int) -> None:
    answer = answer_of(http_error(status, b'{"detail": "eventType, password=hunter2"}'))
    assert isinstance(answer, Refused)
    assert str(answer) == f'HTTPError: {status} Reason: {{"detail": "eventType, password=***"}}'


@pytest.mark.parametrize(
    "status", [401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 426, 429, 500, 501, 502, 503, 504]
)
def test_what_somebody_else_mends_waits(status: int) -> None:
    answer = answer_of(http_error(status))
    assert isinstance(answer, Later)
    assert answer.is_away is (status not in {500, 501, 502, 504})


def test_an_answer_is_found_below_what_wraps_it() -> None:
    wrapped = raised(RuntimeError("Transport failed"), http_error(422, b"no"))
    assert isinstance(answer_of(wrapped), Refused)


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7), ("0", 0), ("", None), ("soon", None), ("-1", None), ("9" * 40, 999_999_999)]
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    answer = answer_of(http_error(503, Retry_After=value))
    assert isinstance(answer, Later)
    assert answer.retry_after == seconds


def test_retry_after_as_a_date() -> None:
    moment = datetime.now(UTC) + timedelta(seconds=100)
    answer = answer_of(http_error(503, Retry_After=format_datetime(moment, usegmt=True)))
    assert isinstance(answer, Later)
    assert answer.retry_after == pytest.approx(100, abs=3)


def test_a_connection_that_is_refused_says_nothing_about_the_event() -> None:
    with pytest.raises(requests.ConnectionError) as caught:
        requests.post("http://127.0.0.1:9", timeout=1)
    answer = answer_of(caught.value)
    assert isinstance(answer, Later)
    assert answer.is_away


@pytest.mark.parametrize("error", [TimeoutError("late"), ValueError("of an unknown kind")])
def test_other_errors_may_be_the_fault_of_the_event(error: Exception) -> None:
    answer = answer_of(error)
    assert isinstance(answer, Later)
    assert not answer.is_away
    assert str(error) in str(answer)


class Broken(Transport):
    """A user's own transport that says too much."""

    config_class = Config

    def __init__(self, config: Config) -> None:
        raise ValueError(f"password={SECRET} is wrong")


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (HTTP, HttpSender),
        ({**HTTP, "type": "openlineage.client.transport.http.HttpTransport"}, HttpSender),
        (KAFKA, KafkaSender),
        ({"type": "file", "log_file_path": "/tmp/events.ndjson", "append": True}, FileSender),  # noqa: S108
        ({"type": "noop"}, TransportSender),
    ],
)
def test_kinds(config, kind):
    given = copy.deepcopy(config)
    sender = sender_of(given)
    assert type(sender) is kind
    assert given == config, "the configuration was consumed"
    sender.close()


def test_kafka_with_the_credentials_of_aws(monkeypatch):
    """AWS gives the token; its package is optional."""
    signer = types.ModuleType("aws_msk_iam_sasl_signer")
    signer.MSKAuthTokenProvider = types.SimpleNamespace(
        generate_auth_token=lambda region, **_: (f"token of {region}", (time.time() + 600) * 1000)
    )
    monkeypatch.setitem(sys.modules, signer.__name__, signer)
    sender = sender_of({**KAFKA, "type": "msk-iam", "region": "eu-central-1"})
    assert type(sender) is KafkaSender
    sender.close()


def test_a_name_and_a_priority_are_those_of_a_member():
    assert type(sender_of({**HTTP, "name": "one", "priority": 3})) is HttpSender


def test_async_http_is_replaced():
    assert type(sender_of({**HTTP, "type": "async_http"})) is HttpSender


def test_a_transport_inside_of_another_is_ours_too():
    inner = {**KAFKA, "config": {**KAFKA["config"], "message.timeout.ms": "100"}}
    package = "openlineage.client.transport.transform.transformers"
    transformer = f"{package}.job_namespace_replace_transformer.JobNamespaceReplaceTransformer"
    given = {"type": "transform", "transport": inner, "transformer_class": transformer,
        "transformer_properties": {"new_job_namespace": "new"}}  # fmt: skip
    sender = sender_of(given)
    assert isinstance(sender._transport, TransformTransport)
    assert type(sender._transport.transport.sender) is KafkaSender
    sender.close()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "the transport has no 'type'; give one of http, kafka"),
        ({"type": "nowhere.Transport"}, "the transport of type 'nowhere.Transport' cannot be made: Failed to import"),
        ({"type": "json.JSONDecoder"}, "the transport 'json.JSONDecoder' is not a Transport of openlineage-python"),
        ({"type": "http"}, "the transport of type 'http' has no 'url' like"),
        ({"type": "http", "url": "nowhere"}, "has no 'url' like"),
        ({"type": f"{__name__}.Broken"}, "cannot be made: "),
    ],
)
def test_what_cannot_be_made(config, message, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, types.SimpleNamespace(Broken=Broken))
    with pytest.raises(SettingError, match=message) as raised:
        sender_of(config)
    assert SECRET not in redact(str(raised.value))
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
            sender_of(config)


def test_texts_are_short_and_without_secrets() -> None:
    text = str(answer_of(http_error(400, b"token=" + b"s3cr3t" * 10 + b" x" * 5000)))
    assert len(text) <= 1000
    assert "s3cr3t" not in text


def test_an_error_that_goes_round_in_circles_is_an_answer() -> None:
    one: Any = ValueError("one")
    two: Any = raised(TypeError("two"), one)
    one.__cause__ = two
    assert "one" in str(answer_of(one))
