"""A real Kafka takes what librdkafka sends, and refuses who is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Producer

if TYPE_CHECKING:
    from lineage_backends.kafka import Kafka

pytestmark = [pytest.mark.shares("kafka"), pytest.mark.truth]

QUIET = {"log_level": 0}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_keeps_what_is_sent(kafka: Kafka, mechanism: str) -> None:
    topic = kafka.create_topic(f"keeps-{mechanism}")
    reports: list[KafkaError | None] = []
    producer = Producer({**kafka.sasl(mechanism), "acks": "all", "compression.type": "zstd", **QUIET})
    for number in range(3):
        value = bytes([number]) * 10_000
        producer.produce(topic, value, key=b"run:ns/job", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(30) == 0
    assert reports == [None] * 3
    messages = kafka.read(topic, 3)
    assert [(message.key(), message.value()[:2]) for message in messages] == [
        (b"run:ns/job", bytes([n] * 2)) for n in range(3)
    ]


def test_refuses_a_wrong_password(kafka: Kafka) -> None:
    errors: list[int] = []
    wrong = {
        "sasl.password": "wrong",
        "message.timeout.ms": 2000,
        "error_cb": lambda error: errors.append(error.code()),
    }
    producer = Producer({**kafka.sasl(), **wrong, **QUIET})
    producer.produce("input.runs", b"x")
    producer.flush(10)
    assert KafkaError._AUTHENTICATION in errors
