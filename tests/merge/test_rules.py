"""The rules M1 to M6, M9 and M10, each on a small program that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.lineage import SchemaField, Statistics, TaskLineage, UnreadPart
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

TABLE_NODE = "execute_create_data_source_table_command"
SOURCE_NODE = "execute_save_into_data_source_command"


def inputs(lineage: TaskLineage) -> list[str]:
    return [one.dataset.name for one in lineage.inputs]


def outputs(lineage: TaskLineage) -> dict[str, int | None]:
    return {one.dataset.name: one.statistics.row_count if one.statistics else None for one in lineage.outputs}


def attempted(lineage: TaskLineage) -> dict[str, str]:
    return {one.dataset.name: one.reason for one in lineage.attempted}


class TestIdentity:
    """M1."""

    def test_a_table_and_its_path_are_one_dataset(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/t", table="db.t", rows=3, lifecycle="CREATE")])
        program.run(["/wh/t"], ["/out"])
        assert inputs(program.lineage()) == []
        assert list(outputs(program.lineage())) == ["/out", "/wh/t"]

    def test_a_trailing_slash_is_no_other_dataset(self, program: Any) -> None:
        program.run([], ["/out/"])
        program.run(["/out"], ["/next"])
        assert inputs(program.lineage()) == []
        assert list(outputs(program.lineage())) == ["/next", "/out"]

    def test_what_two_names_of_one_dataset_tell_of_one_write_is_counted_once(
        self, program: Any, make_dataset: Any
    ) -> None:
        table = make_dataset("db.t", rows=4, edges={"x": ("/a", "x")}) | {"namespace": "hive://metastore"}
        program.run(["/a"], [table])
        program.run(["/b"], [make_dataset("/wh/t", rows=4, edges={"y": ("/b", "y")})])
        linked = make_dataset("/wh/t", table="db.t", table_namespace="hive://metastore")
        program.run([linked], ["/c"])
        lineage = program.lineage()
        assert outputs(lineage) == {"/c": 1, "/wh/t": 4}
        written = lineage.outputs[1]
        assert written.column_lineage is not None
        assert [column for column, _ in written.column_lineage.fields] == ["x", "y"]
        assert [name.name for name in written.fed_by] == ["/a", "/b"]

    def test_symlinks_that_are_seen_late_make_two_names_one(self, program: Any, make_dataset: Any) -> None:
        table = make_dataset("db.t") | {"namespace": "hive://metastore"}
        program.run([table], ["/a"])
        program.run(["/wh/t"], ["/b"])
        linked = make_dataset("/wh/t", table="db.t", table_namespace="hive://metastore")
        program.run([linked], ["/c"])
        assert len(program.lineage().inputs) == 1

    @pytest.mark.parametrize("drop_namespace", ["file:/wh", "file:/wh/db.db"])
    def test_the_path_of_a_drop_is_not_trusted(self, program: Any, make_dataset: Any, drop_namespace: str) -> None:
        program.run([], [make_dataset("/wh/db.db/t", table="db.t", rows=1, lifecycle="CREATE")])
        program.run([], [make_dataset("/wh/db.db/u", table="db.u", rows=1, lifecycle="CREATE")])
        dropped = make_dataset("/wh/db.db/db.db/t", table="db.t", table_namespace=drop_namespace, lifecycle="DROP")
        program.run([], [dropped], node="drop_table")
        assert outputs(program.lineage()) == {"/wh/db.db/u": 1}

    @pytest.mark.parametrize(
        ("namespace", "path", "folder"),
        [
            ("file", "/place/t", "file:/place"),
            ("s3://bucket", "place/t", "s3://bucket/place"),
            ("hdfs://nn:8020", "/place/t", "hdfs://nn:8020/place"),
        ],
    )
    def test_a_table_in_the_place_of_its_database_is_known_by_its_path(
        self, program: Any, make_dataset: Any, namespace: str, path: str, folder: str
    ) -> None:
        program.run([], [make_dataset(path, rows=1) | {"namespace": namespace}])
        dropped = make_dataset("/wrong", table="db.t", table_namespace=folder, lifecycle="DROP")
        program.run([], [dropped], node="drop_table")
        assert outputs(program.lineage()) == {}

    def test_a_drop_in_another_warehouse_is_another_table(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/db.db/t", table="db.t", rows=1)])
        program.run([], [make_dataset("/x/t", table="db.t", table_namespace="file:/whx", lifecycle="DROP")])
        assert outputs(program.lineage()) == {"/wh/db.db/t": 1}

    def test_drop_if_exists_of_nothing_leaves_no_phantom(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/db.db/db.db/t", table="db.t", lifecycle="DROP")], node="drop_table")
        lineage = program.lineage()
        assert (lineage.inputs, lineage.outputs, lineage.attempted) == ((), (), ())

    def test_rename_carries_identity_over(self, program: Any, make_dataset: Any) -> None:
        program.run(["/src"], [make_dataset("/wh/t", table="db.t", rows=5, lifecycle="CREATE")])
        renamed = make_dataset("/wh/t2", table="db.t2", lifecycle="RENAME", previous="/wh/t")
        program.run([], [renamed], node="execute_alter_table_rename_command")
        program.run(["/wh/t2"], ["/out"])
        lineage = program.lineage()
        assert inputs(lineage) == ["/src"]
        assert outputs(lineage) == {"/out": 1, "/wh/t2": 5}
        assert lineage.outputs[1].lifecycle == "CREATE"
        assert lineage.outputs[1].previous_name is None

    def test_rename_of_what_was_there_before_writes_nothing(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/t2", lifecycle="RENAME", previous="/wh/t")], node="rename")
        lineage = program.lineage()
        assert (lineage.outputs, [one.change for one in lineage.catalog_changes]) == ((), ["RENAME"])

    def test_rename_of_what_was_there_and_is_written_tells_the_former_name(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run([], [make_dataset("/wh/t", rows=1)])
        program.run([], [make_dataset("/wh/t2", lifecycle="RENAME", previous="/wh/t")], node="rename")
        (output,) = program.lineage().outputs
        assert output.lifecycle == "RENAME"
        assert output.previous_name is not None
        assert (output.dataset.name, output.previous_name.name) == ("/wh/t2", "/wh/t")

    def test_a_swap_leaves_the_new_content_under_the_old_name(self, program: Any, make_dataset: Any) -> None:
        program.run(["/wh/t"], [make_dataset("/wh/new", table="db.new", rows=7, lifecycle="CREATE")])
        program.run([], [make_dataset("/wh/old", table="db.old", lifecycle="RENAME", previous="/wh/t")], node="rename")
        program.run([], [make_dataset("/wh/t", table="db.t", lifecycle="RENAME", previous="/wh/new")], node="rename")
        program.run([], [make_dataset("/x/old", table="db.old", lifecycle="DROP")], node="drop_table")
        lineage = program.lineage()
        assert inputs(lineage) == ["/wh/t"]
        assert outputs(lineage) == {"/wh/t": 7}


class TestRunsAndOutcomes:
    """M2 to M4."""

    def test_a_run_is_the_union_of_its_events(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [], types=("START",))
        program.run([], [make_dataset("/b", rows=0)], types=("COMPLETE",))
        second = program.events[-1]
        second["run"] = program.events[-2]["run"]
        lineage = program.lineage()
        assert inputs(lineage) == ["/a"]
        assert outputs(lineage) == {"/b": 0}
        assert lineage.run_count == 2

    @pytest.mark.parametrize(
        "types", [("START", "FAIL", "COMPLETE"), ("START", "COMPLETE", "FAIL"), ("START", "COMPLETE", "ABORT")]
    )
    def test_fail_sticks(self, program: Any, types: tuple[str, ...]) -> None:
        program.run(["/a"], ["/b"], types=types)
        assert outputs(program.lineage()) == {}
        assert attempted(program.lineage()) == {"/b": "failed"}

    def test_a_lone_complete_counts(self, program: Any) -> None:
        program.run(["/a"], ["/b"], types=("COMPLETE",))
        program.end()
        assert outputs(program.lineage()) == {"/b": 1}

    def test_a_lone_complete_after_the_end_of_the_application_does_not(self, program: Any) -> None:
        program.run(["/a"], ["/b"], types=("START",))
        program.end()
        program.run(["/a"], ["/b"], types=("COMPLETE",))
        assert outputs(program.lineage(exit_code=143)) == {}
        assert attempted(program.lineage(exit_code=143)) == {"/b": "unfinished"}

    def test_the_applications_own_complete_is_no_evidence(self, program: Any) -> None:
        program.end()
        assert program.lineage(exit_code=1).state == "FAIL"


class TestOutputs:
    """M5."""

    def test_a_failed_task_keeps_what_it_had_finished(self, program: Any) -> None:
        program.run(["/a"], ["/b"])
        program.run(["/a"], ["/c"], types=("START", "FAIL"))
        assert outputs(program.lineage(exit_code=1)) == {"/b": 1}
        assert attempted(program.lineage(exit_code=1)) == {"/c": "failed"}

    def test_an_open_run_counts_only_if_the_task_succeeded(self, program: Any) -> None:
        program.run(["/a"], ["/b"], types=("START",))
        assert outputs(program.lineage(exit_code=0)) == {"/b": 1}
        assert attempted(program.lineage(is_killed=True)) == {"/b": "unfinished"}

    def test_open_run_of_lost_events_is_counted_and_not_unfinished(self, program: Any) -> None:
        program.run(["/a"], ["/b"], types=("START",))
        program.is_torn = True
        for lineage in (program.lineage(exit_code=1), program.lineage(is_killed=True)):
            assert (outputs(lineage), attempted(lineage)) == ({}, {})
            assert lineage.unread == (UnreadPart("/b: whether it was written", 1),)
        assert outputs(program.lineage(exit_code=0)) == {"/b": 1}

    def test_a_file_write_without_statistics_did_not_happen(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b")])
        assert outputs(program.lineage()) == {}
        assert attempted(program.lineage()) == {"/b": "not written"}

    def test_of_a_write_that_a_late_listener_saw_only_the_end_of_nothing_else_is_known(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run(["/a"], [make_dataset("/b")], types=("COMPLETE",))
        lineage = program.lineage()
        assert (outputs(lineage), attempted(lineage)) == ({"/b": None}, {})
        assert [one.name for one in lineage.unconfirmed] == ["/b"]
        assert attempted(program.lineage(exit_code=1)) == {"/b": "unfinished"}

    def test_zero_rows_are_a_write(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b", rows=0)])
        assert outputs(program.lineage()) == {"/b": 0}

    def test_a_write_that_failed_first_and_then_succeeded_is_an_output(self, program: Any) -> None:
        program.run(["/a"], ["/b"], types=("START", "FAIL"))
        program.run(["/a"], ["/b"])
        assert outputs(program.lineage()) == {"/b": 1}
        assert attempted(program.lineage()) == {}

    def test_a_source_without_statistics_is_unconfirmed_until_read(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b", lifecycle="OVERWRITE")], node=SOURCE_NODE)
        assert [one.name for one in program.lineage().unconfirmed] == ["/b"]
        program.run(["/b"], ["/c"])
        assert program.lineage().unconfirmed == ()

    def test_what_was_dropped_is_neither(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/wh/tmp", table="tmp", rows=1, lifecycle="CREATE")])
        program.run([make_dataset("/wh/tmp", table="tmp")], ["/b"])
        program.run([], [make_dataset("/wh/tmp", table="tmp", lifecycle="DROP")], node="drop_table")
        assert inputs(program.lineage()) == ["/a"]
        assert outputs(program.lineage()) == {"/b": 1}

    def test_a_drop_that_failed_dropped_nothing(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/wh/t", table="t", rows=1, lifecycle="CREATE")])
        program.run([], [make_dataset("/wh/t", table="t", lifecycle="DROP")], types=("START", "FAIL"))
        assert outputs(program.lineage()) == {"/wh/t": 1}

    def test_dropped_and_made_again_is_an_output(self, program: Any, make_dataset: Any) -> None:
        table = make_dataset("/wh/t", table="t", rows=1, lifecycle="CREATE")
        program.run(["/a"], [table])
        program.run([], [make_dataset("/wh/t", table="t", lifecycle="DROP")], node="drop_table")
        program.run(["/a"], [make_dataset("/wh/t", table="t", rows=2, lifecycle="CREATE")])
        assert outputs(program.lineage()) == {"/wh/t": 2}

    def test_an_emptied_table_is_an_output(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/t", columns=(), table="t", lifecycle="TRUNCATE")], node="truncate_table")
        assert outputs(program.lineage()) == {"/wh/t": None}


class TestCreateIfNotExists:
    """M5 and M6, where CREATE TABLE IF NOT EXISTS found a table: the listener says CREATE all the same."""

    CTAS_NODE = "execute_create_data_source_table_as_select_command"

    def test_of_what_the_task_wrote_changes_nothing(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/t", table="t", rows=3, edges={"id": ("/a", "x")})])
        program.run([], [make_dataset("/t", table="t", lifecycle="CREATE")], node=TABLE_NODE)
        assert outputs(program.lineage()) == {"/t": 3}
        assert program.lineage().outputs[0].column_lineage is not None

    def test_as_select_writes_nothing(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/t", table="t", rows=3)])
        program.run(["/a"], [make_dataset("/t", table="t", lifecycle="CREATE")], node=self.CTAS_NODE)
        assert outputs(program.lineage()) == {"/t": 3}
        assert attempted(program.lineage()) == {}

    def test_a_table_with_content_that_nobody_wrote_was_there_before(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/t", table="t", lifecycle="CREATE")], node=TABLE_NODE)
        read = make_dataset("/t", table="t")
        read["inputFacets"] = {"inputStatistics": {"size": 448}}
        program.run([read], ["/out"])
        assert inputs(program.lineage()) == ["/t"]
        assert outputs(program.lineage()) == {"/out": 1}

    def test_an_empty_table_was_made_by_the_task(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/t", table="t", lifecycle="CREATE")], node=TABLE_NODE)
        read = make_dataset("/t", table="t")
        read["inputFacets"] = {"inputStatistics": {"size": 0}}
        program.run([read], ["/out"])
        assert inputs(program.lineage()) == []
        assert outputs(program.lineage()) == {"/out": 1}

    def test_a_table_that_the_task_filled_is_its_own(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/t", table="t", lifecycle="CREATE")], node=TABLE_NODE)
        program.run(["/a"], [make_dataset("/t", table="t", rows=2)])
        read = make_dataset("/t", table="t")
        read["inputFacets"] = {"inputStatistics": {"size": 448}}
        program.run([read], ["/out"])
        assert inputs(program.lineage()) == ["/a"]


class TestInputs:
    """M6."""

    def test_what_the_task_wrote_before_is_no_input(self, program: Any) -> None:
        program.run(["/bronze"], ["/silver"])
        program.run(["/silver"], ["/gold"])
        assert inputs(program.lineage()) == ["/bronze"]

    def test_what_was_read_before_it_was_overwritten_is_one(self, program: Any) -> None:
        program.run(["/t"], ["/copy"])
        program.run(["/copy"], ["/t"])
        assert inputs(program.lineage()) == ["/t"]
        assert outputs(program.lineage()) == {"/copy": 1, "/t": 1}

    def test_a_run_that_reads_what_it_writes_reads_first(self, program: Any) -> None:
        program.run(["/t"], ["/t"], types=("COMPLETE",))
        assert inputs(program.lineage()) == ["/t"]

    def test_a_read_by_an_action_that_failed_is_a_read(self, program: Any) -> None:
        program.run(["/a"], ["/b"], types=("START", "FAIL"))
        assert inputs(program.lineage(exit_code=1)) == ["/a"]

    def test_what_a_failed_write_left_is_no_work_of_the_task(self, program: Any) -> None:
        program.run(["/a"], ["/b"], types=("START", "FAIL"))
        program.run(["/b"], ["/c"])
        assert inputs(program.lineage()) == ["/a", "/b"]


class TestStatistics:
    """M9."""

    def test_appends_add_up(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/t", rows=10)])
        program.run([], [make_dataset("/t", rows=5)])
        (output,) = program.lineage().outputs
        assert output.statistics is not None
        assert (output.statistics.row_count, output.statistics.size, output.statistics.file_count) == (15, 150, 2)

    def test_rows_without_bytes_are_rows_whose_bytes_are_not_counted(self, program: Any, make_dataset: Any) -> None:
        jdbc = make_dataset("/t", rows=10)
        jdbc["outputFacets"]["outputStatistics"] |= {"size": 0, "fileCount": 0}
        program.run([], [jdbc])
        (output,) = program.lineage().outputs
        assert output.statistics == Statistics(10)

    def test_the_last_overwrite_replaces(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/t", rows=10)])
        program.run([], [make_dataset("/t", rows=5, lifecycle="OVERWRITE")])
        program.run([], [make_dataset("/t", rows=1)])
        assert outputs(program.lineage()) == {"/t": 6}

    def test_within_a_run_the_greatest_counts(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/t", rows=3)], types=("START", "RUNNING", "COMPLETE"))
        program.events[-1]["outputs"] = [make_dataset("/t", rows=9)]
        assert outputs(program.lineage()) == {"/t": 9}

    def test_create_table_as_select_is_counted_once(self, program: Any, make_dataset: Any) -> None:
        outer = make_dataset("/t", table="t", rows=4, lifecycle="CREATE")
        program.run(["/a"], [outer], types=("START",), node="execute_create_data_source_table_as_select_command")
        program.run(["/a"], [make_dataset("/t", rows=4)])
        program.run(["/a"], [outer], types=("COMPLETE",), node="execute_create_data_source_table_as_select_command")
        program.events[-1]["run"] = program.events[-4]["run"]
        assert outputs(program.lineage()) == {"/t": 4}

    def test_an_outer_run_without_numbers_does_not_deny_what_its_inner_run_wrote(
        self, program: Any, make_dataset: Any
    ) -> None:
        ctas = "execute_create_data_source_table_as_select_command"
        with program.running(["/a"], [make_dataset("/t", table="t", lifecycle="CREATE")], node=ctas):
            program.run(["/a"], [make_dataset("/t", rows=4)])
        lineage = program.lineage()
        assert (outputs(lineage), attempted(lineage)) == ({"/t": 4}, {})

    def test_a_sum_with_an_unknown_part_is_unknown(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/t", lifecycle="OVERWRITE")], node=SOURCE_NODE)
        program.run([], [make_dataset("/t", rows=5)])
        assert outputs(program.lineage()) == {"/t": None}

    def test_creating_an_empty_table_adds_nothing_unknown(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/t", table="t", lifecycle="CREATE")], node=TABLE_NODE)
        program.run([], [make_dataset("/t", table="t", rows=5)])
        assert outputs(program.lineage()) == {"/t": 5}


class TestNoise:
    """M10."""

    def test_a_bare_directory_goes_when_something_inside_was_read(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("/data", columns=())], [], kind="RDD_JOB", node="map", types=("START",))
        program.run(["/data/a.csv"], ["/out"])
        assert inputs(program.lineage()) == ["/data/a.csv"]

    def test_a_bare_directory_stays_when_nothing_else_is_known(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("/data", columns=())], ["/out"], kind="RDD_JOB", node="map")
        program.run(["/database"], ["/out2"])
        assert inputs(program.lineage()) == ["/data", "/database"]

    def test_a_bare_directory_goes_when_it_lies_in_one_that_is_declared(self, program: Any, make_dataset: Any) -> None:
        lines = make_dataset("/data/shop/b.csv")
        lines["facets"]["schema"] = {"fields": [{"name": "value", "type": "string"}]}
        program.run([lines], [], node="collect_limit")
        bare = [make_dataset(name, columns=()) for name in ("/data/shop", "/data/load", "/database")]
        program.run([*bare, "/data/a.csv"], ["/out"], kind="RDD_JOB", node="map")
        program.run([make_dataset("/data", columns=())], [], kind="DECLARED", types=("START", "COMPLETE"))
        lineage = program.lineage()
        assert inputs(lineage) == ["/data", "/data/a.csv", "/database"]
        assert [name.name for name in lineage.outputs[0].fed_by] == ["/data/a.csv", "/database"]

    def test_a_bare_directory_stays_beside_one_that_is_declared(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("/data2", columns=())], ["/out"], kind="RDD_JOB", node="map")
        program.run([make_dataset("/data", columns=())], [], kind="DECLARED", types=("START", "COMPLETE"))
        assert inputs(program.lineage()) == ["/data", "/data2"]

    def test_schema_reading_adds_nothing(self, program: Any, make_dataset: Any) -> None:
        lines = make_dataset("/data/a.csv")
        lines["facets"]["schema"] = {"fields": [{"name": "value", "type": "string"}]}
        program.run([lines], [], node="collect_limit")
        program.run([], ["/out"])
        assert inputs(program.lineage()) == []
        program.run(["/data/a.csv"], ["/out"])
        (only,) = program.lineage().inputs
        assert [field.name for field in only.schema] == ["id"]

    def test_what_only_schema_reading_names_was_read_where_nothing_else_tells_what_was(
        self, program: Any, make_dataset: Any
    ) -> None:
        """The listener is silent about ``spark.read.csv(…).count()`` from Spark 4.1 on."""
        lines = make_dataset("/data/a.csv", rows=1)
        lines["facets"]["schema"] = {"fields": [{"name": "value", "type": "string"}]}
        program.run([lines], [], node="collect_limit")
        (only,) = program.lineage().inputs
        assert (only.dataset.name, only.schema, only.statistics) == ("/data/a.csv", (), None)
        assert inputs(program.lineage(exit_code=1)) == []
        program.log()
        assert inputs(program.lineage()) == []

    @pytest.mark.parametrize("types", [("START", "FAIL"), ("START", "COMPLETE")])
    def test_what_is_written_explains_why_a_schema_was_read(
        self, program: Any, make_dataset: Any, types: tuple[str, ...]
    ) -> None:
        program.run([make_dataset("/data", columns=())], [], kind="RDD_JOB", node="parallel_collection")
        program.run([], [make_dataset("/out", rows=1)], types=types)
        assert inputs(program.lineage()) == []

    def test_schema_reading_tells_which_file_of_a_directory_was_read(self, program: Any, make_dataset: Any) -> None:
        lines = make_dataset("/data/a.csv")
        lines["facets"]["schema"] = {"fields": [{"name": "value", "type": "string"}]}
        program.run([lines], [], node="collect_limit")
        program.run([make_dataset("/data", columns=())], ["/out"], kind="RDD_JOB", node="map")
        (only,) = program.lineage().inputs
        assert only.dataset.name == "/data/a.csv"
        assert only.schema == ()

    @pytest.mark.parametrize("folder", ["", "/sub"])
    @pytest.mark.parametrize("witness", ["listener", "event log"])
    def test_a_directory_whose_schema_one_of_its_files_told_is_what_was_read(
        self, program: Any, make_dataset: Any, witness: str, folder: str
    ) -> None:
        """``spark.read.csv("/data", inferSchema=True)``, of one file, with ``recursiveFileLookup`` in a folder."""
        lines = make_dataset(f"/data{folder}/a.csv")
        lines["facets"]["schema"] = {"fields": [{"name": "value", "type": "string"}]}
        for node in ("collect_limit", "deserialize_to_object"):
            program.run([lines], [], node=node)
        inferring = "map_partitions_sql_execution_map_partitions_file_scan"
        program.run([make_dataset(f"/data{folder}", columns=())], [], kind="RDD_JOB", node=inferring, types=("START",))
        if witness == "listener":
            program.run(["/data"], [], node="scan_csv")
        else:
            program.log(inputs=(Observed(DatasetName("file", "/data")),))
        assert inputs(program.lineage()) == ["/data"]

    @pytest.mark.parametrize("kind", ["RDD_JOB", "SQL_JOB"])
    def test_rows_that_go_through_an_rdd_are_not_of_a_file_that_another_action_reads(
        self, program: Any, make_dataset: Any, kind: str
    ) -> None:
        program.run(["/data/a.csv"], ["/elsewhere"])
        program.run([make_dataset("/data", columns=())], ["/out"], kind=kind, node="map_partitions_file_scan")
        lineage = program.lineage()
        (written,) = (one for one in lineage.outputs if one.dataset.name == "/out")
        assert written.fed_by == ()
        assert [(one.part, one.count) for one in lineage.unread] == [("RDD: its files", 1)]

    @pytest.mark.parametrize(("files", "fed_by"), [
        (["/data/a.csv"], ["/data/a.csv"]),
        (["/data/a.csv", "/data/b.csv"], []),
        (["/data/a.csv", "/other/b.csv"], ["/data/a.csv"]),
    ])  # fmt: skip
    def test_rows_that_go_through_an_rdd_are_of_the_only_file_that_was_inspected_there(
        self, program: Any, make_dataset: Any, files: list[str], fed_by: list[str]
    ) -> None:
        for file in files:
            lines = make_dataset(file)
            lines["facets"]["schema"] = {"fields": [{"name": "value", "type": "string"}]}
            program.run([lines], [], node="collect_limit")
        bare = [make_dataset("/data", columns=())]
        program.run(bare, ["/out"], kind="RDD_JOB", node="map_partitions_file_scan")
        (written,) = program.lineage().outputs
        assert [name.name for name in written.fed_by] == fed_by

    @pytest.mark.parametrize(("other", "unread"), [
        ({"kind": "DECLARED", "types": ("START", "COMPLETE")}, []),
        ({"processing": "STREAMING"}, []),
        ({}, ["RDD: its files"]),
    ])  # fmt: skip
    def test_files_of_an_rdd_without_a_name_are_counted_unless_they_are_declared_or_those_of_a_stream(
        self, program: Any, make_dataset: Any, other: dict[str, Any], unread: list[str]
    ) -> None:
        program.run(["/data/a.csv"], [], **other)
        program.run([make_dataset("/data", columns=())], ["/out"])
        assert [one.part for one in program.lineage().unread] == unread

    def test_a_directory_around_the_files_of_an_rdd_is_no_output_of_a_query(
        self, program: Any, make_dataset: Any
    ) -> None:
        """Delta runs such a query before it writes."""
        bare = make_dataset("/data", columns=())
        program.run([bare], [bare], node="scan_existing_rdd", types=("COMPLETE",))
        assert outputs(program.lineage()) == {}

    def test_an_rdd_of_text_files_is_fed_by_no_file_that_a_data_frame_reads(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run(["/data/a.csv"], ["/elsewhere"])
        program.run([make_dataset("/data", columns=())], ["/out"], kind="RDD_JOB", node="map_hadoop")
        (written,) = (one for one in program.lineage().outputs if one.dataset.name == "/out")
        assert written.fed_by == ()

    def test_a_directory_that_a_plan_names_is_what_was_read(self, program: Any, make_dataset: Any) -> None:
        program.run(["/data/a.csv"], ["/elsewhere"])
        run_id = program.run([make_dataset("/data", columns=())], ["/out"])
        program.log(run_id, inputs=(Observed(DatasetName("file", "/data"), schema=(SchemaField("value"),)),))
        assert inputs(program.lineage()) == ["/data", "/data/a.csv"]

    def test_columns_of_a_plan_over_jvm_objects_are_none_of_a_dataset(self, program: Any, make_dataset: Any) -> None:
        objects = make_dataset("/data")
        objects["facets"]["schema"] = {"fields": [{"name": "obj", "type": "object"}]}
        program.run([objects], ["/out"])
        (only,) = program.lineage().inputs
        assert only.schema == ()

    @pytest.mark.parametrize("folder", ["_delta_log", "_spark_metadata", "_spark_lineage"])
    def test_the_bookkeeping_of_a_table_is_no_dataset(self, program: Any, make_dataset: Any, folder: str) -> None:
        program.run([f"/t/{folder}", f"/t/{folder}/0.json", f"/my{folder}", "/a"], ["/out", f"/out/{folder}/0"])
        lineage = program.lineage()
        assert inputs(lineage) == ["/a", f"/my{folder}"]
        assert list(outputs(lineage)) == ["/out"]

    def test_columns_from_the_bookkeeping_of_an_archive_come_from_nowhere(
        self, program: Any, make_dataset: Any
    ) -> None:
        staged = "/archive/_spark_lineage/staging"
        program.run(["/a"], [make_dataset(staged, rows=1, edges={"id": ("/a", "id")})])
        edges = {"id": (staged, "id"), "day": ("/b", "day")}
        program.run([staged, "/b"], [make_dataset("/archive/runs", rows=1, edges=edges)])
        lineage = program.lineage()
        assert inputs(lineage) == ["/a", "/b"]
        (written,) = lineage.outputs
        assert written.dataset.name == "/archive/runs"
        assert [name.name for name in written.fed_by] == ["/b"]
        assert written.column_lineage is not None
        assert [column for column, _ in written.column_lineage.fields] == ["day"]

    def test_what_is_no_path_is_no_bookkeeping(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("_delta_log") | {"namespace": "kafka://h:9092"}], ["/out"])
        assert inputs(program.lineage()) == ["_delta_log"]

    def test_the_compaction_of_an_iceberg_table_reads_and_writes_nothing(self, program: Any) -> None:
        program.run(["/wh/t"], ["/wh/t"], node="append_data.default_rewrite_catalog_d1e4")
        assert (inputs(program.lineage()), outputs(program.lineage())) == ([], {})
        program.run(["/wh/t"], ["/out"], node="append_data.other_catalog")
        assert (inputs(program.lineage()), list(outputs(program.lineage()))) == (["/wh/t"], ["/out"])

    def test_a_file_that_an_edge_of_a_stream_names_is_of_the_directory_that_it_reads(
        self, program: Any, make_dataset: Any
    ) -> None:
        written = make_dataset("/out", rows=1, edges={"x": ("/data/in/part-0.csv", "v")})
        program.run(["/data/in"], [written], processing="STREAMING")
        lineage = program.lineage()
        assert inputs(lineage) == ["/data/in"]
        (written,) = lineage.outputs
        assert written.column_lineage is not None
        (source,) = written.column_lineage.fields[0][1]
        assert (source.dataset.name, source.field) == ("/data/in", "v")
        assert [name.name for name in written.fed_by] == ["/data/in"]

    def test_reading_footers_is_schema_reading(self, program: Any, make_dataset: Any) -> None:
        bare = make_dataset("/data/t.parquet", columns=())
        program.run([bare], [], kind="RDD_JOB", node="map_partitions_parallel_collection", types=("START",))
        program.run([], ["/out"])
        assert inputs(program.lineage()) == []


class TestColumns:
    """What M7 asks for so far: the union, reset by an overwrite, under last names."""

    def test_appends_unite_and_overwrites_replace(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/t", rows=1, edges={"id": ("/a", "x")})])
        program.run(["/b"], [make_dataset("/t", rows=1, edges={"id": ("/b", "y")})])
        assert self._sources(program) == {("/a", "x"), ("/b", "y")}
        program.run(["/b"], [make_dataset("/t", rows=1, lifecycle="OVERWRITE", edges={"id": ("/b", "z")})])
        assert self._sources(program) == {("/b", "z")}

    def test_edges_of_a_write_that_failed_are_none(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/t", rows=1, edges={"id": ("/a", "x")})])
        program.run(["/b"], [make_dataset("/t", edges={"id": ("/b", "y")})], types=("START", "FAIL"))
        assert self._sources(program) == {("/a", "x")}

    def test_dataset_wide_edges_are_indirect_whatever_the_label(self, program: Any, make_dataset: Any) -> None:
        output = make_dataset("/t", rows=1, edges={"id": ("/a", "x")})
        output["facets"]["columnLineage"]["dataset"] = [
            {
                "namespace": "file",
                "name": "/a",
                "field": "k",
                "transformations": [{"type": "DIRECT", "subtype": "JOIN"}],
            }
        ]
        program.run(["/a"], [output])
        lineage = program.lineage().outputs[0].column_lineage
        assert lineage is not None
        assert [how.type for how in lineage.dataset[0].transformations] == ["INDIRECT"]

    @staticmethod
    def _sources(program: Any) -> set[tuple[str, str]]:
        lineage = program.lineage().outputs[0].column_lineage
        return {(source.dataset.name, source.field) for _, sources in lineage.fields for source in sources}


class TestOddPrograms:
    """Programs that the plain rules get wrong; each is a real one, cut to what matters."""

    CTAS_NODE = "execute_create_data_source_table_as_select_command"

    def test_a_write_whose_statistics_were_lost_is_an_output(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b", lifecycle="OVERWRITE")], types=("START", "RUNNING", "COMPLETE"))
        assert outputs(program.lineage()) == {"/b": None}
        assert [one.name for one in program.lineage().unconfirmed] == ["/b"]

    def test_a_file_of_what_the_task_wrote_is_no_input(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b", rows=1, edges={"key": ("/a", "id")})])
        part = make_dataset("/b/part-00000.parquet")
        program.run([part], [make_dataset("/c", rows=1, edges={"id": ("/b/part-00000.parquet", "key")})])
        lineage = program.lineage()
        assert inputs(lineage) == ["/a"]
        assert lineage.outputs[1].column_lineage is not None
        assert lineage.outputs[1].column_lineage.fields[0][1][0].dataset.name == "/a"

    def test_a_file_of_what_was_there_is_an_input(self, program: Any) -> None:
        program.run(["/b/part-00000.parquet"], ["/c"])
        program.run(["/a"], ["/b"])
        assert inputs(program.lineage()) == ["/a", "/b/part-00000.parquet"]

    def test_a_table_as_select_that_is_renamed_was_temporary(self, program: Any, make_dataset: Any) -> None:
        self._create_table_as_select(program, make_dataset, inner="OVERWRITE")
        program.run([], [make_dataset("/t2", table="t2", lifecycle="RENAME", previous="/t")], node="rename")
        (output,) = program.lineage().outputs
        assert (output.dataset.name, output.lifecycle, output.previous_name) == ("/t2", "CREATE", None)

    def test_appending_with_save_as_table_creates_nothing(self, program: Any, make_dataset: Any) -> None:
        self._create_table_as_select(program, make_dataset, inner=None)
        (output,) = program.lineage().outputs
        assert output.lifecycle is None
        assert outputs(program.lineage()) == {"/t": 4}

    def test_an_overwrite_that_fails_takes_the_former_content_with_it(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], ["/b"])
        overwrite = make_dataset("/b", lifecycle="OVERWRITE")
        program.run(["/a"], [overwrite], types=("START", "RUNNING", "FAIL", "COMPLETE"))
        assert outputs(program.lineage()) == {}
        assert attempted(program.lineage()) == {"/b": "failed"}

    def test_a_table_that_the_catalog_refuses_is_attempted_though_its_files_are_written(self, program: Any) -> None:
        with program.failing(["/a"], ["/t"], node="execute_create_data_source_table_as_select_command"):
            program.run(["/a"], ["/t"])
        assert (outputs(program.lineage()), attempted(program.lineage())) == ({}, {"/t": "failed"})

    def test_a_table_that_had_content_before_a_command_failed_is_an_output(self, program: Any) -> None:
        program.run(["/a"], ["/t"])
        with program.failing(["/a"], ["/t"], node="execute_create_data_source_table_as_select_command"):
            program.run(["/a"], ["/t"])
        assert (set(outputs(program.lineage())), attempted(program.lineage())) == ({"/t"}, {})

    def test_an_append_that_fails_leaves_what_was_there(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], ["/b"])
        program.run(["/a"], [make_dataset("/b")], types=("START", "RUNNING", "FAIL", "COMPLETE"))
        assert outputs(program.lineage()) == {"/b": 1}
        assert attempted(program.lineage()) == {}

    def test_a_write_without_statistics_is_attempted_where_the_task_failed(
        self, program: Any, make_dataset: Any
    ) -> None:
        """The listener says COMPLETE of a write whose tasks a Python function broke."""
        program.run(["/a"], ["/good"])
        program.run(["/a"], [make_dataset("/bad")], types=("START", "RUNNING", "COMPLETE"))
        failed = program.lineage(exit_code=1)
        assert (outputs(failed), attempted(failed)) == ({"/good": 1}, {"/bad": "unfinished"})
        assert failed.unconfirmed == ()
        well = program.lineage()
        assert (set(outputs(well)), attempted(well)) == ({"/good", "/bad"}, {})

    def test_a_write_in_doubt_is_an_output_once_it_was_read(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/b")], types=("START", "RUNNING", "COMPLETE"))
        program.run(["/b"], [])
        lineage = program.lineage(exit_code=1)
        assert (set(outputs(lineage)), attempted(lineage), inputs(lineage)) == ({"/b"}, {}, ["/a"])

    def test_a_write_that_the_log_saw_end_well_is_in_no_doubt(self, program: Any, make_dataset: Any) -> None:
        run_id = program.run(["/a"], [make_dataset("/b")], types=("START", "RUNNING", "COMPLETE"))
        program.log(run_id, is_failed=False)
        assert set(outputs(program.lineage(exit_code=1))) == {"/b"}

    @pytest.mark.parametrize(("lifecycle", "left"), [(None, {"/b": 1}), ("OVERWRITE", {})])
    def test_a_write_in_doubt_leaves_what_the_task_had_written_unless_it_took_that_away(
        self, program: Any, make_dataset: Any, lifecycle: str | None, left: dict[str, int]
    ) -> None:
        program.run(["/a"], ["/b"])
        again = make_dataset("/b", **({"lifecycle": lifecycle} if lifecycle else {}))
        program.run(["/a"], [again], types=("START", "RUNNING", "COMPLETE"))
        lineage = program.lineage(exit_code=1)
        assert outputs(lineage) == left
        assert attempted(lineage) == ({} if left else {"/b": "unfinished"})

    def test_times_at_the_edge_of_all_years(self, program: Any) -> None:
        program.run(["/a"], ["/b"])
        program.events[0]["eventTime"] = "0001-01-01T00:00:00+14:00"
        program.events[-1]["eventTime"] = "9999-12-31T23:59:59-14:00"
        lineage = program.lineage()
        assert lineage.started_at is not None
        assert lineage.ended_at is not None
        assert (lineage.started_at.year, lineage.ended_at.year) == (1, 9999)

    def test_a_run_that_names_itself_as_parent_is_no_application(self, program: Any) -> None:
        program.run(["/a"], ["/b"])
        for event in program.events[1:]:
            event["run"]["facets"]["parent"]["run"]["runId"] = event["run"]["runId"]
            event["run"]["facets"]["spark_applicationDetails"] = {"applicationId": "local-1"}
        forth = program.lineage().applications
        program.events[1:] = program.events[:0:-1]
        assert program.lineage().applications == forth

    def _create_table_as_select(self, program: Any, make_dataset: Any, *, inner: str | None) -> None:
        """The two runs of it, the inner one within the outer one."""
        outer = make_dataset("/t", table="t", rows=4, lifecycle="CREATE")
        program.run(["/a"], [outer], types=("START",), node=self.CTAS_NODE)
        program.run(["/a"], [make_dataset("/t", rows=4, lifecycle=inner)])
        program.run(["/a"], [outer], types=("COMPLETE",), node=self.CTAS_NODE)
        program.events[-1]["run"] = program.events[-4]["run"]
