"""What the merge counts: leaves and writes that neither source names, ends that are missing, and columns that are."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.accounting import PlanPart
from spark_lineage.merge.execution import Execution, join_executions
from spark_lineage.merge.lineage import IDENTITY, SchemaField, TaskLineage
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

ORDERS, T = DatasetName("file", "/lake/orders.csv"), DatasetName("file", "/t")
SCAN = PlanPart("Scan csv", "input", ("file:/lake/orders.csv",))
PRICES = PlanPart("BatchScan prices", "input", ("prices",))
RELATION = PlanPart("Scan PriceRelation(7)", "input")
APPEND = PlanPart("AppendData ledger", "output")
RENAMED = PlanPart("AlterTable: the column that it renames", "listener")


def unread(lineage: TaskLineage) -> dict[str, int]:
    return {one.part: one.count for one in lineage.unread}


def unknown(lineage: TaskLineage) -> dict[str, int]:
    return {one.command: one.count for one in lineage.unknown}


def test_leaf_and_write_of_the_log_alone_are_counted(program: Any) -> None:
    for _ in range(2):
        program.log(command="AppendData", inputs=(Observed(ORDERS),), unnamed=(PRICES, APPEND))
    lineage = program.lineage()
    assert (unread(lineage), unknown(lineage)) == ({"BatchScan prices": 2}, {"AppendData ledger to an unknown sink": 2})


def test_leaf_and_write_that_the_listener_names_are_not_counted(program: Any) -> None:
    run_id = program.run(["/lake/orders.csv"], ["/t"], node="append_data_ledger.ledger")
    program.log(run_id, command="AppendData", unnamed=(SCAN, APPEND))
    lineage = program.lineage()
    assert (unread(lineage), unknown(lineage)) == ({}, {})


def test_write_that_the_listener_does_not_name_is_counted(program: Any) -> None:
    run_id = program.run(["/lake/orders.csv"], [], node="append_data_ledger.ledger")
    program.log(run_id, command="AppendData", unnamed=(APPEND,))
    assert unknown(program.lineage()) == {"AppendData ledger to an unknown sink": 1}


@pytest.mark.parametrize(
    ("node", "inputs", "is_counted"),
    [
        ("append_data_ledger.ledger", ["/lake/orders.csv"], True),
        ("execute_save_into_data_source_command.a_b", ["/lake/orders.csv"], True),
        ("append_data", [], False),
        ("overwrite_by_expression_noop_table", ["/lake/orders.csv"], False),
        ("collect_limit", ["/lake/orders.csv"], False),
    ],
)
def test_run_of_the_listener_alone_that_writes_what_it_reads_is_counted(
    program: Any, node: str, inputs: list[str], is_counted: bool
) -> None:
    program.run(inputs, [], node=node)
    assert unknown(program.lineage()) == ({f"app.{node}": 1} if is_counted else {})


def test_leaf_that_only_the_root_execution_names_is_not_counted(program: Any) -> None:
    program.log(command="MergeIntoCommand", inputs=(Observed(ORDERS),), outputs=(_copied(),))
    program.log(root_execution_id=0, unnamed=(SCAN,))
    assert unread(program.lineage()) == {}


@pytest.mark.parametrize("listened", [["/lake/orders.csv"], ["/lake/orders.csv", "/prices"]])
def test_leaf_of_which_only_the_node_is_known_needs_a_dataset_of_its_own(program: Any, listened: list[str]) -> None:
    run_id = program.run(listened, ["/t"])
    program.log(run_id, inputs=(Observed(ORDERS),), unnamed=(RELATION,))
    is_named = "/prices" in listened
    assert unread(program.lineage()) == {f"Scan PriceRelation(7){': its columns' if is_named else ''}": 1}


def test_columns_of_a_leaf_that_only_the_listener_names_are_counted_unless_it_has_edges(program: Any) -> None:
    topic = PlanPart("MicroBatchScan KafkaScan", "input")
    run_id = program.run(["/topic"], [])
    program.log(run_id, outputs=(Observed(T),), unnamed=(topic,))
    assert unread(program.lineage()) == {"MicroBatchScan KafkaScan: its columns": 1}
    edges = frozenset({("x", DatasetName("file", "/topic"), "value", IDENTITY)})
    program.executions.clear()
    program.log(run_id, outputs=(Observed(T, edges=edges),), unnamed=(topic,))
    assert unread(program.lineage()) == {}


def test_part_that_only_the_listener_may_know_is_counted_with_the_log_alone(program: Any) -> None:
    program.log(command="AlterTable", outputs=(Observed(T),), unnamed=(RENAMED,))
    assert unread(program.lineage()) == {RENAMED.name: 1}


@pytest.mark.parametrize(("after", "counted"), [("name", {}), ("nm", {RENAMED.name: 1})])
def test_part_that_the_listener_knows_is_not_counted(
    program: Any, make_dataset: Any, after: str, counted: dict[str, int]
) -> None:
    before, now = (make_dataset("/t", columns=(column,), lifecycle="ALTER") for column in ("nm", after))
    run_id = program.run([], [before], node="alter_table")
    program.events[-1]["outputs"] = [now]
    program.log(run_id, command="AlterTable", unnamed=(RENAMED,))
    assert unread(program.lineage()) == counted


def test_table_whose_database_is_counted_is_not_counted_again(program: Any) -> None:
    scan = PlanPart("Scan JDBCRelation(ORDERS)", "input", ("ORDERS",))
    program.log(inputs=(Observed(DatasetName("", "ORDERS")),), unnamed=(scan,))
    assert unread(program.lineage()) == {"ORDERS: its database": 1}


class TestEnds:
    def test_execution_whose_end_nobody_saw_is_counted_if_the_task_succeeded(self, program: Any) -> None:
        program.log(command="AppendData", outputs=(Observed(T),), ended=None, is_failed=None)
        assert unread(program.lineage()) == {"AppendData: its end": 1}
        assert unread(program.lineage(exit_code=1)) == {}
        assert unread(program.lineage(is_logged=True)) == {}

    def test_execution_whose_end_the_listener_saw_is_not_counted(self, program: Any) -> None:
        run_id = program.run([], ["/t"])
        program.log(run_id, outputs=(Observed(T),), ended=None, is_failed=None)
        assert unread(program.lineage()) == {}

    def test_job_of_an_rdd_has_no_end_to_miss(self, program: Any) -> None:
        program.log(execution_id=-3, inputs=(Observed(ORDERS),), ended=None, is_failed=None)
        assert unread(program.lineage()) == {}


def _copied(*columns: str, schema: tuple[str, ...] = ("x",)) -> Observed:
    edges = frozenset((column, T, column, IDENTITY) for column in columns or schema)
    return Observed(T, schema=tuple(map(SchemaField, schema)), edges=edges)


@pytest.mark.parametrize(
    ("output", "is_counted"), [(Observed(T), True), (_copied("x", schema=("x", "y")), True), (_copied(), False)]
)
def test_rows_that_a_command_leaves_are_counted_unless_their_columns_are_known(
    program: Any, output: Observed, is_counted: bool
) -> None:
    program.log(command="RestoreTableCommand", outputs=(output,))
    assert ("RestoreTableCommand: the columns that it leaves" in unread(program.lineage())) == is_counted


def test_write_with_mode_ignore_that_ran_a_job_is_in_doubt_with_the_log_alone(program: Any) -> None:
    run_id = program.run([], ["/t"])
    for each in (run_id, None):
        program.log(each, command="InsertIntoX", mode="Ignore", has_jobs=True, outputs=(Observed(T),))
    assert unread(program.lineage()) == {"InsertIntoX: whether it wrote": 1}


def test_parts_of_two_observations_are_joined_in_any_order() -> None:
    first, second = (Execution("a", 1, 1, 0.0, unnamed=(part,)) for part in (SCAN, APPEND))
    assert join_executions(first, second) == join_executions(second, first)
    assert set(join_executions(first, second).unnamed) == {SCAN, APPEND}
