"""Every setting in every place: which place wins, what is understood, and what is said about the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError, Settings, Settled
from spark_lineage.settings.places import Places, TaskSettings

# Three values of every setting, as text: all places understand text. The first of each bool is not the default.
VALUES: dict[str, tuple[tuple[str, Any], tuple[str, Any], tuple[str, Any]]] = {
    "lineage_enabled": (("false", False), ("true", True), ("false", False)),
    "lineage_required": (("true", True), ("complete", "complete"), ("false", False)),
    "lineage_dir": (("/a", "/a"), ("/b", "/b"), ("/c", "/c")),
    "openlineage_jar": (("/a.jar", "/a.jar"), ("http://b/b.jar", "http://b/b.jar"), ("g:a_{scala}:1", "g:a_{scala}:1")),
    "lineage_tags": (("a:1", {"a": "1"}), ("b", {"b": ""}), ('{"c": "3"}', {"c": "3"})),
    "retention_days": (("1", 1.0), ("0.5", 0.5), ("365", 365.0)),
    "poll_interval_seconds": (("1", 1.0), ("0.1", 0.1), ("60", 60.0)),
    "lineage_timeout": (("1", 1.0), ("0", 0.0), ("60", 60.0)),
    "tracking_interval_seconds": (("1", 1.0), ("0.5", 0.5), ("600", 600.0)),
    "event_log_from": (("history", "history"), ("directory", "directory"), ("event_log", "event_log")),
    "event_log_dir": (("a", "a"), ("b", "b"), ("c", "c")),
    "records_dir": (("a", "a"), ("b", "b"), ("c", "c")),
    "receiver_conn_id": (("a", "a"), ("b", "b"), ("c", "c")),
    "evidence": (("both", "both"), ("listener", "listener"), ("event_log", "event_log")),
    "granularity": (("path", "path"), ("task", "task"), ("path", "path")),
    "map_index_in_job_name": (("true", True), ("false", False), ("true", True)),
    "max_event_bytes": (("1e5", 1e5), ("2", 2.0), ("500000", 5e5)),
    "emit_assets": (("true", True), ("false", False), ("true", True)),
    "lineage_listeners": (("a.B", ("a.B",)), ("a.B; c.D;", ("a.B", "c.D")), (" c.D ", ("c.D",))),
    "lineage_conn_id": (("a", ("a",)), ("a; b;a", ("a", "b")), (" c ", ("c",))),
    "lineage_url": (("http://a/{job}", "http://a/{job}"), ("b", "b"), ("c", "c")),
    "policy_rules": (("tag:a", ("tag:a",)), ("!dag:b_*; conn:c;", ("!dag:b_*", "conn:c")), (" pool:d ", ("pool:d",))),
    "outbox_dir": (("/a", "/a"), ("/b", "/b"), ("/c", "/c")),
    "redaction_patterns": (("A-[0-9]+", ("A-[0-9]+",)), ("a{2,}\n b;c \n", ("a{2,}", "b;c")), ("(?i)d", ("(?i)d",))),
}
# Empty text stands for what only the place of its use can tell.
DEFAULTS = {
    "lineage_enabled": True,
    "lineage_required": False,
    "lineage_dir": "",
    "openlineage_jar": "",
    "lineage_tags": {},
    "retention_days": 30.0,
    "poll_interval_seconds": 5.0,
    "lineage_timeout": 60.0,
    "tracking_interval_seconds": 3600.0,
    "event_log_from": "auto",
    "event_log_dir": "",
    "records_dir": "",
    "receiver_conn_id": "",
    "evidence": "auto",
    "granularity": "task",
    "map_index_in_job_name": False,
    "max_event_bytes": 1e6,
    "emit_assets": False,
    "lineage_listeners": (),
    "lineage_conn_id": (),
    "lineage_url": "",
    "policy_rules": (),
    "outbox_dir": "",
    "redaction_patterns": (),
}
BOOLEANS = ["lineage_enabled", "map_index_in_job_name", "emit_assets"]
NUMBERS = [
    "retention_days",
    "poll_interval_seconds",
    "tracking_interval_seconds",
    "max_event_bytes",
]
WAITS = ["lineage_timeout"]
LISTENERS = ["lineage_listeners"]
LISTS = ["lineage_conn_id", "redaction_patterns"]
TEXTS = [
    "lineage_dir",
    "openlineage_jar",
    "event_log_dir",
    "records_dir",
    "receiver_conn_id",
    "outbox_dir",
    "lineage_url",
]


def resolve(
    arguments: Mapping[str, Any] = {}, extra: Mapping[str, Any] = {}, section: Mapping[str, str] = {}
) -> Settings:
    return Settings.resolve(arguments, extra, section.get)


def test_every_setting_is_tested() -> None:
    names = {setting.name for setting in fields(Settings)}
    assert names == set(VALUES) == set(DEFAULTS) == {
        *BOOLEANS, *NUMBERS, *WAITS, *TEXTS, *LISTENERS, *LISTS, "lineage_tags", "granularity",
        "lineage_required", "evidence", "event_log_from", "policy_rules",
    }  # fmt: skip


def test_the_defaults() -> None:
    settings = resolve()
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS
    assert settings == Settings()
    with pytest.raises(FrozenInstanceError):
        settings.lineage_dir = "/x"  # type: ignore[misc]


@pytest.mark.parametrize("name", VALUES)
def test_the_first_place_that_has_a_setting_wins(name: str) -> None:
    (first, argument), (second, extra), (third, section) = VALUES[name]
    everywhere = ({name: first}, {name: second}, {name: third})
    assert getattr(resolve(*everywhere), name) == argument
    for nothing in (None, ""):
        assert getattr(resolve({name: nothing}, *everywhere[1:]), name) == extra
        assert getattr(resolve({name: nothing}, {name: nothing}, everywhere[2]), name) == section
    assert getattr(resolve({}, *everywhere[1:]), name) == extra
    assert getattr(resolve({}, {}, everywhere[2]), name) == section
    assert getattr(resolve({}, {}, {name: ""}), name) == DEFAULTS[name]


@pytest.mark.parametrize("name", VALUES)
def test_one_setting_changes_no_other(name: str) -> None:
    settings = resolve({name: VALUES[name][0][0]})
    others = {other: value for other, value in DEFAULTS.items() if other != name}
    assert {other: getattr(settings, other) for other in others} == others


@pytest.mark.parametrize("name", BOOLEANS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, True) for value in (True, "true", "True", " TRUE ", "yes", "on", "t", "y", "1", 1)),
        *((value, False) for value in (False, "false", "False", " FALSE ", "no", "off", "f", "n", "0", 0)),
    ],
)
def test_booleans(name: str, value: object, *, expected: bool) -> None:
    assert getattr(resolve({name: value}), name) is expected
    assert getattr(resolve({}, {name: value}), name) is expected


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), ("no", False), ("complete", "complete"), (" Complete ", "complete")]
)
def test_required_is_a_boolean_or_complete(value: object, expected: object) -> None:
    assert resolve({"lineage_required": value}).lineage_required == expected


@pytest.mark.parametrize("name", [*NUMBERS, *WAITS])
@pytest.mark.parametrize(("value", "expected"), [(1, 1.0), (0.25, 0.25), ("7", 7.0), ("1e-3", 0.001), (" 2 ", 2.0)])
def test_numbers(name: str, value: object, expected: float) -> None:
    number = getattr(resolve({name: value}), name)
    assert (number, type(number)) == (expected, float)


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("value", [0, 0.0, "0", "0.0", "-0"])
def test_zero_is_not_to_wait(name: str, value: object) -> None:
    assert getattr(resolve({name: value}, {name: 7}), name) == 0
    assert getattr(resolve({}, {name: value}, {name: "7"}), name) == 0


@pytest.mark.parametrize("name", LISTS)
def test_lists_come_as_text_and_as_lists(name: str) -> None:
    for value, expected in ((["a", "b"], ("a", "b")), (("a",), ("a",)), ([], ()), (" ", ())):
        assert getattr(resolve({name: value}, {name: "other"}), name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"team": "sales", "tier": 1, "nightly": None}, {"team": "sales", "tier": "1", "nightly": ""}),
        ({}, {}),
        (["nightly", "gold"], {"nightly": "", "gold": ""}),
        (("nightly",), {"nightly": ""}),
        ({"nightly", "gold"}, {"nightly": "", "gold": ""}),
        (frozenset({"gold"}), {"gold": ""}),
        ([], {}),
        (["team:sales", "nightly"], {"team": "sales", "nightly": ""}),
        ([1, "gold"], {"1": "", "gold": ""}),
        ("nightly", {"nightly": ""}),
        ("team:sales", {"team": "sales"}),
        ("team:sales;nightly", {"team": "sales", "nightly": ""}),
        (" team : sales ;; nightly ; ", {"team": "sales", "nightly": ""}),
        ("url:http://x", {"url": "http://x"}),
        ('{"team": "sales", "tier": 1, "nightly": null}', {"team": "sales", "tier": "1", "nightly": ""}),
        (' {"team": "sales"}', {"team": "sales"}),
        ("{}", {}),
        ('["nightly", "gold"]', {"nightly": "", "gold": ""}),
    ],
)
def test_tags(value: object, expected: dict[str, str]) -> None:
    assert resolve({"lineage_tags": value}).lineage_tags == expected
    assert resolve({}, {"lineage_tags": value}).lineage_tags == expected
    if isinstance(value, str):
        assert resolve({}, {}, {"lineage_tags": value}).lineage_tags == expected


def test_no_tags_in_an_argument_are_none_whatever_the_section_has() -> None:
    assert resolve({"lineage_tags": {}}, {}, {"lineage_tags": "team:sales"}).lineage_tags == {}


@pytest.mark.parametrize("name", LISTENERS)
def test_listeners_come_as_text_as_a_list_and_as_objects(name: str) -> None:
    factory = object()
    for value, expected in (
        (["a.B", "", factory], ("a.B", factory)),
        (("a.B",), ("a.B",)),
        (factory, (factory,)),
        ([], ()),
        (" ; ", ()),
    ):
        assert getattr(resolve({name: value}), name) == expected


@pytest.mark.parametrize("name", LISTENERS)
def test_no_listeners_in_an_argument_are_none_whatever_the_section_has(name: str) -> None:
    assert getattr(resolve({name: []}, {}, {name: "a.B"}), name) == ()


NO_NUMBERS = (-1, "-0.5", "soon", "nan", "inf", float("nan"), float("inf"), [], {}, "1e999", 2e9, True)
BAD = [
    *((name, value, "give true or false") for name in BOOLEANS for value in ("maybe", "2", 2, " ", [])),
    *(("lineage_required", value, "give true or false, or complete") for value in ("maybe", "2", 2, " ", [])),
    *((name, value, "give a number above 0") for name in NUMBERS for value in (0, "5 days", *NO_NUMBERS)),
    *((name, value, "give a number from 0 on") for name in WAITS for value in NO_NUMBERS),
    *((name, value, "give text") for name in TEXTS for value in (7, ["x"], {"a": "b"}, True)),
    *(("lineage_tags", value, "give a mapping") for value in (7, True, 1.5)),
    *(("lineage_conn_id", value, "give the id of a connection") for value in (7, [7], {"a": "b"}, True)),
    *(("redaction_patterns", value, "not a list of regular expressions") for value in (7, [7], {"a": "b"}, True)),
    *(("redaction_patterns", value, "unusable in line 2: ") for value in ("a\n(", ["a", "(?<=x)y"], "a\nb*")),
    ("lineage_tags", '{"team": ', "not a JSON object"),
    ("lineage_tags", '{"team": "sales"} and more', "not a JSON object"),
]


@pytest.mark.parametrize(("name", "value", "fit"), BAD)
def test_a_bad_value_is_named_with_its_place_and_what_fits(name: str, value: object, fit: str) -> None:
    with pytest.raises(SettingError) as raised:
        resolve({name: value})
    assert str(raised.value).startswith(f"operator argument {name!r} is ")
    assert fit in str(raised.value)
    with pytest.raises(SettingError) as raised:
        resolve({name: None}, {name: value})
    assert str(raised.value).startswith(f"{name!r} in the extra of the Spark connection is ")
    assert fit in str(raised.value)
    if isinstance(value, str):
        with pytest.raises(SettingError) as raised:
            resolve({}, {}, {name: value})
        assert str(raised.value).startswith(f"[spark_lineage] {name} is ")
        assert fit in str(raised.value)


def test_an_error_shows_no_secret() -> None:
    for name, value in (
        ("retention_days", "password=hunter2"),
        ("lineage_conn_id", ["http://me:hunter2@host", 7]),
        ("redaction_patterns", "hunter2("),
    ):
        with pytest.raises(SettingError) as raised:
            resolve({name: value})
        assert "hunter2" not in redact(str(raised.value))


def test_each_tells_its_place() -> None:
    option = {"retention_days": "9", "openlineage_jar": "", "evidence": "maybe"}.get
    each = {one.name: one for one in Settings.each({"lineage_dir": "/a"}, {"granularity": "path"}, option)}

    assert list(each) == [setting.name for setting in fields(Settings)]
    assert each["lineage_dir"] == Settled("lineage_dir", "/a", "argument")
    assert each["granularity"] == Settled("granularity", "path", "extra")
    assert each["retention_days"] == Settled("retention_days", 9.0, "section")
    assert each["openlineage_jar"] == Settled("openlineage_jar", "", "default")
    bad = each["evidence"]
    assert (bad.value, bad.place) == ("maybe", "section")
    assert bad.error.startswith("[spark_lineage] evidence is 'maybe'; give one of auto, both, event_log, listener")


def test_a_bad_value_behind_a_good_one_is_not_looked_at() -> None:
    assert resolve({"retention_days": 7}, {"retention_days": "soon"}, {"retention_days": "-1"}).retention_days == 7


def test_what_is_no_setting_is_nobodys_business() -> None:
    assert resolve({"conf": object()}, {"queue": "default", "deploy-mode": "cluster"}) == Settings()


def test_the_extra_keeps_the_case_of_a_cluster_and_wins_over_the_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__HOSTNAMEPATTERN.PROD", "k2")
    places = Places({}, {"hostnamePattern.Prod": ["k1", "k3"]})
    assert places.options()["hostnamePattern.Prod"] == ["k1", "k3"]
    assert places.naming().name("kafka://k1:9092,k3:9092", "t").namespace == "kafka://Prod"
    assert places.naming().name("kafka://k2:9092", "t").namespace == "kafka://k2:9092"


def test_lineage_is_required_whatever_is_wrong_with_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def option(name: str) -> str | None:
        if name == "lineage_enabled":
            raise ValueError("bad interpolation")
        return None

    monkeypatch.setattr("spark_lineage.settings.places.option", option)
    assert TaskSettings({"lineage_required": True}, "spark_default").is_required()
    assert TaskSettings({"lineage_required": "complete"}, "spark_default").is_required()
    assert not TaskSettings({}, "spark_default").is_required()


@pytest.mark.parametrize("value", ["finance", "tags:a", "tag:", "dag:a;!!tag:b", 1])
def test_rules_that_are_none(value: object) -> None:
    with pytest.raises(SettingError, match="give "):
        resolve({}, {"policy_rules": value})


@pytest.mark.parametrize("names_code", [True, False])
def test_extra_names_code_only_where_the_section_lets_it(
    names_code: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = {
        "lineage_listeners": "evil.Listener",
        "NDJSON_Listener_Path": "/etc/cron.d/x",
        "openlineage_jar": "/opt/evil.jar",
        "resolvers": "evil.Names",
    }
    connection = {"conn_type": "spark", "host": "local", "extra": {**code, "lineage_dir": "/mnt/lineage"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TRIED", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__EXTRA_NAMES_CODE", str(names_code))
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__OPENLINEAGE_JAR", "/opt/good.jar")
    places = Places.of("spark_tried", {})
    settings = places.settings()
    assert settings.lineage_dir == "/mnt/lineage"
    assert settings.openlineage_jar == ("/opt/evil.jar" if names_code else "/opt/good.jar")
    found = {key.lower() for key in places.options()} & {"ndjson_listener_path", "resolvers"}
    assert ("evil.Names" in places.options().values()) is names_code, found
    assert bool(settings.lineage_listeners) is names_code


@pytest.mark.parametrize(
    ("connection", "master"),
    [
        ({"conn_type": "spark_sql", "host": "spark://master", "port": 7077}, "spark://master:7077"),
        ({"conn_type": "spark_sql", "host": "local[2]"}, "local[2]"),
        ({"conn_type": "spark", "host": "spark://master", "port": 7077}, "spark://master:7077"),
        ({"conn_type": "spark", "host": "master", "port": 7077}, "spark://master:7077"),
        ({"conn_type": "spark", "host": "yarn"}, "yarn"),
    ],
)
def test_master_of_a_connection_is_the_one_of_the_hook(
    connection: dict[str, Any], master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TRIED", json.dumps(connection))
    assert Places.of("spark_tried", {}).master == master


def test_missing_connection_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = pytest.importorskip("airflow.providers.common.compat.sdk").BaseHook
    asked, stock = list[str](), hook.get_connection
    monkeypatch.setattr(hook, "get_connection", lambda conn_id: asked.append(conn_id) or stock(conn_id))
    task = TaskSettings({}, "nowhere")
    assert not task.is_off()
    task.settle()
    assert asked == ["nowhere"]
