"""What Spark's event log tells of the SQL executions of real applications."""

from __future__ import annotations

import json
import re
import shutil
import uuid
import zipfile
from pathlib import Path

import pytest
import zstandard
from msgspec import structs

from spark_lineage.launch.line import LineCounts
from spark_lineage.merge.execution import LoggedApplication
from spark_lineage.merge.lineage import Application, ParentRun, Statistics
from spark_lineage.plans.event_log import EventLogError, EventLogReader, read_event_log
from spark_lineage.plans.event_log_files import logs_of

LOGS = Path(__file__).parents[1] / "fixtures" / "event_logs"
RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "4.2"
DELTA = LOGS / "eventlog_v2_local-1795292252861"
STREAM = LOGS / "stream"
JDBC = LOGS / "jdbc"
TABLES = LOGS / "tables.zstd"
ICEBERG = LOGS / "iceberg_hive.zstd"


def executions(path):
    return {execution.execution_id: execution for execution in read_event_log(path)}


def names(observed):
    return [one.dataset.name for one in observed]


def edges(observed):
    """Edges as ``column <- dataset.column SUBTYPE``, the dataset by the end of its path."""
    return sorted(
        f"{column or '*'} <- {dataset.name.rpartition('/')[2]}.{field} {how.subtype}{' masked' if how.masking else ''}"
        for column, dataset, field, how in observed.edges
    )


def test_the_job_of_an_rdd_reads_the_files_that_its_rdds_are_named_by() -> None:
    saved, counted = executions(LOGS / "rdds")[-1], executions(LOGS / "rdds")[-2]
    assert names(saved.inputs) == ["/data/lab/work/in/orders.txt", "/data/lab/work/names/names.txt"]
    assert names(counted.inputs) == ["/data/lab/work/in/counted.txt"]
    assert saved.started == 1795295346.191


def test_the_job_of_an_rdd_that_saves_files_has_the_method_and_its_end() -> None:
    """No event says where to."""
    reader = EventLogReader()
    scope = {"spark.rdd.scope": '{"id":"12","name":"saveAsTextFile"}'}
    lines = [
        {"Event": "SparkListenerJobStart", "Job ID": 3, "Submission Time": 1000, "Properties": scope},
        {
            "Event": "SparkListenerJobEnd",
            "Job ID": 3,
            "Completion Time": 2000,
            "Job Result": {"Result": "JobSucceeded"},
        },
    ]
    begun, ended = (one for line in lines for one in reader.add(json.dumps(line, separators=(",", ":")).encode()))
    assert (begun.execution_id, begun.command, begun.ended) == (-4, "saveAsTextFile", None)
    assert (ended.execution_id, ended.ended, ended.is_failed, ended.outputs) == (-4, 2.0, False, ())


def test_a_job_is_of_all_executions_around_it_and_a_table_is_where_its_query_is_written(tmp_path) -> None:
    """saveAsTable is three executions: the command, CREATE TABLE AS SELECT in it, and in that the write of files."""
    with zipfile.ZipFile(RECORDED / "save_modes.zip") as recording:
        recording.extractall(tmp_path)
    found = executions(tmp_path / "eventlog")
    create = next(one for one in found.values() if one.command == "CreateDataSourceTableAsSelectCommand")
    write = next(
        one
        for one in found.values()
        if one.root_execution_id == create.root_execution_id and one.command == "InsertIntoHadoopFsRelationCommand"
    )
    assert create.root_execution_id != create.execution_id
    assert found[create.root_execution_id].has_jobs
    assert create.has_jobs
    assert names(create.outputs) == names(write.outputs)
    (table,) = create.outputs
    assert (table.lifecycles, len(table.symlinks)) == ({"CREATE"}, 1)


class TestDelta:
    def test_an_update_changes_some_rows_of_its_target_and_keeps_the_columns_of_the_others(self) -> None:
        update = executions(DELTA)[18]
        assert (update.command, names(update.outputs)) == ("UpdateCommand", ["/data/lab/d1/t"])
        assert edges(update.outputs[0]) == ["* <- t.id FILTER", "id <- t.id IDENTITY", "v <- t.v IDENTITY"]

    def test_a_delete_by_path_keeps_the_columns_of_the_rows_that_stay_in_its_target(self) -> None:
        delete = executions(DELTA)[29]
        assert (delete.command, names(delete.outputs)) == ("DeleteCommand", ["/data/lab/d1/t"])
        assert edges(delete.outputs[0]) == ["* <- t.id FILTER", "id <- t.id IDENTITY", "v <- t.v IDENTITY"]

    def test_the_target_of_a_delete_by_table_name_has_the_name_that_the_listener_gives_it(self) -> None:
        (output,) = executions(DELTA)[47].outputs
        assert (output.dataset.namespace, output.dataset.name) == ("file", "/data/lab/wh1/dt1")
        assert [(link.namespace, link.name, link.type) for link in output.symlinks] == [
            ("file:/data/lab/wh1", "default.dt1", "TABLE")
        ]

    def test_an_update_that_failed_is_known_to_have_failed(self) -> None:
        # 73 is the execution inside of it.
        assert [one.execution_id for one in executions(DELTA).values() if one.is_failed] == [73, 71]

    def test_a_merge_has_edges_from_its_source_its_condition_and_what_its_target_keeps(self) -> None:
        merge = executions(DELTA)[6]
        assert names(merge.inputs) == ["/data/lab/d1/t", "/data/lab/d1/u"]
        assert edges(merge.outputs[0]) == [
            "* <- t.id JOIN",
            "* <- u.id JOIN",
            "id <- t.id IDENTITY",
            "id <- u.id IDENTITY",
            "v <- t.v IDENTITY",
            "v <- u.v IDENTITY",
        ]

    def test_an_insert_reads_what_the_execution_inside_of_it_reads(self) -> None:
        insert = executions(DELTA)[53]
        assert (insert.command, insert.mode, names(insert.inputs)) == (
            "AppendDataExecV1",
            "Append",
            ["/data/lab/wh1/dt1"],
        )
        assert edges(insert.outputs[0]) == ["* <- dt1.id FILTER", "id <- dt1.id TRANSFORMATION", "v <- dt1.v IDENTITY"]

    def test_what_a_command_reads_is_told_by_the_command_alone(self) -> None:
        found = executions(DELTA)
        assert [one.execution_id for one in found.values() if one.root_execution_id == 6 and one.inputs] == [6]

    def test_optimize_writes_nothing_anew(self) -> None:
        optimize = executions(DELTA)[66]
        assert (optimize.command, optimize.inputs, optimize.outputs) == ("OptimizeTableCommand", (), ())

    def test_what_delta_reads_of_its_own_log_is_no_input(self) -> None:
        read = {name for one in executions(DELTA).values() for name in names(one.inputs)}
        # A relation of a logical plan has no place.
        assert read == {"/data/lab/d1/t", "/data/lab/d1/u", "/data/lab/wh1/dt1", "(id, v)"}


class TestStreaming:
    def test_the_output_of_a_file_sink_is_found_with_its_columns(self) -> None:
        batch = executions(STREAM)[4]
        assert (names(batch.inputs), names(batch.outputs)) == (["/data/lab/t1/src"], ["/data/lab/t1/sink"])
        assert edges(batch.outputs[0]) == ["* <- src.v FILTER", "id <- src.id IDENTITY", "z <- src.v TRANSFORMATION"]

    def test_a_file_sink_appends_which_is_all_that_it_can(self) -> None:
        batches = [one for one in read_event_log(STREAM) if names(one.outputs) == ["/data/lab/t1/sink"]]
        assert {one.output_mode for one in batches} == {"append"}

    def test_what_foreach_batch_writes_comes_from_what_the_query_reads(self) -> None:
        found = executions(STREAM)
        inner = found[6]
        assert (inner.root_execution_id, names(inner.outputs)) == (5, ["/data/lab/t1/fb"])
        assert edges(inner.outputs[0]) == ["a <- src.id IDENTITY", "b <- src.v IDENTITY"]
        assert names(found[5].inputs) == ["/data/lab/t1/src"]

    def test_the_batches_of_a_query_have_its_id(self) -> None:
        found = executions(STREAM)
        assert found[4].query_id == "00579080-d9ef-4153-a210-70b1c2a67867"
        assert found[5].query_id == found[6].query_id == "522d1f10-bc5b-4883-a4c0-66b25303feca"
        assert found[3].query_id == ""

    def test_a_batch_that_failed_writes_to_the_sink_that_the_batches_before_it_told_of(self) -> None:
        reader = EventLogReader()
        lines = STREAM.read_bytes().splitlines()
        found = [one for line in lines for one in reader.add(line)]
        batch = next(one for one in found if one.execution_id == 4)
        start = next(line for line in lines if b'ExecutionStart","executionId":4,' in line)
        again = start.replace(b'"executionId":4', b'"executionId":104').replace(
            b'"rootExecutionId":4', b'"rootExecutionId":104'
        )
        end = {
            "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd",
            "executionId": 104,
            "time": 1795291890000,
            "errorMessage": "no space left",
        }
        told = [again, json.dumps(end, separators=(",", ":")).encode()]
        assert [one for line in told for one in reader.add(line)] == []
        (failed,) = reader.finish()
        assert (failed.execution_id, failed.is_failed, failed.query_id) == (104, True, batch.query_id)
        assert (failed.inputs, failed.outputs) == (batch.inputs, batch.outputs)
        assert names(failed.outputs) == ["/data/lab/t1/sink"]

    def test_a_batch_whose_progress_was_never_told_is_given_too(self) -> None:
        reader = EventLogReader()
        lines = [line for line in STREAM.read_bytes().splitlines() if b"QueryProgressEvent" not in line]
        found = [one for line in lines for one in reader.add(line)] + list(reader.finish())
        assert [one.execution_id for one in found if one.query_id] == [4, 6, 5]


class TestJdbc:
    def test_a_write_that_failed_in_the_driver_is_known_to_have_failed(self) -> None:
        found = executions(JDBC)
        assert [number for number, one in found.items() if one.is_failed and one.root_execution_id == number] == [5, 6]
        assert found[1].is_failed is False

    def test_mode_ignore_that_wrote_nothing_ran_no_job(self) -> None:
        ignored = executions(JDBC)[9]
        assert (ignored.mode, ignored.has_jobs, ignored.is_failed) == ("Ignore", False, False)

    def test_a_table_is_known_by_its_name_alone_since_its_url_is_redacted(self) -> None:
        (output,) = executions(JDBC)[1].outputs
        assert (output.dataset.namespace, output.dataset.name) == ("", "DST")
        assert edges(output) == ["id <- u.id IDENTITY", "v <- u.v IDENTITY"]

    def test_a_condition_of_a_value_is_indirect(self) -> None:
        assert edges(executions(JDBC)[6].outputs[0]) == [
            "id <- u.id IDENTITY",
            "v <- u.id CONDITIONAL",
            "v <- u.v TRANSFORMATION",
        ]


class TestTables:
    def test_create_table_as_select_has_what_the_execution_inside_of_it_reads(self) -> None:
        created = executions(TABLES)[26]
        assert names(created.outputs) == ["/data/lab/el_wh/db1.db/t"]
        assert edges(created.outputs[0]) == ["id <- a.id IDENTITY", "v <- a.v IDENTITY"]

    def test_create_table_as_select_has_the_partitions_of_the_execution_inside_of_it(self) -> None:
        saved = executions(LOGS / "spark_359")[3]
        assert (saved.command, saved.partitioned_by) == ("CreateDataSourceTableAsSelectCommand", ("k",))

    def test_an_overwrite_of_partitions_is_partial(self) -> None:
        found = executions(TABLES)
        partial = {number: one.is_partial for number, one in found.items() if one.outputs and one.mode == "Overwrite"}
        # 31 names a partition, 43 overwrites dynamically; 35 overwrites a table, the others directories.
        assert {number: one.partition for number, one in found.items() if one.partition} == {30: ("k=1",), 31: ("k=1",)}
        assert [number for number, is_partial in partial.items() if is_partial] == [31, 43]
        assert partial[35] is False

    def test_a_write_that_failed_in_a_task_is_known_to_have_failed(self) -> None:
        assert executions(TABLES)[42].is_failed is True


def test_times_are_those_that_the_listener_repeats() -> None:
    execution = executions(STREAM)[3]
    assert (execution.application_id, execution.started, execution.ended) == (
        "local-1795291862028",
        1795291877.537,
        1795291878.878,
    )
    assert (execution.has_jobs, execution.is_failed) == (True, False)


def test_an_execution_that_never_ended_is_given_last_and_open() -> None:
    lines = STREAM.read_bytes().splitlines()
    cut = next(at for at, line in enumerate(lines) if b'ExecutionEnd","executionId":3' in line)
    reader = EventLogReader()
    found = [one for line in lines[:cut] for one in reader.add(line)]
    assert [one.execution_id for one in found] == [0, 1, 2]
    (left,) = reader.finish()
    assert (left.execution_id, left.ended, left.is_failed, left.has_jobs) == (3, None, None, True)
    assert names(left.outputs) == ["/data/lab/t1/out"]
    assert list(reader.finish()) == []


def test_lines_that_cannot_be_read_are_set_aside_and_counted(tmp_path) -> None:
    log = tmp_path / "local-1"
    good = STREAM.read_bytes().splitlines()
    torn = good[3][: len(good[3]) // 2]
    log.write_bytes(
        b"\n".join([torn, b"", b"garbage", b'{"Event":"Sp', b'{"Event":"SparkListenerJobStart"\xff}', *good])
    )
    counts = LineCounts()
    assert len(list(read_event_log(log, counts))) == len(executions(STREAM))
    assert counts.set_aside == {"not an event": 5}


def test_events_that_are_not_read_are_passed_over_without_being_decoded() -> None:
    counts = LineCounts()
    assert list(EventLogReader(counts).add(b'{"Event":"SparkListenerTaskStart", this is no JSON')) == []
    assert (counts.read, counts.set_aside) == (0, {})


def test_what_failed_has_the_error_without_its_secrets() -> None:
    event = {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd",
        "executionId": 0,
        "time": 1,
        "errorMessage": f"no answer with password=S3CRET {'x' * 2000}",
    }
    reader = EventLogReader()
    list(reader.add(STREAM.read_bytes().splitlines()[2]))
    start = next(line for line in STREAM.read_bytes().splitlines() if b'ExecutionStart","executionId":0' in line)
    list(reader.add(start))
    (execution,) = reader.add(json.dumps(event, separators=(",", ":")).encode())
    assert execution.is_failed is True
    assert execution.error.startswith("no answer with password=")
    assert len(execution.error) == 1000
    assert "S3CRET" not in repr(execution)


class TestFiles:
    def test_a_directory_gives_all_logs_in_it(self, tmp_path) -> None:
        shutil.copy(STREAM, tmp_path / "local-1795291862028")
        shutil.copytree(DELTA, tmp_path / DELTA.name)
        (tmp_path / "openlineage-events.ndjson").write_text("{}\n")
        applications = {one.application_id for one in read_event_log(tmp_path)}
        assert applications == {"local-1795291862028", "local-1795292252861"}

    def test_parts_are_read_in_the_order_of_their_numbers(self) -> None:
        ids = [one.execution_id for one in read_event_log(DELTA)]
        assert ids.index(0) < ids.index(77)
        assert all(one.ended is not None for one in read_event_log(DELTA))

    def test_a_compressed_log_that_was_cut_gives_what_came_before_the_cut(self, tmp_path) -> None:
        plain = STREAM.read_bytes()
        half = plain.index(b"\n", len(plain) // 2) + 1
        compressor = zstandard.ZstdCompressor()
        whole, torn = compressor.compress(plain[:half]), compressor.compress(plain[half:])
        log = tmp_path / "local-1.zstd.inprogress"
        log.write_bytes(whole + torn[: len(torn) // 2])
        found = [one.execution_id for one in read_event_log(log) if one.ended]
        assert found[:4] == [0, 1, 2, 3]
        assert len(found) < len(executions(STREAM))

    @pytest.mark.parametrize("codec", ["lz4", "lzf", "snappy"])
    def test_a_codec_that_is_not_read_is_named_with_the_remedy(self, tmp_path, codec) -> None:
        log = tmp_path / f"app-1.{codec}"
        log.write_bytes(b"x")
        with pytest.raises(EventLogError, match=rf"{codec}.*spark\.eventLog\.compression\.codec=zstd"):
            list(read_event_log(log))

    def test_the_logs_of_some_applications_are_found_and_of_unknown_ones_none(self, tmp_path) -> None:
        for name in ("eventlog_v2_local-1", "application_2_1.zstd.inprogress", "local-3", "local-10"):
            (tmp_path / name).touch()
        found = [path.name for path in logs_of(tmp_path, ["local-1", "application_2", "local-9"])]
        assert found == ["application_2_1.zstd.inprogress", "eventlog_v2_local-1"]
        assert logs_of(tmp_path, []) == []
        with pytest.raises(FileNotFoundError):
            logs_of(tmp_path / "nothing", ["local-1"])

    def test_where_there_is_no_log_the_error_says_where_it_looked(self, tmp_path) -> None:
        with pytest.raises(EventLogError, match=r"spark\.eventLog\.dir"):
            list(read_event_log(tmp_path / "nothing"))
        with pytest.raises(EventLogError, match="holds no event log"):
            list(read_event_log(tmp_path))


class TestIcebergAndHive:
    def test_an_iceberg_table_has_the_name_that_the_listener_gives_it(self) -> None:
        insert = executions(ICEBERG)[3]
        assert (insert.command, insert.mode) == ("AppendData", "Append")
        (output,) = insert.outputs
        assert (output.dataset.namespace, output.dataset.name) == ("file", "/data/lab/el_wh5/ice/db/t")
        assert [(link.namespace, link.name, link.type) for link in output.symlinks] == [
            ("file:/data/lab/el_wh5/ice", "db.t", "TABLE")
        ]

    def test_an_update_keeps_the_columns_that_it_does_not_change(self) -> None:
        update = executions(ICEBERG)[5]
        assert (update.command, names(update.inputs)) == ("ReplaceData", ["/data/lab/el_wh5/ice/db/t"])
        assert update.is_merge is False
        assert edges(update.outputs[0]) == [
            "* <- t.id FILTER",
            "id <- t.id IDENTITY",
            "k <- t.k IDENTITY",
            "v <- t.id CONDITIONAL",
            "v <- t.v TRANSFORMATION",
        ]

    def test_a_delete_has_edges_from_its_condition_and_from_what_it_keeps(self) -> None:
        assert edges(executions(ICEBERG)[6].outputs[0]) == [
            "* <- t.id FILTER",
            "id <- t.id IDENTITY",
            "k <- t.k IDENTITY",
            "v <- t.v IDENTITY",
        ]

    def test_a_merge_has_edges_from_its_source_and_from_what_its_target_keeps(self) -> None:
        merge = executions(ICEBERG)[7]
        assert (merge.command, merge.is_merge) == ("ReplaceData", True)
        assert names(merge.inputs) == ["/data/lab/el_e5/src", "/data/lab/el_wh5/ice/db/t"]
        assert edges(merge.outputs[0]) == [
            "* <- src.id JOIN",
            "* <- t.id JOIN",
            "id <- src.id IDENTITY",
            "id <- t.id IDENTITY",
            "k <- src.k IDENTITY",
            "k <- t.k IDENTITY",
            "v <- src.v IDENTITY",
            "v <- t.v IDENTITY",
        ]

    def test_a_table_told_without_its_catalog_is_of_the_only_one_there_is(self) -> None:
        found = executions(ICEBERG)
        assert names(found[8].outputs) == names(found[9].outputs) == ["/data/lab/el_wh5/ice/db/c"]

    def test_a_hive_insert_that_overwrites_a_partition_is_partial(self) -> None:
        insert = executions(ICEBERG)[18]
        assert (insert.command, insert.mode, insert.is_partial) == ("InsertIntoHiveTable", "Overwrite", True)
        assert names(insert.outputs) == ["/data/lab/el_wh5/h3"]
        assert edges(insert.outputs[0]) == ["a <- h1.id TRANSFORMATION"]

    def test_create_table_as_select_of_hive(self) -> None:
        created = executions(ICEBERG)[15]
        assert names(created.outputs) == ["/data/lab/el_wh5/h2"]
        assert edges(created.outputs[0]) == ["id <- h1.id IDENTITY", "v <- h1.v IDENTITY"]


def test_a_plan_that_is_like_no_other_costs_only_itself(monkeypatch) -> None:
    counts = LineCounts()
    lines = STREAM.read_bytes().splitlines()
    at = next(at for at, line in enumerate(lines) if b'ExecutionStart","executionId":8' in line)
    event = json.loads(lines[at])
    event["physicalPlanDescription"] = (
        "== Physical Plan ==\nAggregateInPandas (2)\n+- Scan csv (1)\n\n\n"
        "(1) Scan csv\nOutput [1]: [a#1]\n\n(2) AggregateInPandas\nArguments: 1\n"
    )
    lines[at] = json.dumps(event, separators=(",", ":")).encode()
    reader = EventLogReader(counts)
    found = {one.execution_id: one for line in lines for one in reader.add(line)}
    assert counts.set_aside == {"not a known plan": 1}
    assert found[8].ended is not None
    assert (found[8].outputs, names(found[9].inputs)) == ((), ["/data/lab/t1/src"])


class TestSpark35:
    def test_it_is_read_alike(self) -> None:
        found = executions(LOGS / "spark_359")
        assert names(found[8].outputs) == ["/data/lab/el_35/sink"]
        assert edges(found[8].outputs[0]) == ["* <- src.v FILTER", "id <- src.id IDENTITY", "z <- src.v TRANSFORMATION"]
        assert edges(found[10].outputs[0]) == ["a <- src.id IDENTITY", "b <- src.v IDENTITY"]
        assert edges(found[2].outputs[0]) == [
            "* <- src.id FILTER",
            "* <- src.id GROUP_BY",
            "* <- src.id JOIN",
            "* <- src.k GROUP_BY",
            "* <- src.v FILTER",
            "* <- src.v GROUP_BY",
            "c <- src.k CONDITIONAL",
            "c <- src.v TRANSFORMATION",
            "id <- src.id IDENTITY",
            "sv <- src.v AGGREGATION",
        ]
        assert (found[5].mode, found[5].is_partial) == ("Overwrite", True)
        assert found[11].is_failed is True
        assert found[7].statement is not None


# Of PySpark 4.2 with Delta 4.4 and spark.sql.debug.maxToStringFields=25, which is its default.
CUT_UPDATE = """== Physical Plan ==
Execute UpdateCommand (1)
   +- UpdateCommand (2)
         +- SubqueryAlias (4)
            +- LogicalRelation (3)


(1) Execute UpdateCommand
Output [1]: [num_affected_rows#39L]

(2) UpdateCommand
Arguments: Delta[version=0, file:/data/lab/work/wide], [{columns}, ... 9 more fields], (id#0L > 1)

(3) LogicalRelation
Arguments: parquet, [{columns}, ... 9 more fields], false

(4) SubqueryAlias
Arguments: spark_catalog.delta.`/data/lab/work/wide`
""".format(columns=", ".join(["id#0L", *(f"c{number}#{number}" for number in range(1, 25))]))


class TestCut:
    @staticmethod
    def of_plan(text):
        start = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "executionId": 0}
        event = start | {"time": 1795292084715, "physicalPlanDescription": text}
        reader = EventLogReader()
        list(reader.add(json.dumps(event, separators=(",", ":")).encode()))
        (execution,) = reader.finish()
        return execution, reader.counts

    def test_what_a_cut_update_tells_is_true_and_not_all_of_its_columns(self) -> None:
        update, counts = self.of_plan(CUT_UPDATE)
        assert counts.set_aside == {"a plan cut by spark.sql.debug.maxToStringFields": 1}
        (output,) = update.outputs
        assert (output.dataset.name, output.schema) == ("/data/lab/work/wide", ())
        assert edges(output)[:2] == ["* <- wide.id FILTER", "c1 <- wide.c1 IDENTITY"]

    def test_a_whole_update_names_its_columns(self) -> None:
        update, counts = self.of_plan(CUT_UPDATE.replace(", ... 9 more fields", ""))
        assert (counts.set_aside, len(update.outputs[0].schema)) == ({}, 25)

    @pytest.mark.parametrize("table", ["`default`.`wide`", "`c`.`default`.`wide`, o.a.hive.LazySimpleSerDe"])
    def test_update_of_a_table_of_a_metastore_names_its_columns(self, table) -> None:
        update, _ = self.of_plan(
            CUT_UPDATE.replace(", ... 9 more fields", "").replace("wide], [", f"wide], {table}, [")
        )
        assert (len(update.outputs[0].schema), update.unread) == (25, ())

    @pytest.mark.parametrize(
        ("columns", "names", "unread"),
        [
            ("b#7, c#100L, a#101, d#102", ["b#7, c", "a", "d"], ()),
            # Two ends have the id 12: each may be that of the first column.
            ("a#12, No #12, old#13, d#14", [], ("UpdateCommand: its columns",)),
        ],
    )
    def test_an_update_names_columns_that_look_like_several_or_counts_them(self, columns, names, unread) -> None:
        text = re.sub(r"\[id#0L.*? fields\]", f"[{columns}]", CUT_UPDATE)
        update, _ = self.of_plan(text.replace("id#0L", columns.rpartition(", ")[2]))
        assert ([field.name for field in update.outputs[0].schema], update.unread) == (names, unread)
        assert {edge[2] for edge in update.outputs[0].edges} == set(names)

    def test_what_a_write_says_of_its_columns_besides_is_not_what_they_come_from(self) -> None:
        text = """== Physical Plan ==
Execute InsertIntoHadoopFsRelationCommand (2)
+- Scan parquet  (1)


(1) Scan parquet
Output [2]: [a#1, b#2]
Location: InMemoryFileIndex [file:/data/lab/work/wide]
ReadSchema: struct<a:int,... 1 more fields>

(2) Execute InsertIntoHadoopFsRelationCommand
Input [2]: [a#1, b#2]
Arguments: file:/data/lab/work/out, false, Parquet, [path=/data/lab/work/out], Overwrite, [a, ... 1 more fields]
"""
        write, counts = self.of_plan(text)
        assert counts.set_aside == {}
        assert [field.name for field in write.outputs[0].schema] == ["a", "b"]


def test_a_plan_that_is_cut_tells_when_its_execution_ran_and_nothing_else() -> None:
    counts = LineCounts()
    lines = [json.loads(line) for line in STREAM.read_bytes().splitlines()]
    for event in lines:
        if "physicalPlanDescription" in event:
            plan = event["physicalPlanDescription"]
            event["physicalPlanDescription"] = f"{plan[: len(plan) // 2]}... {len(plan) // 2} more characters"
    reader = EventLogReader(counts)
    found = [one for event in lines for one in reader.add(json.dumps(event, separators=(",", ":")).encode())]
    found += reader.finish()
    cut = "a plan cut by spark.sql.maxPlanStringLength"
    assert {one.unread for one in found if one.execution_id >= 0} == {(cut,)}
    assert counts.set_aside == {cut: len([event for event in lines if "physicalPlanDescription" in event])}
    assert not [one for one in found if one.execution_id >= 0 and (one.command or one.statement)]
    assert all(one.ended for one in found if one.execution_id >= 0)


class TestApplication:
    """What a log tells of the application itself."""

    def described(self, log: Path) -> list[LoggedApplication]:
        found: list[LoggedApplication] = []
        list(read_event_log(log, describe=found.append))
        return found

    def test_it_is_told_when_it_begins_and_when_it_ends_by_the_names_that_it_was_submitted_with(self) -> None:
        begun, ended = self.described(LOGS / "written.zstd")
        application = Application(
            run_id="01890a5d-ac96-7dde-8a63-0123456789cd",
            job_namespace="airflow",
            job_name="shop_load_spark",
            application_id="local-1795452749174",
            spark_version="4.2.0",
            master="local[2]",
            deploy_mode="client",
        )
        assert begun == LoggedApplication(
            application,
            started=begun.started,
            parent=ParentRun("01890a5d-ac96-7dde-8a63-0123456789ab", "airflow", "shop.load"),
        )
        assert ended == structs.replace(begun, ended=ended.ended)
        assert ended.ended is not None
        assert ended.ended > begun.started

    def test_one_that_was_submitted_without_such_names_has_the_same_run_id_each_time(self, tmp_path: Path) -> None:
        start = {"Event": "SparkListenerApplicationStart", "App Name": "orders", "App ID": "local-1", "Timestamp": 5000}
        (tmp_path / "local-1").write_text(json.dumps(start, separators=(",", ":")))
        (one,) = self.described(tmp_path / "local-1")
        application = one.application
        assert (application.job_namespace, application.job_name) == ("default", "orders")
        assert (one.started, one.parent) == (5.0, None)
        assert uuid.UUID(application.run_id)
        assert self.described(tmp_path / "local-1") == [one]
        (tmp_path / "local-1").write_text(json.dumps(start | {"Timestamp": 6000}, separators=(",", ":")))
        assert self.described(tmp_path / "local-1")[0].application.run_id != application.run_id


def test_what_was_written_is_counted_by_the_metrics_of_the_node_that_writes() -> None:
    written = {
        output.dataset.name: output.statistics
        for one in executions(LOGS / "written.zstd").values()
        for output in one.outputs
        if output.statistics is not None
    }
    assert written == {
        "/data/lab/out/a": Statistics(row_count=100, size=2024, file_count=2),
        # An adaptive plan has other accumulators each time that it changes.
        "/data/lab/out/b": Statistics(row_count=100, size=590, file_count=14),
        "/data/lab/warehouse/t1": Statistics(row_count=49, size=1376, file_count=2),
    }


def test_what_was_read_of_files_is_counted_by_the_metrics_of_their_scan(tmp_path) -> None:
    with zipfile.ZipFile(RECORDED / "append_to_paths.zip") as recording:
        recording.extractall(tmp_path)
    found = executions(tmp_path / "eventlog")
    assert [found[number].inputs[0].statistics for number in (1, 3)] == [
        Statistics(size=1380, file_count=2),
        Statistics(size=678, file_count=1),
    ]


@pytest.mark.parametrize("is_of_session", [True, False])
def test_overwrite_mode_of_session_or_application_replaces_partitions_alone(
    tmp_path: Path, *, is_of_session: bool
) -> None:
    mode = "spark.sql.sources.partitionOverwriteMode"
    with zipfile.ZipFile(RECORDED / "partition_overwrite.zip") as archive:
        (name,) = (each for each in archive.namelist() if each.startswith("eventlog/"))
        lines = [json.loads(line) for line in archive.read(name).splitlines()]
    for line in lines:
        if not is_of_session and line.get("modifiedConfigs", {}).get(mode):
            del line["modifiedConfigs"][mode]
        if not is_of_session and line["Event"] == "SparkListenerEnvironmentUpdate":
            line["Spark Properties"][mode] = "dynamic"
    log = tmp_path / Path(name).name
    log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    overwrites = [one for one in read_event_log(log) if one.mode == "Overwrite" and not one.partition]
    assert [one.is_partial for one in overwrites] == [True]


@pytest.mark.parametrize(("error", "place"), [("", "/lake/t"), ("it is there", "db.t")])
def test_database_is_where_a_command_that_succeeded_puts_it(error: str, place: str) -> None:
    reader = EventLogReader()
    sql = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
    plans = {
        1: ("CreateNamespace", "V2SessionCatalog(spark_catalog), [db], false, [location=/lake]"),
        2: ("CreateDataSourceTableAsSelectCommand", "`spark_catalog`.`db`.`t`, ErrorIfExists, [id]"),
    }
    lines = [{
        "Event": "SparkListenerEnvironmentUpdate",
        "Spark Properties": {"spark.sql.warehouse.dir": "/wh"},
        "System Properties": {},
    }]  # fmt: skip
    for number, (name, arguments) in plans.items():
        text = f"== Physical Plan ==\nExecute {name} (1)\n\n\n(1) Execute {name}\nArguments: {arguments}\n\n"
        start = {"description": "", "details": "", "physicalPlanDescription": text, "sparkPlanInfo": None, "time": 1}
        end = {"errorMessage": error if number == 1 else "", "time": 2}
        lines += [
            {"Event": f"{sql}Start", "executionId": number, **start},
            {"Event": f"{sql}End", "executionId": number, **end},
        ]
    found = [one for line in lines for one in reader.add(json.dumps(line, separators=(",", ":")).encode())]
    (table,) = found[-1].outputs
    assert table.dataset.name == place
