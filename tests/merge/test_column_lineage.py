"""Column lineage through intermediates (M7), and which inputs fed which output (M8), on made-up programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from spark_lineage.merge.lineage import DatasetLineage, TaskLineage


def output(lineage: TaskLineage, name: str) -> DatasetLineage:
    return next(one for one in lineage.outputs if one.dataset.name == name)


def edges(lineage: TaskLineage, name: str) -> set[tuple[str, str, str, str, str]]:
    """Give (column or *, input, input column, type, subtype)."""
    made = output(lineage, name).column_lineage
    if made is None:
        return set()
    return {
        (column, source.dataset.name, source.field, how.type, how.subtype)
        for column, sources in (*made.fields, ("*", made.dataset))
        for source in sources
        for how in source.transformations
    }


def fed_by(lineage: TaskLineage, name: str) -> list[str]:
    return [source.name for source in output(lineage, name).fed_by]


class TestComposition:
    def test_edges_lead_through_what_the_task_made(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b", rows=1, edges={"key": ("/a", "id")})])
        program.run(["/b"], [make_dataset("/c", rows=1, edges={"total": ("/b", "key", "DIRECT", "AGGREGATION")})])
        lineage = program.lineage()
        assert edges(lineage, "/c") == {("total", "/a", "id", "DIRECT", "AGGREGATION")}
        assert fed_by(lineage, "/c") == ["/a"]

    def test_a_filter_of_an_intermediate_reaches_all_that_is_made_from_it(
        self, program: Any, make_dataset: Any
    ) -> None:
        made = make_dataset("/b", rows=1, edges={"key": ("/a", "id")}, whole=(("/a", "day", "INDIRECT", "FILTER"),))
        program.run(["/a"], [made])
        program.run(["/b"], [make_dataset("/counts", rows=1)])
        program.run(["/b"], [make_dataset("/c", rows=1, edges={"key": ("/b", "key")})])
        lineage = program.lineage()
        assert edges(lineage, "/counts") == {("*", "/a", "day", "INDIRECT", "FILTER")}
        assert edges(lineage, "/c") == {
            ("key", "/a", "id", "DIRECT", "IDENTITY"),
            ("*", "/a", "day", "INDIRECT", "FILTER"),
        }

    @pytest.mark.parametrize(("columns", "found"), [(("ID", "id"), set()), (("id",), {"/a"})])
    def test_column_of_another_case_is_the_same_one_unless_the_table_has_both(
        self, columns: tuple[str, ...], found: set[str], program: Any, make_dataset: Any
    ) -> None:
        program.run(["/a"], [make_dataset("/b", rows=1, columns=columns, edges={"id": ("/a", "id")})])
        program.run(["/b"], [make_dataset("/c", rows=1, columns=("ID",), edges={"ID": ("/b", "ID")})])
        assert {source for _, source, *_ in edges(program.lineage(), "/c")} == found

    def test_a_direct_label_on_the_whole_means_indirect(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b", rows=1, whole=(("/a", "id"),))])
        program.run(["/b"], [make_dataset("/c", rows=1)])
        assert edges(program.lineage(), "/c") == {("*", "/a", "id", "INDIRECT", "UNKNOWN")}

    def test_a_column_that_filters_by_an_aggregate_of_an_intermediate_is_indirect(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run(["/a"], [make_dataset("/b", rows=1, edges={"n": ("/a", "id", "DIRECT", "AGGREGATION")})])
        program.run(["/b"], [make_dataset("/c", rows=1, whole=(("/b", "n", "INDIRECT", "FILTER"),))])
        assert edges(program.lineage(), "/c") == {("*", "/a", "id", "INDIRECT", "FILTER")}

    def test_names_of_columns_that_differ_in_case_are_one_column(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b", rows=1, edges={"Key": ("/a", "id")})])
        program.run(["/b"], [make_dataset("/c", rows=1, edges={"key": ("/b", "KEY")})])
        assert edges(program.lineage(), "/c") == {("key", "/a", "id", "DIRECT", "IDENTITY")}

    def test_a_column_of_an_intermediate_that_comes_from_nothing_leads_nowhere(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run(["/a"], [make_dataset("/b", rows=1, edges={"key": ("/a", "id")})])
        program.run(["/b"], [make_dataset("/c", rows=1, edges={"made": ("/b", "constant")})])
        assert edges(program.lineage(), "/c") == set()

    def test_an_overwrite_forgets_what_the_former_content_came_from(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/c", rows=1, edges={"x": ("/a", "id")})])
        program.run(["/b"], [make_dataset("/c", rows=1, lifecycle="OVERWRITE", edges={"y": ("/b", "id")})])
        program.run(["/d"], [make_dataset("/c", rows=1, edges={"y": ("/d", "id")})])
        lineage = program.lineage()
        assert {edge[:3] for edge in edges(lineage, "/c")} == {("y", "/b", "id"), ("y", "/d", "id")}
        assert fed_by(lineage, "/c") == ["/b", "/d"]

    def test_what_was_made_before_an_overwrite_keeps_its_edges(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/t", rows=1, edges={"x": ("/a", "id")})])
        program.run(["/t"], [make_dataset("/c", rows=1, edges={"x": ("/t", "x")})])
        program.run(["/b"], [make_dataset("/t", rows=1, lifecycle="OVERWRITE", edges={"x": ("/b", "id")})])
        assert {edge[:3] for edge in edges(program.lineage(), "/c")} == {("x", "/a", "id")}


class TestOwnColumns:
    """Targets that were there and are read and written."""

    def test_an_overwrite_through_staging_leads_back_to_the_former_content(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run(["/t", "/u"], [make_dataset("/s", rows=1, edges={"x": ("/t", "x"), "y": ("/u", "y")})])
        swapped = make_dataset("/t", rows=1, lifecycle="OVERWRITE", edges={"x": ("/s", "x"), "y": ("/s", "y")})
        program.run(["/s"], [swapped])
        lineage = program.lineage()
        assert {edge[:3] for edge in edges(lineage, "/t")} == {("x", "/t", "x"), ("y", "/u", "y")}
        assert fed_by(lineage, "/t") == ["/t", "/u"]

    def test_a_merge_into_what_was_there_keeps_its_columns(self, program: Any, make_dataset: Any) -> None:
        merged = make_dataset("/t", rows=1, edges={"x": ("/t", "x"), "y": ("/u", "y")})
        program.run(["/u"], [merged], node="execute_merge_into_command")
        lineage = program.lineage()
        assert [one.dataset.name for one in lineage.inputs] == ["/t", "/u"]
        assert {edge[:3] for edge in edges(lineage, "/t")} == {("x", "/t", "x"), ("y", "/u", "y")}

    def test_a_merge_into_what_the_task_made_leads_to_what_that_was_made_from(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run(["/a"], [make_dataset("/t", rows=1, edges={"x": ("/a", "id")})])
        merged = make_dataset("/t", rows=1, edges={"x": ("/t", "x"), "y": ("/u", "y")})
        program.run(["/u"], [merged], node="execute_merge_into_command")
        lineage = program.lineage()
        assert [one.dataset.name for one in lineage.inputs] == ["/a", "/u"]
        assert {edge[:3] for edge in edges(lineage, "/t")} == {("x", "/a", "id"), ("y", "/u", "y")}

    def test_a_renamed_table_that_was_there_is_still_a_source(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/new", table="new", lifecycle="RENAME", previous="/wh/old")])
        program.run(["/wh/new"], [make_dataset("/c", rows=1, edges={"x": ("/wh/new", "x")})])
        lineage = program.lineage()
        assert [one.dataset.name for one in lineage.inputs] == ["/wh/new"]
        assert {edge[:3] for edge in edges(lineage, "/c")} == {("x", "/wh/new", "x")}

    def test_a_truncated_table_is_no_source(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/t", table="t", lifecycle="TRUNCATE")], node="execute_truncate_table_command")
        program.run(["/wh/t"], [make_dataset("/c", rows=0, edges={"x": ("/wh/t", "x")})])
        lineage = program.lineage()
        assert lineage.inputs == ()
        assert edges(lineage, "/c") == set()


class TestEvidenceOfReading:
    def test_what_column_lineage_names_was_read(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/c", rows=1, edges={"x": ("/lost", "id")})])
        lineage = program.lineage()
        assert [(one.dataset.name, [field.name for field in one.schema]) for one in lineage.inputs] == [
            ("/lost", ["id"])
        ]

    def test_an_input_has_the_columns_that_are_referred_to(self, program: Any, make_dataset: Any) -> None:
        read = make_dataset("/a", columns=("id",))
        program.run([read], [make_dataset("/c", rows=1, edges={"x": ("/a", "id"), "y": ("/a", "hidden")})])
        (found,) = program.lineage().inputs
        assert [(field.name, field.type) for field in found.schema] == [("id", "int"), ("hidden", None)]


class TestExactEdges:
    """M8."""

    def test_outputs_know_their_own_inputs_only(self, program: Any) -> None:
        program.run(["/a"], ["/x"])
        program.run(["/b", "/c"], ["/y"])
        program.run(["/x", "/c"], ["/z"])
        lineage = program.lineage()
        assert [fed_by(lineage, name) for name in ("/x", "/y", "/z")] == [["/a"], ["/b", "/c"], ["/a", "/c"]]

    def test_what_nothing_fed_knows_that(self, program: Any) -> None:
        program.run([], ["/x"])
        assert fed_by(program.lineage(), "/x") == []

    def test_noise_feeds_nothing(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("/data", columns=()), "/data/a"], ["/x"])
        assert fed_by(program.lineage(), "/x") == ["/data/a"]


class TestCtas:
    """A command whose inner run tells the same write."""

    def test_the_outer_run_adds_no_edges(self, program: Any, make_dataset: Any) -> None:
        told = {"rows": 3, "edges": {"v": ("/wh/t", "w"), "w": ("/a", "id")}}
        with program.running(
            ["/a", "/wh/t"],
            [make_dataset("/wh/t", table="t", lifecycle="OVERWRITE", **told)],
            node="atomic_replace_table_as_select",
        ):
            program.run(["/a", "/wh/t"], [make_dataset("/wh/t", table="t", **told)], node="append_data")
        lineage = program.lineage()
        assert {edge[:3] for edge in edges(lineage, "/wh/t")} == {("v", "/wh/t", "w"), ("w", "/a", "id")}
        assert output(lineage, "/wh/t").statistics is not None
        assert output(lineage, "/wh/t").statistics.row_count == 3  # type: ignore[union-attr]

    def test_a_replacement_forgets_what_the_task_had_put_there(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/wh/t", table="t", rows=5, edges={"x": ("/a", "id")})])
        with program.running(
            ["/b"], [make_dataset("/wh/t", table="t", lifecycle="OVERWRITE")], node="atomic_replace_table_as_select"
        ):
            inner = make_dataset("/wh/t", table="t", rows=2, edges={"y": ("/b", "id")})
            program.run(["/b"], [inner], node="append_data")
        replaced = output(program.lineage(), "/wh/t")
        assert replaced.statistics is not None
        assert replaced.statistics.row_count == 2
        assert {edge[:3] for edge in edges(program.lineage(), "/wh/t")} == {("y", "/b", "id")}
        assert [name.name for name in replaced.fed_by] == ["/b"]
        assert [write.operation for write in replaced.writes] == ["OVERWRITE"]

    def test_the_outer_run_fills_what_the_inner_one_left_open(self, program: Any, make_dataset: Any) -> None:
        outer = make_dataset("/wh/t", table="t", rows=2, lifecycle="CREATE", edges={"y": ("/b", "id")})
        with program.running(["/b"], [outer], node="atomic_create_table_as_select"):
            program.run([], [make_dataset("/wh/t", table="t")], node="append_data")
        lineage = program.lineage()
        assert {edge[:3] for edge in edges(lineage, "/wh/t")} == {("y", "/b", "id")}
        assert fed_by(lineage, "/wh/t") == ["/b"]
        assert output(lineage, "/wh/t").statistics is not None


class TestStreaming:
    def test_micro_batches_are_one_and_their_rows_sum_up(self, program: Any, make_dataset: Any) -> None:
        for rows in (3, 4):
            read = make_dataset("/in") | {"inputFacets": {"inputStatistics": {"rowCount": rows, "fileCount": 1}}}
            program.run(
                [read], [make_dataset("/out", rows=rows)], node="write_to_data_source_v2", processing="STREAMING"
            )
        lineage = program.lineage()
        (read_in,), (written,) = lineage.inputs, lineage.outputs
        assert read_in.statistics is not None
        assert written.statistics is not None
        assert (read_in.statistics.row_count, read_in.statistics.file_count) == (7, 2)
        assert written.statistics.row_count == 7

    def test_what_foreach_batch_writes_is_fed_by_its_query(self, program: Any) -> None:
        with program.running(["/in"], node="columnar_to_row", processing="STREAMING"):
            program.run([], ["/out"])
        program.run([], ["/other"])
        lineage = program.lineage()
        assert fed_by(lineage, "/out") == ["/in"]
        assert fed_by(lineage, "/other") == []

    def test_nothing_is_guessed_between_two_queries_at_once(self, program: Any) -> None:
        with (
            program.running(["/a"], node="columnar_to_row", processing="STREAMING"),
            program.running(["/b"], node="columnar_to_row", processing="STREAMING"),
        ):
            program.run([], ["/out"])
        assert fed_by(program.lineage(), "/out") == []


@pytest.mark.parametrize(("inputs", "columns"), [(["/a"], ["id"]), (["/b"], []), ([], [])])
def test_outer_command_without_its_start_keeps_edges_of_a_write_with_its_inputs(
    program: Any, make_dataset: Any, inputs: list[str], columns: list[str]
) -> None:
    """A breaker or a busy driver may leave out the START of a run."""
    edges = {"id": ("/a", "id")}
    program.run(["/a"], [make_dataset("/out", rows=1, lifecycle="OVERWRITE", edges=edges)], types=("COMPLETE",))
    outer = make_dataset("/out", rows=1, lifecycle="OVERWRITE")
    program.run(inputs, [outer], node="execute_insert_into_data_source_dir_command", types=("COMPLETE",))
    (output,) = program.lineage().outputs
    fields = () if output.column_lineage is None else output.column_lineage.fields
    assert [column for column, _ in fields] == columns


def test_run_without_its_start_begins_as_the_log_says(program: Any, make_dataset: Any) -> None:
    edges = {"id": ("/a", "id")}
    program.run(["/a"], [make_dataset("/out", rows=1, lifecycle="OVERWRITE", edges=edges)], types=("COMPLETE",))
    outer = make_dataset("/out", rows=1, lifecycle="OVERWRITE")
    run_id = program.run([], [outer], node="execute_insert_into_data_source_dir_command", types=("COMPLETE",))
    program.log(run_id, command="InsertIntoDataSourceDirCommand", started=datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    (output,) = program.lineage().outputs
    assert output.column_lineage is not None
    assert [column for column, _ in output.column_lineage.fields] == ["id"]
