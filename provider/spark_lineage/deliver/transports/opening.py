"""Opens the transport of a destination: of an ``openlineage`` connection, or of a member of one."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Mapping
from typing import Any

from openlineage.client.transport import get_default_factory
from openlineage.client.transport.async_http import AsyncHttpTransport
from openlineage.client.transport.composite import CompositeTransport
from openlineage.client.transport.file import FileTransport
from openlineage.client.transport.http import HttpTransport
from openlineage.client.transport.kafka import KafkaTransport
from openlineage.client.transport.msk_iam import MSKIAMTransport
from openlineage.client.transport.transform import TransformTransport
from openlineage.client.transport.transport import Transport
from openlineage.client.utils import import_from_string

from spark_lineage.deliver.transports.airflow import airflow_connection, configured_transport
from spark_lineage.deliver.transports.config import CONN_TYPE, MARQUEZ, members_of, transport_config
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.file import DurableFileTransport
from spark_lineage.deliver.transports.http import NO_RETRY, AnsweredHttpTransport
from spark_lineage.deliver.transports.kafka import AcknowledgedKafkaTransport, AcknowledgedMskIamTransport
from spark_lineage.deliver.transports.marquez import MarquezTransport
from spark_lineage.deliver.transports.masking import mask_config
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

log = logging.getLogger(__name__)

_OURS: Mapping[type[Transport], type[Transport]] = {
    HttpTransport: AnsweredHttpTransport,
    AsyncHttpTransport: AnsweredHttpTransport,
    KafkaTransport: AcknowledgedKafkaTransport,
    MSKIAMTransport: AcknowledgedMskIamTransport,
    FileTransport: DurableFileTransport,
}


class MissingConnectionError(SettingError):
    """Airflow has no such connection, or cannot read it; the text says which."""


def open_transport(destination: str) -> Transport:
    """Open the transport of a destination, whose ``emit`` raises unless the backend said yes.

    :raises SettingError: when the connection is not there, or does not fit
    """
    conn_id, slash, member = destination.rpartition("/")
    if slash:
        # The id of a connection may have a slash too.
        try:
            configs = destinations_of(conn_id)
        except MissingConnectionError:
            slash = ""
        else:
            if destination not in configs:
                names = ", ".join(name.removeprefix(f"{conn_id}/") for name in configs)
                raise SettingError(f"the connection {conn_id!r} has no member {member!r}; it has {names}")
    return make_transport(configs[destination] if slash else config_of(destination))


def destinations_of(conn_id: str) -> Mapping[str, dict[str, Any]]:
    """Return the transport configuration of each destination of a connection.

    The connection itself is one; ``conn_id/member`` is one for each member of a composite.

    :raises SettingError: when the connection is not there, or does not fit
    """
    config = config_of(conn_id)
    return {f"{conn_id}/{name}": each for name, each in members_of(config).items()} or {conn_id: config}


def config_of(conn_id: str) -> dict[str, Any]:
    """Return the transport configuration of a connection, secrets included, which Airflow's logs mask from now on.

    :raises SettingError: when the connection is not there, or does not fit
    """
    config = transport_config(connection_fields(conn_id))
    mask_config(config)
    return config


def airflow_transport() -> Mapping[str, Any]:
    """Return the configuration of the OpenLineage provider's transport; of one that names a connection, that of this.

    Empty where there is none, and where the provider is disabled.

    :raises Exception: what the provider raises where it cannot be read, and ``SettingError`` for the connection
    """
    conn_id = airflow_connection()
    return config_of(conn_id) if conn_id else configured_transport()


def connection_fields(conn_id: str, conn_type: str = CONN_TYPE) -> ConnectionFields:
    """Read a connection of Airflow.

    :raises MissingConnectionError: when Airflow does not return it
    :raises SettingError: when it is of another type
    """
    from airflow.providers.common.compat.sdk import BaseHook

    try:
        connection = BaseHook.get_connection(conn_id)
    except Exception as error:
        problem = redact(str(error)) or type(error).__name__
    else:
        if connection.conn_type != conn_type:
            raise SettingError(
                f"the connection {conn_id!r} is of type {connection.conn_type!r}; give one of type {conn_type!r}"
            )
        return ConnectionFields.of(connection)
    raise MissingConnectionError(f"the connection {conn_id!r} cannot be read: {problem}")


def make_transport(config: Mapping[str, Any]) -> Transport:
    """Make the transport of a configuration, which stays as it is.

    Those of openlineage-python that lose events without a word are replaced: Kafka, ``async_http``. HTTP makes one try,
    for the outbox makes the others.

    :raises SettingError: when it cannot be made
    """
    given = copy.deepcopy(dict(config))
    kind = given.get("type")
    if not isinstance(kind, str) or not kind:
        raise SettingError(
            "the transport has no 'type'; give one of http, kafka, file, console, composite, or a class path"
        )
    try:
        return _made(kind, given)
    except SettingError:
        raise
    except Exception as error:
        problem = redact(str(error)) or type(error).__name__
    raise SettingError(f"the transport of type {redact(kind)!r} cannot be made: {problem}")


def _made(kind: str, given: dict[str, Any]) -> Transport:
    found = get_default_factory().transports.get(kind, kind)
    original = import_from_string(found) if isinstance(found, str) else found
    if not inspect.isclass(original) or not issubclass(original, Transport):
        raise SettingError(f"the transport {redact(kind)!r} is no Transport of openlineage-python; give another type")
    if issubclass(original, CompositeTransport):
        raise SettingError("a composite is several destinations, and cannot be inside of another transport")
    if original is AsyncHttpTransport:
        log.info("The transport async_http loses events of processes that end; http is used in its place.")
    inside: Any = given.get("transport")
    if original is TransformTransport and inside:
        given["transport"] = {"type": "noop"}  # it would make one of openlineage-python
    chosen: Any = MarquezTransport if given.pop("backend", "") == MARQUEZ else _OURS.get(original, original)
    for key in ("name", "priority"):
        given.pop(key, None)
    tls = next((given[key] for key in ("sslContext", "ssl_context", "sslcontext") if given.get(key)), None)
    config_class = chosen.config_class
    config_class = import_from_string(config_class) if isinstance(config_class, str) else config_class
    if "retry" in getattr(config_class, "__annotations__", {}):
        given["retry"] = dict(NO_RETRY)
    # Its from_dict takes what it uses out of the dictionary.
    made: Transport = chosen(config_class.from_dict(copy.deepcopy(given)))
    if isinstance(made, AnsweredHttpTransport) and isinstance(tls, Mapping):
        made.use_certificates(tls)
    if isinstance(made, TransformTransport):
        made.transport = make_transport(inside)
    return made
