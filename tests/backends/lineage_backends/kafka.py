"""A Kafka broker of one's own on the loopback: KRaft, one node, SCRAM, PLAIN and an open listener."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lineage_backends.maven import jars, java
from lineage_backends.processes import HOST, Server, free_ports, listens, run

COORDINATES = ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36")
USER = "lineage"
PASSWORD = "kafka-of-the-tests"  # noqa: S105 (of a broker that lives as long as the test)
START_SECONDS = 60
# Small: there is no load, and the machine has other things to do.
JVM = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


@dataclass(frozen=True)
class Kafka:
    """The broker's addresses (``host:port``), and the user of the two that ask for one."""

    bootstrap: str
    """SASL_PLAINTEXT, with SCRAM-SHA-512 or PLAIN."""
    open_bootstrap: str
    """PLAINTEXT, for everybody."""
    process_id: int
    user: str = USER
    password: str = PASSWORD

    def sasl(self, mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
        """Properties of librdkafka for ``bootstrap``."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }

    def create_topic(self, name: str, partitions: int = 1) -> str:
        """A new topic; gives its name."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.open_bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(30)
        return name

    def read(self, topic: str, count: int = 0, seconds: float = 10) -> list[Any]:
        """The messages of a topic from its beginning: ``count`` of them, or all that are there within the time."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {"bootstrap.servers": self.open_bootstrap, "group.id": "reader", "log_level": 0}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        messages: list[Any] = []
        try:
            partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            # Without joining the group: that takes seconds.
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and not (count and len(messages) >= count):
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    messages.append(message)
        finally:
            consumer.close()
        return messages


@contextmanager
def kafka(open_port: int | None = None) -> Iterator[Kafka]:
    """Run a broker, whose open listener has this port if one is given; its data is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="spark-lineage-kafka-"))
    try:
        classpath = f"{jars('kafka', COORDINATES)}/*"
        sasl, plain, controller = free_ports(3)
        plain = open_port or plain
        properties = home / "server.properties"
        properties.write_text(_properties(home / "data", sasl, plain, controller))
        program = [java(), *JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath]
        credentials = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
        format_ = [
            "kafka.tools.StorageTool",
            "format",
            "--config",
            str(properties),
            "--cluster-id",
            "bGluZWFnZS1vZi10ZXN0cw",
        ]
        run("Kafka's StorageTool", [*program, *format_, "--add-scram", credentials], env={})
        server = Server.start("Kafka", [*program, "kafka.Kafka", properties], home / "log", env={})
        try:
            server.wait_until(lambda: listens(sasl) and listens(plain), START_SECONDS)
            yield Kafka(f"{HOST}:{sasl}", f"{HOST}:{plain}", server.process.pid)
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _properties(data: Path, sasl: int, plain: int, controller: int) -> str:
    module = "org.apache.kafka.common.security"
    login = f"{module}.plain.PlainLoginModule"
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "OPEN",
        "listeners": f"SASL://{HOST}:{sasl},OPEN://{HOST}:{plain},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"SASL://{HOST}:{sasl},OPEN://{HOST}:{plain}",
        "listener.security.protocol.map": "SASL:SASL_PLAINTEXT,OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
        "listener.name.sasl.plain.sasl.jaas.config": f'{login} required user_{USER}="{PASSWORD}";',
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "message.max.bytes": str(10 * 1024 * 1024),
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())
