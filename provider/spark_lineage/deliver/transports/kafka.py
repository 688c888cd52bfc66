"""The Kafka transport: an event is sent only when the broker has acknowledged it; bounded in time."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openlineage.client.serde import Serde
from openlineage.client.transport.kafka import KafkaConfig, KafkaTransport
from openlineage.client.transport.msk_iam import MSKIAMConfig, MSKIAMTransport

from spark_lineage.deliver.transports.errors import NotTakenError, UnreachableError
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message
    from openlineage.client.client import Event

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_SECONDS = 10.0
# librdkafka's own limit, 1 MB before compression, is lower than the broker's, which then says what it takes.
_MAX_MESSAGE_BYTES = 20_000_000
_POLL_SECONDS = 0.05
# What librdkafka takes to say that the message's own time is over.
_GRACE_SECONDS = 1.5
_TIMEOUTS = ("message.timeout.ms", "delivery.timeout.ms")
_ACKS = ("acks", "request.required.acks")
# By the names of librdkafka's errors; the numbers are in no module that is always there.
_LOGIN_ERRORS = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"})  # fmt: skip
_REFUSALS = frozenset({"MSG_SIZE_TOO_LARGE", "INVALID_MSG", "INVALID_MSG_SIZE", "INVALID_RECORD", "POLICY_VIOLATION"})


class AcknowledgedKafkaTransport(KafkaTransport):
    """Waits for the acknowledgement of each event; ``acks=all`` and idempotence unless the configuration changes them.

    What is not acknowledged is a ``NotTakenError``. A wrong password and a dead broker both end in librdkafka's
    time-out; its error callback has the cause.
    """

    config_class = KafkaConfig

    def __init__(self, config: KafkaConfig) -> None:
        self._problems: dict[str, str] = {}
        self._process_id = os.getpid()
        # How long librdkafka itself tries to deliver a message.
        given = next((config.config[key] for key in _TIMEOUTS if key in config.config), None)
        self.timeout_seconds = DEFAULT_TIMEOUT_SECONDS if given is None else float(given) / 1000
        super().__init__(config)

    def emit(self, event: Event) -> None:
        """Send one event."""
        key = self.message_key or self._get_message_key(event)
        self.send(key, Serde.to_json(event).encode("utf-8", "replace"))

    def send(self, key: str | None, value: bytes) -> None:
        """Send one message."""
        if self.producer is None or self._process_id != os.getpid():
            # A producer's threads do not survive a fork.
            self._process_id = os.getpid()
            self._setup_producer(self.kafka_config.config)
        self._problems.clear()
        failure = self._outcome(key, value)
        if failure is not None:
            # What is left in its queue must not be delivered later, when another try was.
            self._drop_producer()
            raise failure

    def cluster_topics(self) -> dict[str, bool]:
        """Return the topics that the brokers show us, and whether each has a leader to write to.

        :raises NotTakenError: when no broker answers, or none lets us in
        """
        from confluent_kafka import KafkaException

        if self.producer is None:
            self._setup_producer(self.kafka_config.config)
        try:
            # All topics: to ask for one by its name would make it, where brokers do that.
            found = self.producer.list_topics(timeout=self.timeout_seconds)  # type: ignore[union-attr]
        except KafkaException as error:
            problem = _text(error.args[0])
        else:
            return {
                topic.topic: all(partition.leader >= 0 for partition in topic.partitions.values())
                for topic in found.topics.values()
            }
        self.producer.poll(0)  # type: ignore[union-attr]
        raise self._explained(problem)

    def close(self, timeout: float = -1) -> bool:  # noqa: ARG002 - as openlineage-python has it
        """Drop the producer; nothing waits in it."""
        self._drop_producer()
        return True

    def _outcome(self, key: str | None, value: bytes) -> NotTakenError | None:
        """Send one message; return why the broker has not acknowledged it, None where it has."""
        from confluent_kafka import KafkaException

        outcome: list[KafkaError | None] = []

        def keep(error: KafkaError | None, message: Message) -> None:  # noqa: ARG001
            outcome.append(error)

        try:
            self.producer.produce(topic=self.topic, key=key, value=value, on_delivery=keep)  # type: ignore[union-attr]
        except KafkaException as error:
            return self._failure(error.args[0])
        except BufferError:
            return UnreachableError("librdkafka's queue is full")
        end = time.monotonic() + self.timeout_seconds + _GRACE_SECONDS
        while not outcome and not self._login_problem and time.monotonic() < end:
            self.producer.poll(_POLL_SECONDS)  # type: ignore[union-attr]
        if not outcome:
            return self._explained(f"no acknowledgement within {self.timeout_seconds:g} s")
        return None if outcome[0] is None else self._failure(outcome[0])

    def _failure(self, error: KafkaError) -> NotTakenError:
        name = error.name()
        if name in _LOGIN_ERRORS:
            self._problems.setdefault(name, _text(error))
        if name in _REFUSALS:
            return NotTakenError(
                f"Kafka, topic {self.topic!r}: the broker refuses the event: {_text(error)}", is_refusal=True
            )
        return self._explained(_text(error))

    def _explained(self, problem: str) -> UnreachableError:
        where = f"Kafka at {redact(self._brokers)}, topic {self.topic!r}"
        if login := self._login_problem:
            return UnreachableError(
                f"{where}: the broker denies access: {login}; check the login, the password and its rights"
            )
        cause = next(iter(self._problems.values()), "")
        return UnreachableError(f"{where}: {problem}" + (f"; {cause}" if cause and cause != problem else ""))

    @property
    def _login_problem(self) -> str:
        return next((text for name, text in self._problems.items() if name in _LOGIN_ERRORS), "")

    @property
    def _brokers(self) -> str:
        config = self.kafka_config.config
        return config.get("bootstrap.servers") or config.get("metadata.broker.list") or "no address"

    def _note(self, error: KafkaError) -> None:
        # That all brokers are down says less than why the first of them cannot be used.
        if error.name() != "_ALL_BROKERS_DOWN":
            self._problems.setdefault(error.name(), _text(error))

    def _drop_producer(self) -> None:
        producer, self.producer = self.producer, None
        if producer is not None and self._process_id == os.getpid():
            producer.purge()
            producer.flush(0)

    def _setup_producer(self, config: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException

        try:
            super()._setup_producer({**_defaults(config), **config, "error_cb": self._note, "logger": _Quiet()})
        except ModuleNotFoundError:
            problem = "needs the package confluent-kafka: install airflow-provider-spark-lineage[kafka]"
        except (KafkaException, TypeError, ValueError) as error:
            problem = f"cannot be used: {_text(error.args[0]) if error.args else type(error).__name__}"
            if "SASL mechanism GSSAPI" in problem:
                problem += ". Build confluent-kafka with it: pip install --no-binary confluent-kafka confluent-kafka"
        else:
            return
        raise SettingError(f"the Kafka configuration for {redact(self._brokers)} {problem}")


class AcknowledgedMskIamTransport(AcknowledgedKafkaTransport, MSKIAMTransport):
    """The same, with the credentials of AWS."""

    kind = "msk-iam"
    config_class = MSKIAMConfig


class _Quiet:
    """Takes librdkafka's own log lines, which come with each of its tries, and else go to stderr."""

    def log(self, level: int, message: str, *args: Any) -> None:  # noqa: ARG002
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s", redact(message % args if args else message))


def _defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"message.max.bytes": _MAX_MESSAGE_BYTES}
    acks = next((str(config[key]) for key in _ACKS if key in config), "")
    if not acks:
        found["acks"] = "all"
    if acks in ("", "all", "-1"):
        found["enable.idempotence"] = "true"
    if not any(key in config for key in _TIMEOUTS):
        found["message.timeout.ms"] = round(DEFAULT_TIMEOUT_SECONDS * 1000)
    return found


def _text(error: Any) -> str:
    return redact(error.str() if hasattr(error, "str") else str(error))
