"""What Hudi's SQL commands write, and from which columns."""

from __future__ import annotations

import json

import pytest

from spark_lineage.plans.content import read_plan
from spark_lineage.plans.event_log import EventLogReader
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.tables import Tables

PLACE = "file:/wh/accounts"
FILE_SCAN = "Scan csv  (1)\n\n\n(1) Scan csv \nOutput [2]: [{0}#1, {1}#2]\nLocation: InMemoryFileIndex [file:/in]\n\n"
TABLE_SCAN = (
    "(1) Scan HudiFileGroup spark_catalog.default.accounts\nOutput [3]: [_hoodie_record_key#1, id#2, balance#3]\n"
    f"Location: HoodieFileIndex [{PLACE}]\n\n"
)
MERGE = (
    "MergeIntoTable (id#64 = id#56), [deleteaction(Some((op#11 = close))), updateaction(Some((balance#66 < 5)), "
    "assignment(balance#66, coalesce(balance#58, (balance#66 + 1.0))), assignment(ts#67L, ts#12L))], "
    "[insertaction(None, assignment(id#64, id#56))]"
)


def tables():
    known = Tables()
    known.configure({"spark.sql.warehouse.dir": "file:/wh"}, "/work")
    return known


def content_of(tree, configs=None):
    return read_plan(f"== Physical Plan ==\n{tree}", tables(), UNTRACED, configs or {})


def edges(output):
    return {(column, source.name, field, how.subtype) for column, source, field, how in output.edges}


def inserted(arguments, names=("id", "balance"), configs=None):
    name = "Execute InsertIntoHoodieTableCommand"
    scan = FILE_SCAN.format(*names)
    return content_of(f"{name} (2)\n+- {scan}(2) {name}\nArguments: {arguments}\n\n", configs)


RELATION = "Relation spark_catalog.default.accounts[_hoodie_commit_time#8,id#9,balance#10L{}] x.Relation@1f"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("balance", "id"), {("id", "/in", "id", "IDENTITY"), ("balance", "/in", "balance", "IDENTITY")}),
        (("account", "amount"), {("id", "/in", "account", "IDENTITY"), ("balance", "/in", "amount", "IDENTITY")}),
    ],
)
def test_an_insert_is_by_name_else_in_the_order_of_the_table(names, expected) -> None:
    content = inserted(f"{RELATION.format('')}, false", names)
    (output,) = content.outputs
    assert content.command is not None
    assert (output.dataset.name, edges(output), content.command.mode) == ("/wh/accounts", expected, "Append")


def test_a_partition_that_an_insert_names_is_no_column_of_its_query() -> None:
    content = inserted(f"{RELATION.format(',day#11')}, [day=Some(1)], false", ("balance", "id"))
    by_name = {("id", "/in", "id", "IDENTITY"), ("balance", "/in", "balance", "IDENTITY")}
    assert edges(content.outputs[0]) == by_name


@pytest.mark.parametrize(
    ("arguments", "configs", "is_partial"),
    [
        (f"{RELATION.format('')}, true", {}, False),
        (f"{RELATION.format('')}, true", {"spark.sql.sources.partitionOverwriteMode": "dynamic"}, True),
        (f"{RELATION.format(',day#11')}, [day=Some(1)], true", {}, True),
    ],
)
def test_an_overwrite_of_partitions_is_partial(arguments, configs, is_partial) -> None:
    content = inserted(arguments, ("a", "b"), configs)
    assert content.command is not None
    assert (content.command.mode, content.command.is_partial) == ("Overwrite", is_partial)
    assert [field.name for field in content.outputs[0].schema] == ["id", "balance"]


def test_an_insert_into_what_is_printed_in_another_way_has_no_target() -> None:
    content = inserted("SubqueryAlias accounts, false")
    assert (content.outputs, [column.name for column in content.traced.columns]) == ((), ["id", "balance"])


def test_a_table_is_made() -> None:
    name = "CreateHoodieTableCommand"
    blocks = f"(1) Execute {name}\nOutput: []\n\n(2) {name}\nArguments: `spark_catalog`.`default`.`accounts`, true\n\n"
    (output,) = content_of(f"Execute {name} (1)\n   +- {name} (2)\n\n\n{blocks}").outputs
    assert (output.dataset.name, output.lifecycles) == ("/wh/accounts", {"CREATE"})


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        (
            "UpdateHoodieTableCommand",
            "(balance#3 * 2.0) AS balance#4",
            {
                ("id", "/wh/accounts", "id", "IDENTITY"),
                ("balance", "/wh/accounts", "balance", "TRANSFORMATION"),
                ("balance", "/wh/accounts", "balance", "IDENTITY"),
                (None, "/wh/accounts", "balance", "FILTER"),
            },
        ),
        ("DeleteHoodieTableCommand", "balance#3", {(None, "/wh/accounts", "balance", "FILTER")}),
    ],
)
def test_what_changes_rows_writes_what_they_are_read_from(name, given, expected) -> None:
    tree = (
        f"Execute {name} (4)\n+- Project (3)\n   +- Filter (2)\n"
        "      +- Scan HudiFileGroup spark_catalog.default.accounts (1)"
    )
    columns = "_hoodie_record_key#1, id#2"
    content = content_of(
        f"{tree}\n\n\n{TABLE_SCAN}(2) Filter\nInput [3]: [{columns}, balance#3]\nCondition : (balance#3 < 0.0)\n\n"
        f"(3) Project\nOutput [3]: [{columns}, {given}]\nInput [3]: [{columns}, balance#3]\n\n"
        f"(4) Execute {name}\nInput [3]: [{columns}, {given.rpartition(' ')[2]}]\nArguments: x\n\n"
    )
    (output,) = content.outputs
    assert (output.dataset.name, edges(output)) == ("/wh/accounts", expected)


def test_an_update_whose_rows_are_read_from_nothing_known_has_no_target() -> None:
    name = "Execute UpdateHoodieTableCommand"
    blocks = f"(1) LocalTableScan\nOutput [1]: [id#2]\n\n(2) {name}\nInput [1]: [id#2]\nArguments: x\n\n"
    assert content_of(f"{name} (2)\n+- LocalTableScan (1)\n\n\n{blocks}").outputs == ()


def merged(*descriptions, known=("default",)):
    """Read the log of a MERGE whose jobs are called so, after reads of tables ``accounts`` of databases."""
    name = "MergeIntoHoodieTableCommand"
    plan = (
        f"== Physical Plan ==\nExecute {name} (1)\n   +- {name} (2)\n\n\n(1) Execute {name}\nOutput: []\n\n"
        f"(2) {name}\nArguments: {MERGE}\n\n"
    )
    start = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    reads = [
        f"== Physical Plan ==\nBatchScan {each}.accounts (1)\n\n\n(1) BatchScan {each}.accounts\nOutput: []\n\n"
        for each in known
    ]
    events = [
        {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.sql.warehouse.dir": "file:/wh"}},
        *(
            {"Event": start, "executionId": number, "time": 1000, "physicalPlanDescription": text}
            for number, text in enumerate([*reads, plan])
        ),
        *(
            {
                "Event": "SparkListenerJobStart",
                "Job ID": 1,
                "Properties": {"spark.sql.execution.id": str(len(reads)), "spark.job.description": each},
            }
            for each in descriptions
        ),
    ]
    reader = EventLogReader()
    for event in events:
        assert list(reader.add(json.dumps(event, separators=(",", ":")).encode())) == []
    *_, execution = reader.finish()
    return execution


def test_a_merge_writes_the_table_that_its_job_commits_to() -> None:
    execution = merged("HoodieWriteHelper:Tagging: accounts", *["SparkRDDWriteClient:Committing stats: accounts"] * 2)
    (output,) = execution.outputs
    assert (output.dataset.name, output.schema, execution.unread) == ("/wh/accounts", (), ())
    assert [one.dataset.name for one in execution.inputs] == ["/wh/accounts"]
    assert edges(output) == {
        ("id", "/wh/accounts", "id", "IDENTITY"),
        ("ts", "/wh/accounts", "ts", "IDENTITY"),
        ("balance", "/wh/accounts", "balance", "IDENTITY"),
        ("balance", "/wh/accounts", "balance", "TRANSFORMATION"),
        ("balance", "/wh/accounts", "balance", "CONDITIONAL"),
        (None, "/wh/accounts", "id", "JOIN"),
        (None, "/wh/accounts", "balance", "FILTER"),
    }


@pytest.mark.parametrize("known", [(), ("default", "other")])
def test_a_merge_into_a_table_whose_database_is_not_known_names_none(known) -> None:
    execution = merged("SparkRDDWriteClient:Committing stats: accounts", known=known)
    assert (execution.outputs, execution.unread) == ((), ("MergeIntoHoodieTableCommand",))


def test_a_column_of_the_users_that_is_named_like_metadata_keeps_its_place() -> None:
    relation = "Relation spark_catalog.default.t[_hoodie_commit_time#7,id#8,_partition#9,v#10L] x.Relation@1f"
    content = inserted(f"{relation}, false", ("a", "x"))
    (output,) = content.outputs
    assert {(column, field) for column, _, field, _ in output.edges} == {("id", "a"), ("_partition", "x")}
