"""Settings and extras of connections of any type: each is a value, or an error that says which, and shows no secret."""

from __future__ import annotations

import contextlib
from dataclasses import fields
from typing import Any

import pytest
from dialogues import http_connection
from fuzzing import fuzzed
from hypothesis import example, given
from hypothesis import strategies as st

from spark_lineage.deliver.connection_types import OPENLINEAGE_KEYS
from spark_lineage.deliver.connections import ConnectionFields, members_of, namespace_of, transport_config
from spark_lineage.naming.options import NamingError, naming_from
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError, Settings
from spark_lineage.watch.endpoints import _READERS, Endpoints, _read

TEXTS = st.text(max_size=8) | st.sampled_from([
    "true", "nan", "inf", "1e400", "-1", "0", "{", "[]", "{}", '{"a": 1}', "a;b", "a:b;c", "http", "kafka", "file",
    "composite",
    "marquez", "console", "https://h:99999", "http://[", "https://me@h/x", "/a/b", "{password}", "(", "\ud800",
    "\x00", "[1, null]",
    "१२", "http://h:1/a b?c#d", "zstd", "none", "path", "all", "bearer", "basic",
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=3) | TEXTS | st.just(object()),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.sets(TEXTS, max_size=2)
    | st.dictionaries(TEXTS | st.sampled_from(["type", "url", "name", "transports", "config", "topic"]), inner,
    max_size=3),
    max_leaves=5,
)  # fmt: skip
SETTINGS = [setting.name for setting in fields(Settings)]
SECRET = "Zq7-planted-9x"  # noqa: S105 - it is made up


@fuzzed(300)
@given(st.sampled_from(SETTINGS), VALUES, st.sampled_from(["argument", "extra", "section"]))
@example("max_event_bytes", 10**400, "argument")
def test_a_setting_is_a_value_or_an_error(name: str, value: Any, place: str) -> None:
    given_in = {each: {name: value} if each == place else {} for each in ("argument", "extra", "section")}
    try:
        settings = Settings.resolve(given_in["argument"], given_in["extra"], given_in["section"].get)
    except SettingError as error:
        assert name in str(error)  # noqa: PT017 - most values are none
    else:
        assert hash(str(settings))


@fuzzed(200)
@given(st.sampled_from([name for name in SETTINGS if name != "redaction_patterns"]), TEXTS)
def test_the_error_of_a_setting_shows_no_secret(name: str, text: str) -> None:
    try:
        Settings.resolve({name: {"password": SECRET, "x": f"{text} https://me:{SECRET}@h"}}, {}, lambda _: None)
    except SettingError as error:
        assert SECRET not in redact(str(error))  # noqa: PT017


CONNECTIONS = st.builds(
    ConnectionFields,
    conn_id=st.just("here"),
    host=TEXTS,
    schema=TEXTS,
    port=st.none() | st.integers(-1, 70_000),
    login=TEXTS,
    password=st.just("") | st.just(SECRET) | TEXTS,
    extra=st.dictionaries(st.sampled_from(sorted(OPENLINEAGE_KEYS)), VALUES, max_size=4)
    | st.fixed_dictionaries({"kind": st.sampled_from(["http", "marquez", "kafka", "file", "console", "composite"])},
                            optional=dict.fromkeys(sorted(OPENLINEAGE_KEYS - {"kind"}), VALUES)),
)  # fmt: skip


@fuzzed(300)
@given(CONNECTIONS)
def test_a_connection_is_a_configuration_or_an_error(connection: ConnectionFields) -> None:
    try:
        config = transport_config(connection)
        namespace_of(connection)
        members = members_of(config)
    except SettingError as error:
        assert "'here'" in str(error)  # noqa: PT017
        assert SECRET not in redact(str(error))  # noqa: PT017
    else:
        assert isinstance(config["type"], str)
        assert all(isinstance(name, str) for name in members)


HTTP = st.dictionaries(st.sampled_from(["headers", "verify", "cert", "kerberos", "timeout"]), VALUES, max_size=3)


@fuzzed(200)
@given(st.dictionaries(st.sampled_from(sorted(_READERS)), VALUES, max_size=4), st.none() | TEXTS, HTTP)
def test_the_extra_of_a_spark_connection_is_read_or_complained_about(
    extra: dict[str, Any], login: str | None, http: dict[str, Any]
) -> None:
    for key in _READERS:
        with contextlib.suppress(SettingError):
            _read(extra, key)
    try:
        Endpoints("yarn", "client", extra, http_connection(login, SECRET, login, **http))
    except SettingError as error:
        assert SECRET not in redact(str(error))  # noqa: PT017


NAMING = ["hostnamePattern.a", "pathPattern.b", "resolvers", "hostnamepattern.", "pathPattern", "storage"]


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")  # re's own, about patterns like "[[a]"
@fuzzed(200)
@given(st.dictionaries(st.sampled_from(NAMING) | TEXTS, VALUES | st.just("(a+)+b"), max_size=3))
def test_how_datasets_are_named_is_read_or_refused(options: dict[str, Any]) -> None:
    try:
        naming_from(options)
    except NamingError as error:
        assert str(error)  # noqa: PT017
