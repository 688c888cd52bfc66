"""Reads the connections that say where events go, and what each is sent by.

Everything here raises ``SettingError`` when a connection is not there, or does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from spark_lineage.deliver.connection_config import (
    CONN_TYPE,
    MARQUEZ,
    ConnectionFields,
    members_of,
    namespace_of,
    transport_config,
)
from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.sender import Sender, sender_of
from spark_lineage.secrets.secret_keys import is_secret_key
from spark_lineage.settings import SettingError

# The type of a connection whose backend takes no events as they are, and of what it is sent by.
_ATLAS = "atlas"
# Airflow registers nothing shorter, and warns of each.
_SHORTEST = 5
# Users name what is below these, so a key may have any name there.
_PRIVATE = frozenset({"custom_headers", "auth"})
_HARMLESS = frozenset({"type"})


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

    What reads connections itself gets them as Airflow's environment variables.
    """
    found, secrets = dict(config), list(_secrets(config, is_private=False))
    if config.get("type") == _ATLAS:
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
    fields = connection_fields(conn_id, CONN_TYPE, _ATLAS)
    if fields.conn_type == _ATLAS:
        return {"type": _ATLAS, "conn_id": conn_id}
    return mask_config(transport_config(fields))


def profile_of(conn_id: str, config: Mapping[str, Any]) -> Profile:
    """Return what the events for a destination of a connection are encoded for."""
    fields = connection_fields(conn_id, CONN_TYPE, _ATLAS)
    if fields.conn_type == _ATLAS:
        return Profile()
    return Profile(namespace_of(fields), config.get("backend") == MARQUEZ)


def connection_fields(conn_id: str, *conn_types: str) -> ConnectionFields:
    """Read a connection of Airflow.

    :raises MissingConnectionError: when Airflow does not return it
    :raises SettingError: when it is of none of these types
    """
    from airflow.providers.common.compat.sdk import BaseHook

    try:
        connection: Any = BaseHook.get_connection(conn_id)
    except Exception as error:
        problem = str(error) or type(error).__name__
    else:
        if connection.conn_type in conn_types:
            return ConnectionFields.of(connection)
        wanted = " or ".join(map(repr, conn_types))
        raise SettingError(f"the connection {conn_id!r} is of type {connection.conn_type!r}; give one of type {wanted}")
    # Outside of the handler: the error of Airflow may hold a secret.
    raise MissingConnectionError(f"the connection {conn_id!r} cannot be read: {problem}")


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
