"""The events of one run in a Kafka topic that others write to as well, read from a real broker."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import Producer
from openlineage.client.uuid import generate_new_uuid

from spark_lineage.collect import topic_events
from spark_lineage.collect.collector import DirectoryCollector
from spark_lineage.collect.copies import SourceError
from spark_lineage.collect.topic_events import Topic, TopicEvents
from spark_lineage.inject.driver_transport import own_topic
from spark_lineage.launch.directory import EVENTS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lineage_backends.kafka import Kafka

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
PREFIX = "spark.openlineage.transport."


def events(run_id: str) -> list[bytes]:
    """Those of a real application, as if it had run as this run."""
    lines = EVENTS.read_bytes().splitlines()
    first = json.loads(lines[0])["run"]["runId"]
    return [line.replace(first.encode(), run_id.encode()) for line in lines]


def send(kafka: Kafka, topic: str, values: Iterable[bytes], *, at: float | None = None) -> None:
    producer = Producer({"bootstrap.servers": kafka.open_bootstrap, "message.max.bytes": 10_000_000})
    for number, value in enumerate(values):
        # Each event into another partition: their order is lost.
        producer.produce(topic, value, key=str(number), timestamp=round((at or time.time()) * 1000))
    assert producer.flush(20) == 0


def read(source: TopicEvents, directory: Path, *, is_last: bool = True) -> DirectoryCollector:
    source.bring(is_last=is_last)
    collector = DirectoryCollector(directory)
    collector.finish()
    return collector


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.create_topic(f"events-{uuid.uuid4().hex}", 3)


def source(kafka: Kafka, topic: str, run_id: str, tmp_path: Path) -> TopicEvents:
    return TopicEvents(Topic(topic, kafka.sasl()), run_id, tmp_path / EVENTS_FILE)


def test_what_a_topic_has_of_a_run(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    run_id, other = str(generate_new_uuid()), str(generate_new_uuid())
    mine = events(run_id)
    named = events(other)[0].replace(b'"facets":{', b'"facets":{"note":{"text":"%s"},' % run_id.encode(), 1)
    send(kafka, topic, mine, at=time.time() - 3600)
    following = source(kafka, topic, run_id, tmp_path)
    assert read(following, tmp_path).counts.read == 0, "of an earlier time"
    send(kafka, topic, [*events(other), *mine[:5], b"no JSON " + run_id.encode(), b"", named])
    collector = read(following, tmp_path, is_last=False)
    assert (collector.counts.read, collector.counts.set_aside) == (5, {})
    send(kafka, topic, [json.dumps(json.loads(line), indent=1).encode() for line in mine[5:]])
    collector = read(following, tmp_path)
    assert (collector.counts.read, collector.counts.set_aside) == (len(mine), {})
    following.close()
    # Whoever goes on with the launch reads all of it again, which changes nothing.
    again = source(kafka, topic, run_id, tmp_path / "again")
    assert read(again, tmp_path / "again").state.runs == collector.state.runs
    again.close()
    assert (tmp_path / EVENTS_FILE).stat().st_mode & 0o777 == 0o600


def test_many_messages_of_others_are_passed_over_in_rounds(
    kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = str(generate_new_uuid())
    send(kafka, topic, [b"x" * 2000] * 5000)
    send(kafka, topic, [*events(run_id), b"x" * 3_000_000])
    monkeypatch.setattr(topic_events, "_ROUND_SECONDS", 0.0)
    following = source(kafka, topic, run_id, tmp_path)
    rounds = 0
    while read(following, tmp_path, is_last=False).counts.read < len(events(run_id)) and rounds < 200:
        rounds += 1
    assert 1 < rounds < 200
    following.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sasl.password": "wrong"}, "SASL"),
        ({"bootstrap.servers": "127.0.0.1:1"}, "refused"),
        ({"security.protocol": "nonsense"}, "security.protocol"),
        ({}, "Unknown topic"),
    ],
)
def test_a_topic_that_cannot_be_read_says_why(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(topic_events, "ANSWER_SECONDS", 2.0)
    config = {**kafka.sasl(), **change}
    following = TopicEvents(Topic("no-such-topic", config), str(generate_new_uuid()), tmp_path / EVENTS_FILE)
    with pytest.raises(SourceError, match=said) as caught:
        following.bring()
    assert "the Kafka topic no-such-topic" in str(caught.value)
    assert kafka.password not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_the_job_s_own_transport_is_read_with_its_own_login(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    run_id, sasl = str(generate_new_uuid()), kafka.sasl()
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    properties = {
        f"{PREFIX}type": "kafka",
        f"{PREFIX}topicName": topic,
        f"{PREFIX}properties.bootstrap.servers": kafka.bootstrap,
        f"{PREFIX}properties.security.protocol": sasl["security.protocol"],
        f"{PREFIX}properties.sasl.mechanism": sasl["sasl.mechanism"],
        f"{PREFIX}properties.sasl.jaas.config": f'{module} required username={kafka.user} password="{kafka.password}";',
        f"{PREFIX}properties.key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
    }
    send(kafka, topic, events(run_id))
    following = TopicEvents(Topic(*own_topic(properties)), run_id, tmp_path / EVENTS_FILE)
    assert read(following, tmp_path).counts.read == len(events(run_id))
    following.close()


def test_a_connection_of_another_kind_has_no_topic() -> None:
    with pytest.raises(SourceError, match="'marquez' names no Kafka topic"):
        Topic.of({"type": "http", "url": "http://marquez"}, "marquez")
