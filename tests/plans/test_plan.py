"""The formatted text of a plan becomes a tree of operators with their fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_lineage.plans.names import plain
from spark_lineage.plans.plan import parse_plan

LOGS = Path(__file__).parents[1] / "fixtures" / "event_logs"

JOIN = """== Physical Plan ==
AdaptiveSparkPlan (6)
+- == Final Plan ==
   * BroadcastHashJoin Inner BuildRight (3)
   :- Scan JDBCRelation((SELECT a
FROM b) q) [numPartitions=1]  (1)
   +- Scan parquet  (2)
+- == Initial Plan ==
   BroadcastHashJoin Inner BuildRight (5)
   :- Scan parquet  (4)
   +- Scan parquet  (2)


(1) Scan JDBCRelation((SELECT a
FROM b) q) [numPartitions=1]  [codegen id : 1]
Output [1]: [a#1]
External engine query: SELECT "a"
FROM (SELECT a
FROM b)

(2) Scan parquet
Output [2]: [a#2, b#3L]
Location: InMemoryFileIndex [file:/data/x]

(3) BroadcastHashJoin [codegen id : 1]
Left keys [1]: [a#1]
Right keys [1]: [a#2]
Join type: Inner
Join condition: None

(4) Scan parquet
Output [1]: [a#1]

(5) BroadcastHashJoin
Left keys [1]: [a#1]

(6) AdaptiveSparkPlan
Output [3]: [a#1, a#2, b#3L]
Arguments: isFinalPlan=true


===== Subqueries =====

Subquery:1 Hosting operator id = 3 Hosting Expression = Subquery scalar-subquery#20, [id=#59]
* Project (8)
+- Scan csv  (7)


(7) Scan csv
Output [1]: [c#9]

(8) Project
Output [1]: [c#9 AS d#10]

Subquery:2 Hosting operator id = 2 Hosting Expression = k#3 IN dynamicpruning#21
* Scan csv  (9)


(9) Scan csv
Output [1]: [c#9]


"""


def test_a_tree_with_its_blocks() -> None:
    plan = parse_plan(JOIN)
    assert plan is not None
    join, initial = plan.root.children[0], plan.root.children[-1]
    assert (plan.root.number, join.number, initial.number) == (6, 3, 5)
    assert [child.number for child in join.children] == [1, 2]
    jdbc, parquet = join.children
    assert jdbc.name == "Scan JDBCRelation((SELECT a\nFROM b) q) [numPartitions=1]"
    assert jdbc.fields["External engine query"] == 'SELECT "a"\nFROM (SELECT a\nFROM b)'
    assert parquet.name == "Scan parquet"
    assert (plain(parquet.fields["Output"]), parquet.sizes["Output"]) == ("[a#2, b#3L]", 2)
    assert {key: plain(value) for key, value in join.fields.items()} == {
        "Left keys": "[a#1]",
        "Right keys": "[a#2]",
        "Join type": "Inner",
        "Join condition": "None",
    }


def test_a_subquery_is_known_by_its_expression_id_unless_it_only_prunes() -> None:
    plan = parse_plan(JOIN)
    assert plan is not None
    assert {identity: node.number for identity, node in plan.subqueries.items()} == {20: 8}
    assert [node.number for node in plan.subqueries[20].walk()] == [8, 7]


def test_a_line_of_a_catalog_table_is_no_field() -> None:
    plan = parse_plan(
        "== Physical Plan ==\nAppendDataExecV1 (1)\n\n\n(1) AppendDataExecV1\n"
        "Arguments: DeltaTableV2(x,Some(CatalogTable(\n"
        "Catalog: spark_catalog\nLocation: file:/wh/t\nPartition Provider: Catalog)),None)\n\n"
    )
    assert plan is not None
    assert list(plan.root.fields) == ["Arguments"]
    assert "Location: file:/wh/t\n" in plan.root.fields["Arguments"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "== Physical Plan ==\n",
        "== Physical Plan ==\n*(1) Project [id#1]\n+- *(1) Range (0, 1)\n",
        "== Parsed Logical Plan ==\n'Project [*]\n",
        "Redacted",
    ],
)
def test_text_that_is_no_formatted_plan_is_none(text) -> None:
    assert parse_plan(text) is None


def test_a_column_under_a_watermark_is_the_column_that_it_is_elsewhere() -> None:
    plan = parse_plan(
        "== Physical Plan ==\nEventTimeWatermark (2)\n+- Scan parquet  (1)\n\n\n"
        "(1) Scan parquet \nOutput [2]: [at#22, n#23L]\n\n"
        "(2) EventTimeWatermark\nOutput [2]: [at#22-T600000ms, n#23L-T0ms]\n"
        "Arguments: at#22: timestamp, 10 minutes\n\n"
    )
    assert plan is not None
    assert plain(plan.root.fields["Output"]) == "[at#22, n#23L]"


@pytest.mark.parametrize("log", ["stream", "jdbc"])
def test_every_operator_of_real_plans_is_found_with_its_block(log) -> None:
    plans = 0
    for line in (LOGS / log).read_text().splitlines():
        event = json.loads(line)
        if not event["Event"].endswith("SQLExecutionStart"):
            continue
        plan = parse_plan(event["physicalPlanDescription"])
        assert plan is not None
        numbers = sorted({node.number for node in plan.walk()})
        assert numbers == list(range(1, len(numbers) + 1))
        plans += 1
    assert plans >= 9


def test_an_operator_that_is_printed_twice_has_its_children_once() -> None:
    tree = "Union (3)\n:- Filter (2)\n:  +- Range (1)\n+- Filter (2)\n   +- Range (1)"
    plan = parse_plan(f"== Physical Plan ==\n{tree}\n\n\n(1) Range\n\n(2) Filter\n\n(3) Union\n\n")
    assert plan is not None
    assert [[child.name for child in each.children] for each in plan.root.children] == [["Range"], ["Range"]]
