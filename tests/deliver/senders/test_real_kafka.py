"""The sender to Kafka and a real broker, which knows passwords and limits."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from spark_lineage.deliver.connections import ConnectionFields, probe, transport_config
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import Later, Refused, sender_of

if TYPE_CHECKING:
    from lineage_backends.kafka import Kafka

pytestmark = [pytest.mark.shares("kafka"), pytest.mark.truth]


def config_of(kafka: Kafka, topic: str, **changes) -> dict:
    extra = {"kind": "kafka", "topic": topic, "sasl_mechanism": "SCRAM-SHA-512", "compression": "zstd", "acks": "all"}
    fields = {"host": kafka.bootstrap, "login": kafka.user, "password": kafka.password, **changes}
    return transport_config(ConnectionFields("kafka", extra=extra | fields.pop("extra", {}), **fields))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_an_event_arrives(kafka, event, mechanism):
    topic = kafka.create_topic(f"arrives-{mechanism}")
    config = config_of(kafka, topic, extra={"sasl_mechanism": mechanism})
    assert probe(config) == (True, f"the brokers are reached, and have the topic {topic!r}")
    sender = sender_of(config)
    sender.send(event)
    sender.close()
    (message,) = kafka.read(topic, 1)
    assert message.key() == "run:default/dag.täsk".encode()
    assert json.loads(message.value()) == json.loads(event.body)


def test_a_wrong_password_is_told_at_once(kafka, event):
    config = config_of(kafka, "input.runs", password="wrong-password")  # noqa: S106
    started = time.monotonic()
    with pytest.raises(Later, match=r"the broker denies access: .*Authentication failed.*check the login") as raised:
        sender_of(config).send(event)
    assert time.monotonic() - started < 5, "the time-out is 10 s"
    assert "wrong-password" not in str(raised.value)
    is_good, text = probe(config)
    assert not is_good
    assert "the broker denies access" in text


def test_a_listener_that_wants_a_password(kafka, event):
    """Without SASL the broker hangs up."""
    config = {"bootstrap.servers": kafka.bootstrap, "message.timeout.ms": "2000"}
    with pytest.raises(Later, match=r"connecting to a SASL_SSL or PLAINTEXT|timed out|[Dd]isconnected"):
        sender_of({"type": "kafka", "topic": "input.runs", "config": config}).send(event)


def test_an_event_that_the_broker_finds_too_large_is_refused(kafka, event):
    topic = kafka.create_topic("too-large")
    document = json.loads(event.body)
    document["job"]["name"] = "".join(chr(32 + number % 90) for number in range(11 * 1024 * 1024))
    event = Outgoing.of(json.dumps(document).encode())
    with pytest.raises(Refused, match=r"the broker refuses the event: .*larger|too large") as raised:
        sender_of(config_of(kafka, topic, extra={"compression": "none", "message_key": "k"})).send(event)
    assert len(str(raised.value)) < 500


def test_a_topic_that_is_not_there_is_not_made_by_trying(kafka):
    config = config_of(kafka, "never-made")
    for _ in range(2):
        is_good, text = probe(config)
        assert not is_good
        assert "show no topic 'never-made'" in text
