"""Opens the transport of a connection or of one of its members, and finds that of Airflow's OpenLineage provider.

What reads a connection raises ``SettingError`` when it is not there, or does not fit. What reads the configuration of
the provider also raises what the provider raises where it cannot be read.
"""

from __future__ import annotations

import copy
import inspect
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

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

from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.sender import Sender, sender_of
from spark_lineage.deliver.transports.config import (
    CONN_TYPE,
    DEFAULT_ENDPOINT,
    MARQUEZ,
    members_of,
    namespace_of,
    transport_config,
)
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.file import DurableFileTransport
from spark_lineage.deliver.transports.http import NO_RETRY, AnsweredHttpTransport
from spark_lineage.deliver.transports.kafka import AcknowledgedKafkaTransport, AcknowledgedMskIamTransport
from spark_lineage.secrets.redaction import redact
from spark_lineage.secrets.secret_keys import is_secret_key
from spark_lineage.settings import SettingError

log = logging.getLogger(__name__)

_OURS: Mapping[type[Transport], type[Transport]] = {
    HttpTransport: AnsweredHttpTransport,
    AsyncHttpTransport: AnsweredHttpTransport,
    KafkaTransport: AcknowledgedKafkaTransport,
    MSKIAMTransport: AcknowledgedMskIamTransport,
    FileTransport: DurableFileTransport,
}

# Airflow registers nothing shorter, and warns of each.
_SHORTEST = 5
# Users name what is below these, so a key may have any name there.
_PRIVATE = frozenset({"custom_headers", "auth"})
_HARMLESS = frozenset({"type"})
# By the type of a connection whose backend takes no events as they are: the class of its transport.
_TRANSPORTS = {"atlas": "spark_lineage.atlas.transport.AtlasTransport"}

BY_CONNECTION = "spark_lineage.deliver.connection_transport.ConnectionTransport"
_PORTS = {"http": 80, "https": 443}


class MissingConnectionError(SettingError):
    """Airflow has no such connection, or cannot read it; the text says which."""


def open_sender(destination: str) -> Sender:
    """Open what sends the events of a destination."""
    return sender_of(config_of_destination(destination))


def config_of_destination(destination: str) -> Mapping[str, Any]:
    """Return the transport configuration of a destination, which is a connection or a member of one."""
    conn_id, slash, member = destination.rpartition("/")
    configs: Mapping[str, dict[str, Any]] = {}
    # The id of a connection may have a slash too.
    with suppress(MissingConnectionError):
        configs = destinations_of(conn_id) if slash else {}
    if configs and destination not in configs:
        names = ", ".join(name.removeprefix(f"{conn_id}/") for name in configs)
        raise SettingError(f"the connection {conn_id!r} has no member {member!r}; it has {names}")
    return configs.get(destination) or config_of(destination)


def for_courier(config: Mapping[str, Any]) -> tuple[dict[str, Any], Sequence[str]]:
    """Return what a process without Airflow's connections sends by, and its secrets.

    A transport that reads connections itself gets them as Airflow's environment variables.
    """
    found, secrets = dict(config), list(_secrets(config, is_private=False))
    if config.get("type") in _TRANSPORTS.values():
        from airflow.providers.common.compat.sdk import BaseHook

        connection = BaseHook.get_connection(config["conn_id"])
        named = [connection]
        if rest_conn_id := connection.extra_dejson.get("rest_conn_id"):
            named.append(BaseHook.get_connection(rest_conn_id))
        found["environment"] = {f"AIRFLOW_CONN_{each.conn_id.upper()}": each.as_json() for each in named}
        secrets += [each.password for each in named if each.password]
    return found, secrets


def destinations_of(conn_id: str) -> Mapping[str, dict[str, Any]]:
    """Return the transport configuration of each destination of a connection.

    The connection itself is one; ``conn_id/member`` is one for each member of a composite.
    """
    config = config_of(conn_id)
    return {f"{conn_id}/{name}": each for name, each in members_of(config).items()} or {conn_id: config}


def config_of(conn_id: str) -> dict[str, Any]:
    """Return the transport configuration of a connection, secrets included, which Airflow's logs mask from now on."""
    fields = connection_fields(conn_id, CONN_TYPE, *_TRANSPORTS)
    if transport := _TRANSPORTS.get(fields.conn_type):
        return {"type": transport, "conn_id": conn_id}
    return mask_config(transport_config(fields))


def profile_of(conn_id: str, config: Mapping[str, Any]) -> Profile:
    """Return what the events for a destination of a connection are encoded for."""
    fields = connection_fields(conn_id, CONN_TYPE, *_TRANSPORTS)
    if fields.conn_type in _TRANSPORTS:
        return Profile()
    return Profile(namespace_of(fields), config.get("backend") == MARQUEZ)


def airflow_transport() -> Mapping[str, Any]:
    """Return the configuration of the OpenLineage provider's transport; of one that names a connection, that of this.

    Empty where there is none, and where the provider is disabled.
    """
    conn_id = airflow_connection()
    return config_of(conn_id) if conn_id else configured_transport()


def connection_fields(conn_id: str, *conn_types: str) -> ConnectionFields:
    """Read a connection of Airflow.

    :raises MissingConnectionError: when Airflow does not return it
    :raises SettingError: when it is of none of these types
    """
    from airflow.providers.common.compat.sdk import BaseHook

    try:
        connection: Any = BaseHook.get_connection(conn_id)
    except Exception as error:
        problem = redact(str(error)) or type(error).__name__
    else:
        if connection.conn_type in conn_types:
            return ConnectionFields.of(connection)
        wanted = " or ".join(map(repr, conn_types))
        raise SettingError(f"the connection {conn_id!r} is of type {connection.conn_type!r}; give one of type {wanted}")
    # Outside of the handler: the error of Airflow may hold a secret.
    raise MissingConnectionError(f"the connection {conn_id!r} cannot be read: {problem}")


def make_transport(config: Mapping[str, Any]) -> Transport:
    """Make the transport of a configuration, which stays as it is.

    Those of openlineage-python that lose events silently are replaced: Kafka, ``async_http``. HTTP makes one try,
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
        raise SettingError(f"the transport {redact(kind)!r} is not a Transport of openlineage-python; give another")
    if issubclass(original, CompositeTransport):
        raise SettingError("a composite is several destinations, and cannot be inside another transport")
    if original is AsyncHttpTransport:
        log.debug("The transport async_http loses events of processes that end; http is used in its place.")
    inside: Any = given.get("transport")
    if original is TransformTransport and inside:
        given["transport"] = {"type": "noop"}  # it would make one of openlineage-python
    chosen: Any = _OURS.get(original, original)
    for key in ("name", "priority", "backend"):
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


def mask_config(config: dict[str, Any]) -> dict[str, Any]:
    """Register the secrets of a configuration, and what is made of them, like a Basic login's header; return it."""
    module = "airflow.sdk.log" if find_spec("airflow.sdk") else "airflow.utils.log.secrets_masker"  # Airflow 2
    mask_secret = import_module(module).mask_secret
    for text in _secrets(config, is_private=False):
        if len(text) >= _SHORTEST:
            mask_secret(text)
    return config


def _secrets(value: Any, *, is_private: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            is_secret = is_private or key in _PRIVATE or is_secret_key(str(key))
            yield from _secrets(each, is_private=is_secret and key not in _HARMLESS)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _secrets(each, is_private=is_private)
    elif isinstance(value, str) and "?" in value and not is_private:
        # Of a URL or an endpoint: keys of functions and signatures are parameters with any name.
        yield from (text for _, text in parse_qsl(urlsplit(value).query))
    elif is_private and isinstance(value, str):
        yield value
        # The login without the word before it.
        yield from (word for word in value.split()[1:] if len(word) >= _SHORTEST)


def airflow_connection() -> str:
    """Return the connection that all of Airflow's events go to; empty where the transport is another."""
    config = configured_transport()
    return str(config.get("conn_id") or "") if config.get("type") == BY_CONNECTION else ""


def configured_transport() -> Mapping[str, Any]:
    """Return its configuration as it is; empty where there is none, and where the provider is disabled."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter

    if conf.is_disabled():
        return {}
    config = OpenLineageAdapter().get_openlineage_config()
    if config:
        return dict(config.get("transport") or {})
    # What openlineage-python looks at by itself.
    if url := os.environ.get("OPENLINEAGE_URL"):
        return {"type": "http", "url": url, "endpoint": os.environ.get("OPENLINEAGE_ENDPOINT", DEFAULT_ENDPOINT)}
    from openlineage.client import OpenLineageClient

    found = OpenLineageClient().config.transport
    return dict(found) if isinstance(found, Mapping) else {}


def all_of(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return a transport and all that it holds (composite, transform)."""
    yield config
    inner = config.get("transports") or config.get("transport") or ()
    if isinstance(inner, Mapping):
        inner = [inner] if "type" in inner else list(inner.values())
    for each in inner:
        if isinstance(each, Mapping):
            yield from all_of(each)


def backends_of(config: Mapping[str, Any]) -> frozenset[str]:
    """Return where a transport and those inside of it send to, without credentials; nothing for an unknown kind."""
    return frozenset(backend for each in all_of(config) for backend in _backends(each))


def _backends(config: Mapping[str, Any]) -> Iterator[str]:
    match config.get("type"):
        case "http" | "async_http":
            url = urlsplit(urljoin(str(config.get("url", "")), str(config.get("endpoint", DEFAULT_ENDPOINT))))
            try:
                yield f"{url.hostname}:{url.port or _PORTS.get(url.scheme)}{url.path}"
            except ValueError:
                return
        case "kafka":
            servers = str((config.get("config") or {}).get("bootstrap.servers", "")).lower()
            yield from (f"kafka://{each.strip()}/{config.get('topic')}" for each in servers.split(",") if each.strip())
        case "file":
            yield f"file:{Path(str(config.get('log_file_path', ''))).absolute()}"
