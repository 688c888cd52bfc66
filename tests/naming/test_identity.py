"""Dataset identity: which spellings are one dataset, and which path lies inside another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace
from spark_lineage.naming.options import DEFAULT_NAMING

EVENTS = sorted((Path(__file__).parents[1] / "fixtures" / "events").glob("*.ndjson"))
SPARK_OWN = ("job", "parent", "root")
NAMESPACES = st.sampled_from(["file", "s3://bucket", "hdfs://nn:8020", "postgres://db:5432", "kafka://broker", ""])
NAMES = st.text(alphabet="ab/.", max_size=12)


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        ("file", "/out/t/", "/out/t"),
        ("file", "/out/t///", "/out/t"),
        ("file", "/out/t", "/out/t"),
        ("file", "/", "/"),
        ("file", "//", "/"),
        ("file", "", ""),
        ("s3://bucket", "orders/", "orders"),
        ("s3://bucket", "/", "/"),
        ("hdfs://nn:8020", "/warehouse/db1.db/t/", "/warehouse/db1.db/t"),
        ("abfss://container@account.dfs.core.windows.net", "t/", "t"),
        ("gs://bucket", "t/", "t"),
        ("dbfs", "/mnt/t/", "/mnt/t"),
        # Where names are no paths, a slash is a part of the name.
        ("kafka://broker:9092", "topic/", "topic/"),
        ("postgres://db:5432", "shop.public.t/", "shop.public.t/"),
        ("filesystem", "/t/", "/t/"),
    ],
)
def test_a_trailing_slash_makes_no_other_path(namespace: str, name: str, expected: str) -> None:
    assert DEFAULT_NAMING.name(namespace, name) == DatasetName(namespace, expected)


def _names(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        if isinstance(value.get("namespace"), str) and isinstance(value.get("name"), str):
            yield value["namespace"], value["name"]
        for key, inner in value.items():
            if key not in SPARK_OWN:
                yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


@pytest.mark.parametrize("events", EVENTS, ids=lambda path: path.stem)
def test_the_names_that_the_listener_gives_are_canonical_already(events: Path) -> None:
    found = set()
    for line in events.read_bytes().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # a line that was cut off
        found.update(_names([event["inputs"], event["outputs"]]))
    assert found or events.stem == "gkilljvm_414"
    changed = [name for name in found if DEFAULT_NAMING.name(*name) != DatasetName(*name)]
    assert not changed


@pytest.mark.parametrize(
    ("namespace", "is_path"),
    [
        ("file", True),
        ("file:/wh", True),
        ("s3://bucket", True),
        ("s3a://bucket", True),
        ("hdfs://nn:8020", True),
        ("viewfs://cluster", True),
        ("wasbs://c@a.blob.core.windows.net", True),
        ("hive://metastore:9083", False),
        ("postgres://db:5432", False),
        ("kafka://broker", False),
        ("arn:aws:glue:eu-west-1:123456789012", False),
        ("", False),
        ("files", False),
    ],
)
def test_which_namespaces_hold_paths(namespace: str, *, is_path: bool) -> None:
    assert is_path_namespace(namespace) is is_path


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        (("file", "/in/a.csv"), ("file", "/in"), True),
        (("file", "/in/2024/a.csv"), ("file", "/in"), True),
        (("file", "/in"), ("file", "/"), True),
        (("file", "/in"), ("file", "/in"), False),
        (("file", "/"), ("file", "/"), False),
        (("file", "/inner/a.csv"), ("file", "/in"), False),
        (("file", "/in"), ("file", "/in/a.csv"), False),
        (("s3://a", "in/a.csv"), ("s3://b", "in"), False),
        (("s3://a", "in/a.csv"), ("s3://a", "in"), True),
        (("postgres://db", "a/b"), ("postgres://db", "a"), False),
    ],
)
def test_what_lies_inside_what(inner: tuple[str, str], outer: tuple[str, str], *, expected: bool) -> None:
    assert (DatasetName(*outer) in set(directories_above(DatasetName(*inner)))) is expected


def test_directories_come_from_the_nearest_on() -> None:
    above = list(directories_above(DatasetName("file", "/a/b/c")))
    assert [name.name for name in above] == ["/a/b", "/a", "/"]
    assert [name.name for name in directories_above(DatasetName("s3://bucket", "a/b/c"))] == ["a/b", "a"]


@given(NAMESPACES, NAMES)
def test_no_path_lies_in_itself_and_all_above_are_shorter(namespace: str, name: str) -> None:
    lengths = [len(above.name) for above in directories_above(DatasetName(namespace, name))]
    assert all(length < len(name) for length in lengths)
    assert lengths == sorted(lengths, reverse=True)


def test_names_sort_by_namespace_and_are_equal_by_value() -> None:
    names = [DatasetName("s3://b", "a"), DatasetName("file", "/b"), DatasetName("file", "/a")]
    assert sorted(names) == [DatasetName("file", "/a"), DatasetName("file", "/b"), DatasetName("s3://b", "a")]
    assert len({DatasetName("file", "/a"), DEFAULT_NAMING.name("file", "/a/")}) == 1
