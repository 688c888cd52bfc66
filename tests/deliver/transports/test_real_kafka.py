"""The Kafka transport and a real broker, which knows passwords and limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from openlineage.client.serde import Serde

from spark_lineage.deliver.transports.config import transport_config
from spark_lineage.deliver.transports.errors import NotTakenError, UnreachableError
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.opening import make_transport
from spark_lineage.deliver.transports.probe import probe

if TYPE_CHECKING:
    from lineage_backends.kafka import Kafka

pytestmark = [pytest.mark.shares("kafka"), pytest.mark.truth]

PROVIDER = Path(__file__).parents[3] / "provider"


def config_of(kafka: Kafka, topic: str, **changes) -> dict:
    extra = {"kind": "kafka", "topic": topic, "sasl_mechanism": "SCRAM-SHA-512", "compression": "zstd", "acks": "all"}
    fields = {"host": kafka.bootstrap, "login": kafka.user, "password": kafka.password, **changes}
    return transport_config(ConnectionFields("kafka", extra=extra | fields.pop("extra", {}), **fields))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_an_event_arrives(kafka, event, mechanism):
    topic = kafka.create_topic(f"arrives-{mechanism}")
    config = config_of(kafka, topic, extra={"sasl_mechanism": mechanism})
    assert probe(config) == (True, f"the brokers are reached, and have the topic {topic!r}")
    transport = make_transport(config)
    transport.emit(event)
    transport.close()
    (message,) = kafka.read(topic, 1)
    assert message.key() == "run:default/dag.täsk".encode()
    assert json.loads(message.value()) == Serde.to_dict(event)


# Airflow's OpenLineage provider forks; what forks here has no other threads than those of the transport.
FORKING = """
import json, os, sys
from spark_lineage.deliver.stored_event import restore
from spark_lineage.deliver.transports.opening import make_transport
transport, event = make_transport(json.loads(sys.argv[1])), restore(sys.argv[2].encode())
transport.emit(event)
child = os.fork()
transport.emit(event)
transport.close()
os._exit(0) if child == 0 else sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_transport_works_on_both_sides_of_a_fork(kafka, event):
    topic = kafka.create_topic("forked")
    arguments = [json.dumps(config_of(kafka, topic)), Serde.to_json(event)]
    env = {**os.environ, "PYTHONPATH": str(PROVIDER)}
    subprocess.run([sys.executable, "-c", FORKING, *arguments], env=env, check=True, timeout=60)
    assert len(kafka.read(topic, 3)) == 3


def test_a_wrong_password_is_told_at_once(kafka, event):
    config = config_of(kafka, "input.runs", password="wrong-password")  # noqa: S106
    started = time.monotonic()
    with pytest.raises(
        UnreachableError, match=r"the broker denies access: .*Authentication failed.*check the login"
    ) as raised:
        make_transport(config).emit(event)
    assert time.monotonic() - started < 5, "the time-out is 10 s"
    assert "wrong-password" not in str(raised.value)
    assert not raised.value.is_refusal
    is_good, text = probe(config)
    assert not is_good
    assert "the broker denies access" in text


def test_a_listener_that_wants_a_password(kafka, event):
    """Without SASL the broker hangs up."""
    config = {"bootstrap.servers": kafka.bootstrap, "message.timeout.ms": "2000"}
    with pytest.raises(UnreachableError, match=r"connecting to a SASL_SSL or PLAINTEXT|timed out|[Dd]isconnected"):
        make_transport({"type": "kafka", "topic": "input.runs", "config": config}).emit(event)


def test_an_event_that_the_broker_finds_too_large_is_refused(kafka, event):
    topic = kafka.create_topic("too-large")
    event.job.name = "".join(chr(32 + number % 90) for number in range(11 * 1024 * 1024))
    with pytest.raises(NotTakenError, match=r"the broker refuses the event: .*larger|too large") as raised:
        make_transport(config_of(kafka, topic, extra={"compression": "none", "message_key": "k"})).emit(event)
    assert raised.value.is_refusal
    assert len(str(raised.value)) < 500


def test_a_topic_that_is_not_there_is_not_made_by_trying(kafka):
    config = config_of(kafka, "never-made")
    for _ in range(2):
        is_good, text = probe(config)
        assert not is_good
        assert "show no topic 'never-made'" in text
