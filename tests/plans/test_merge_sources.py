"""The columns of a Delta MERGE, by what the executions inside of it know; and what Delta reads of its own log."""

from __future__ import annotations

import pytest

from spark_lineage.plans.content import read_plan
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.tables import Tables

TARGET = "Delta[version=0, file:/t]"


def plan(*operators):
    """Return the text of a chain of operators, each with its fields, from the leaf on."""
    numbered = [*enumerate(operators, start=1)]
    tree = "\n".join(
        f"{'   ' * depth}{'+- ' if depth else ''}{name} ({number})"
        for depth, (number, (name, _)) in enumerate(reversed(numbered))
    )
    blocks = "".join(f"({number}) {name}\n{fields}\n\n" for number, (name, fields) in numbered)
    return f"== Physical Plan ==\n{tree}\n\n\n{blocks}"


def scan(path, columns, index="PreparedDeltaFileIndex"):
    return "Scan parquet ", f"Output [2]: [{columns}]\nLocation: {index} [file:{path}]"


def merge(clauses, *inside, evolves="false", unread=None):
    """Read a MERGE together with executions inside of it, and return its columns with what they come from."""
    arguments = f"SubqueryAlias s, SubqueryAlias t, {TARGET}, (id#0 = key#3), {clauses}, StructType(), {evolves}"
    text = (
        "== Physical Plan ==\nExecute MergeIntoCommand (1)\n   +- MergeIntoCommand (2)\n\n\n"
        f"(2) MergeIntoCommand\nArguments: {arguments}\n\n"
    )
    tables = Tables()
    content = read_plan(text, tables, UNTRACED, {})
    read = [read_plan(each, tables, UNTRACED, {}) for each in inside]
    content = content.completed(read, tables.names)
    assert unread in (None, content.unread)
    (output,) = content.outputs
    direct = {f"{edge[0]} < {edge[1].name}.{edge[2]}" for edge in output.edges if edge[3].type == "DIRECT"}
    deciding = {f"{edge[1].name}.{edge[2]}" for edge in output.edges if edge[0] is None}
    return [field.name for field in output.schema], direct, deciding


READ_SOURCE = plan(
    scan("/s", "key#3, label#4"), ("Filter", "Input [2]: [key#3, label#4]\nCondition : isnotnull(key#3)")
)
REWRITE = plan(
    scan("/t", "id#0, name#1", "TahoeBatchFileIndex"),
    ("Project", "Output [2]: [CASE WHEN isnull(id#0) THEN 0 ELSE id#0 END AS id#8, name#1 AS name#9]"),
)
CLAUSES = (
    "[Update [condition: (label#4 = U), actions: [`id` = id#0, `name` = label#4]]], "
    "[Insert [actions: [`id` = key#3, `name` = upper(label#4)]]]"
)


def test_source_that_delta_does_not_copy_is_known_by_the_ids_of_its_attributes() -> None:
    columns, direct, deciding = merge(CLAUSES, READ_SOURCE, REWRITE)
    # Two clauses set a column, which is written once.
    assert columns == ["id", "name"]
    assert direct == {"id < /s.key", "id < /t.id", "name < /s.label", "name < /t.name"}
    assert deciding == {"/s.key", "/s.label", "/t.id"}


def test_set_column_that_looks_like_an_attribute_is_not_counted_as_unread() -> None:
    clauses = "[Update [actions: [`id` = id#0, `No #12, old` = label#4, `a#1` = No #12, old#5]]]"
    name, fields = scan("/t", "id#0, No #12, old#5", "TahoeBatchFileIndex")
    target = plan((name, f"{fields}\nReadSchema: struct<id:int,No #12, old:string>"))
    columns, direct, _ = merge(clauses, plan(scan("/s", "key#3, label#4")), target, unread=())
    assert columns == ["id", "No #12, old", "a#1"]
    assert {"No #12, old < /s.label", "a#1 < /t.No #12, old"} <= direct


def test_attribute_that_no_execution_knows_is_not_the_targets() -> None:
    _, direct, deciding = merge("[Insert [actions: [`id` = key#3, `name` = name#7]]]", READ_SOURCE)
    assert direct == {"id < /s.key", "id < /t.id", "name < /t.name"}
    assert deciding == {"/s.key"}


@pytest.mark.parametrize(
    ("evolves", "expected"),
    [
        ("true", {"more < /s.label", "name < /t.name"}),
        ("false", {"more < /s.label", "more < /t.more", "name < /t.name"}),
    ],
)
def test_column_that_a_merge_may_add_does_not_come_from_itself(evolves, expected) -> None:
    clauses = "[Update [actions: [`name` = name#1, `more` = label#4]]]"
    assert merge(clauses, READ_SOURCE, REWRITE, evolves=evolves)[1] == expected


@pytest.mark.parametrize("clauses", ["[Delete]", "[Delete [condition: (label#4 = D)]]"])
def test_merge_that_deletes_leaves_the_columns_that_are_written_anew(clauses) -> None:
    columns, direct, _ = merge(clauses, READ_SOURCE, REWRITE)
    assert columns == ["id", "name"]
    assert direct == {"id < /t.id", "name < /t.name"}


ACTIONS = "[path#1, dataChange#2, partitionValues#3]"


@pytest.mark.parametrize(
    ("leaf", "fields", "is_bookkeeping"),
    [
        ("Scan json ", "Output [1]: [add#1]\nLocation: DeltaLogFileIndex [file:/t/_delta_log/0.json]", True),
        ("Scan ExistingRDD Delta Table State #0 - file:///t/_delta_log", "Output [1]: [add#1]", True),
        ("Scan ExistingRDD Delta Source Snapshot #2 - file:/t/_delta_log", "Output [1]: [index#1]", True),
        ("LocalTableScan", f"Output [3]: {ACTIONS}\nArguments: {ACTIONS}", True),
        ("Scan", "Output [5]: [add#1, index#2, remove#3, cdc#4, isLast#5]", True),
        # The program reads them.
        ("Scan json ", "Output [1]: [add#1]\nLocation: InMemoryFileIndex [file:/t/_delta_log/0.json]", False),
        ("Scan ExistingRDD", "Output [1]: [add#1]", False),
    ],
)
def test_what_delta_reads_of_its_log_is_bookkeeping(leaf, fields, is_bookkeeping) -> None:
    content = read_plan(plan((leaf, fields)), Tables(), UNTRACED, {})
    assert content.is_bookkeeping is is_bookkeeping
