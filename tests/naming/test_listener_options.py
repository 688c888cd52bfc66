"""The names that OpenLineage's Spark listener gives by the user's options."""

from __future__ import annotations

import pytest

from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.listener_options import listener_names

REMOVED = "dataset.removePath.pattern"
RESOLVERS = "dataset.namespaceResolvers"


@pytest.mark.parametrize(
    ("pattern", "name", "expected", "partition"),
    [
        (r"(?<remove>/\d{8})/", "/raw/20240102/sales", "/raw/sales", "20240102"),
        (r"(?<remove>/v\d+)$", "/raw/v1", "/raw", "v1"),
        # The listener's trimmers come first.
        (r"(?<remove>/v\d+)$", "/raw/v1/20240102", "/raw", "v1/20240102"),
        (r"(?<remove>/v\d+)$", "/raw/v1/ds=1/part-00000-a.parquet", "/raw", "v1/ds=1"),
        # Of the first match alone.
        (r"(?<remove>/v\d+)", "/raw/v1/v2", "/raw/v2", "v1"),
        (r"(?<year>\d{4})(?<remove>-\d+)\k<year>", "/raw", "/raw", ""),
        (r"\(?<remove>x", "/raw", "/raw", ""),
        (r"/raw(?<remove>x?)", "/raw", "/raw", ""),
        (r"/raw(?<other>/v1)", "/raw/v1", "/raw/v1", ""),
        (r"(?<=/raw)(?<remove>/v1)(?<!/raw)", "/raw/v1", "/raw", "v1"),
    ],
)
def test_listener_names_path_that_a_pattern_matches_loses_the_group(
    pattern: str, name: str, expected: str, partition: str
) -> None:
    names = listener_names({REMOVED: pattern})
    assert names.name(DatasetName("file", name)) == DatasetName("file", expected, partition)


def test_listener_names_partition_of_a_path_stays_below_what_is_removed() -> None:
    names = listener_names({REMOVED: r"(?<remove>/v\d+)"})
    assert names.name(DatasetName("s3://b", "raw/v1/t", "ds=1")) == DatasetName("s3://b", "raw/t", "v1/ds=1")
    assert names.name(DatasetName("s3://b", "raw/t", "ds=1")) == DatasetName("s3://b", "raw/t", "ds=1")
    assert names.name(DatasetName("s3://b", "raw/20240102")) == DatasetName("s3://b", "raw/20240102")
    assert names.name(DatasetName("", "raw/v1/t")) == DatasetName("", "raw/v1/t")


@pytest.mark.parametrize(
    ("options", "namespace", "expected"),
    [
        ({"type": "hostList", "hosts": "[k1.corp; K2.corp]"}, "kafka://k2.CORP:9092", "kafka://prod:9092"),
        # Of the first host that is found alone.
        ({"type": "HostList", "hosts": "[k1;k2]"}, "kafka://k2,k1,k1", "kafka://k2,prod,prod"),
        ({"type": "hostList", "hosts": "[k1]", "schema": "kafka"}, "hive://k1:9083", "hive://k1:9083"),
        ({"type": "pattern", "regex": r"k\d\.corp", "schema": "kafka"}, "kafka://k1.corp,k2.corp", "kafka://prod,prod"),
        ({"type": "pattern", "regex": r"k\d"}, "file", "file"),
        ({"type": "patternGroup", "regex": r"(?<name>\w+)-\d+", "matchingGroup": "name"}, "hive://db-1", "hive://db"),
        ({"type": "patternGroup", "regex": r"(?<name>x)?db", "matchingGroup": "name"}, "hive://db", "hive://db"),
    ],
)
def test_listener_names_namespace_that_a_resolver_knows_is_replaced(
    options: dict[str, str], namespace: str, expected: str
) -> None:
    names = listener_names({f"{RESOLVERS}.prod.{key}": value for key, value in options.items()})
    name = DatasetName(namespace, "t", "ds=1")
    assert names.name(name) == DatasetName(expected, "t", "ds=1")
    assert names.unread(name) == ()


@pytest.mark.parametrize("pattern", ["(", r"\p{Alpha}", "[a-z&&[^b]]", "[a[b]]", r"\v", "(?x)a b", "(?u)a", "(?P<a"])
def test_listener_names_pattern_that_java_alone_reads_is_unread(pattern: str) -> None:
    names = listener_names({REMOVED: pattern, f"{RESOLVERS}.a.regex": pattern, f"{RESOLVERS}.a.type": "pattern"})
    name = DatasetName("file", "/raw/v1")
    assert names.name(name) == name
    assert names.unread(name) == (f"spark.openlineage.{REMOVED}", f"spark.openlineage.{RESOLVERS}.a")
    assert names.unread(DatasetName("", "a table")) == ()


@pytest.mark.parametrize(
    "options",
    [
        {"type": "com.example.Own"},
        {"type": "hostList"},
        {"type": "pattern"},
        {"type": "patternGroup"},
        {"type": "patternGroup", "regex": "(?<a>b)", "matchingGroup": "b"},
        {"regex": "a"},
    ],
)
def test_listener_names_resolver_of_an_unknown_kind_is_unread(options: dict[str, str]) -> None:
    names = listener_names({f"{RESOLVERS}.own.{key}": value for key, value in options.items()})
    assert names.unread(DatasetName("file", "/raw")) == (f"spark.openlineage.{RESOLVERS}.own",)


def test_listener_names_two_resolvers_that_differ_leave_the_namespace_and_are_unread() -> None:
    options = {f"{RESOLVERS}.{name}.type": "hostList" for name in ("a", "b")}
    names = listener_names(options | {f"{RESOLVERS}.a.hosts": "[k1]", f"{RESOLVERS}.b.hosts": "[k1;k2]"})
    assert names.name(DatasetName("kafka://k1", "t")) == DatasetName("kafka://k1", "t")
    assert names.unread(DatasetName("kafka://k1", "t")) == (f"spark.openlineage.{RESOLVERS}: their order",)
    assert names.name(DatasetName("kafka://k2", "t")) == DatasetName("kafka://b", "t")
    assert names.unread(DatasetName("kafka://k2", "t")) == ()


def test_listener_names_has_options_only_where_there_are_some() -> None:
    assert not listener_names({"namespace": "jobs", "dataset.disabledTrimmers": "a"}).has_options
    assert listener_names({REMOVED: "("}).has_options
