"""Queries with odd names and literals are read right, or said to be unread; no column is named that no table has."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard

from spark_lineage.plans.content import read_plan
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.tables import Tables

PLANS = Path(__file__).parents[1] / "fixtures" / "plans" / "hostile.jsonl.zst"
OTHERS = {"k", "f", "d", "arr", "w"}
# Of queries with odd names and literals, that are counted as unread: a literal may be exactly what separates.
UNREAD_SHARE = 0.03


@cache
def queries() -> list[dict[str, Any]]:
    text = zstandard.ZstdDecompressor().decompress(PLANS.read_bytes()).decode()
    return [json.loads(line) for line in text.split("\n")]


def faults(query: dict[str, Any], names: list[str], columns: list[set[Any]], wide: set[Any]) -> list[Any]:
    """Return what is wrong about a query: names of columns, what each is made from, and what decides on the rows."""
    found: list[Any] = []
    if names != query["names"]:
        return [("names", names)]
    for position, (made, expected) in enumerate(zip(columns, query["columns"], strict=True)):
        kinds = {kind for kind, *_ in expected}
        known = {(kind, table, column) for kind, table, column in expected if kind != "?"}
        may = {(table, column) for kind, table, column in expected if kind == "?"}
        if ("?", "", "") not in map(tuple, expected) and {
            one for one in made if one in known or one[1:] not in may
        } != known:
            found.append((position, made, kinds))
    if query["wide"] is not None and not {(table, column) for _, table, column in query["wide"]} <= wide:
        found.append(("rows", wide))
    return found


def read(query: dict[str, Any]) -> tuple[bool, list[Any], set[str]]:
    """Return whether a query is said to be unread, what is wrong, and the columns of tables that it names."""
    content = read_plan(query["plan"], Tables(), UNTRACED, {})
    traced = content.traced
    columns = [{(how.type[0], name.name[6:], column) for name, column, how in one.sources} for one in traced.columns]
    wide = {(name.name[6:], column) for name, column, _ in traced.dataset_wide}
    wrong = faults(query, [one.name for one in traced.columns], columns, wide)
    return bool(content.unread), wrong, {one[-1] for found in (*columns, wide) for one in found}


@cache
def answers() -> list[tuple[dict[str, Any], tuple[bool, list[Any], set[str]]]]:
    return [(query, read(query)) for query in queries()]


@pytest.mark.parametrize("kind", sorted({query["kind"] for query in queries()}))
def test_query_with_odd_names_is_right_or_said_to_be_unread(kind) -> None:
    silent: list[Any] = []
    for query, (is_unread, wrong, columns) in answers():
        if query["kind"] != kind:
            continue
        own = {"n", "m"} if kind.startswith("literal_") else {query["odd"], f"{query['odd']} B"}
        if columns - own - OTHERS:
            silent.append((query["odd"], "columns that no table has", columns - own - OTHERS))
        if wrong and not is_unread:
            silent.append((query["odd"], query["sql"], wrong))
    assert not silent


def test_few_queries_with_odd_names_are_unread() -> None:
    count = Counter(is_unread for _, (is_unread, *_) in answers())
    assert count[True] / count.total() < UNREAD_SHARE
