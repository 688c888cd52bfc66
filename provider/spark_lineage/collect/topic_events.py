"""Copies the events of one run from the Kafka topic of its driver into the launch's directory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from spark_lineage.collect.collector import earliest_of_run
from spark_lineage.collect.copies import SourceError
from spark_lineage.collect.event_sources import EventSource
from spark_lineage.launch.bounded_run import ANSWER_SECONDS
from spark_lineage.launch.directory import append_private
from spark_lineage.launch.line import is_of_run

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

# How long a topic is read at a time: while the job runs, and at its end.
_ROUND_SECONDS, _LAST_SECONDS = 3.0, 20.0
# A broker answers within half a second (fetch.wait.max.ms), also that there is nothing new.
_MESSAGES, _QUIET_SECONDS, _SETTLED_SECONDS = 500, 0.7, 2.0
# What librdkafka keeps of what it has fetched ahead.
_QUEUE_KILOBYTES = 16 * 1024


@dataclass(frozen=True)
class Topic:
    """A topic, and how librdkafka reaches it; settings for producers alone are skipped."""

    name: str
    config: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, transport: Mapping[str, Any], conn_id: str) -> Topic:
        """Return the topic of a connection, by its transport configuration of openlineage-python.

        :raises SourceError: when it is of another kind
        """
        if transport.get("type") != "kafka" or not transport.get("topic"):
            raise SourceError(f"the connection {conn_id!r} names no Kafka topic")
        return cls(transport["topic"], transport.get("config") or {})


class TopicEvents(EventSource):
    """The events of a run and of its children in a topic.

    Others write to the topic, too. It is read from the time of the run on; no offset is committed, no group joined.
    """

    def __init__(self, topic: Topic, run_id: str, file: Path) -> None:
        super().__init__(run_id, file)
        self._topic = topic
        self._consumer: Consumer | None = None
        self._behind: set[int | None] = set()
        """The partitions that were not read to their ends."""
        self._problem = ""

    def bring(self, *, is_last: bool = False) -> None:
        """Copy what is new, as far as the time of a round allows; at the end all that is there now.

        :raises SourceError: when the topic cannot be read
        :raises OSError: when the file cannot be written
        """
        until = time.monotonic() + (_LAST_SECONDS if is_last else _ROUND_SECONDS)
        try:
            append_private(self._file, self._events(until))
        except OSError:
            # What was read and not written is read again.
            self.close()
            raise

    def close(self) -> None:
        """Close the connections to the brokers."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _events(self, until: float) -> Iterator[bytes]:
        try:
            from confluent_kafka import KafkaException
        except ImportError:
            text = "Kafka needs the package confluent-kafka: install airflow-provider-spark-lineage[kafka]"
            raise SourceError(text) from None
        try:
            consumer = self._consumer or self._opened()
            began = time.monotonic()
            while (messages := consumer.consume(_MESSAGES, _QUIET_SECONDS)) or self._behind:
                for message in messages:
                    yield from self._taken(message)
                # Others may go on writing: it is enough to have been at the ends a little later.
                if time.monotonic() > (until if self._behind else began + _SETTLED_SECONDS):
                    return
        except KafkaException as error:
            problems = dict.fromkeys((error.args[0].str(), *filter(None, [self._problem])))
            # Alone, an error may be no more than a time-out.
            raise SourceError(f"the Kafka topic {self._topic.name}: {'; '.join(problems)}") from None

    def _taken(self, message: Message) -> Iterator[bytes]:
        """Return a message as a line, if it is an event of the run."""
        from confluent_kafka import KafkaError, KafkaException

        error = message.error()
        if error is None:
            self._behind.add(message.partition())
            value = message.value() or b""
            with suppress(msgspec.DecodeError):
                if self._run_id.encode() in value and is_of_run(value, self._run_id):
                    # Within texts of JSON there is no end of line.
                    yield value.replace(b"\n", b" ") + b"\n"
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is its name
            self._behind.discard(message.partition())
        else:
            raise KafkaException(error)

    def _opened(self) -> Consumer:
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        settings = {
            **self._topic.config,
            "group.id": f"spark-lineage-{self._run_id}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "queued.max.messages.kbytes": _QUEUE_KILOBYTES,
            "error_cb": self._note,
            # Its own lines would go to stderr.
            "log_level": 0,
        }
        consumer = Consumer(settings)
        try:
            found = consumer.list_topics(self._topic.name, ANSWER_SECONDS).topics[self._topic.name]
            if found.error is not None:
                raise KafkaException(found.error)  # noqa: TRY301 - as librdkafka itself does for other questions
            earliest = round(earliest_of_run(self._run_id) * 1000)
            wanted = [TopicPartition(self._topic.name, number, earliest) for number in found.partitions]
            # The end, where nothing is as young yet.
            consumer.assign(consumer.offsets_for_times(wanted, ANSWER_SECONDS))
            self._behind = set(found.partitions)
        except BaseException:
            # What librdkafka has met, it says now.
            consumer.poll(0)
            consumer.close()
            raise
        self._consumer = consumer
        return consumer

    def _note(self, error: KafkaError) -> None:
        if error.name() != "_ALL_BROKERS_DOWN":
            self._problem = error.str()
