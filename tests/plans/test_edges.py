"""Columns are traced through the plans of real queries, as the listener traces them, or better.

Each query was written to a directory ``out_<name>``. Its edges are those that the listener gave, but for what the
listener does not see (marked): subqueries, several DISTINCTs, ROLLUP, Python functions, and groupings by an expression.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_lineage.merge.lineage import IDENTITY
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.event_log import read_event_log
from spark_lineage.plans.operators import trace
from spark_lineage.plans.plan import parse_plan
from spark_lineage.plans.scope import Read, given_out_by

LOGS = Path(__file__).parents[1] / "fixtures" / "event_logs"


@pytest.fixture(scope="module")
def written():
    outputs = [
        output
        for log in ("queries.zstd", "tables.zstd")
        for one in read_event_log(LOGS / log)
        for output in one.outputs
    ]
    return {output.dataset.name.rpartition("/out_")[2]: output for output in outputs}


def edges(output):
    return sorted(
        f"{column or '*'} <- {dataset.name.rpartition('/')[2]}.{field} {how.subtype}{' masked' if how.masking else ''}"
        for column, dataset, field, how in output.edges
    )


CASES = {
    "join": [
        "* <- a.id FILTER",
        "* <- a.id JOIN",
        "* <- b.id FILTER",
        "* <- b.id JOIN",
        "* <- b.w FILTER",
        "id <- a.id IDENTITY",
        "name <- b.name IDENTITY",
        "x <- a.v TRANSFORMATION",
        "x <- b.w TRANSFORMATION",
    ],
    "left": [
        "* <- a.id JOIN",
        "* <- a.v JOIN",
        "* <- b.id FILTER",
        "* <- b.id JOIN",
        "* <- b.w FILTER",
        "* <- b.w JOIN",
        "id <- a.id IDENTITY",
        "name <- b.name IDENTITY",
    ],
    "semi": [
        "* <- a.id FILTER",
        "* <- a.id JOIN",
        "* <- b.id FILTER",
        "* <- b.id JOIN",
        "id <- a.id IDENTITY",
        "v <- a.v IDENTITY",
    ],
    "anti": ["* <- a.id JOIN", "* <- b.id JOIN", "* <- b.w FILTER", "id <- a.id IDENTITY", "v <- a.v IDENTITY"],
    "exists": ["* <- a.id JOIN", "* <- b.id JOIN", "* <- b.w FILTER", "id <- a.id IDENTITY", "v <- a.v IDENTITY"],
    "cross": [
        "* <- a.v FILTER",
        "* <- a.v JOIN",
        "* <- b.w FILTER",
        "* <- b.w JOIN",
        "id <- a.id IDENTITY",
        "name <- b.name IDENTITY",
    ],
    "agg": [
        "* <- a.k GROUP_BY",
        "* <- a.v FILTER",
        "av <- a.v AGGREGATION",
        "k <- a.k IDENTITY",
        "mx <- a.s AGGREGATION",
        "sv <- a.v AGGREGATION",
    ],
    "distinct": ["* <- a.k GROUP_BY", "* <- a.s GROUP_BY", "k <- a.k IDENTITY", "s <- a.s IDENTITY"],
    "cdist": [
        "* <- a.k GROUP_BY",
        "c <- a.s AGGREGATION masked",
        "c2 <- a.v AGGREGATION masked",
        "k <- a.k IDENTITY",
        "sv <- a.v AGGREGATION",
    ],
    "union": ["id <- a.id IDENTITY", "id <- b.id IDENTITY", "v <- a.v IDENTITY", "v <- b.w IDENTITY"],
    "unionagg": [
        "* <- a.id GROUP_BY",
        "* <- a.k FILTER",
        "* <- b.id GROUP_BY",
        "id <- a.id IDENTITY",
        "id <- b.id IDENTITY",
        "x <- a.v AGGREGATION",
        "x <- b.w AGGREGATION",
    ],
    "union3": [
        "* <- a.id GROUP_BY",
        "* <- a.s GROUP_BY",
        "* <- b.id GROUP_BY",
        "* <- b.name GROUP_BY",
        "id <- a.id IDENTITY",
        "id <- b.id IDENTITY",
        "name <- a.s IDENTITY",
        "name <- b.name IDENTITY",
    ],
    "intersect": ["* <- a.id GROUP_BY", "* <- a.id JOIN", "* <- b.id JOIN", "id <- a.id IDENTITY"],
    "except": ["* <- a.id GROUP_BY", "* <- a.id JOIN", "* <- b.id JOIN", "id <- a.id IDENTITY"],
    "win": [
        "id <- a.id IDENTITY",
        "lg <- a.id WINDOW",
        "lg <- a.s TRANSFORMATION",
        "rn <- a.k WINDOW",
        "rn <- a.v WINDOW",
        "sv <- a.k WINDOW",
        "sv <- a.v AGGREGATION",
    ],
    "winf": [
        "* <- a.k WINDOW",
        "* <- a.v WINDOW",
        "id <- a.id IDENTITY",
        "rn <- a.k WINDOW",
        "rn <- a.v WINDOW",
        "v <- a.v IDENTITY",
    ],
    "cte": [
        "* <- a.id FILTER",
        "* <- a.id JOIN",
        "* <- b.id FILTER",
        "* <- b.id JOIN",
        "id <- a.id IDENTITY",
        "z <- a.v TRANSFORMATION",
        "z <- b.w TRANSFORMATION",
    ],
    "cte2": [
        "* <- a.id FILTER",
        "* <- a.id GROUP_BY",
        "* <- a.id JOIN",
        "id <- a.id IDENTITY",
        "sv <- a.v AGGREGATION",
        "sv2 <- a.v AGGREGATION",
    ],
    "scalar": ["id <- a.id IDENTITY", "mw <- b.w AGGREGATION", "v <- a.v IDENTITY"],
    "scalarf": ["* <- a.v FILTER", "* <- b.w FILTER", "id <- a.id IDENTITY", "v <- a.v IDENTITY"],
    "corr": [
        "* <- a.id JOIN",
        "* <- b.id FILTER",
        "* <- b.id GROUP_BY",
        "* <- b.id JOIN",
        "id <- a.id IDENTITY",
        "mw <- b.w AGGREGATION",
    ],
    "case": [
        "c <- a.k CONDITIONAL",
        "c <- a.k TRANSFORMATION",
        "c <- a.s TRANSFORMATION",
        "c <- a.v CONDITIONAL",
        "co <- a.s CONDITIONAL",
        "co <- a.s TRANSFORMATION",
        "co <- a.v CONDITIONAL",
        "co <- a.v TRANSFORMATION",
        "i <- a.id TRANSFORMATION",
        "i <- a.k TRANSFORMATION",
        "i <- a.v CONDITIONAL",
        "id <- a.id IDENTITY",
        "n <- a.k CONDITIONAL",
        "n <- a.v CONDITIONAL",
        "n <- a.v TRANSFORMATION",
        "nv <- a.s CONDITIONAL",
        "nv <- a.s TRANSFORMATION",
    ],
    "struct": [
        "a <- a.st TRANSFORMATION",
        "a0 <- a.arr TRANSFORMATION",
        "bb <- a.st TRANSFORMATION",
        "mx <- a.m TRANSFORMATION",
        "st <- a.st IDENTITY",
    ],
    "mkstruct": [
        "av <- a.id TRANSFORMATION",
        "av <- a.v TRANSFORMATION",
        "mm <- a.s TRANSFORMATION",
        "mm <- a.v TRANSFORMATION",
        "pq <- a.id TRANSFORMATION",
        "pq <- a.v TRANSFORMATION",
    ],
    "explode": ["* <- a.arr FILTER", "e <- a.arr TRANSFORMATION", "id <- a.id IDENTITY"],
    "posexplode": ["e <- a.arr TRANSFORMATION", "id <- a.id IDENTITY", "p <- a.arr TRANSFORMATION"],
    "hash": [
        "* <- a.id FILTER",
        "* <- a.id JOIN",
        "* <- b.id FILTER",
        "* <- b.id JOIN",
        "c <- a.s TRANSFORMATION masked",
        "h <- a.s TRANSFORMATION masked",
        "h2 <- a.s TRANSFORMATION masked",
        "hc <- a.s TRANSFORMATION masked",
        "hc <- b.name TRANSFORMATION",
        "hv <- a.v TRANSFORMATION masked",
        "ms <- a.s TRANSFORMATION masked",
        "xx <- a.id TRANSFORMATION masked",
    ],
    "sort": ["* <- a.id SORT", "* <- a.v SORT", "id <- a.id IDENTITY", "v <- a.v IDENTITY"],
    "limit": ["* <- a.v SORT", "id <- a.id IDENTITY", "v <- a.v IDENTITY"],
    "limit2": ["id <- a.id IDENTITY", "v <- a.v IDENTITY"],
    "rollup": [
        "* <- a.k GROUP_BY",
        "* <- a.s GROUP_BY",
        "k <- a.k IDENTITY",
        "s <- a.s IDENTITY",
        "sv <- a.v AGGREGATION",
    ],
    "pivot": [
        "* <- a.id GROUP_BY",
        "* <- a.k GROUP_BY",
        "0 <- a.id CONDITIONAL",
        "0 <- a.v AGGREGATION",
        "1 <- a.id CONDITIONAL",
        "1 <- a.v AGGREGATION",
        "k <- a.k IDENTITY",
    ],
    "const": ["id <- a.id IDENTITY"],
    "filterlit": ["* <- a.s FILTER", "* <- a.v FILTER", "id <- a.id IDENTITY"],
    "agg2": [
        "* <- a.k GROUP_BY",
        "cl <- a.s AGGREGATION",
        "cs <- a.id AGGREGATION",
        "cs <- a.v CONDITIONAL",
        "f <- a.v AGGREGATION",
        "k <- a.k IDENTITY",
        "p <- a.v AGGREGATION",
    ],
    "aggexpr": ["* <- a.k GROUP_BY", "kk <- a.k TRANSFORMATION", "r <- a.s AGGREGATION masked", "r <- a.v AGGREGATION"],
    "hof": [
        "ag <- a.arr TRANSFORMATION",
        "fl <- a.arr TRANSFORMATION",
        "fl <- a.k TRANSFORMATION",
        "id <- a.id IDENTITY",
        "tr <- a.arr TRANSFORMATION",
        "tr <- a.v TRANSFORMATION",
    ],
    "pyudf": ["* <- a.v FILTER", "id <- a.id IDENTITY", "pv <- a.v TRANSFORMATION"],
    "cached": ["* <- a.k GROUP_BY", "* <- a.v FILTER", "k <- a.k IDENTITY", "x <- a.v AGGREGATION"],
    "cached2": [
        "* <- a.id FILTER",
        "* <- a.id JOIN",
        "* <- a.v FILTER",
        "id <- a.id IDENTITY",
        "lv <- a.v TRANSFORMATION",
        "rk <- a.k IDENTITY",
    ],
    "cached3": ["* <- a.k GROUP_BY", "k <- a.k IDENTITY", "sv <- a.v AGGREGATION", "z <- a.v AGGREGATION"],
    "cached4": ["* <- a.k GROUP_BY", "k <- a.k IDENTITY", "sv <- a.v AGGREGATION"],
    "self": [
        "* <- a.id FILTER",
        "* <- a.id JOIN",
        "* <- a.k FILTER",
        "* <- a.k JOIN",
        "id <- a.id IDENTITY",
        "v <- a.v IDENTITY",
    ],
    "dedup": [
        "* <- a.k GROUP_BY",
        "arr <- a.arr AGGREGATION",
        "id <- a.id AGGREGATION",
        "k <- a.k IDENTITY",
        "m <- a.m AGGREGATION",
        "s <- a.s AGGREGATION",
        "st <- a.st AGGREGATION",
        "v <- a.v AGGREGATION",
    ],
    "repart": ["id <- a.id IDENTITY"],
    "sortw": ["* <- a.v SORT", "id <- a.id IDENTITY", "v <- a.v IDENTITY"],
    "sample": ["id <- a.id IDENTITY"],
    "jsonr": ["id <- j.id IDENTITY", "v <- j.v IDENTITY"],
    "orcr": ["id <- o.id IDENTITY", "v <- o.v IDENTITY"],
    "textr": ["value <- t.value IDENTITY"],
    "partr": [
        "* <- parts.k FILTER",
        "* <- parts.v FILTER",
        "id <- parts.id IDENTITY",
        "k <- parts.k IDENTITY",
        "v <- parts.v IDENTITY",
    ],
    "partdp": [
        "* <- a.k FILTER",
        "* <- a.k JOIN",
        "* <- a.v FILTER",
        "* <- parts.k FILTER",
        "* <- parts.k JOIN",
        "id <- parts.id IDENTITY",
        "k <- parts.k IDENTITY",
        "s <- a.s IDENTITY",
        "v <- parts.v IDENTITY",
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_the_edges_of(written, name) -> None:
    assert edges(written[name]) == CASES[name]


def test_a_name_with_a_lone_bracket_is_read_by_the_ids_of_attributes(written) -> None:
    assert edges(written["alias2"]) == ["a#3 <- a.v IDENTITY", "we ird, na(me <- a.id IDENTITY"]


def traced(text):
    plan = parse_plan(f"== Physical Plan ==\n{text}")
    assert plan is not None
    return trace(
        plan,
        lambda node: Read(
            [frozenset({(DatasetName("file", "/t"), each.name, IDENTITY)}) for each in given_out_by(node)],
            is_whole=True,
        ),
    )


def test_an_exchange_that_is_used_again_gives_out_the_same_under_other_ids() -> None:
    found = traced(
        "SortMergeJoin Inner (4)\n:- Exchange (2)\n:  +- Scan parquet  (1)\n+- ReusedExchange (3)\n\n\n"
        "(1) Scan parquet \nOutput [1]: [a#1]\n\n(2) Exchange\nInput [1]: [a#1]\nArguments: SinglePartition\n\n"
        "(3) ReusedExchange [Reuses operator id: 2]\nOutput [1]: [a#7]\n\n"
        "(4) SortMergeJoin\nLeft keys [1]: [a#1]\nRight keys [1]: [a#7]\nJoin type: Inner\nJoin condition: None\n\n"
    )
    assert [(column.id, {source[1] for source in column.sources}) for column in found.columns] == [
        (1, {"a"}),
        (7, {"a"}),
    ]


def test_exchange_that_only_a_pruning_subquery_prints_gives_out_its_columns() -> None:
    found = traced(
        "BroadcastHashJoin Inner BuildRight (3)\n:- Scan parquet  (1)\n+- ReusedExchange (2)\n\n\n"
        "(1) Scan parquet \nOutput [2]: [a#1, d#2]\n"
        "PartitionFilters: [isnotnull(d#2), dynamicpruningexpression(d#2 IN dynamicpruning#6)]\n\n"
        "(2) ReusedExchange [Reuses operator id: 5]\nOutput [1]: [k#3]\n\n"
        "(3) BroadcastHashJoin\nLeft keys [1]: [d#2]\nRight keys [1]: [k#3]\nJoin type: Inner\n"
        "Join condition: None\n\n"
        "===== Subqueries =====\n\n"
        "Subquery:1 Hosting operator id = 1 Hosting Expression = d#2 IN dynamicpruning#6\n"
        "BroadcastExchange (5)\n+- Scan parquet  (4)\n\n\n(4) Scan parquet \nOutput [1]: [k#3]\n\n"
        "(5) BroadcastExchange\nInput [1]: [k#3]\nArguments: IdentityBroadcastMode\n\n"
    )
    assert {column.name: {source[1] for source in column.sources} for column in found.columns} == {
        "a": {"a"},
        "d": {"d"},
        "k": {"k"},
    }
    assert not found.unread


@pytest.mark.parametrize("end", ["", ", 1"])
def test_first_rows_behind_an_offset_have_their_columns(end: str) -> None:
    found = traced(
        "TakeOrderedAndProject (2)\n+- Scan parquet  (1)\n\n\n(1) Scan parquet \nOutput [2]: [a#1, b#2]\n\n"
        "(2) TakeOrderedAndProject\nInput [2]: [a#1, b#2]\n"
        f"Arguments: 2, [a#1 ASC NULLS FIRST], [a#1, (b#2 * 2) AS c#3]{end}\n\n"
    )
    assert {column.name: {source[1] for source in column.sources} for column in found.columns} == {
        "a": {"a"},
        "c": {"b"},
    }
    assert not found.unread


def test_an_operator_that_nothing_is_known_of_makes_its_columns_from_all_that_it_names() -> None:
    found = traced(
        "MapInPandas (2)\n+- Scan parquet  (1)\n\n\n(1) Scan parquet \nOutput [2]: [a#1, b#2]\n\n"
        "(2) MapInPandas\nInput [2]: [a#1, b#2]\nArguments: f(a#1)#9, [x#3, y#4], false\n\n"
    )
    assert [(column.name, {source[1] for source in column.sources}) for column in found.columns] == [
        ("x", {"a"}),
        ("y", {"a"}),
    ]


def test_a_generator_keeps_what_it_is_told_to_and_adds_what_it_makes() -> None:
    found = traced(
        "Generate (2)\n+- Scan parquet  (1)\n\n\n(1) Scan parquet \nOutput [2]: [id#1, arr#2]\n\n"
        "(2) Generate\nInput [2]: [id#1, arr#2]\nArguments: explode(arr#2), [id#1], false, [e#3]\n\n"
    )
    assert [(column.name, {source[1:] for source in column.sources}) for column in found.columns] == [
        ("id", {("id", IDENTITY)}),
        ("e", {("arr", found.columns[1].sources and next(iter(found.columns[1].sources))[2])}),
    ]
    assert {source[2].subtype for source in found.columns[1].sources} == {"TRANSFORMATION"}


INLINES = {
    "names with a comma": ("struct(a, b, k#0L, c, s#2)", "a, b#8L, c#9", {"a, b": "k", "c": "s"}),
    "name with a bracket": ("struct(p (E, k#0L, c, s#2)", "p (E#8L, c#9", {"p (E": "k", "c": "s"}),
    "bracket in a literal": ("struct(x, k#0L, y, s#2), struct(x, v#1L, y, n, ()", "x#8L, y#9", {"x": "kv", "y": "s"}),
    "comma in a literal": (
        "named_struct(x, a, b, y, k#0L), named_struct(x, c, y, v#1L)",
        "x#8, y#9L",
        {"x": "", "y": "kv"},
    ),
    "constant structs": ("[a), [b,1], struct(x, k#0L, y, s#2), [q),2.0]", "x#8L, y#9", {"x": "k", "y": "s"}),
    "other names": ("struct(x, k#0L, y, s#2), struct(x, v#1L, y, n)", "p#8L, q#9", {"p": "kv", "q": "s"}),
    "other names, comma in a literal": ("struct(x, a, b, y, k#0L)", "p#8, q#9L", None),
    "no fields": ("named_struct()", "", {}),
    "name in a literal": ("struct(x, k#0L, y, a, y, b)", "x#8L, y#9", None),
}


@pytest.mark.parametrize("name", INLINES)
def test_field_of_inlined_struct_is_made_from_its_value_or_counted(name: str) -> None:
    structs, generated, expected = INLINES[name]
    found = traced(
        "Generate (2)\n+- Scan parquet  (1)\n\n\n(1) Scan parquet \nOutput [3]: [k#0L, v#1L, s#2]\n\n"
        f"(2) Generate\nInput [3]: [k#0L, v#1L, s#2]\nArguments: inline(array({structs})), false, [{generated}]\n\n"
    )
    made = {name: "".join(sorted(sources)) for name, sources in named(found).items()}
    assert (made if not found.unread else None) == expected


@pytest.mark.parametrize("operator", ["StreamingDeduplicate", "StreamingDeduplicateWithinWatermark"])
def test_the_keys_of_a_streaming_deduplication_decide_on_the_rows(operator) -> None:
    found = traced(
        f"{operator} (2)\n+- Scan parquet  (1)\n\n\n(1) Scan parquet \nOutput [2]: [id#1, v#2]\n\n"
        f"(2) {operator}\nInput [2]: [id#1, v#2]\n"
        "Arguments: [id#1], state info [ checkpoint = file:/c, runId = x, opId = 0], 0\n\n"
    )
    assert [(column.name, {source[1] for source in column.sources}) for column in found.columns] == [
        ("id", {"id"}),
        ("v", {"v"}),
    ]
    assert {(column, how.type, how.subtype) for _, column, how in found.dataset_wide} == {
        ("id", "INDIRECT", "GROUP_BY")
    }


def test_the_conditions_of_a_row_level_merge_decide_on_the_rows_and_its_values_are_the_columns() -> None:
    found = traced(
        "MergeRows (2)\n+- Scan parquet  (1)\n\n\n"
        "(1) Scan parquet \nOutput [4]: [id#1, v#2, s_id#3, s_op#4]\n\n"
        "(2) MergeRows\nInput [4]: [id#1, v#2, s_id#3, s_op#4]\n"
        "Arguments: isnotnull(id#1), isnotnull(s_id#3), [keep(Update, (s_op#4 = u), s_id#3, v#2), discard((v#2 > 9))], "
        "[keep(Insert, true, s_id#3, s_op#4)], [keep(Copy, true, id#1, v#2)], false, [id#11, v#12]\n\n"
    )
    assert [(column.name, {source[1] for source in column.sources}) for column in found.columns] == [
        ("id", {"id", "s_id"}),
        ("v", {"v", "s_op"}),
    ]
    assert {(column, how.subtype) for _, column, how in found.dataset_wide} == {("s_op", "JOIN"), ("v", "JOIN")}


@pytest.mark.parametrize(
    ("condition", "value", "is_read"),
    [
        ("NOT (s_op#4 = ()", "v#2", True),
        ("NOT (s_op#4 = ))", "v#2", True),
        ("(s_op#4 = u)", "n/a (none", True),
        ("(s_op#4 = ), keep(Copy)", "v#2", False),
        ("(s_op#4 = u)", "x, y", True),
    ],
)
def test_literal_in_a_row_level_merge_shifts_no_values(condition: str, value: str, *, is_read: bool) -> None:
    found = traced(
        "MergeRows (2)\n+- Scan parquet  (1)\n\n\n"
        "(1) Scan parquet \nOutput [4]: [id#1, v#2, s_id#3, s_op#4]\n\n"
        "(2) MergeRows\nInput [4]: [id#1, v#2, s_id#3, s_op#4]\n"
        f"Arguments: isnotnull(id#1), isnotnull(s_id#3), [keep(Update, {condition}, s_id#3, {value})], "
        "[keep(Insert, true, s_id#3, s_op#4)], [keep(Copy, true, id#1, v#2)], false, [id#11, v#12]\n\n"
    )
    known = {column.name: {source[1] for source in column.sources} for column in found.columns}
    assert known == ({"id": {"id", "s_id"}, "v": {"v", "s_op"}} if is_read else {"id": set(), "v": set()})
    assert found.unread == (() if is_read else ("MergeRows: its columns",))


def test_below_a_write_an_unknown_operator_gives_out_what_the_write_is_given() -> None:
    found = traced(
        "WriteFiles (3)\n+- CoolVendorJoin (2)\n   +- Scan parquet  (1)\n\n\n"
        "(1) Scan parquet \nOutput [2]: [a#1, b#2]\n\n"
        "(2) CoolVendorJoin\nInput [2]: [a#1, b#2]\nOutput [2]: [a#1, (b#2 + 1) AS c#3]\n\n"
        "(3) WriteFiles\nInput [2]: [a#1, c#3]\n\n"
    )
    assert [(column.name, {source[1] for source in column.sources}) for column in found.columns] == [("a", {"a"})]
    assert {(column, how.type, how.subtype) for _, column, how in found.dataset_wide} == {
        ("a", "INDIRECT", "UNKNOWN"),
        ("b", "INDIRECT", "UNKNOWN"),
    }
    assert (found.unread, found.is_whole) == (("CoolVendorJoin",), False)


SUBQUERY_PLAN = (
    "Filter (2)\n+- Scan parquet  (1)\n\n\n(1) Scan parquet \nOutput [1]: [a#1]\n\n"
    "(2) Filter\nInput [1]: [a#1]\nCondition : (a#1 > Subquery subquery#9, [id=#5])\n\n"
)


def test_an_unknown_operator_of_a_scalar_subquery_is_counted_too() -> None:
    found = traced(
        f"{SUBQUERY_PLAN}\n===== Subqueries =====\n\n"
        "Subquery:1 Hosting operator id = 2 Hosting Expression = Subquery subquery#9, [id=#5]\n"
        "CoolVendorTop (4)\n+- Scan parquet  (3)\n\n\n(3) Scan parquet \nOutput [1]: [b#2]\n\n"
        "(4) CoolVendorTop\nInput [1]: [b#2]\n\n"
    )
    assert (found.unread, found.is_whole) == (("CoolVendorTop",), False)


def test_a_scalar_subquery_that_no_plan_prints_is_counted() -> None:
    found = traced(SUBQUERY_PLAN)
    assert (found.unread, found.is_whole) == (("a scalar subquery",), False)


def named(found, *, direct=True):
    """The columns that each column is made from, or that decide about it."""
    return {
        column.name: {name for _, name, how in column.sources if (how.type == "DIRECT") is direct}
        for column in found.columns
    }


def test_a_filter_is_of_the_aggregate_that_has_it_and_of_no_other_of_its_name() -> None:
    found = traced(
        "HashAggregate (3)\n+- HashAggregate (2)\n   +- Scan csv  (1)\n\n\n(1) Scan csv \nOutput [2]: [a#1, day#2]\n\n"
        "(2) HashAggregate\nInput [2]: [a#1, day#2]\nKeys: []\n"
        "Functions [2]: [partial_sum((a#1 + 1)), partial_sum((a#1 + 1)) FILTER (WHERE (day#2 >= 2024-03-01))]\n"
        "Aggregate Attributes [2]: [sum#3L, sum#4L]\nResults [2]: [sum#5L, sum#6L]\n\n"
        "(3) HashAggregate\nInput [2]: [sum#5L, sum#6L]\nKeys: []\nFunctions [2]: [sum((a#1 + 1)), sum((a#1 + 1))]\n"
        "Aggregate Attributes [2]: [sum((a#1 + 1))#7L, sum((a#1 + 1))#8L]\n"
        "Results [2]: [sum((a#1 + 1))#7L AS all#9L, sum((a#1 + 1))#8L AS some#10L]\n\n"
    )
    assert named(found) == {"all": {"a"}, "some": {"a"}}
    assert named(found, direct=False) == {"all": set(), "some": {"day"}}


def test_what_spark_gives_for_no_rows_beside_a_distinct_decides_about_nothing() -> None:
    found = traced(
        "HashAggregate (2)\n+- Scan csv  (1)\n\n\n(1) Scan csv \nOutput [3]: [a#1, count(b)#2L, c#3]\n\n"
        "(2) HashAggregate\nInput [3]: [a#1, count(b)#2L, c#3]\nKeys: []\n"
        "Functions [3]: [count(a#1), first(count(b)#2L, true), first(c#3, true)]\n"
        "Aggregate Attributes [3]: [count(a#1)#4L, first(count(b)#2L) ignore nulls#5L, first(c#3) ignore nulls#6]\n"
        "Results [3]: [count(a#1)#4L AS n#7L, coalesce(first(count(b)#2L) ignore nulls#5L, 0) AS m#8L, "
        "coalesce(first(c#3) ignore nulls#6, 0) AS users#9]\n\n"
    )
    assert named(found, direct=False) == {"n": set(), "m": set(), "users": {"c"}}


def test_of_scalar_subqueries_that_spark_merges_each_is_one_field() -> None:
    subquery = (
        "Subquery:{0} Hosting operator id = 2 Hosting Expression = Subquery subquery#{1}, [id=#5]\n"
        "AdaptiveSparkPlan ({2}5)\n+- Project ({2}4)\n   +- Scan csv  ({2}3)\n\n\n"
        "({2}3) Scan csv \nOutput [2]: [a#{2}1, b#{2}2]\n\n"
        "({2}4) Project\nOutput [1]: [named_struct(x, a#{2}1, y, b#{2}2) AS mergedValue#{2}0]\n"
        "Input [2]: [a#{2}1, b#{2}2]\n\n"
        "({2}5) AdaptiveSparkPlan\nOutput [1]: [mergedValue#{2}0]\nArguments: isFinalPlan=false\n\n"
    )
    found = traced(
        "Project (2)\n+- Scan OneRowRelation (1)\n\n\n(1) Scan OneRowRelation\n"
        "Output: []\nArguments: ParallelCollectionRDD\n\n"
        "(2) Project\n"
        "Output [2]: [Subquery subquery#8, [id=#5].x AS p#6, Subquery subquery#9, [id=#5].y AS q#7]\nInput: []\n\n"
        f"\n===== Subqueries =====\n\n{subquery.format(1, 8, 2)}{subquery.format(2, 9, 3)}"
    )
    assert named(found) == {"p": {"a"}, "q": {"b"}}


def test_a_cache_that_turned_out_empty_is_read_as_it_was_planned() -> None:
    found = traced(
        "InMemoryTableScan (1)\n   +- InMemoryRelation (2)\n"
        "         +- AdaptiveSparkPlan (6)\n            +- == Final Plan ==\n"
        "               ResultQueryStage (4)\n               +- EmptyRelation (3)\n"
        "                  +- Filter (unknown)\n"
        "                     +- EmptyRelation (unknown)\n"
        "            +- == Initial Plan ==\n               Scan csv  (5)\n\n\n"
        "(1) InMemoryTableScan\nOutput [1]: [a#8]\nArguments: [a#8]\n\n"
        "(2) InMemoryRelation\nArguments: [a#8], StorageLevel(disk)\n\n"
        "(3) EmptyRelation\nOutput [1]: [a#1]\nArguments: [plan_id=1]\n\n"
        "(4) ResultQueryStage\nOutput [1]: [a#1]\nArguments: 2\n\n"
        "(5) Scan csv \nOutput [1]: [a#1]\n\n(6) AdaptiveSparkPlan\nOutput [1]: [a#1]\nArguments: isFinalPlan=true\n\n"
    )
    assert (named(found), found.is_whole) == ({"a": {"a"}}, True)


@pytest.mark.parametrize(
    ("generator", "is_deciding"),
    [
        ("explode(v#1)", True),
        ("variant_explode(static_invoke(VariantExpressionEvalUtils.parseJson(v#1, false, true)))", True),
        ("inline(v#1)", True),
        ("variant_explode_outer(v#1)", False),
        ("inline(array(struct(a, v#1, b, k#0L)))", False),
    ],
)
def test_generator_that_leaves_out_rows_decides_on_them(generator: str, *, is_deciding: bool) -> None:
    found = traced(
        "Generate (2)\n+- Scan parquet  (1)\n\n\n(1) Scan parquet \nOutput [2]: [k#0L, v#1]\n\n"
        f"(2) Generate\nInput [2]: [k#0L, v#1]\nArguments: {generator}, [k#0L], false, [a#4, b#5]\n\n"
    )
    assert {column for _, column, _ in found.dataset_wide} == ({"v"} if is_deciding else set())
