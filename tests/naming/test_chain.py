"""The chain of resolvers, and how options make one."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_lineage.naming.identity import STORAGE_TYPES, DatasetName
from spark_lineage.naming.options import DEFAULT_NAMING, Naming, NamingError, is_naming_key, naming_from

OWN = """
from spark_lineage.naming.identity import DatasetName

class Sandbox:
    def resolve(self, name):
        return DatasetName("s3a://lake/", "/sandbox/ds=1") if name.name.startswith("/try/") else name

class Hosts:
    def resolve(self, name):
        return DatasetName("kafka://10.1.0.1:9092", name.name) if name.namespace == "kafka://old:9092" else name

class NeedsArguments:
    def __init__(self, token):
        ...

class Breaks:
    def __init__(self):
        raise ValueError("hunter2")

class ResolvesNothing:
    pass

ready = Sandbox()
"""
SCHEMES = st.sampled_from([scheme for row in STORAGE_TYPES for scheme in (row.scheme, *row.aliases)])
SMALL = st.text(alphabet="aB1.:@,[]prod", max_size=8)
NAMESPACES = st.one_of(
    SCHEMES,
    st.builds(
        "{}{}{}{}".format, SCHEMES, st.sampled_from(["", ":", ":/", "://"]), SMALL, st.sampled_from(["", "/", "/x//"])
    ),
    st.text(max_size=6),
)
NAMES = st.one_of(
    st.lists(
        st.sampled_from(
            ["t", "x=1", "2024", "01", "2024-01-15", "*", "a,b}", "{", ".", "..", "", "v1", "file:", "s3:", "part-0"]
        ),
        max_size=6,
    ).map("/".join),
    st.builds("{}:{}{}".format, SCHEMES, st.sampled_from(["", "/", "//"]), SMALL),
    st.text(max_size=6),
)
NAMINGS = [
    DEFAULT_NAMING,
    naming_from({"hostnamePattern.prod": r"a.*", "hostnameDefault": "rest", "pathPattern.version": r"/?v\d+"}),
    naming_from({"hostnamePattern.Prod": "a.*\n.*b", "hostnameDefault": "B1"}),
    naming_from({"hostnamePattern.default": r".*", "pathPattern.all": r"[t.]*", "pathPattern.glob": "off"}),
]


@pytest.fixture
def own(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with resolvers of a user's own."""
    (tmp_path / "lineage_resolvers.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return "lineage_resolvers"


def name(options: Mapping[str, Any], namespace: str, path: str) -> tuple[str, str]:
    named = naming_from(options).name(namespace, path)
    return named.namespace, named.name


def message(options: Mapping[str, Any]) -> str:
    with pytest.raises(NamingError) as raised:
        naming_from(options)
    return str(raised.value)


@settings(max_examples=400)
@given(st.sampled_from(NAMINGS), NAMESPACES, NAMES)
def test_naming_a_named_dataset_changes_nothing(naming: Naming, namespace: str, path: str) -> None:
    once = naming.name(namespace, path)
    assert naming.name(once.namespace, once.name) == once


@given(st.lists(st.tuples(NAMESPACES, NAMES), max_size=6), st.randoms())
def test_a_name_does_not_depend_on_what_was_named_before(names: list[tuple[str, str]], random: Any) -> None:
    shuffled = random.sample(names, len(names))
    one, other = naming_from({}), naming_from({})
    expected = {given: one.name(*given) for given in names}
    assert {given: other.name(*given) for given in shuffled} == expected


def test_resolvers_are_asked_in_their_order_each_with_the_answer_of_the_one_before() -> None:
    class Adds:
        def __init__(self, text: str) -> None:
            self.text = text

        def resolve(self, name: DatasetName) -> DatasetName:
            return DatasetName(name.namespace, name.name + self.text)

    assert Naming([Adds("a"), Adds("b")]).name("n", "x") == DatasetName("n", "xab")
    assert Naming([]).name("n", "x") == DatasetName("n", "x")


def test_an_answer_is_remembered() -> None:
    class Counts:
        asked = 0

        def resolve(self, name: DatasetName) -> DatasetName:
            self.asked += 1
            return name

    counts = Counts()
    naming = Naming([counts])
    assert naming.name("n", "x") is naming.name("n", "x")
    assert counts.asked == 1
    assert naming.name("n", "y") == DatasetName("n", "y")
    assert counts.asked == 2


def test_a_naming_can_be_sent_to_another_process() -> None:
    naming = naming_from({"hostnamePattern.prod": "a.*"})
    sent = pickle.loads(pickle.dumps(naming))  # noqa: S301 - our own bytes
    assert sent.name("kafka://a1:9092", "t") == naming.name("kafka://a1:9092", "t") == DatasetName("kafka://prod", "t")


@pytest.mark.parametrize(
    "key", ["hostnamePattern.prod", "hostnamepattern.prod", "HOSTNAMEPATTERN.prod", "hostname_pattern_prod"]
)
def test_a_pattern_names_a_cluster_however_the_key_is_spelled(key: str) -> None:
    options = {key: r"10\.1\..*", "lineage_dir": "/x"}
    assert name(options, "kafka://10.1.2.4:9092,10.1.2.3:9092", "t") == ("kafka://prod", "t")
    assert name(options, "kafka://10.2.2.4:9092", "t") == ("kafka://10.2.2.4:9092", "t")
    assert name(options, "postgres://10.1.2.4", "s.p.t") == ("postgres://prod", "s.p.t")


@pytest.mark.parametrize("key", ["hostnamePattern", "hostnameList", "HOSTNAME_PATTERN"])
def test_a_cluster_keeps_the_case_of_its_name(key: str) -> None:
    options = {f"{key}.Prod": "k1", f"{key}.prod": "k2", "hostnameDefault": "Rest"}
    assert name(options, "kafka://k1:9092,K2:9092", "t") == ("kafka://Prod", "t")
    assert name(options, "kafka://prod", "t") == ("kafka://Prod", "t")
    assert name(options, "kafka://x:9092", "t") == ("kafka://Rest", "t")
    assert name({f"{key}.Default": ".*", f"{key}.prod": "k1"}, "kafka://k1", "t") == ("kafka://prod", "t")


@pytest.mark.parametrize(
    "patterns",
    [
        "k1\nk[2-3]",
        "\nk1\n\n  k[2-3]  \n",
        "k1\r\nk[2-3]\r\n",
        ["k1", "k[2-3]"],
        ("k1\nk[2-3]",),
        ' ["k1", "k[2-3]"]',
    ],
)
def test_a_cluster_may_have_several_patterns_one_a_line(patterns: object) -> None:
    options = {"hostnamePattern.prod": patterns}
    assert name(options, "kafka://k1:9092,k3:9092", "t") == ("kafka://prod", "t")
    assert name(options, "kafka://k4:9092", "t") == ("kafka://k4:9092", "t")


def test_a_comma_is_a_part_of_a_pattern() -> None:
    assert name({"hostnamePattern.prod": r"k\d{1,2}"}, "kafka://k12:9092", "t") == ("kafka://prod", "t")


def test_a_pattern_may_look_like_the_beginning_of_a_list() -> None:
    assert name({"hostnamePattern.prod": '["k]1'}, "kafka://k1:9092", "t") == ("kafka://prod", "t")


@pytest.mark.parametrize("hosts", ["k1.corp\nk2.corp", ["k1.corp", "k2.corp:9092"]])
def test_a_list_of_hosts_may_have_one_a_line(hosts: object) -> None:
    assert name({"hostnameList.prod": hosts}, "kafka://k1.corp:9092,k2.corp:9092", "t") == ("kafka://prod", "t")


@pytest.mark.parametrize("patterns", ["_v\\d+\n_old", ["_v\\d+", "_old"]])
def test_a_label_may_have_several_patterns_of_paths(patterns: object) -> None:
    options = {"pathPattern.version": patterns}
    assert [name(options, "s3://b", f"orders{end}")[1] for end in ("_v2", "_old", "_x")] == [
        "orders",
        "orders",
        "orders_x",
    ]


def test_patterns_of_hosts_do_not_look_at_case() -> None:
    assert name({"hostnamePattern.prod": "Kafka-[0-9]"}, "kafka://KAFKA-1:9092", "t") == ("kafka://prod", "t")


@pytest.mark.parametrize("hosts", ["k1.corp;k2.corp", "k1.corp, K2.corp", "k1.corp k2.corp:9092;"])
def test_a_list_names_a_cluster(hosts: str) -> None:
    options = {"hostnameList.prod": hosts, "hostname_default": "Rest"}
    assert name(options, "kafka://k1.corp:9092,k2.corp:9092", "t") == ("kafka://prod", "t")
    assert name(options, "kafka://k1xcorp:9092", "t") == ("kafka://Rest", "t")


def test_a_list_and_a_pattern_may_name_one_cluster() -> None:
    options = {"hostnameList.prod": "k9", "hostnamePattern.prod": "k[1-3]", "hostnameDefault": ""}
    assert name(options, "kafka://k9:9092,k1:9092,k2:9092", "t") == ("kafka://prod", "t")


@pytest.mark.parametrize("off", ["off", "false", "No", "0", False, 0])
@pytest.mark.parametrize(
    ("label", "path"),
    [
        ("keyValue", "/t/ds=1"),
        ("key_value", "/t/ds=1"),
        ("date", "/t/2024-01-15"),
        ("dateFolders", "/t/2024/01/15"),
        ("yearMonth", "/t/2024-01"),
        ("glob", "/t/*.csv"),
    ],
)
def test_each_built_in_path_pattern_can_be_switched_off(label: str, path: str, off: object) -> None:
    assert name({}, "file", path) == ("file", "/t")
    assert name({f"pathPattern.{label}": off}, "file", path) == ("file", path)
    assert name({f"pathPattern.{label}": True}, "file", path) == ("file", "/t")


def test_path_patterns_of_ones_own_are_added_and_replace_a_built_in_one() -> None:
    assert name({"pathPattern.version": r"_v\d+"}, "file", "/t_v1/ds=1") == ("file", "/t")
    assert name({"pathPattern.version": r"_v\d+"}, "file", "/t_v1/x") == ("file", "/t_v1/x")
    assert name({"pathPattern.version": r"(?i)_v\d+"}, "file", "/t_V1") == ("file", "/t")
    assert name({"pathPattern.version": "off"}, "file", "/t_v1") == ("file", "/t_v1")
    assert name({"pathPattern.keyValue": "/day=[^/]*"}, "file", "/t/ds=1/day=1") == ("file", "/t/ds=1")


def test_literal_paths_are_named_by_all_but_the_globs() -> None:
    naming = naming_from({"hostnamePattern.prod": "nn", "pathPattern.version": r"_v\d+"})
    for one in (naming.literal, pickle.loads(pickle.dumps(naming)).literal):  # noqa: S301 - our own bytes
        assert one.name("hdfs://nn", "//t?_v1/ds=1") == DatasetName("hdfs://prod", "/t?")
    own = naming_from({"pathPattern.glob": r"\?.*"})
    assert own.literal.name("file", "/t?x").name == "/t"


def test_own_resolvers_see_one_spelling_and_their_answers_are_named_like_all_others(own: str) -> None:
    options = {"resolvers": f"{own}.Sandbox; {own}.Hosts;", "hostnamePattern.prod": r"10\.1\..*"}
    assert name(options, "file:///", "//try/x") == ("s3://lake", "sandbox")
    assert name(options, "kafka://OLD:9092", "t") == ("kafka://prod", "t")
    assert name({"resolvers": f"{own}.ready"}, "file", "/try/x") == ("s3://lake", "sandbox")
    assert name({"resolvers": ""}, "file", "/try/x") == ("file", "/try/x")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere.Sandbox", "cannot be imported here (ModuleNotFoundError); give package.module.Class"),
        ("{own}.Missing", "cannot be imported here (AttributeError)"),
        ("Sandbox", "cannot be imported here (ModuleNotFoundError)"),
        ("{own}.NeedsArguments", "cannot be made without arguments (TypeError)"),
        ("{own}.Breaks", "cannot be made without arguments (ValueError)"),
        ("{own}.ResolvesNothing", "has no method resolve(name: DatasetName) -> DatasetName"),
        ("{own}.DatasetName", "cannot be made without arguments (TypeError)"),
    ],
)
def test_a_resolver_that_cannot_be_used_is_an_error_that_says_why(own: str, path: str, said: str) -> None:
    path = path.format(own=own)
    text = message({"Resolvers": path})
    assert text.startswith(f"Resolvers names {path!r}, which ")
    assert said in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"hostnamePattern.prod": "(hunter2"},
            "hostnamePattern.prod is not a Python regular expression: missing )",
        ),
        ({"hostnamePattern.prod": " "}, "hostnamePattern.prod is empty"),
        ({"hostnamePattern.prod": []}, "hostnamePattern.prod is empty"),
        (
            {"hostnamePattern.prod": "k1\n\n(hunter2\nk3"},
            "hostnamePattern.prod, pattern 2 of 3, is not a Python regular expression: missing )",
        ),
        (
            {"pathPattern.own": ["_v1", "(hunter2"]},
            "pathPattern.own, pattern 2 of 2, is not a Python regular expression: missing )",
        ),
        ({"hostnameList.prod": ";"}, "hostnameList.prod is empty"),
        ({"hostnamePattern.a/b": "hunter2"}, "hostnamePattern.a/b names no cluster"),
        ({"hostnameDefault": "hunter2/x"}, "hostnameDefault names no cluster"),
        ({"pathPattern.own": "[hunter2"}, "pathPattern.own is not a Python regular expression: unterminated"),
        (
            {"pathPattern.own": "(?P=hunter2)"},
            "pathPattern.own is not a Python regular expression: unknown group name",
        ),
        ({"pathPattern.own": "x(?i)hunter2"}, "pathPattern.own is not a Python regular expression: global flags"),
        ({"pathPattern.own": ""}, "pathPattern.own is empty"),
        ({"pathPattern.own": "on"}, "pathPattern.own switches on what is not there"),
    ],
)
def test_an_option_that_cannot_be_used_is_an_error_that_names_the_key_and_no_value(
    options: Mapping[str, str], said: str
) -> None:
    text = message(options)
    assert text.startswith(said)
    assert not re.search("hunter2", text)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("resolvers", True),
        ("hostnamePattern.prod", True),
        ("HOSTNAMELIST.prod", True),
        ("hostnameDefault", True),
        ("pathPattern.day", True),
        ("hostnamePatterns.prod", False),
        ("lineage_dir", False),
    ],
)
def test_which_options_say_how_datasets_are_named(key: str, *, expected: bool) -> None:
    assert is_naming_key(key) is expected
