"""Sends events to Kafka: one is sent only when the broker has acknowledged it; bounded in time."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from spark_lineage.deliver.sender import Later, Refused
from spark_lineage.launch.log import Log
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

    from spark_lineage.deliver.outgoing import Outgoing

log = Log(__name__)

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


def message_key(body: bytes) -> str | None:
    """Return the key that the Kafka transport of openlineage-python gives an event: the runs of one root stay in order.

    ``run:namespace/name`` of the job of the root, else of the parent, else of the run; ``job:``, ``dataset:``.
    """
    with suppress(AttributeError, KeyError, TypeError, msgspec.DecodeError):
        # Inputs and outputs stay raw, which are most of an event.
        raw = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        event: dict[str, Any] = {key: msgspec.json.decode(raw[key]) for key in ("run", "job", "dataset") if key in raw}
        kind = next(filter(event.get, event), "")
        if kind == "run":
            parent = (event["run"].get("facets") or {}).get("parent") or event
            event["run"] = (parent.get("root") or parent)["job"]
        return f"{kind}:{event[kind]['namespace']}/{event[kind]['name']}"
    return None


class KafkaSender:
    """Waits for the acknowledgement of each event; ``acks=all`` and idempotence unless the configuration changes them.

    A wrong password and a dead broker both end in librdkafka's time-out; its error callback has the cause.

    :param config: of the Kafka transport of openlineage-python: ``topic``, ``config``, ``messageKey``
    :param has_aws_login: whether AWS gives a token, by ``region``, and ``aws_profile`` or ``role_arn``
    :raises SettingError: for what librdkafka does not take
    """

    def __init__(self, config: Mapping[str, Any], *, has_aws_login: bool = False) -> None:
        self.topic = str(config.get("topic") or "")
        properties = config.get("config")
        if not self.topic or not isinstance(properties, Mapping):
            raise SettingError("the transport of type 'kafka' cannot be made: it has no 'topic', or no 'config'")
        self._key = config.get("messageKey") or config.get("message_key")
        self.properties = {**properties, **(_aws_login(config) if has_aws_login else {})}
        self._problems: dict[str, str] = {}
        # How long librdkafka itself tries to deliver a message.
        timeout = next((properties[key] for key in _TIMEOUTS if key in properties), None)
        self._timeout_seconds = DEFAULT_TIMEOUT_SECONDS if timeout is None else float(timeout) / 1000
        self._producer: Producer | None = self._open()

    def send(self, event: Outgoing) -> None:
        """Send one event; errors as of ``Sender``."""
        self.send_message(self._key or message_key(event.body), event.body)

    def send_message(self, key: str | None, value: bytes) -> None:
        """Send one message; errors as of ``Sender``."""
        producer = self._producer = self._producer or self._open()
        self._problems.clear()
        if (failure := self._failure_of(producer, key, value)) is not None:
            # What is left in its queue must not be delivered later, when another try was.
            self.close()
            raise failure

    def probe(self) -> tuple[bool, str]:
        """Have the brokers list the topics that they show us."""
        from confluent_kafka import KafkaException

        producer = self._producer = self._producer or self._open()
        topics, problem = {}, ""
        try:
            # All topics: to ask for one by its name would make it, where brokers do that.
            topics = producer.list_topics(timeout=self._timeout_seconds).topics
        except KafkaException as error:
            problem = _text(error.args[0])
        if problem:
            producer.poll(0)
            raise self._explained(problem)
        if self.topic not in topics:
            advice = "create it, or allow this login to write it"
            return False, f"the brokers are reached, and show no topic {self.topic!r}: {advice}"
        if any(partition.leader < 0 for partition in topics[self.topic].partitions.values()):
            return False, f"the topic {self.topic!r} has a partition without a leader; check the brokers"
        return True, f"the brokers are reached, and have the topic {self.topic!r}"

    def close(self) -> None:
        """Drop the producer, and what waits in it."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(0)

    def _failure_of(self, producer: Producer, key: str | None, value: bytes) -> Later | Refused | None:
        """Send one message; return why the broker has not acknowledged it, None where it has."""
        from confluent_kafka import KafkaException

        outcome: list[KafkaError | None] = []
        try:
            producer.produce(self.topic, value, key, on_delivery=lambda error, _: outcome.append(error))
        except KafkaException as error:
            return self._failure(error.args[0])
        except BufferError:
            return Later("librdkafka's queue is full", is_away=True)
        end = time.monotonic() + self._timeout_seconds + _GRACE_SECONDS
        while not outcome and not self._login_problem and time.monotonic() < end:
            producer.poll(_POLL_SECONDS)
        if not outcome:
            return self._explained(f"no acknowledgement within {self._timeout_seconds:g} s")
        return None if outcome[0] is None else self._failure(outcome[0])

    def _failure(self, error: KafkaError) -> Later | Refused:
        name = error.name()
        if name in _LOGIN_ERRORS:
            self._problems.setdefault(name, _text(error))
        if name in _REFUSALS:
            return Refused(f"Kafka, topic {self.topic!r}: the broker refuses the event: {_text(error)}")
        return self._explained(_text(error))

    def _explained(self, problem: str) -> Later:
        where = f"Kafka at {self._brokers}, topic {self.topic!r}"
        if login := self._login_problem:
            advice = "check the login, the password and its rights"
            return Later(f"{where}: the broker denies access: {login}; {advice}", is_away=True)
        cause = next(iter(self._problems.values()), "")
        return Later(f"{where}: {problem}" + (f"; {cause}" if cause and cause != problem else ""), is_away=True)

    @property
    def _login_problem(self) -> str:
        return next((text for name, text in self._problems.items() if name in _LOGIN_ERRORS), "")

    @property
    def _brokers(self) -> str:
        named = filter(None, map(self.properties.get, ("bootstrap.servers", "metadata.broker.list")))
        return str(next(named, "no address"))

    def _note(self, error: KafkaError) -> None:
        # That all brokers are down says less than why the first of them cannot be used.
        if error.name() != "_ALL_BROKERS_DOWN":
            self._problems.setdefault(error.name(), _text(error))

    def _open(self) -> Producer:
        try:
            from confluent_kafka import KafkaException, Producer
        except ModuleNotFoundError:
            raise SettingError(
                "Kafka needs the package confluent-kafka: install airflow-provider-spark-lineage[kafka]"
            ) from None
        own = {"error_cb": self._note, "logger": _Quiet()}
        try:
            return Producer({**_defaults(self.properties), **self.properties, **own})
        except (KafkaException, TypeError, ValueError) as error:
            problem = _text(error.args[0]) if error.args else type(error).__name__
        if "SASL mechanism GSSAPI" in problem:
            problem += ". Build confluent-kafka with it: pip install --no-binary confluent-kafka confluent-kafka"
        raise SettingError(f"the Kafka configuration for {self._brokers} cannot be used: {problem}")


class _Quiet:
    """Takes librdkafka's own log lines, which come with each of its tries, and else go to stderr."""

    def log(self, level: int, message: str, *args: Any) -> None:  # noqa: ARG002
        log.debug(message, *args)


def _aws_login(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a client of Amazon MSK logs in, as ``MSKIAMTransport`` of openlineage-python does."""
    region = config.get("region") or os.environ.get("AWS_REGION")
    if not region:
        raise SettingError("the transport of type 'msk-iam' has no 'region'; give it, or set AWS_REGION")

    def token(_: str) -> tuple[str, float]:
        provider = import_module("aws_msk_iam_sasl_signer").MSKAuthTokenProvider
        if profile := config.get("aws_profile"):
            text, expires_ms = provider.generate_auth_token_from_profile(region, profile)
        elif role := config.get("role_arn"):
            text, expires_ms = provider.generate_auth_token_from_role_arn(region, role)
        else:
            text, expires_ms = provider.generate_auth_token(region)
        return text, expires_ms / 1000

    return {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": token}


def _defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"message.max.bytes": _MAX_MESSAGE_BYTES}
    acks = next((str(config[key]) for key in _ACKS if key in config), "")
    if not acks:
        defaults["acks"] = "all"
    if acks in ("", "all", "-1"):
        defaults["enable.idempotence"] = "true"
    if not any(key in config for key in _TIMEOUTS):
        defaults["message.timeout.ms"] = round(DEFAULT_TIMEOUT_SECONDS * 1000)
    return defaults


def _text(error: Any) -> str:
    return str(error.str() if hasattr(error, "str") else error)
