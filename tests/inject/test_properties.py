"""What spark-submit is told: the user's, extended."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spark_lineage.inject.properties import (
    LISTENER,
    UNUSED_FACETS,
    LineageProperties,
    SubmitArguments,
    TransportConflictError,
    is_listener,
    users_class_path,
)
from spark_lineage.inject.properties import inject as injected

T = "spark.openlineage.transport."
EVENTS = "/tmp/lineage/events.ndjson"  # noqa: S108
JAR = "/cache/openlineage-spark_2.13-1.53.0.jar"
REMOTE = "s3://bucket/openlineage-spark.jar"
PARENT = {
    "spark.openlineage.parentJobNamespace": "default",
    "spark.openlineage.parentJobName": "dag.task",
    "spark.openlineage.parentRunId": "r1",
    "spark.openlineage.rootParentJobNamespace": "default",
    "spark.openlineage.rootParentJobName": "dag",
    "spark.openlineage.rootParentRunId": "r0",
}
LINEAGE = LineageProperties(EVENTS, "ns", "dag.task.app", "run-1", PARENT, {"team": "x", "plain": ""})
OURS = {f"{T}transports.spark_lineage.type": "file", f"{T}transports.spark_lineage.location": EVENTS}


@dataclass
class Injection:
    arguments: SubmitArguments
    private_properties: dict[str, str]


def inject(user, file, lineage, jar, *, deploy_mode) -> Injection:
    return Injection(*injected(user, file, lineage, jar, deploy_mode=deploy_mode))


def run(conf=None, file=None, *, jar=JAR, deploy_mode="client", lineage=LINEAGE, **flags) -> Injection:
    return inject(SubmitArguments(conf or {}, **flags), file or {}, lineage, jar, deploy_mode=deploy_mode)


def transport_of(conf) -> dict[str, str]:
    return {key: value for key, value in conf.items() if key.startswith(T)}


def test_bare_submit():
    injection = run()
    arguments = injection.arguments
    assert arguments.driver_class_path == JAR
    assert (arguments.jars, arguments.packages) == (None, None)
    assert arguments.conf == {
        f"{T}type": "file",
        f"{T}location": EVENTS,
        "spark.extraListeners": LISTENER,
        "spark.openlineage.namespace": "ns",
        "spark.openlineage.appName": "dag.task.app",
        "spark.openlineage.applicationRunId": "run-1",
        **PARENT,
        **{f"spark.openlineage.facets.{name}.disabled": "true" for name in UNUSED_FACETS},
        "spark.openlineage.job.tags": "team:x;plain",
    }
    assert injection.private_properties == {}


@pytest.mark.parametrize(
    ("conf", "file", "expected"),
    [
        ({"spark.extraListeners": "a.B"}, {}, f"a.B,{LISTENER}"),
        ({}, {"spark.extraListeners": "a.B , c.D"}, f"a.B,c.D,{LISTENER}"),
        ({"spark.extraListeners": "a.B"}, {"spark.extraListeners": "c.D"}, f"a.B,{LISTENER}"),
        ({"spark.extraListeners": f"{LISTENER}, a.B"}, {}, f"{LISTENER},a.B"),
        ({"spark.extraListeners": ""}, {}, LISTENER),
    ],
)
def test_listeners(conf, file, expected):
    assert run(conf, file).arguments.conf["spark.extraListeners"] == expected


@pytest.mark.parametrize(
    ("conf", "file", "flags", "expected"),
    [
        ({}, {}, {"driver_class_path": "/a:/b"}, f"/a:/b:{JAR}"),
        ({"spark.driver.extraClassPath": "/a"}, {}, {}, f"/a:{JAR}"),
        ({}, {"spark.driver.extraClassPath": "/f"}, {}, f"/f:{JAR}"),
        ({"spark.driver.extraClassPath": "/a"}, {}, {"driver_class_path": "/b"}, f"/b:{JAR}"),
        ({}, {"spark.driver.extraClassPath": "/opt/openlineage-spark/x.jar"}, {}, None),
    ],
)
def test_class_path_in_client_mode(conf, file, flags, expected):
    arguments = run(conf, file, **flags).arguments
    assert arguments.driver_class_path == (expected or f"/opt/openlineage-spark/x.jar:{JAR}")
    assert arguments.jars is None


@pytest.mark.parametrize(
    ("conf", "file", "flags", "jar", "mode", "expected"),
    [
        ({}, {}, {}, JAR, "cluster", JAR),
        ({}, {}, {}, REMOTE, "client", REMOTE),
        ({}, {}, {"packages": "g:iceberg:1"}, JAR, "client", JAR),
        ({"spark.jars.packages": "g:iceberg:1"}, {}, {}, JAR, "client", JAR),
        ({}, {"spark.jars.packages": "g:iceberg:1"}, {}, JAR, "client", JAR),
        ({}, {}, {"jars": "/a.jar"}, JAR, "client", f"/a.jar,{JAR}"),
        ({"spark.jars": "/c.jar"}, {}, {}, JAR, "client", f"/c.jar,{JAR}"),
        ({}, {"spark.jars": "/f.jar"}, {}, JAR, "client", f"/f.jar,{JAR}"),
        (
            {"spark.jars": "/c.jar"},
            {"spark.jars": "/f.jar"},
            {"jars": "/a.jar"},
            JAR,
            "cluster",
            f"/a.jar,{JAR}",
        ),
    ],
)
def test_jars_where_a_class_path_would_lose_datasets_or_not_work(conf, file, flags, *, jar, mode, expected):
    arguments = run(conf, file, jar=jar, deploy_mode=mode, **flags).arguments
    assert arguments.jars == expected
    assert arguments.driver_class_path is None


@pytest.mark.parametrize(
    ("conf", "file", "flags"),
    [
        ({}, {}, {"packages": "g:a:1,io.openlineage:openlineage-spark_2.12:1.40.0"}),
        ({"spark.jars.packages": "io.openlineage:openlineage-spark:1.8.0"}, {}, {}),
        ({}, {"spark.jars.packages": "io.openlineage:openlineage-spark:1.8.0"}, {}),
        ({}, {}, {"jars": "s3://b/a.jar, s3://b/openlineage-spark_2.13-1.9.jar"}),
        ({}, {"spark.jars": "/x/openlineage-spark.jar"}, {}),
        ({}, {}, {"driver_class_path": "/a:/x/openlineage-spark.jar"}),
        ({"spark.driver.extraClassPath": "/opt/openlineage-spark/*"}, {}, {}),
    ],
)
def test_a_listener_of_the_users_is_known_by_its_name(conf, file, flags):
    assert len([each for each in users_class_path(SubmitArguments(conf, **flags), file) if is_listener(each)]) == 1


def test_without_a_jar_the_paths_stay():
    arguments = run(jar=None, jars="/a.jar").arguments
    assert (arguments.jars, arguments.driver_class_path) == ("/a.jar", None)


def test_login_in_the_jars_of_the_file_stays_in_a_file():
    injection = run({}, {"spark.jars": "https://bob:hunter2@nexus/a.jar"})
    assert "hunter2" not in repr(injection.arguments)
    assert injection.private_properties == {"spark.jars": f"https://bob:hunter2@nexus/a.jar,{JAR}"}


def test_single_transport_becomes_a_member():
    injection = run({f"{T}type": "http", f"{T}url": "http://m", "spark.x": "1", f"{T}auth.apiKey": "k"})
    conf = injection.arguments.conf
    assert transport_of(conf) == {
        f"{T}type": "composite",
        f"{T}continueOnFailure": "true",
        f"{T}transports.user.type": "http",
        f"{T}transports.user.url": "http://m",
        f"{T}transports.user.auth.apiKey": "k",
        **OURS,
    }
    assert injection.private_properties == {}
    assert not [key for key in conf if ".facets." in key]


def test_single_transport_of_the_file_keeps_its_secrets_there():
    file = {
        f"{T}type": "http",
        f"{T}url": "https://m",
        f"{T}auth.type": "api_key",
        f"{T}auth.apiKey": "hunter2",
        f"{T}headers.X-Key": "hunter3",
        f"{T}urlParams.next": "https://bob:hunter4@m/x",
        "spark.other.password": "hunter5",
    }
    injection = run({f"{T}url": "https://mine"}, file)
    assert "hunter" not in repr(injection.arguments)
    assert injection.private_properties == {
        f"{T}transports.user.auth.type": "api_key",
        f"{T}transports.user.auth.apiKey": "hunter2",
        f"{T}transports.user.headers.X-Key": "hunter3",
        f"{T}transports.user.urlParams.next": "https://bob:hunter4@m/x",
    }
    assert transport_of(injection.arguments.conf) == {
        f"{T}type": "composite",
        f"{T}continueOnFailure": "true",
        f"{T}transports.user.type": "http",
        f"{T}transports.user.url": "https://mine",
        **OURS,
    }


def test_secrets_are_not_given_to_a_member_that_is_the_users_own():
    file = {f"{T}type": "http", f"{T}url": "https://m", f"{T}auth.apiKey": "hunter2"}
    own = {f"{T}type": "composite", f"{T}transports.user.type": "http", f"{T}transports.spark_lineage.type": "file"}
    assert run(own, file).private_properties == {}


OPTIONS = "spark.driver.extraJavaOptions"
IN_LOGS = "<LOG_DIR>/openlineage-events.ndjson"


@pytest.mark.parametrize(
    ("conf", "file", "key"),
    [
        ({}, {}, f"{T}location"),
        ({OPTIONS: "-Da=b"}, {OPTIONS: "-Dc=d"}, f"{T}location"),
        ({}, {OPTIONS: "-Da=b", f"{T}type": "http", f"{T}url": "http://m"}, f"{T}transports.spark_lineage.location"),
    ],
)
def test_file_in_a_log_directory_is_an_option_of_the_jvm(conf, file, key):
    injection = run(conf, file, deploy_mode="cluster", lineage=in_logs())
    options = injection.arguments.conf[OPTIONS]
    assert options.split() == [*(["-Da=b"] if conf or file else []), f"-D{key}={IN_LOGS}"]
    assert key not in injection.arguments.conf
    assert injection.private_properties == {}


def test_secret_options_of_the_file_stay_in_a_file():
    users = "-Dpassword=hunter2"
    injection = run(file={OPTIONS: users}, deploy_mode="cluster", lineage=in_logs())
    assert injection.private_properties == {OPTIONS: f"{users} -D{T}location={IN_LOGS}"}
    assert OPTIONS not in injection.arguments.conf


def in_logs() -> LineageProperties:
    return replace(LINEAGE, instead={"type": "file", "location": IN_LOGS})


def test_continue_on_failure_belongs_to_the_composite():
    conf = run({f"{T}type": "console", f"{T}continueOnFailure": "false"}).arguments.conf
    assert transport_of(conf) == {
        f"{T}transports.user.type": "console",
        f"{T}type": "composite",
        f"{T}continueOnFailure": "false",
        **OURS,
    }


def test_transport_of_another_kind_in_the_file_is_not_mixed_in():
    injection = run({f"{T}type": "console"}, {f"{T}type": "http", f"{T}url": "u", f"{T}auth.apiKey": "hunter2"})
    assert injection.private_properties == {}
    assert f"{T}transports.user.url" not in injection.arguments.conf
    assert injection.arguments.conf[f"{T}transports.user.type"] == "console"


@pytest.mark.parametrize("where", ["conf", "file"])
def test_composite_gets_one_more_member(where):
    users = {f"{T}type": "composite", f"{T}continueOnFailure": "false", f"{T}transports.a.type": "console"}
    injection = run(**{where: users})
    expected = OURS | (users if where == "conf" else {})
    assert transport_of(injection.arguments.conf) == expected


@pytest.mark.parametrize(
    "users",
    [
        {f"{T}type": "composite", f"{T}transports": "[{type:console}]"},
        {f"{T}type": "console", f"{T}transports.a.type": "http"},
    ],
)
def test_transport_that_cannot_be_joined_is_refused(users):
    with pytest.raises(TransportConflictError, match=r"transports\.<name>"):
        run(users)


def test_keys_without_a_type_are_no_transport():
    conf = run({f"{T}url": "http://m"}).arguments.conf
    assert transport_of(conf) == {f"{T}url": "http://m", f"{T}type": "file", f"{T}location": EVENTS}


@pytest.mark.parametrize("where", ["conf", "file"])
def test_users_identity_wins(where):
    users = {
        "spark.openlineage.namespace": "n",
        "spark.openlineage.appName": "a",
        "spark.openlineage.applicationRunId": "i",
    }
    injection = run(**{where: users})
    for key, value in users.items():
        assert injection.arguments.conf.get(key) == (value if where == "conf" else None)


@pytest.mark.parametrize("where", ["conf", "file"])
@pytest.mark.parametrize(("group", "other"), [("parent", "rootParent"), ("rootParent", "parent")])
def test_a_parent_of_the_users_is_left_whole(where, group, other):
    users = {f"spark.openlineage.{group}RunId": "mine"}
    conf = run(**{where: users}).arguments.conf
    found = {key: value for key, value in conf.items() if key.startswith(f"spark.openlineage.{group}")}
    assert found == (users if where == "conf" else {})
    assert conf[f"spark.openlineage.{other}JobName"] == PARENT[f"spark.openlineage.{other}JobName"]


def test_users_facet_setting_wins():
    key = "spark.openlineage.facets.sql.disabled"
    assert run({key: "false"}).arguments.conf[key] == "false"
    assert key not in run({}, {key: "false"}).arguments.conf


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ("team:mine;a:b", "team:mine;a:b;plain"),
        ("plain:v:source", "plain:v:source;team:x"),
        (" team :y;", " team :y;plain"),
        ("", "team:x;plain"),
    ],
)
@pytest.mark.parametrize("where", ["conf", "file"])
def test_tags_are_united(users, expected, where):
    injection = run(**{where: {"spark.openlineage.job.tags": users}})
    assert injection.arguments.conf["spark.openlineage.job.tags"] == expected


def test_no_tags_no_property():
    assert "spark.openlineage.job.tags" not in run(lineage=replace(LINEAGE, tags={})).arguments.conf


@pytest.mark.parametrize("tags", [{"a:b": "c"}, {"a": "b;c"}, {"a": "b:c"}, {"a;": ""}, {"": "x"}, {" ": ""}])
def test_tags_that_would_be_read_as_others_are_left_out(tags):
    injection = run(lineage=replace(LINEAGE, tags={**tags, "team": "sales"}))
    assert injection.arguments.conf["spark.openlineage.job.tags"] == "team:sales"


KEYS = [
    "spark.extraListeners",
    "spark.jars",
    "spark.jars.packages",
    "spark.driver.extraClassPath",
    "spark.openlineage.namespace",
    "spark.openlineage.appName",
    "spark.openlineage.parentRunId",
    "spark.openlineage.rootParentRunId",
    "spark.openlineage.job.tags",
    "spark.openlineage.facets.sql.disabled",
    f"{T}url",
    f"{T}location",
    f"{T}auth.apiKey",
    f"{T}continueOnFailure",
    f"{T}transports.a.type",
    f"{T}transports.a.auth.token",
    f"{T}transports.user.url",
    f"{T}transports",
    "spark.sql.shuffle.partitions",
    "spark.executor.memory",
]
VALUES = st.sampled_from(
    ["", "a", "b,c", "k:v;w", "/x/y.jar", "g:openlineage-spark_2.13:1", "https://u:p@h/x", LISTENER]
)
KINDS = st.sampled_from(["", "http", "file", "console", "kafka", "composite"])


@st.composite
def properties(draw):
    drawn = draw(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8))
    if draw(st.booleans()):
        drawn[f"{T}type"] = draw(KINDS)
    return drawn


FLAG = st.none() | st.sampled_from(["", "/a.jar", "g:a:1", "/x/openlineage-spark.jar"])
USERS = st.builds(SubmitArguments, properties(), FLAG, FLAG, FLAG)
JARS = st.sampled_from([JAR, REMOTE, "/opt/lineage.jar", None])
MODES = st.sampled_from(["client", "cluster"])


def has_room(user, file) -> bool:
    effective = {**file, **user.conf}
    kind = effective.get(f"{T}type", "")
    members = {key for key in effective if key == f"{T}transports" or key.startswith(f"{T}transports.")}
    return kind != "kafka" and (not kind or not members or (kind == "composite" and f"{T}transports" not in members))


@settings(max_examples=400)
@given(USERS, properties(), JARS, MODES)
def test_pure(user, file, jar, mode):
    assume(has_room(user, file))
    before = copy.deepcopy((user, file))
    frozen = replace(user, conf=MappingProxyType(dict(user.conf)))
    inject(frozen, MappingProxyType(file), LINEAGE, jar, deploy_mode=mode)
    assert (user, file) == before


@settings(max_examples=400)
@given(USERS, properties(), JARS, MODES)
def test_what_the_user_set_survives(user, file, jar, mode):
    assume(has_room(user, file))
    injection = inject(user, file, LINEAGE, jar, deploy_mode=mode)
    conf = injection.arguments.conf
    for key, value in user.conf.items():
        if key == "spark.extraListeners":
            assert set(filter(None, value.split(","))) <= set(conf[key].split(","))
        elif key == "spark.openlineage.job.tags":
            assert set(filter(None, value.split(";"))) <= set(conf[key].split(";"))
        elif not key.startswith(T):
            assert conf[key] == value
    untouched = [key for key in user.conf if key in conf]
    assert [key for key in conf if key in user.conf] == untouched
    for flag in ("jars", "driver_class_path", "packages"):
        if given_flag := getattr(user, flag):
            assert getattr(injection.arguments, flag).startswith(given_flag)


@settings(max_examples=400)
@given(USERS, properties(), JARS, MODES)
def test_events_reach_our_file_and_the_users_transport(user, file, jar, mode):
    before = {**file, **user.conf}
    if not has_room(user, file):
        with pytest.raises(TransportConflictError):
            inject(user, file, LINEAGE, jar, deploy_mode=mode)
        return
    injection = inject(user, file, LINEAGE, jar, deploy_mode=mode)
    after = {**file, **injection.private_properties, **injection.arguments.conf}
    kind = before.get(f"{T}type", "")
    if not kind:
        assert (after[f"{T}type"], after[f"{T}location"]) == ("file", EVENTS)
    else:
        assert after[f"{T}type"] == "composite"
        assert OURS.items() <= after.items()
        if kind == "composite":
            assert transport_of(before).items() <= after.items()
        else:
            assert after[f"{T}transports.user.type"] == kind
            for key, value in transport_of(user.conf).items():
                if key not in (f"{T}type", f"{T}continueOnFailure"):
                    assert after[f"{T}transports.user.{key.removeprefix(T)}"] == value


@settings(max_examples=400)
@given(USERS, properties(), JARS, MODES)
def test_no_secret_of_the_file_gets_onto_the_command_line(user, file, jar, mode):
    file = {key: ("hunter2" if "auth" in key else value.replace("u:p@", "bob:hunter2@")) for key, value in file.items()}
    assume(has_room(user, file))
    # Of the properties that are extended, only the jars and the transport are expected to hold secrets.
    for key in ("spark.extraListeners", "spark.openlineage.job.tags", "spark.driver.extraClassPath"):
        file.pop(key, None)
    injection = inject(user, file, LINEAGE, jar, deploy_mode=mode)
    assert "hunter2" not in repr(injection.arguments)
