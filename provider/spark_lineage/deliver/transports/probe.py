"""Tests a transport for *Test connection* and the doctor: contacts the backend, and writes nothing there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from openlineage.client.transport.console import ConsoleTransport
from openlineage.client.transport.file import FileTransport, LocalFileHandler
from openlineage.client.transport.noop import NoopTransport
from openlineage.client.transport.transform import TransformTransport

from spark_lineage.deliver.sender import SUCCESSES, is_page
from spark_lineage.deliver.transports.config import members_of
from spark_lineage.deliver.transports.file import local_path
from spark_lineage.deliver.transports.http import AnsweredHttpTransport, describe
from spark_lineage.deliver.transports.kafka import AcknowledgedKafkaTransport
from spark_lineage.deliver.transports.opening import make_transport
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from openlineage.client.transport.transport import Transport

# What backends say to a body that is no event: 400, 422, and the others that only a reader of bodies gives.
_REFUSALS = frozenset({400, 406, 411, 415, 422})
_TROUBLE = range(500, 600)


def probe(config: Mapping[str, Any]) -> tuple[bool, str]:
    """Say whether events would arrive, and what was found, redacted; raises nothing.

    HTTP: an empty body is posted to the endpoint, with the credentials. No backend takes that for an event: they
    answer 400 or 422, and 401 before they look at it where the credentials are wrong. Kafka: the brokers list their
    topics. A file: whether its directory can be written.
    """
    if members := members_of(config):
        results = {name: probe(member) for name, member in members.items()}
        texts = (f"{name}: {'' if is_good else 'NOT GOOD: '}{text}" for name, (is_good, text) in results.items())
        return all(is_good for is_good, _ in results.values()), "; ".join(texts)
    try:
        transport = make_transport(config)
        try:
            return _probed(transport)
        finally:
            transport.close(1.0)
    except Exception as error:
        return False, redact(str(error)) or type(error).__name__


def _probed(transport: Transport) -> tuple[bool, str]:
    trials: tuple[tuple[type[Transport], Callable[[Any], tuple[bool, str]]], ...] = (
        (AnsweredHttpTransport, _http),
        (AcknowledgedKafkaTransport, _kafka),
        (FileTransport, _file),
        (TransformTransport, lambda outer: _probed(outer.transport)),
        (ConsoleTransport, lambda _: (True, "events go to the log of the task")),
        (NoopTransport, lambda _: (False, "a transport of type 'noop' sends nothing; give another type")),
    )
    return next((trial for kind, trial in trials if isinstance(transport, kind)), _made)(transport)


def _made(transport: Transport) -> tuple[bool, str]:
    return True, f"{type(transport).__name__} was made; it cannot be tried without sending an event"


def _http(transport: AnsweredHttpTransport) -> tuple[bool, str]:
    answer = transport.probe()
    status = answer.status_code
    if status in _REFUSALS:
        return True, f"{answer.url} is reached, and refuses an empty event as it should ({status})"
    if status in SUCCESSES and not is_page(answer.content):
        return True, f"{answer.url} is reached, and takes any body ({status}): whether it reads OpenLineage is unknown"
    if status in _TROUBLE:
        return False, f"{describe(answer)}: the backend answers with an error; check its log"
    return False, describe(answer)


def _kafka(transport: AcknowledgedKafkaTransport) -> tuple[bool, str]:
    topics = transport.cluster_topics()
    name = transport.topic
    if name not in topics:
        return False, f"the brokers are reached, and show no topic {name!r}: create it, or allow this login to write it"
    if not topics[name]:
        return False, f"the topic {name!r} has a partition without a leader; check the brokers"
    return True, f"the brokers are reached, and have the topic {name!r}"


def _file(transport: FileTransport) -> tuple[bool, str]:
    if not isinstance(transport._file_handler, LocalFileHandler):  # noqa: SLF001 - says whether the file is local
        return _made(transport)
    path, is_one_file = Path(local_path(transport.config.log_file_path)), transport.config.append
    directory = path.parent
    if not directory.is_dir():
        return False, f"the directory {redact(str(directory))} does not exist; create it, or give another"
    target = path if path.exists() and is_one_file else directory
    try:
        # What may be written is not always said by its rights.
        if target is path:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        else:
            TemporaryFile(dir=directory).close()
    except OSError as error:
        problem = f"{redact(str(target))} cannot be written by this process: {error.strerror}"
        return False, f"{problem}; change its rights, or give another"
    shown = redact(str(path))
    return True, f"events are appended to {shown}" if is_one_file else f"each event gets a file {shown}-….json"
