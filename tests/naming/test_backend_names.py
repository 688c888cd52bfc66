"""Names that a backend cannot hold are made safe, and come back as they were."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spark_lineage.naming.backend_names import original_name, original_namespace, safe_name
from spark_lineage.naming.identity import DatasetName

# What Marquez 0.51.1 accepts (NamespaceName.java), less what it writes `_` for (formatNamespaceName).
HOLDS = re.compile(r"[a-zA-Z:/0-9_.@+-]+")
TRICKY = st.text(alphabet="+-2CF0A,; \x00=é\U0001f600", max_size=12)
TEXTS = st.one_of(TRICKY, st.text(max_size=12), st.text(alphabet=st.characters(), max_size=4))


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("file", "/data/orders.csv"),
        ("file", "/t/ds=20240115/hour=20"),
        ("file", "/Straße/a b/c,d;e+f"),
        ("file:/wh", "db.t"),
        ("s3://bucket", "a+b/c++d/1+2"),
        ("s3://bucket", "+2c+"),
        ("abfss://c@a.dfs.core.windows.net", "t"),
        ("kafka://a:9092", "topic"),
        ("postgres://db:5432", 'shop."public".t'),
        ("arn:aws:glue:eu-west-1:123456789012", "table/db/t"),
    ],
)
def test_ordinary_names_stay(namespace: str, name: str) -> None:
    assert safe_name(DatasetName(namespace, name)) == DatasetName(namespace, name)


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        (("kafka://a:9092,b:9092", "t"), ("kafka://a:9092+2C+b:9092", "t")),
        (("h2:mem:x;K=-1", "T"), ("h2:mem:x+3B+K+3D+-1", "T")),
        (("file:/Übung", "t"), ("file:/+DC+bung", "t")),
        (("file:/\U0001f600", "t"), ("file:/+1F600+", "t")),
        (("file", "/a\x00b\n"), ("file", "/a+00+b+0A+")),
        (("file", "\ud800"), ("file", "+D800+")),
        (("", ""), ("+-+", "+-+")),
        ((" ", "  "), ("+20+", "+20+ ")),
        # What looks like one of ours is marked, so that it comes back as it was.
        (("+-+", "+-+"), ("+2B+-+", "+2B+-+")),
        (("x+2C+y", "+2C+"), ("x+2B+2C+y", "+2B+2C+")),
        (("+2C,", "+2C\x00"), ("+2B+2C+2C+", "+2B+2C+00+")),
    ],
)
def test_what_cannot_be_held_is_written_by_its_code(given: tuple[str, str], safe: tuple[str, str]) -> None:
    assert safe_name(DatasetName(*given)) == DatasetName(*safe)
    assert original_name(DatasetName(*safe)) == DatasetName(*given)


@settings(max_examples=500)
@given(TEXTS, TEXTS)
@example("+2C+2C,", "+2C+2C+\x00")
@example("\ud800", "\udfff+00+")
def test_every_name_comes_back_and_every_safe_name_can_be_held(namespace: str, name: str) -> None:
    safe = safe_name(DatasetName(namespace, name))
    assert original_name(safe) == DatasetName(namespace, name)
    assert HOLDS.fullmatch(safe.namespace)
    assert safe.name.strip()
    assert not re.search(r"[\x00-\x1f\x7f]", safe.name)
    safe.name.encode()


@given(TEXTS, TEXTS)
def test_two_namespaces_are_never_one_when_safe(one: str, other: str) -> None:
    safe = safe_name(DatasetName(one, "t")).namespace
    assert (safe == safe_name(DatasetName(other, "t")).namespace) is (one == other)
    assert original_namespace(safe) == one
