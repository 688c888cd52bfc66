"""The sender to Kafka against librdkafka's own broker, which runs in the process."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from spark_lineage.deliver.kafka_sender import KafkaSender, _defaults, message_key
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import Later, Refused, sender_of
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

SECRET = "hunter2hunter2"  # noqa: S105


@pytest.fixture(scope="module")
def brokers():
    """The addresses of three brokers, which live as long as the producer that made them."""
    owner = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 3, "log_level": 0})
    found = owner.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in found)
    owner.purge()


def opened(brokers: str, topic: str = "events", **config) -> KafkaSender:
    properties = {"bootstrap.servers": brokers, "message.timeout.ms": "5000", **config}
    return sender_of({"type": "kafka", "topic": topic, "config": properties})


def read(brokers: str, topic: str, count: int, *, more_seconds: float = 0.0) -> list[tuple[bytes, bytes]]:
    """What is in a topic, once there are so many, and what comes within some seconds more."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found, end = [], time.monotonic() + 20
    while time.monotonic() < end:
        if len(found) == count:
            end, count = time.monotonic() + more_seconds, -1
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.key(), message.value()))
    consumer.close()
    return found


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_an_event_is_there_when_emit_returns(brokers, event):
    sender = opened(brokers, "there", **{"compression.type": "zstd"})
    sender.send(event)
    sender.send(event)
    key = "run:default/dag.täsk".encode()
    assert [(name, json.loads(value)) for name, value in read(brokers, "there", 2)] == [
        (key, json.loads(event.body))
    ] * 2
    sender.close()


def test_a_key_of_the_user(brokers, event):
    config = {"type": "kafka", "topic": "keyed", "messageKey": "mine", "config": {"bootstrap.servers": brokers}}
    sender_of(config).send(event)
    assert [key for key, _ in read(brokers, "keyed", 1)] == [b"mine"]


def test_an_event_larger_than_the_limit_of_librdkafka(brokers, event):
    opened(brokers, "large").send(_with_job_name(event, "x" * 1_500_000))
    assert len(read(brokers, "large", 1)) == 1


def test_an_event_that_is_too_large_is_refused(brokers, event):
    with pytest.raises(Refused, match=r"topic 'small': the broker refuses the event: .*Message size too large"):
        opened(brokers, "small", **{"message.max.bytes": "1000", "message.copy.max.bytes": "1000"}).send(
            _with_job_name(event, "x" * 2000)
        )


def _with_job_name(event, name):
    document = json.loads(event.body)
    document["job"]["name"] = name
    return Outgoing.of(json.dumps(document).encode())


def test_a_dead_broker(event):
    port = free_port()
    sender = opened(f"127.0.0.1:{port}", **{"message.timeout.ms": "1000"})
    started = time.monotonic()
    with pytest.raises(Later, match=rf"Kafka at 127.0.0.1:{port}, .*timed out; .*Connection refused"):
        sender.send(event)
    assert time.monotonic() - started < 4


def test_a_broker_that_says_nothing(event):
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = opened(f"127.0.0.1:{server.getsockname()[1]}", **{"message.timeout.ms": "1000"})
        started = time.monotonic()
        with pytest.raises(Later, match="timed out"):
            sender.send(event)
        assert time.monotonic() - started < 4


def test_after_a_failure_the_next_try_is_a_new_one(brokers, event):
    port = free_port()
    sender = opened(f"127.0.0.1:{port}", "later", **{"message.timeout.ms": "500"})
    with pytest.raises(Later):
        sender.send(event)
    sender.properties["bootstrap.servers"] = brokers
    sender.properties["message.timeout.ms"] = "5000"
    sender.send(event)
    assert len(read(brokers, "later", 1, more_seconds=2)) == 1, "what failed was sent later, and so twice"


@pytest.mark.parametrize("name", ["_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"])
def test_a_wrong_password_ends_the_waiting(event, name):
    """The broker in the process knows no passwords; the real one is asked in the tests of the backends."""
    sender = opened(f"127.0.0.1:{free_port()}", **{"message.timeout.ms": "20000"})
    error = KafkaError(getattr(KafkaError, name), f"password={SECRET} is wrong")
    threading.Timer(0.3, lambda: sender._note(error)).start()
    started = time.monotonic()
    with pytest.raises(Later, match=r"the broker denies access: password=.* check the login") as raised:
        sender.send(event)
    assert time.monotonic() - started < 5
    assert SECRET not in redact(str(raised.value))


NAMED, PARENT, ROOT = ({"namespace": "n", "name": name} for name in ("own", "parent", "root"))


@pytest.mark.parametrize(
    ("event", "key"),
    [
        ({"run": {"runId": "r"}, "job": NAMED}, "run:n/own"),
        ({"run": {"runId": "r", "facets": {"parent": {"job": PARENT}}}, "job": NAMED}, "run:n/parent"),
        (
            {"run": {"runId": "r", "facets": {"parent": {"job": PARENT, "root": {"job": ROOT}}}}, "job": NAMED},
            "run:n/root",
        ),
        ({"job": NAMED}, "job:n/own"),
        ({"dataset": NAMED}, "dataset:n/own"),
        ({"run": {"runId": "r", "facets": {"parent": 7}}, "job": NAMED}, None),
    ],
)
def test_message_key_is_that_of_openlineage_python(event, key):
    assert message_key(json.dumps(event).encode()) == key


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"acks": "all", "enable.idempotence": "true"}),
        ({"acks": "-1"}, {"enable.idempotence": "true"}),
        ({"acks": 1}, {}),
        ({"request.required.acks": "0"}, {}),
    ],
)
def test_durable_unless_the_user_says_otherwise(given, expected):
    found = _defaults(given)
    assert {key: found[key] for key in ("acks", "enable.idempotence") if key in found} == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"no.such.thing": SECRET}, 'No such configuration property: "no.such.thing"'),
        ({"acks": "some"}, "Invalid value for configuration property"),
        ({"acks": "1", "enable.idempotence": "true"}, "`acks` must be set to `all`"),
        (
            {"sasl.mechanism": "GSSAPI", "security.protocol": "sasl_plaintext"},
            "pip install --no-binary confluent-kafka",
        ),
    ],
)
def test_a_configuration_that_librdkafka_refuses(config, message):
    with pytest.raises(SettingError, match="the Kafka configuration for b:1 cannot be used: ") as raised:
        opened("b:1", **config)
    assert message in str(raised.value)
    assert SECRET not in redact(str(raised.value))


def test_librdkafka_writes_nothing_on_stderr(event, capfd):
    with pytest.raises(Later):
        opened(f"127.0.0.1:{free_port()}", **{"message.timeout.ms": "500"}).send(event)
    assert capfd.readouterr().err == ""
