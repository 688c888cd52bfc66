"""What streaming queries read, by one name each, while they run and at their end, and the columns of their outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_lineage.merge.lineage import SchemaField, Statistics, TaskLineage, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import LineageState
from spark_lineage.naming.identity import DatasetName

if TYPE_CHECKING:
    import pytest

COPY, CHANGE = Transformation("DIRECT", "IDENTITY"), Transformation("DIRECT", "TRANSFORMATION")


def at(path: str, **told: Any) -> Observed:
    return Observed(DatasetName("file", path), **told)


def inputs(lineage: TaskLineage) -> list[str]:
    return [one.dataset.name for one in lineage.inputs]


def outputs(lineage: TaskLineage) -> list[str]:
    return [one.dataset.name for one in lineage.outputs]


class TestDirectories:
    def test_without_a_log_a_batch_of_many_files_tells_the_directory_of_all_others(self, program: Any) -> None:
        for read in ("/in/1.csv", "/in", "/in/day=1/3.csv"):
            program.run([read, "/pages.csv"], node="project", processing="STREAMING")
        assert inputs(program.lineage()) == ["/in", "/pages.csv"]

    def test_a_batch_that_the_log_lacks_is_of_a_directory_that_some_query_reads(self, program: Any) -> None:
        told = program.run(["/in/1.csv"], node="project", processing="STREAMING")
        program.log(told, query_id="q", inputs=(at("/in"),), outputs=(at("/out"),))
        program.run(["/in/2.csv"], node="project", processing="STREAMING")
        assert inputs(program.lineage()) == ["/in"]

    def test_each_query_reads_its_own_directory(self, program: Any) -> None:
        for query_id, read, source in (("q", "/in/1.csv", "/in"), ("r", "/in/late/2.csv", "/in/late")):
            run_id = program.run([read], node="project", processing="STREAMING")
            program.log(run_id, query_id=query_id, inputs=(at(source),), outputs=(at(f"/{query_id}"),))
        lineage = program.lineage()
        assert inputs(lineage) == ["/in", "/in/late"]
        assert [[fed.name for fed in one.fed_by] for one in lineage.outputs] == [["/in"], ["/in/late"]]

    def test_what_a_function_of_a_batch_reads_is_the_directory_of_the_query(self, program: Any) -> None:
        with program.running(["/in/day=1/1.csv"], node="project", processing="STREAMING") as batch:
            inner = program.run(["/in/day=1", "/pages.csv"], ["/out"])
        program.log(batch, query_id="q", inputs=(at("/in"),))
        program.log(inner, query_id="q", root_execution_id=0, outputs=(at("/out"),))
        assert inputs(program.lineage()) == ["/in", "/pages.csv"]

    def test_a_function_of_a_batch_that_nobody_tells_of_reads_what_it_says(self, program: Any) -> None:
        inner = program.run(["/in/late"], ["/out"])
        program.log(inner, query_id="q", outputs=(at("/out"),))
        program.run([], node="project", processing="STREAMING")
        assert inputs(program.lineage()) == ["/in/late"]


def test_files_that_a_stream_reads_count_once_a_query_however_often_a_batch_says_so(program: Any) -> None:
    def read(path: str) -> dict[str, Any]:
        statistics = {"size": 10, "fileCount": 1}
        return {"namespace": "file", "name": path, "inputFacets": {"inputStatistics": statistics}}

    for number, query_id in ((0, "q"), (2, "q"), (4, "r")):
        with program.running([read("/in")], node="project", processing="STREAMING") as batch:
            inner = program.run([read("/in")], node="project", processing="STREAMING")
        program.log(batch, execution_id=number, root_execution_id=number, query_id=query_id, inputs=(at("/in"),))
        program.log(inner, execution_id=number + 1, root_execution_id=number, query_id=query_id, inputs=(at("/in"),))
    (one,) = program.lineage().inputs
    assert one.statistics == Statistics(None, 20, 2)


class TestWhileItRuns:
    def test_what_the_log_is_going_to_tell_is_not_told_before_by_other_names(self, program: Any) -> None:
        program.run(["/before.csv"], ["/before"])
        assert inputs(program.lineage(is_logged=True)) == ["/before.csv"]
        batch = program.run(["/in/1.csv"], node="project", processing="STREAMING")
        program.run(["/declared.csv"], kind="DECLARED")
        assert inputs(program.lineage(is_logged=True)) == ["/declared.csv"]
        program.log(batch, query_id="q", inputs=(at("/in"),), outputs=(at("/out"),))
        lineage = program.lineage(is_logged=True)
        assert (inputs(lineage), outputs(lineage)) == (["/declared.csv", "/in"], ["/out"])
        assert lineage.is_streaming
        assert inputs(program.lineage()) == ["/before.csv", "/declared.csv", "/in"]

    def test_where_no_log_is_going_to_tell_the_listener_is_believed(self, program: Any) -> None:
        program.run(["/in/1.csv"], node="project", processing="STREAMING", types=("START",))
        assert inputs(program.lineage()) == ["/in/1.csv"]


class TestColumns:
    def sink(self, *columns: str) -> Observed:
        read = DatasetName("file", "/in")
        edges = {("id", read, "id", COPY), ("twice", read, "id", CHANGE), ("other", read, "gone", COPY)}
        return at("/out", schema=tuple(map(SchemaField, columns)), edges=frozenset(edges))

    def test_a_file_sink_has_columns_with_the_types_of_what_they_are_copies_of(self, program: Any) -> None:
        batch = program.run(["/in"], node="project", processing="STREAMING")
        sink = self.sink("id", "twice", "other", "literal")
        program.log(batch, query_id="q", inputs=(at("/in"),), outputs=(sink,))
        (output,) = program.lineage().outputs
        assert [(field.name, field.type) for field in output.schema] == [
            ("id", "int"),
            ("twice", None),
            ("other", None),
            ("literal", None),
        ]

    def test_columns_without_types_hide_none_with_types(self, program: Any) -> None:
        program.run(["/in"], ["/out"])
        batch = program.run(["/in"], node="project", processing="STREAMING")
        program.log(batch, query_id="q", inputs=(at("/in"),), outputs=(self.sink("id", "twice"),))
        schema = {field.name: field.type for field in program.lineage().outputs[0].schema}
        # Those that the lineage names besides have no type.
        assert schema == {"id": "int", "other": None, "twice": None}


def test_what_batches_read_and_write_is_shared_as_long_as_there_is_room(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = LineageState()
    monkeypatch.setattr("spark_lineage.merge.state._SHARED_MAX", 6)
    for number in range(6):
        program.log(query_id="q", inputs=(at("/in"),), outputs=(at("/out"),))
        state.add_execution(program.executions[-1])
        program.log(inputs=(at(f"/{number}"),))
        state.add_execution(program.executions[-1])
    assert len({one.inputs for one in state.executions.values()}) == 7
    batches = [one for one in state.executions.values() if one.query_id]
    assert len({id(one.inputs) for one in batches}) < len(batches) == 6
