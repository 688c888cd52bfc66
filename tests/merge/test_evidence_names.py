"""By which names the event log and the listener mean the same dataset, on made-up programs."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.lineage import SchemaField, Symlink, TaskLineage, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

COPY = Transformation("DIRECT", "IDENTITY")


def file(name: str) -> DatasetName:
    return DatasetName("file", name)


def names(datasets: Any) -> list[str]:
    return [one.dataset.name for one in datasets]


def edges(lineage: TaskLineage) -> dict[str, list[str]]:
    """Edges of the only output: column to the paths and columns that it comes from."""
    (written,) = lineage.outputs
    assert written.column_lineage is not None
    return {
        column: [f"{source.dataset.name}.{source.field}" for source in sources]
        for column, sources in written.column_lineage.fields
    }


def cut(observed: dict[str, Any], path: str, *, is_output: bool = False) -> dict[str, Any]:
    """Return a dataset as the listener does when it cut folders from its path."""
    part = "output" if is_output else "input"
    facets = observed.setdefault(f"{part}Facets", {})
    facets["subset"] = {f"{part}Condition": {"type": "location", "locations": [path]}}
    return observed


class TestCutPaths:
    """The listener takes each folder with a `=` for a partition; its facet `subset` has the whole path."""

    ODD = "/in/a=b#c"

    def test_a_folder_that_no_engine_writes_for_a_partition_is_a_dataset(self, program: Any, make_dataset: Any) -> None:
        read = cut(make_dataset("/in", columns=("id", "v")), self.ODD)
        program.run([read], [cut(make_dataset("/out", rows=2, edges={"v": ("/in", "v")}), "/out/=1", is_output=True)])
        lineage = program.lineage()
        assert (names(lineage.inputs), names(lineage.outputs)) == ([self.ODD], ["/out/=1"])
        assert edges(lineage) == {"v": [f"{self.ODD}.v"]}

    def test_a_partition_stays_cut(self, program: Any, make_dataset: Any) -> None:
        read = cut(make_dataset("/in", columns=("id", "v")), "/in/ds=1")
        program.run([read], [make_dataset("/out", rows=2, edges={"v": ("/in", "v")})])
        assert names(program.lineage().inputs) == ["/in"]

    @pytest.mark.parametrize(("name", "path"), [("/in/t", "/in/v1/t/ds=1"), ("/in", "/in/v1/ds=1"), ("/in", "/v1/in")])
    def test_a_name_that_the_users_option_made_shorter_stays(
        self, program: Any, make_dataset: Any, name: str, path: str
    ) -> None:
        """The facet has the path before ``spark.openlineage.dataset.removePath.pattern``."""
        read = cut(make_dataset(name, columns=("id", "v")), path)
        program.run([read], [make_dataset("/out", rows=2, edges={"v": (name, "v")})])
        lineage = program.lineage()
        assert names(lineage.inputs) == [name]
        assert edges(lineage) == {"v": [f"{name}.v"]}

    def test_what_looks_like_a_glob_is_a_folder_where_a_plan_names_it(self, program: Any, make_dataset: Any) -> None:
        """A program writes to no glob, and a plan has what one stands for; the listener cuts it at its ``=``."""
        written = cut(make_dataset("/out", rows=1, edges={"id": ("/in", "id")}), "/out/o?y=2", is_output=True)
        program.run([cut(make_dataset("/in"), "/in/o?x=1")], [written])
        rows = make_dataset("/in/o?x=1", columns=())
        program.run([rows], ["/out/{a,b}"], kind="RDD_JOB", node="map_partitions_file_scan")
        program.log(outputs=(Observed(file("/out/[12]")),), has_jobs=True)
        lineage = program.lineage()
        assert names(lineage.inputs) == ["/in/o?x=1"]
        assert names(lineage.outputs) == ["/out/[12]", "/out/o?y=2", "/out/{a,b}"]

    @pytest.mark.parametrize(
        "how",
        [
            {"kind": "RDD_JOB", "node": "python_map_partitions_hadoop"},
            {"kind": "DECLARED"},
            {"node": "execute_load_data_command"},
        ],
    )
    def test_a_glob_is_one_where_the_program_gave_it(self, program: Any, how: dict[str, str]) -> None:
        program.run(["/in/*.csv"], ["/out"], **how)
        assert names(program.lineage().inputs) == ["/in"]

    def test_a_glob_of_an_rdd_that_only_a_log_tells_of_is_one(self, program: Any) -> None:
        program.log(execution_id=-1, root_execution_id=-1, inputs=(Observed(file("/in/*.csv")),))
        assert names(program.lineage().inputs) == ["/in"]

    def test_a_column_of_one_of_several_folders_is_of_the_folder_around_them(
        self, program: Any, make_dataset: Any
    ) -> None:
        reads = [cut(make_dataset("/in"), self.ODD), make_dataset("/in/x")]
        program.run(reads, [make_dataset("/out", rows=2, edges={"v": ("/in", "v")})])
        assert edges(program.lineage()) == {"v": ["/in.v"]}


class TestRelativePaths:
    def run(self, program: Any, make_dataset: Any) -> Any:
        return program.run(
            [make_dataset("in/a", columns=("id", "v"))], [make_dataset("out", rows=2, edges={"v": ("in/a", "v")})]
        )

    def test_without_a_log_they_stay_as_they_are(self, program: Any, make_dataset: Any) -> None:
        self.run(program, make_dataset)
        lineage = program.lineage()
        assert (names(lineage.inputs), names(lineage.outputs)) == (["in/a"], ["out"])

    def test_they_become_the_partitions_that_the_log_has_for_them(self, program: Any, make_dataset: Any) -> None:
        for version in ("v1", "v2"):
            run_id = program.run(["/in"], [make_dataset("out/t", rows=1)], node="execute_save_into_data_source_command")
            written = Observed(DatasetName("file", "/data/out/t", version))
            program.log(run_id, inputs=(Observed(file("/in")),), outputs=(written,))
        lineage = program.lineage()
        assert (names(lineage.inputs), names(lineage.outputs)) == (["/in"], ["/data/out/t"])

    def test_they_become_what_the_log_has_for_them(self, program: Any, make_dataset: Any) -> None:
        run_id = self.run(program, make_dataset)
        logged = Observed(file("/data/out"), edges=frozenset({("id", file("/data/in/a"), "id", COPY)}))
        program.log(run_id, inputs=(Observed(file("/data/in/a")),), outputs=(logged,))
        lineage = program.lineage()
        assert (names(lineage.inputs), names(lineage.outputs)) == (["/data/in/a"], ["/data/out"])
        assert edges(lineage) == {"id": ["/data/in/a.id"], "v": ["/data/in/a.v"]}

    def test_they_stay_where_several_paths_end_alike(self, program: Any, make_dataset: Any) -> None:
        run_id = self.run(program, make_dataset)
        program.log(run_id, outputs=(Observed(file("/data/out")),))
        program.log(inputs=(Observed(file("/other/out")),))
        assert names(program.lineage().outputs) == ["out"]

    def test_the_end_of_a_folders_name_is_no_path(self, program: Any, make_dataset: Any) -> None:
        run_id = self.run(program, make_dataset)
        program.log(run_id, outputs=(Observed(file("/data/checkout")),))
        assert names(program.lineage().outputs) == ["out"]

    def test_other_datasets_of_the_program_are_left_alone(self, program: Any, make_dataset: Any) -> None:
        run_id = self.run(program, make_dataset)
        program.run(["/x"], ["/y"])
        program.log(run_id, outputs=(Observed(file("/data/out")),))
        lineage = program.lineage()
        assert (names(lineage.inputs), names(lineage.outputs)) == (["/x", "in/a"], ["/data/out", "/y"])


class TestHiveTables:
    """A plan names them as if they were in the warehouse; the listener knows where they are."""

    PLANNED = Observed(file("/wh/db.db/t"), symlinks=frozenset({Symlink("file:/wh", "db.t", "TABLE")}))

    def run(self, program: Any, read: Any, logged: Observed) -> TaskLineage:
        run_id = program.run([read], ["/out"])
        copied = Observed(file("/out"), edges=frozenset({("x", logged.dataset, "x", COPY)}))
        program.log(run_id, inputs=(logged,), outputs=(copied,))
        lineage: TaskLineage = program.lineage()
        return lineage

    def test_a_table_of_the_same_name_is_the_same(self, program: Any, make_dataset: Any) -> None:
        lineage = self.run(program, make_dataset("/external/1", table="db.t"), self.PLANNED)
        assert names(lineage.inputs) == ["/external/1"]
        assert edges(lineage) == {"x": ["/external/1.x"]}

    def test_a_path_that_ends_as_the_table_is_called_is_the_same(self, program: Any) -> None:
        lineage = self.run(program, "/external/t", self.PLANNED)
        assert names(lineage.inputs) == ["/external/t"]
        assert edges(lineage) == {"x": ["/external/t.x"]}

    @pytest.mark.parametrize(("columns", "is_same"), [(("x",), True), ((), False)])
    def test_the_only_place_with_columns_that_is_left_is_that_of_the_only_table(
        self, program: Any, make_dataset: Any, columns: tuple[str, ...], *, is_same: bool
    ) -> None:
        link = Symlink("file:/wh", "db.t", "TABLE")
        named = Observed(link.dataset, symlinks=frozenset({link}))
        lineage = self.run(program, make_dataset("/drop/log", columns=columns), named)
        assert ("/drop/log" in names(lineage.inputs), len(lineage.inputs)) == (True, 1 if is_same else 2)

    def test_another_table_is_another_input(self, program: Any, make_dataset: Any) -> None:
        lineage = self.run(program, make_dataset("/external/u", table="db.u"), self.PLANNED)
        assert names(lineage.inputs) == ["/external/u", "/wh/db.db/t"]

    def test_files_that_end_alike_are_no_table(self, program: Any) -> None:
        lineage = self.run(program, "/external/t", Observed(file("/wh/db.db/t")))
        assert names(lineage.inputs) == ["/external/t", "/wh/db.db/t"]


class TestFiles:
    def test_a_file_in_a_directory_that_the_listener_names_is_no_input_of_its_own(self, program: Any) -> None:
        run_id = program.run(["/in"], ["/out"])
        program.log(run_id, inputs=(Observed(file("/in/2026/part-1.csv")), Observed(file("/inner/b"))))
        assert names(program.lineage().inputs) == ["/in", "/inner/b"]

    def test_micro_batches_read_the_directory_that_their_query_watches(self, program: Any) -> None:
        watched = Observed(file("/in"))
        for number, directory in ((1, "/in"), (2, "/elsewhere")):
            batch = program.run([f"{directory}/{number}.json"], node="project", processing="STREAMING")
            # One batch tells the directory, and it holds for all of its query.
            program.log(batch, query_id="q", inputs=(watched,) if number == 1 else ())
        assert names(program.lineage().inputs) == ["/elsewhere/2.json", "/in"]

    def test_the_directory_of_one_query_is_not_that_of_another(self, program: Any) -> None:
        program.log(query_id="q1", inputs=(Observed(file("/in"), schema=(SchemaField("id"),)),))
        batch = program.run(["/in/2.json"], node="project", processing="STREAMING")
        program.log(batch, query_id="q2", inputs=(Observed(file("/in/2.json")),))
        assert names(program.lineage().inputs) == ["/in", "/in/2.json"]


class TestWithoutAPlace:
    """Spark redacts the URL of a JDBC table, so that a plan knows its name alone."""

    JDBC = Observed(DatasetName("", "DST"), edges=frozenset({("x", file("/a"), "x", COPY)}))

    def test_one_that_the_listener_does_not_name_either_is_left_out(self, program: Any) -> None:
        run_id = program.run(["/a"], [], node="execute_save_into_data_source_command")
        program.log(run_id, outputs=(self.JDBC,))
        program.log(outputs=(self.JDBC,), command="SaveIntoDataSourceCommand")
        lineage = program.lineage()
        assert (names(lineage.inputs), lineage.outputs) == (["/a"], ())

    def test_its_edges_are_those_of_the_only_output_that_the_listener_names(
        self, program: Any, make_dataset: Any
    ) -> None:
        table = make_dataset("db.public.dst", rows=1) | {"namespace": "postgres://h:5432"}
        program.log(program.run(["/a"], [table]), outputs=(self.JDBC,))
        lineage = program.lineage()
        assert names(lineage.outputs) == ["db.public.dst"]
        assert edges(lineage) == {"x": ["/a.x"]}


class TestRowCommands:
    """Of rows that are changed in place the listener tells columns that were not read."""

    def changed(
        self, program: Any, make_dataset: Any, command: str, logged: frozenset[Any], columns: tuple[str, ...] = ("v",)
    ) -> dict[str, list[str]]:
        told = make_dataset("/t", columns=("id", "v"), rows=1, edges={"id": ("/t", "id"), "v": ("/t", "_wrong")})
        run_id = program.run([make_dataset("/t", columns=("id", "v"))], [told], node="replace_data")
        program.log(
            run_id,
            command=command,
            outputs=(Observed(file("/t"), schema=tuple(map(SchemaField, columns)), edges=logged),),
        )
        return edges(program.lineage())

    def test_a_rewrite_has_the_edges_of_the_log_alone(self, program: Any, make_dataset: Any) -> None:
        logged = frozenset({("v", file("/t"), "v", COPY)})
        assert self.changed(program, make_dataset, "ReplaceData", logged) == {"v": ["/t.v"]}

    def test_a_merge_on_read_leaves_rows_as_they_are(self, program: Any, make_dataset: Any) -> None:
        logged = frozenset({("v", file("/s"), "w", COPY)})
        found = self.changed(program, make_dataset, "WriteDelta", logged)
        assert found == {"id": ["/t.id"], "v": ["/s.w", "/t.v"]}

    @pytest.mark.parametrize(
        ("copied", "operation"), [(("id", "v"), "DELETE"), (("id",), "UPDATE")], ids=["all columns", "one column"]
    )
    def test_a_rewrite_of_nothing_but_copies_is_a_delete(
        self, program: Any, make_dataset: Any, copied: tuple[str, ...], operation: str
    ) -> None:
        logged = frozenset((column, file("/t"), column, COPY) for column in copied)
        self.changed(program, make_dataset, "ReplaceData", logged, ("id", "v"))
        (written,) = program.lineage().outputs
        assert [write.operation for write in written.writes] == [operation]

    def test_a_plan_that_is_cut_has_not_all_edges(self, program: Any, make_dataset: Any) -> None:
        logged = frozenset({("v", file("/t"), "v", COPY)})
        assert self.changed(program, make_dataset, "ReplaceData", logged, ()) == {
            "id": ["/t.id"],
            "v": ["/t._wrong", "/t.v"],
        }

    def test_where_the_log_has_none_those_of_the_listener_stay(self, program: Any, make_dataset: Any) -> None:
        assert self.changed(program, make_dataset, "ReplaceData", frozenset()) == {"id": ["/t.id"], "v": ["/t._wrong"]}

    def test_any_other_write_has_the_edges_of_both(self, program: Any, make_dataset: Any) -> None:
        logged = frozenset({("v", file("/t"), "v", COPY)})
        found = self.changed(program, make_dataset, "AppendData", logged)
        assert found == {"id": ["/t.id"], "v": ["/t._wrong", "/t.v"]}

    def test_a_delete_of_whole_files_keeps_every_column(self, program: Any, make_dataset: Any) -> None:
        run_id = program.run(
            [make_dataset("/t", columns=("id", "v"))], [make_dataset("/t", columns=("id", "v"))], node="delete_from"
        )
        by_id = (None, file("/t"), "id", Transformation("INDIRECT", "FILTER"))
        program.log(run_id, command="DeleteFromTable", outputs=(Observed(file("/t"), edges=frozenset({by_id})),))
        lineage = program.lineage()
        assert edges(lineage) == {"id": ["/t.id"], "v": ["/t.v"]}
        (written,) = lineage.outputs
        assert written.schema == (SchemaField("id", "int"), SchemaField("v", "int"))
        assert written.column_lineage is not None
        assert [source.field for source in written.column_lineage.dataset] == ["id"]
