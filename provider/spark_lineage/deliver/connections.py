"""Reads the connections that say where events go, and makes the transport configurations of openlineage-python.

Everything here raises ``SettingError`` when a connection is not there, or does not fit. What reads the configuration of
Airflow's OpenLineage provider also raises what that raises.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from spark_lineage.deliver.connection_types import ACKS, KINDS, MECHANISMS, OPENLINEAGE_KEYS, PROTOCOLS
from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.sender import DEFAULT_ENDPOINT, Sender, sender_of
from spark_lineage.secrets.secret_keys import is_secret_key
from spark_lineage.settings import SettingError, boolean

DEFAULT_TIMEOUT_SECONDS, _MAX_SECONDS = 10.0, 3600.0
_PLACEHOLDER = re.compile(r"\{login\}|\{password\}")


@dataclass(frozen=True)
class ConnectionFields:
    """The fields of a connection as Airflow has them; empty text where it has none. ``repr`` shows no secret."""

    conn_id: str
    conn_type: str = ""
    host: str = field(default="", repr=False)
    schema: str = ""
    port: int | None = None
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, connection: Any) -> ConnectionFields:
        """Read a ``Connection`` of Airflow, of the SDK or of the core.

        :raises SettingError: when its extra is no JSON object
        """
        extra = connection.extra_dejson if connection.extra else {}
        # Airflow gives nothing for text that is no JSON.
        if not isinstance(extra, Mapping) or (not extra and str(connection.extra or "{}").strip() not in ("{}", "")):
            raise SettingError(f"the extra of the connection {connection.conn_id!r} is not a JSON object; give one")
        texts = {name: getattr(connection, name) or "" for name in ("conn_id", "conn_type", "login", "password")}
        texts |= {name: (getattr(connection, name) or "").strip() for name in ("host", "schema")}
        return cls(**texts, port=connection.port or None, extra=extra)

    def error(self, name: str, problem: str) -> SettingError:
        """Make the error about a field; ``problem`` follows its name, and says what to do."""
        return SettingError(f"{name!r} of the connection {self.conn_id!r} {problem}")

    def check_keys(self, keys: Collection[str]) -> None:
        """Refuse unknown keys of the extra.

        :raises SettingError: with the key that was probably meant
        """
        for key in self.extra:
            if key not in keys:
                near = difflib.get_close_matches(key.lower().replace("-", "_"), keys, n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(keys))}"
                raise self.error(str(key), f"is not known; {advice}")

    def text(self, key: str) -> str:
        """Return the text under a key of the extra, stripped; empty for none."""
        value = self.extra.get(key)
        return "" if value is None else self._text(key, value).strip()

    def choice(self, key: str, choices: Collection[str], default: str = "") -> str:
        """Return one of ``choices``, in lower case, or the default."""
        value = self.text(key).lower() or default
        if value and value not in choices:
            raise self.error(key, f"is {value!r}; give one of {', '.join(choices)}")
        return value

    @property
    def timeout_seconds(self) -> float:
        """``timeout_seconds`` of the extra, for a whole exchange; 10 by default."""
        text = self.text("timeout_seconds")
        try:
            value = float(text or DEFAULT_TIMEOUT_SECONDS)
        except ValueError:
            value = -1.0
        if not 0 < value <= _MAX_SECONDS:
            raise self.error("timeout_seconds", f"is {text!r}; give seconds above 0, at most {_MAX_SECONDS:g}")
        return value

    def tls(self) -> tuple[bool, str, str, str]:
        """Return whether to verify (the default), and the paths of authorities, certificate and key; empty for none."""
        verify, authorities = True, self.text("verify")
        with suppress(SettingError):
            verify, authorities = boolean(authorities or True, "verify"), ""
        files = {"verify": authorities, **{name: self.text(name) for name in ("client_cert", "client_key")}}
        for name, path in files.items():
            if path and not path.startswith("/"):
                shown = "set to what cannot be used" if is_secret_key(name) else repr(path)
                raise self.error(name, f"is {shown}; give an absolute path")
        authorities, certificate, key = files.values()
        if key and not certificate:
            raise self.error("client_key", "is given without 'client_cert'; give the certificate too")
        return verify, authorities, certificate, key

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Return an object, which may be JSON text, as forms and URIs have it; empty for none."""
        value: Any = self.extra.get(key)
        problem = ""
        if isinstance(value, str) and value:
            try:
                value = json.loads(value)
            except json.JSONDecodeError as error:
                # Raised outside: the error holds the value.
                problem = f"is not a JSON object (at character {error.pos}); give one, like {{...}}"
        if not problem and value not in (None, "") and not isinstance(value, Mapping):
            problem = f"is a {type(value).__name__}; give a JSON object"
        if problem:
            raise self.error(key, problem)
        return {str(name): item for name, item in (value or {}).items()}

    def texts(self, key: str) -> dict[str, str]:
        """Return an object of texts; numbers and booleans become text, None is left out."""
        items = self.mapping(key).items()
        return {name: self._text(f"{key}.{name}", value) for name, value in items if value is not None}

    def filled(self, value: Any) -> Any:
        """Return a nested value with login and password where it asks for them: ``{login}`` and ``{password}``."""
        if isinstance(value, str):
            secrets = {"{login}": self.login, "{password}": self.password}
            return _PLACEHOLDER.sub(lambda match: secrets[match[0]], value)
        if isinstance(value, Mapping):
            return {str(key): self.filled(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(item) for item in value]
        return value

    def _text(self, key: str, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        # A number in a connection's URI is one for Airflow 2 and the core, and text for the SDK.
        if not isinstance(value, str | int | float):
            raise self.error(key, f"is a {type(value).__name__}; give text")
        return str(value)


CONN_TYPE = "openlineage"
MARQUEZ = "marquez"
SCHEMES = ("http", "https")
# RFC 9110, 5.1 and 5.5: what http.client refuses too, with an error that shows the value.
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[^\r\n\0\u0100-\U0010ffff]*")
# A surrogate: JSON can write it, and UTF-8 cannot.
_HALF_OF_CHARACTER = re.compile(r"[\ud800-\udfff]")
_WITH_LOGIN = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_DEFAULT_PORT = 9092
# Not the last group of an IPv6 address.
_PORT = re.compile(r":\d+$")
# Several names of one property (librdkafka's CONFIGURATION.md); ours first.
_ALIASES = {
    "bootstrap.servers": ("metadata.broker.list",),
    "sasl.mechanism": ("sasl.mechanisms",),
    "message.timeout.ms": ("delivery.timeout.ms",),
    "acks": ("request.required.acks",),
    "compression.type": ("compression.codec",),
}


def transport_config(fields: ConnectionFields) -> dict[str, Any]:
    """Return the configuration, with ``type``, as ``openlineage.client.transport`` takes it."""
    fields.check_keys(OPENLINEAGE_KEYS)
    if fields.extra.get("transport"):
        return _whole(fields, "transport", fields.mapping("transport"))
    match kind := fields.choice("kind", KINDS, "http"):
        case "kafka":
            return kafka_config(fields)
        case "file":
            return _file(fields)
        case "console":
            return {"type": "console"}
        case "composite":
            return _composite(fields)
    # HTTP for whoever looks for the backend behind it.
    return http_config(fields) | ({"backend": MARQUEZ} if kind == MARQUEZ else {})


def namespace_of(fields: ConnectionFields) -> str | None:
    """Return the OpenLineage namespace of the jobs for this backend; None for that of Airflow's provider."""
    return fields.text("namespace") or None


def members_of(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the members of a composite by name, each with its own configuration; a list's members have numbers.

    Empty for other transports.
    """
    if config.get("type") != "composite":
        return {}
    members = config.get("transports") or {}
    if isinstance(members, Mapping):
        return {str(name): dict(member) for name, member in members.items()}
    return {str(member.get("name", number)): dict(member) for number, member in enumerate(members, 1)}


def probe(config: Mapping[str, Any]) -> tuple[bool, str]:
    """Contact a backend, and write nothing there; say whether events would arrive, and what was found; raises nothing.

    *Test connection* and the doctor do that.
    """
    if members := members_of(config):
        results = {name: probe(member) for name, member in members.items()}
        texts = (f"{name}: {'' if is_good else 'NOT GOOD: '}{text}" for name, (is_good, text) in results.items())
        return all(is_good for is_good, _ in results.values()), "; ".join(texts)
    try:
        with closing(sender_of(config)) as sender:
            return sender.probe()
    except Exception as error:
        return False, str(error) or type(error).__name__


def _file(fields: ConnectionFields) -> dict[str, Any]:
    path = fields.host
    if not path.startswith("/") and "://" not in path:
        raise fields.error(
            "host", f"is {path!r}; for kind 'file' give the absolute path of the file that gets the events"
        )
    return {"type": "file", "log_file_path": path, "append": True}


def _composite(fields: ConnectionFields) -> dict[str, Any]:
    members = fields.mapping("transports")
    if not members:
        raise fields.error(
            "transports", 'is missing; for kind \'composite\' give an object of transports by name: {"a": {"type": …}}'
        )
    if any("/" in name or not name for name in members):
        raise fields.error("transports", "has a member whose name is empty or has a '/'; rename it")
    configs = {name: _whole(fields, f"transports.{name}", member) for name, member in members.items()}
    return {"type": "composite", "transports": configs}


def _whole(fields: ConnectionFields, name: str, config: Any) -> dict[str, Any]:
    """Return a configuration that the user wrote down whole; only login and password are put in."""
    if not isinstance(config, Mapping) or not isinstance(config.get("type"), str) or not config["type"].strip():
        raise fields.error(
            name, 'has no \'type\'; give the configuration of a transport of openlineage-python: {"type": "http", …}'
        )
    if fields.password and "{password}" not in str(config) and name == "transport":
        raise fields.error("password", "is not used by 'transport'; write {password} where it belongs, or remove it")
    return dict(fields.filled(config))


def http_config(fields: ConnectionFields) -> dict[str, Any]:
    """Return ``{"type": "http", "url": …, "endpoint": …, …}``; a path of the host comes before the endpoint."""
    url, path = _address(fields)
    endpoint = fields.text("endpoint") or DEFAULT_ENDPOINT
    if "://" in endpoint or "#" in endpoint:
        raise fields.error("endpoint", f"is {endpoint!r}; give the path alone, like {DEFAULT_ENDPOINT!r}")
    if path.endswith("/lineage"):
        raise fields.error("host", "has the path that takes events; give that path in 'endpoint'")
    endpoint = f"{path}/{endpoint.lstrip('/')}"
    config = {"type": "http", "url": url, "endpoint": endpoint, **exchange_config(fields)}
    if compression := fields.choice("compression", ("gzip", "none")).replace("none", ""):
        config["compression"] = compression
    return config


def exchange_config(fields: ConnectionFields) -> dict[str, Any]:
    """Return time-out, TLS and credentials, as the configuration of an HTTP transport has them.

    A login makes Basic; a password alone is an API key, which goes out as bearer token, or into a header.
    """
    verify, *files = fields.tls()
    config: dict[str, Any] = {"timeout": fields.timeout_seconds, "verify": verify}
    named = zip(("caCertPath", "clientCertPath", "clientKeyPath"), files, strict=True)
    if paths := {name: path for name, path in named if path}:
        config["sslContext"] = paths
    texts = fields.texts("headers")
    headers = {name: _carried(fields, f"headers.{name}", value) for name, value in fields.filled(texts).items()}
    for name in headers:
        if not _HEADER_NAME.fullmatch(name):
            raise fields.error("headers", f"has {name!r}, which is not a header name")
    is_password_alone = fields.password and not fields.login and "{password}" not in str(texts)
    if (fields.login or is_password_alone) and "authorization" in map(str.lower, headers):
        raise fields.error("headers", "has an Authorization beside the connection's password; keep one of the two")
    if fields.login:
        pair = f"{fields.login}:{fields.password}"
        if _HALF_OF_CHARACTER.search(pair):
            raise fields.error("login", "or its password has half of a character; enter both again")
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif is_password_alone:
        # A key that was read from a file often ends in a newline, which no header can carry.
        config["auth"] = {"type": "api_key", "apiKey": _carried(fields, "password", fields.password.strip())}
    return config | ({"custom_headers": headers} if headers else {})


def base_url_of(fields: ConnectionFields) -> str:
    """Return the URL with its path and without a slash at its end."""
    return "".join(_address(fields))


def _address(fields: ConnectionFields) -> tuple[str, str]:
    """Return the URL without its path, and the path without its last slash; it may be in host, schema and port."""
    if not fields.host:
        raise fields.error("host", "is empty; give the URL of the backend, like 'http://127.0.0.1:5000'")
    schema = fields.schema.lower()
    if schema not in ("", *SCHEMES):
        raise fields.error("schema", f"is {fields.schema!r}; give 'http' or 'https'")
    # An IPv6 address without brackets has several colons, and no slash.
    is_bare = fields.host.count(":") > 1 and "[" not in fields.host and "/" not in fields.host
    host = f"[{fields.host}]" if is_bare else fields.host
    text = host if "://" in host else f"{schema or 'http'}://{host}"
    try:
        parts = urlsplit(text)
        port, name = parts.port, parts.hostname
    except ValueError:
        parts, port, name = urlsplit(""), None, None
    if parts.username is not None or parts.password is not None:
        raise fields.error("host", "holds a login; give it in the fields login and password")
    if parts.scheme not in SCHEMES or not name or parts.fragment or any(letter.isspace() for letter in text):
        raise fields.error("host", f"is {fields.host!r}; give a URL like 'http://127.0.0.1:5000'")
    if parts.query:
        raise fields.error("host", "has a '?'; give the URL without it")
    if schema and schema != parts.scheme:
        raise fields.error("schema", f"is {fields.schema!r}; the host says another; give it once")
    if fields.port and port not in (None, fields.port):
        raise fields.error("port", f"is {fields.port}, and the host says {port}; give it once")
    host = f"[{name}]" if ":" in name else name
    port = port or fields.port
    return f"{parts.scheme}://{host}" + (f":{port}" if port else ""), parts.path.rstrip("/")


def _carried(fields: ConnectionFields, name: str, value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise fields.error(name, "has a line break or a letter that no HTTP header can carry; remove it")
    return value


def kafka_config(fields: ConnectionFields, *, default_topic: str = "") -> dict[str, Any]:
    """Return ``{"type": "kafka", "topic": …, "config": {…}}``; what ``properties`` says wins over the other keys."""
    topic = fields.text("topic") or default_topic
    if not topic:
        raise fields.error("topic", "is missing; give the Kafka topic that gets the events")
    properties = fields.filled(fields.texts("properties"))
    verify, authorities, certificate, key = fields.tls()
    config = {
        "bootstrap.servers": _brokers(fields, properties),
        "message.timeout.ms": str(round(fields.timeout_seconds * 1000)),
        "acks": fields.choice("acks", ACKS),
        "compression.type": fields.choice("compression", _CODECS),
        "enable.ssl.certificate.verification": "" if verify else "false",
        "ssl.ca.location": authorities,
        "ssl.certificate.location": certificate,
        # One file may hold both.
        "ssl.key.location": key or certificate,
    }
    config = {name: value for name, value in config.items() if value}
    config |= _security(fields, properties, has_tls=any("ssl." in name for name in (*config, *properties)))
    overruled = {name for name, aliases in _ALIASES.items() if any(alias in properties for alias in aliases)}
    config = {name: value for name, value in config.items() if value and name not in overruled} | properties
    message_key = fields.text("message_key")
    return {"type": "kafka", "topic": topic, **({"messageKey": message_key} if message_key else {}), "config": config}


def _brokers(fields: ConnectionFields, properties: Mapping[str, str]) -> str:
    if properties.get("bootstrap.servers") or properties.get("metadata.broker.list"):
        return ""
    brokers = [broker.strip() for broker in fields.host.split(",") if broker.strip()]
    if not brokers:
        raise fields.error("host", "is empty; give the Kafka brokers, like 'broker1:9092,broker2:9092'")
    for broker in brokers:
        address = broker.rpartition("://")[2]
        if "@" in address or "/" in address or any(letter.isspace() for letter in address):
            raise fields.error("host", f"is {fields.host!r}; give Kafka brokers, like 'broker1:9092,broker2:9092'")
    return ",".join(
        broker if _PORT.search(broker) else f"{broker}:{fields.port or _DEFAULT_PORT}" for broker in brokers
    )


def _security(fields: ConnectionFields, properties: Mapping[str, str], *, has_tls: bool) -> dict[str, str]:
    chosen = fields.choice("sasl_mechanism", [name.lower() for name in MECHANISMS]).upper()
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or chosen
    security = {"sasl.mechanism": mechanism}
    if mechanism in _WITH_LOGIN and not properties.get("sasl.username"):
        if not fields.login or not (fields.password or properties.get("sasl.password")):
            raise fields.error("login", f"or the password is empty; {mechanism} needs both")
        security |= {"sasl.username": fields.login, "sasl.password": fields.password}
    elif fields.login and not mechanism:
        raise fields.error("sasl_mechanism", f"is missing, and there is a login; give one of {', '.join(MECHANISMS)}")
    if fields.schema.lower() not in ("", "ssl", "tls"):
        raise fields.error("schema", f"is {fields.schema!r}; for kind 'kafka' give 'ssl' or nothing")
    derived = ("sasl_" if mechanism else "") + ("ssl" if has_tls or fields.schema else "plaintext")
    security["security.protocol"] = fields.choice("security_protocol", PROTOCOLS, derived)
    return security


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
    """Open the sender to a destination, which is a connection or a member of one."""
    conn_id, slash, member = destination.rpartition("/")
    members: Mapping[str, Any] = {}
    # The id of a connection may have a slash too.
    with suppress(MissingConnectionError):
        members = destinations_of(conn_id) if slash else {}
    if not members:
        return sender_of(config_of(destination))
    if destination not in members:
        names = ", ".join(name.removeprefix(f"{conn_id}/") for name in members)
        raise SettingError(f"the connection {conn_id!r} has no member {member!r}; it has {names}")
    return sender_of(members[destination][0])


def for_courier(config: Mapping[str, Any]) -> tuple[dict[str, Any], Sequence[str]]:
    """Return what a process without Airflow's connections sends by, and its secrets.

    What reads connections itself gets them as Airflow's environment variables.
    """
    complete, secrets = dict(config), list(_secrets(config, is_private=False))
    if config.get("type") == _ATLAS:
        from airflow.providers.common.compat.sdk import BaseHook

        connection = BaseHook.get_connection(config["conn_id"])
        connections = [connection]
        if rest_conn_id := connection.extra_dejson.get("rest_conn_id"):
            connections.append(BaseHook.get_connection(rest_conn_id))
        complete["environment"] = {f"AIRFLOW_CONN_{one.conn_id.upper()}": one.as_json() for one in connections}
        secrets += [one.password for one in connections if one.password]
    return complete, secrets


def destinations_of(conn_id: str) -> Mapping[str, tuple[dict[str, Any], Profile]]:
    """Read a connection; return of each destination its transport configuration, and what its events are encoded for.

    The connection itself is one; ``conn_id/member`` is one for each member of a composite.
    """
    fields = connection_fields(conn_id, CONN_TYPE, _ATLAS)
    config = _config_of(fields)
    namespace = None if fields.conn_type == _ATLAS else namespace_of(fields)
    configs = {f"{conn_id}/{name}": member for name, member in members_of(config).items()} or {conn_id: config}
    return {name: (one, Profile(namespace, one.get("backend") == MARQUEZ)) for name, one in configs.items()}


def config_of(conn_id: str) -> dict[str, Any]:
    """Return the transport configuration of a connection, secrets included, which Airflow's logs mask from now on."""
    return _config_of(connection_fields(conn_id, CONN_TYPE, _ATLAS))


def _config_of(fields: ConnectionFields) -> dict[str, Any]:
    if fields.conn_type == _ATLAS:
        return {"type": _ATLAS, "conn_id": fields.conn_id}
    return mask_config(transport_config(fields))


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
        for key, item in value.items():
            is_secret = is_private or key in _PRIVATE or is_secret_key(str(key))
            yield from _secrets(item, is_private=is_secret and key not in _HARMLESS)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets(item, is_private=is_private)
    elif isinstance(value, str) and "?" in value and not is_private:
        # Of a URL or an endpoint: keys of functions and signatures are parameters with any name.
        yield from (text for _, text in parse_qsl(urlsplit(value).query))
    elif is_private and isinstance(value, str):
        yield value
        # The login without the word before it.
        yield from (word for word in value.split()[1:] if len(word) >= _SHORTEST)


BY_CONNECTION = "spark_lineage.deliver.connection_transport.ConnectionTransport"
_PORTS = {"http": 80, "https": 443}


def airflow_transport() -> Mapping[str, Any]:
    """Return the configuration of the OpenLineage provider's transport; of one that names a connection, that of this.

    Empty where there is none, and where the provider is disabled.
    """
    conn_id = airflow_connection()
    return config_of(conn_id) if conn_id else configured_transport()


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

    transport = OpenLineageClient().config.transport
    return dict(transport) if isinstance(transport, Mapping) else {}


def all_of(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return a transport and all that it holds (composite, transform)."""
    yield config
    inner = config.get("transports") or config.get("transport") or ()
    if isinstance(inner, Mapping):
        inner = [inner] if "type" in inner else list(inner.values())
    for member in inner:
        if isinstance(member, Mapping):
            yield from all_of(member)


def backends_of(config: Mapping[str, Any]) -> frozenset[str]:
    """Return where a transport and those inside of it send to, without credentials; nothing for an unknown kind."""
    backends = set[str]()
    for transport in all_of(config):
        match transport.get("type"):
            case "http" | "async_http":
                url = urlsplit(urljoin(str(transport.get("url", "")), str(transport.get("endpoint", DEFAULT_ENDPOINT))))
                with suppress(ValueError):
                    backends.add(f"{url.hostname}:{url.port or _PORTS.get(url.scheme)}{url.path}")
            case "kafka":
                servers = str((transport.get("config") or {}).get("bootstrap.servers", "")).lower().split(",")
                backends |= {
                    f"kafka://{server.strip()}/{transport.get('topic')}" for server in servers if server.strip()
                }
            case "file":
                backends.add(f"file:{Path(str(transport.get('log_file_path', ''))).absolute()}")
    return frozenset(backends)
