"""Opens the transport of a destination: of an ``openlineage`` connection, of a member of one, or of Airflow's own."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Mapping
from typing import Any

from openlineage.client.transport import get_default_factory
from openlineage.client.transport.async_http import AsyncHttpTransport
from openlineage.client.transport.composite import CompositeConfig, CompositeTransport
from openlineage.client.transport.file import FileTransport
from openlineage.client.transport.http import HttpTransport
from openlineage.client.transport.kafka import KafkaTransport
from openlineage.client.transport.msk_iam import MSKIAMTransport
from openlineage.client.transport.transform import TransformTransport
from openlineage.client.transport.transport import Config, Transport
from openlineage.client.utils import import_from_string

from spark_lineage.deliver.transports.airflow import airflow_connection, configured_transport, without_outbox
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

AIRFLOW_DESTINATION = "[openlineage]"


def open_transport(destination: str) -> Transport:
    """Open the transport of a destination, whose ``emit`` raises unless the backend said yes.

    :raises SettingError: when the connection is not there, or does not fit
    """
    return make_transport(config_of(destination))


def destinations_of(conn_id: str) -> list[str]:
    """Return the destinations that a connection stands for: itself, or ``conn_id/member`` for each of a composite's.

    :raises SettingError: when the connection is not there, or does not fit
    """
    members = members_of(transport_config(connection_fields(conn_id)))
    return [f"{conn_id}/{name}" for name in members] or [conn_id]


def config_of(destination: str) -> dict[str, Any]:
    """Return the transport configuration of a destination, secrets included, which Airflow's logs mask from now on.

    :raises SettingError: when the connection is not there, or does not fit
    """
    config = _config_of(destination)
    mask_config(config)
    return config


def airflow_transport() -> Mapping[str, Any]:
    """Return the configuration of the OpenLineage provider's transport; of one that names a connection, that of this.

    Empty where there is none, and where the provider is disabled.

    :raises Exception: what the provider raises where it cannot be read, and ``SettingError`` for the connection
    """
    conn_id = airflow_connection()
    return config_of(conn_id) if conn_id else configured_transport()


def _config_of(destination: str) -> dict[str, Any]:
    if destination == AIRFLOW_DESTINATION:
        return _airflow_config()
    conn_id, slash, member = destination.rpartition("/")
    if not slash:
        return transport_config(connection_fields(destination))
    # The id of a connection may have a slash too.
    try:
        members = members_of(transport_config(connection_fields(conn_id)))
    except MissingConnectionError:
        return transport_config(connection_fields(destination))
    if member not in members:
        raise SettingError(
            f"the connection {conn_id!r} has no member {member!r}; it has {', '.join(members) or 'none'}"
        )
    return members[member]


class MissingConnectionError(SettingError):
    """Airflow has no such connection, or cannot read it; the text says which."""


def connection_fields(conn_id: str, conn_type: str = CONN_TYPE) -> ConnectionFields:
    """Read a connection of Airflow.

    :raises MissingConnectionError: when Airflow does not give it
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

    Those of openlineage-python that lose events without a word are replaced: Kafka, ``async_http``, composites of them.
    HTTP makes one try, for the outbox makes the others.

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
    if original is AsyncHttpTransport:
        log.info("The transport async_http loses events of processes that end; http is used in its place.")
    inside: Any = given.get("transport")
    if original is TransformTransport and inside:
        given["transport"] = {"type": "noop"}  # it would make one of openlineage-python
    chosen: Any = MarquezTransport if given.pop("backend", "") == MARQUEZ else _OURS.get(original, original)
    name, priority = given.pop("name", None), int(given.pop("priority", 0))
    tls = next((given[key] for key in ("sslContext", "ssl_context", "sslcontext") if given.get(key)), None)
    config_class = chosen.config_class
    config_class = import_from_string(config_class) if isinstance(config_class, str) else config_class
    if "retry" in getattr(config_class, "__annotations__", {}):
        given["retry"] = dict(NO_RETRY)
    made: Transport = chosen(_config(config_class, given))
    if isinstance(made, AnsweredHttpTransport) and isinstance(tls, Mapping):
        made.use_certificates(tls)
    if isinstance(made, TransformTransport):
        made.transport = make_transport(inside)
    made.name = made.name or name
    made.priority = made.priority or priority
    return made


def _config(config_class: type[Config], given: dict[str, Any]) -> Config:
    # Its from_dict takes what it uses out of the dictionary.
    return config_class.from_dict(copy.deepcopy(given))


class AcknowledgedCompositeTransport(CompositeTransport):
    """A composite of transports that are made here; it says no unless all of those that it must tell took the event."""

    @property
    def transports(self) -> list[Transport]:
        """The members, in the order of the configuration, or of their priorities."""
        return self._members

    def __init__(self, config: CompositeConfig) -> None:
        named = config.transports
        listed = [{**each, "name": name} for name, each in named.items()] if isinstance(named, Mapping) else named
        self._members = [make_transport(each) for each in listed]
        if config.sort_transports:
            self._members.sort(key=lambda member: member.priority, reverse=True)
        super().__init__(config)

    def emit(self, event: Any) -> None:
        """Send one event to all members, or to the first that takes it (``continue_on_success: false``).

        :raises ExceptionGroup: of what the members raised
        """
        errors: list[Exception] = []
        for member in self._members:
            try:
                member.emit(event)
            except Exception as error:
                errors.append(error)
                if not self.config.continue_on_failure:
                    break
            else:
                if not self.config.continue_on_success:
                    return
        if errors:
            raise ExceptionGroup(f"{len(errors)} of {len(self._members)} transports did not take the event", errors)


_OURS: Mapping[type[Transport], type[Transport]] = {
    HttpTransport: AnsweredHttpTransport,
    AsyncHttpTransport: AnsweredHttpTransport,
    KafkaTransport: AcknowledgedKafkaTransport,
    MSKIAMTransport: AcknowledgedMskIamTransport,
    FileTransport: DurableFileTransport,
    CompositeTransport: AcknowledgedCompositeTransport,
}


def _airflow_config() -> dict[str, Any]:
    """The transport of ``[openlineage]``; where it is ours, the one that it stands for."""
    inner = without_outbox(airflow_transport())
    if not inner:
        raise SettingError("[openlineage] transport of Airflow's configuration has no transport; give it one")
    return dict(inner)
