"""What plans of real queries and commands say, release by release.

``tests/fixtures/plans`` has their texts as Spark prints them: Python's functions, typed rows, Delta and Iceberg.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import IDENTITY, SchemaField
from spark_lineage.merge.observed import LINES, Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.content import read_plan, with_edges
from spark_lineage.plans.names import Attribute, Names, plain
from spark_lineage.plans.plan import parse_plan
from spark_lineage.plans.row_changes import merged
from spark_lineage.plans.scope import UNTRACED, Column, Traced
from spark_lineage.plans.statements import read_statement
from spark_lineage.plans.tables import Tables

PLANS = Path(__file__).parents[1] / "fixtures" / "plans"
OUT = Observed(DatasetName("file", "/out"))


@cache
def texts(release):
    sections = re.split(r"^######## ", (PLANS / f"{release}.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(section.split("\n", 1) for section in sections if section)


def content(release, name, text=None):
    tables = Tables()
    iceberg = {"spark.sql.catalog.ice.type": "hadoop", "spark.sql.catalog.ice.warehouse": "/data/ice"}
    tables.configure({"spark.sql.warehouse.dir": "/data/wh", **iceberg}, "/data")
    return read_plan(text or texts(release)[name], tables, UNTRACED, {})


def edges(observed):
    return sorted(
        f"{column or '*'} <- {dataset.name.rpartition('/')[2]}.{field} {how.subtype}"
        for column, dataset, field, how in observed.edges
    )


def edges_of(release, name):
    found = content(release, name)
    assert found.unread == ()
    return edges(found.outputs[0] if found.outputs else with_edges(OUT, found.traced))


def all_from(columns, *fields):
    """Return the edges of a function over rows: each column comes from all that it is given."""
    return [f"{column} <- src.{field} TRANSFORMATION" for column in columns for field in fields]


BOTH = ("3.5", "4.2")
BY_K = ["* <- src.k GROUP_BY"]
COUNTED = [
    "* <- b.id GROUP_BY",
    "* <- b.v GROUP_BY",
    "* <- src.id GROUP_BY",
    "* <- src.v GROUP_BY",
    "id <- src.id IDENTITY",
    "v <- src.v IDENTITY",
]
MERGED = [
    "* <- src.id JOIN",
    "* <- src.p JOIN",
    "* <- src.v JOIN",
    "* <- t.id JOIN",
    "id <- src.id TRANSFORMATION",
    "id <- t.id IDENTITY",
    "p <- src.p IDENTITY",
    "p <- t.p IDENTITY",
    "v <- src.v IDENTITY",
    "v <- t.v IDENTITY",
]
QUERIES = {
    # Grouped by k and by upper(s) as us; spread(v) as sp and spread(w + 1) as sw.
    ("agg", BOTH): [
        *BY_K,
        "* <- src.s GROUP_BY",
        "k <- src.k IDENTITY",
        "sp <- src.v AGGREGATION",
        "sw <- src.w AGGREGATION",
        "us <- src.s TRANSFORMATION",
    ],
    ("aggnokey", BOTH): ["sp <- src.v AGGREGATION"],
    ("window", BOTH): [
        "k <- src.k IDENTITY",
        "q <- src.k WINDOW",
        "q <- src.s WINDOW",
        "q <- src.w AGGREGATION",
        "sp <- src.k WINDOW",
        "sp <- src.v AGGREGATION",
    ],
    # plus(v) as p, plus(plus(w + k)) as pp
    ("scalar", BOTH): [
        "k <- src.k IDENTITY",
        "p <- src.v TRANSFORMATION",
        "pp <- src.k TRANSFORMATION",
        "pp <- src.w TRANSFORMATION",
    ],
    ("grouped", BOTH): [*BY_K, *all_from("ksvw", "k", "s", "v", "w")],
    # By upper(s), which the function is not given.
    ("grouped2", BOTH): ["* <- src.s GROUP_BY", *all_from("ks", "k", "s", "v", "w")],
    # The other side gives k and z, which is v; the keys in front of both are not given.
    ("cogroup", BOTH): [*BY_K, *all_from("kz", "k", "s", "v", "w")],
    ("mapp", BOTH): all_from("ab", "k", "v"),
    ("mapa", BOTH): all_from("ab", "k", "v"),
    ("applyarrow", ("4.2",)): [*BY_K, *all_from("ksvw", "k", "s", "v", "w")],
    ("cogarrow", ("4.2",)): [*BY_K, *all_from("kz", "k", "s", "v", "w")],
    ("batchudf", BOTH): ["k <- src.k IDENTITY", "u <- src.s TRANSFORMATION"],
    # select d.k, t.x, t.y from d, lateral f(d.w, d.s) t where d.v > 1
    ("udtf", BOTH): ["* <- src.v FILTER", "k <- src.k IDENTITY", *all_from("xy", "s", "w")],
    ("udtftable", BOTH): ["* <- src.v FILTER", *all_from("x", "k", "s")],
    ("udtftable_part", ("4.2",)): ["* <- src.k SORT", "* <- src.w SORT", *all_from("x", "k", "s", "v", "w")],
    ("scriptless", BOTH): all_from("ab", "k", "s"),
    ("pos", ("3.5",)): [f"{column} <- src.{column} IDENTITY" for column in "ksvw"],
    ("session", BOTH): [
        "* <- src.v FILTER",
        "* <- src.v GROUP_BY",
        "sum(w) <- src.w AGGREGATION",
        "w <- src.v TRANSFORMATION",
    ],
    # Of the other side only decides which rows there are.
    ("except all", BOTH): COUNTED,
    ("intersect all", BOTH): COUNTED,
    ("stack", BOTH): ["id <- src.id IDENTITY", "n <- src.p TRANSFORMATION", "n <- src.v TRANSFORMATION"],
    # inline(array(struct(p as x, v as y), struct(v as x, id as y)))
    ("inline", BOTH): [
        "id <- src.id IDENTITY",
        "x <- src.p TRANSFORMATION",
        "x <- src.v TRANSFORMATION",
        "y <- src.id TRANSFORMATION",
        "y <- src.v TRANSFORMATION",
    ],
    # sum(v) filter (where id > 1) as sv, count(distinct v) filter (where id > 0) as c … group by p
    ("filter of aggregates", BOTH): [
        "* <- src.p GROUP_BY",
        "c <- src.id CONDITIONAL",
        "c <- src.v AGGREGATION",
        "p <- src.p IDENTITY",
        "sv <- src.id CONDITIONAL",
        "sv <- src.v AGGREGATION",
    ],
    # rank() and dense_rank() as r and d by p, v; percent_rank() and ntile(2) as pr and nt by v alone
    ("ranks", BOTH): [
        "d <- src.p WINDOW",
        "d <- src.v WINDOW",
        "id <- src.id IDENTITY",
        "nt <- src.v WINDOW",
        "pr <- src.v WINDOW",
        "r <- src.p WINDOW",
        "r <- src.v WINDOW",
    ],
    # keep(cond, …) in Spark 3.5, keep(Update, cond, …) in 4.1: what stays as it is is written anew.
    ("iceberg merge", ("3.5", "4.1")): MERGED,
    # split(cond, deleted row, inserted row): what stays as it is is not written, and left.
    ("iceberg merge on read", ("3.5", "4.1")): MERGED,
    ("delta feed", BOTH): [
        f"{column} <- f.{column} IDENTITY"
        for column in ("_change_type", "_commit_timestamp", "_commit_version", "id", "v")
    ],
    # The listener names the relation that the query starts from.
    ("rec", ("4.2",)): [
        "* <- (k, s, v, w).k FILTER",
        "n <- (k, s, v, w).k IDENTITY",
        "n <- (k, s, v, w).k TRANSFORMATION",
    ],
}
CASES = [(release, name, expected) for (name, releases), expected in QUERIES.items() for release in releases]


@pytest.mark.parametrize(("release", "name", "expected"), CASES, ids=lambda value: str(value)[:30])
def test_the_edges_of_a_real_plan(release, name, expected) -> None:
    assert edges_of(release, name) == expected


@pytest.mark.parametrize("release", BOTH)
def test_a_plan_names_the_table_whose_change_feed_it_reads(release) -> None:
    found = content(release, "delta feed")
    assert found.feeds == {one.dataset for one in found.inputs} != set()
    assert content(release, "ranks").feeds == set()


def test_an_operator_that_no_rule_knows_gives_no_values_decides_by_all_that_it_is_given_and_is_counted_once() -> None:
    text = texts("4.2")["mapp"].replace("MapInPandas", "MapInOddity")
    found = content("4.2", "mapp", text)
    assert found.unread == ("MapInOddity",)
    assert not found.is_whole
    assert [column.name for column in found.traced.columns] == ["a", "b"]
    assert edges(with_edges(OUT, found.traced)) == ["* <- src.k UNKNOWN", "* <- src.v UNKNOWN"]


@pytest.mark.parametrize("release", BOTH)
def test_an_overwrite_of_the_partitions_that_the_data_has_writes_the_columns_of_its_query(release) -> None:
    query = content(release, "delta dynamic overwrite, its query")
    found = content(release, "delta dynamic overwrite").completed([query], Names())
    assert found.command is not None
    assert (found.command.mode, found.command.is_partial, found.unread) == ("Overwrite", True, ())
    (target,) = found.outputs
    assert (target.dataset.name, target.lifecycles) == ("/data/t", frozenset({"OVERWRITE"}))
    assert {link.name for link in target.symlinks} == {"default.tt"}
    assert edges(target) == [
        "* <- src.v FILTER",
        "id <- src.id IDENTITY",
        "p <- src.p IDENTITY",
        "v <- src.v TRANSFORMATION",
    ]


@pytest.mark.parametrize(
    ("release", "name", "expected"),
    [
        ("4.2", "delta truncate", CatalogStatement("TRUNCATE", "TABLE", "default.cl")),
        ("3.5", "iceberg identifier", CatalogStatement("ALTER", "TABLE", "d.t")),
        ("3.5", "delta convert", None),
        ("4.2", "delta convert", None),
        (
            "4.2",
            "delta replace table",
            CatalogStatement(
                "OVERWRITE", "TABLE", "default.rt", is_conditional=True, schema=(SchemaField("a", "integer"),)
            ),
        ),
    ],
)
def test_what_a_command_does_to_the_catalog(release, name, expected) -> None:
    plan = parse_plan(texts(release)[name])
    assert plan is not None
    assert read_statement(plan, Tables()) == expected
    assert content(release, name).unread == ()


TABLE = DatasetName("file", "/data/t")
MERGES = {
    # when matched and not (s.v = tt.v) and s.p in (1, 2) … when matched and s.v > 100 … when not matched and s.v > 7
    "delta merge": (
        r"\(id#\d+L = id#(?P<id>\d+)L\) AND \(p#\d+L = p#(?P<p>\d+)L\).* > 7\), .*`v` = v#(?P<v>\d+)L",
        {"id", "p", "t.id", "t.p", "t.v", "v"},
        {"id <- src.id", "id <- t.id", "p <- src.p", "p <- t.p", "v <- src.v", "v <- t.v"},
    ),
    # when matched and c.gone then delete when matched and not c.gone then update set v = c.v …
    # when not matched by source and tt.v < 0 then delete
    "delta merge of a column": (
        r"condition: gone#(?P<gone>\d+)\].*`id` = id#(?P<id>\d+)L, `p` = 0, `v` = v#(?P<v>\d+)L",
        {"gone", "id", "t.id", "t.v"},
        {"id <- src.id", "id <- t.id", "p <- t.p", "v <- src.v", "v <- t.v"},
    ),
    # when matched then delete
    "delta merge that deletes": (r"\(id#\d+L = id#(?P<id>\d+)L\)", {"id", "t.id"}, set()),
}


@pytest.mark.parametrize("release", BOTH)
@pytest.mark.parametrize("name", MERGES)
def test_the_conditions_of_all_clauses_of_a_merge_decide_and_their_actions_are_its_columns(release, name) -> None:
    pattern, deciding, expected = MERGES[name]
    plan = parse_plan(texts(release)[name])
    assert plan is not None
    text = plan.arguments_of("MergeIntoCommand")
    ids = re.search(pattern, plain(text))
    names = Names()
    assert ids is not None
    source = Traced(
        tuple(
            Column(int(identity), column, frozenset({(DatasetName("file", "/src"), column, IDENTITY)}))
            for column, identity in ids.groupdict().items()
        )
    )
    for column in source.columns:
        names.add(Attribute(column.id, column.name))
    found = edges(with_edges(OUT, merged(text, TABLE, source, names)))
    told = {edge.removeprefix("* <- ").removeprefix("src.") for edge in found if edge.startswith("* <- ")}
    assert told == {f"{column} JOIN" for column in deciding}
    assert {edge.rpartition(" ")[0] for edge in found if not edge.startswith("* <- ")} == expected


def test_by_a_delete_without_a_condition_no_column_decides() -> None:
    (target,) = content("3.5", "delta delete").outputs
    assert not [edge for edge in edges(target) if edge.startswith("* <- ")]


SCAN = """Scan text (1)


(1) Scan text
Output [1]: [value#0]
Location: InMemoryFileIndex [file:/data/a.csv]
ReadSchema: struct<value:string>

"""
FIRST_LINE = f"""== Physical Plan ==
CollectLimit (3)
+- * Filter (2)
   +- {SCAN}(2) Filter [codegen id : 1]
Input [1]: [value#0]
Condition : (length(trim(value#0, None)) > 0)

(3) CollectLimit
Input [1]: [value#0]
Arguments: 1

"""
ALL_LINES = f"""== Physical Plan ==
DeserializeToObject (2)
+- {SCAN}(2) DeserializeToObject
Input [1]: [value#0]
Arguments: invoke(value#0.toString()), obj#15: java.lang.String

"""


@pytest.mark.parametrize(("plan", "schema"), [
    (FIRST_LINE, LINES),
    (ALL_LINES, LINES),
    (FIRST_LINE.replace("length(trim(value#0, None)) > 0", "value#0 = a"), ()),
])  # fmt: skip
def test_files_that_a_schema_may_be_inferred_from_are_marked_by_it(plan, schema):
    (read,) = content("", "", plan).inputs
    assert (read.dataset.name, read.schema) == ("/data/a.csv", schema)


RUN_OVERWRITE = """== Physical Plan ==
OverwriteByExpression (6)
+- AdaptiveSparkPlan (5)
   +- == Final Plan ==
      * Project (4)
      +- * Scan csv  (3)
   +- == Initial Plan ==
      Project (2)
      +- Scan csv  (1)


(1) Scan csv
Output [1]: [sku#0]
Location: InMemoryFileIndex [file:/data/counts.csv]

(2) Project
Output [2]: [sku#0, 2024-01-02 AS day#11]
Input [1]: [sku#0]

(3) Scan csv [codegen id : 1]
Output [1]: [sku#0]
Location: InMemoryFileIndex [file:/data/counts.csv]

(4) Project [codegen id : 1]
Output [2]: [sku#0, 2024-01-02 AS day#11]
Input [1]: [sku#0]

(5) AdaptiveSparkPlan
Output [2]: [sku#0, day#11]
Arguments: isFinalPlan=true

(6) OverwriteByExpression
Input [2]: [sku#0, day#11]
Arguments: org.apache.spark.sql.execution.datasources.DataSourceV2Strategy, IcebergWrite(table=ice.db.t, format=PARQUET)

"""


def test_constants_of_a_plan_that_was_run_are_those_of_its_initial_plan():
    assert content("", "", RUN_OVERWRITE).constants == ("day=2024-01-02",)
