"""What jobs name of the RDDs that they read: files, tables, rows of a plan, and what no event names."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from spark_lineage.plans.event_log import read_event_log
from spark_lineage.plans.event_log_lines import JobStart, Rdd, Stage, decoded
from spark_lineage.plans.rdds import RddRows, Rows
from spark_lineage.plans.tables import Tables

RECORDED = Path(__file__).parents[1] / "truth" / "recorded"
WORK = "/data/lab/work/"


def recorded(job, version, tmp_path):
    """Return the executions of a recorded program by what they write, the last of each."""
    with zipfile.ZipFile(RECORDED / version / f"{job}.zip") as recording:
        recording.extractall(tmp_path)
    found = list(read_event_log(tmp_path / "eventlog"))
    return {one.outputs[0].dataset.name.removeprefix(WORK): one for one in found if one.outputs}, found


def inputs(execution):
    return sorted(read.dataset.name.removeprefix(WORK) for read in execution.inputs)


@pytest.mark.parametrize("version", ["3.5", "4.1", "4.2"])
def test_rdds_of_an_execution_with_named_files_are_its_inputs(tmp_path, version) -> None:
    written, _ = recorded("rdds_into_frames", version, tmp_path)
    assert {output: inputs(one) for output, one in written.items() if output != "warehouse/events"} == {
        "out/prices": ["in/prices.csv"],
        "out/orders": ["in/orders.txt"],
        "out/hits": ["in/hits.txt"],
        "out/both": ["in/left.txt", "in/right.txt"],
        "out/left": ["in/left.txt"],
        "out/pairs": ["in/left.txt", "in/right.txt"],
        "out/people": ["people/ages.txt", "people/names.txt"],
        "out/names": ["people/names.txt"],
        "out/sizes": ["docs", "images/one.png"],
        "out/codes": ["codes"],
        # It was cut off from its file by a checkpoint.
        "out/lines": ["in/lines.txt"],
        "out/priced": ["in/orders.txt", "in/prices.csv"],
        "out/local": [],
    }
    assert written["out/orders"].unread == ("Scan ExistingRDD: its columns",)
    assert (written["out/local"].unread, written["out/local"].has_rdds) == ((), False)


@pytest.mark.parametrize("version", ["3.5", "4.2"])
def test_commands_with_rows_of_rdds_have_their_files(tmp_path, version) -> None:
    written, found = recorded("rdds_in_commands", version, tmp_path)
    assert inputs(written["PUBLIC.NAMES"]) == ["in/jdbc.txt"]
    assert inputs(written["warehouse/names_table"]) == ["in/insert.txt"]
    assert inputs(written["out/cached"]) == ["in/cached.txt"]
    assert inputs(written["out/union"]) == ["in/left.txt", "in/right.csv"]
    # Inside of a micro-batch an RDD may be the batch, and is none where its job names a file.
    assert inputs(written["out/batches"]) == []
    assert {edge[1].name for edge in written["out/batches"].outputs[0].edges} == {f"{WORK}stream"}
    assert inputs(written["out/beside"]) == ["in/beside.txt"]
    assert written["out/beside"].outputs[0].edges == frozenset()
    assert Counter(part for one in found for part in one.unread) == {"Scan ExistingRDD: its columns": 9}


@pytest.mark.parametrize("version", ["3.5", "4.1", "4.2"])
def test_scans_below_rdds_are_tables_by_their_names_and_else_unread(tmp_path, version) -> None:
    written, found = recorded("rdds_of_tables", version, tmp_path)
    assert inputs(written["out/orders"]) == ["default.orders"]
    customers = written["out/customers"]
    assert (inputs(customers), customers.unread) == ([], ("JDBCRDD: its table", "Scan ExistingRDD: its columns"))
    saved = [one for one in found if one.command == "saveAsTextFile"]
    assert [(inputs(one), one.unread) for one in saved[-1:]] == [([], ("Scan csv: its files",))]


@pytest.mark.parametrize("version", ["3.5", "4.1"])
def test_scans_of_iceberg_below_rdds_are_tables(tmp_path, version) -> None:
    written, found = recorded("iceberg_rdds", version, tmp_path)
    assert inputs(written["ice/db/names"]) == ["ice/db/customers"]
    assert inputs(next(one for one in found if one.command == "saveAsTextFile")) == ["ice/db/limits"]


@pytest.mark.parametrize("version", ["3.5", "4.0", "4.1", "4.2"])
def test_a_checkpoint_of_a_frame_has_the_source_that_its_rdd_had_before(tmp_path, version) -> None:
    written, _ = recorded("checkpoints", version, tmp_path)
    assert (inputs(written["big"]), inputs(written["names"])) == (["orders.csv"], ["customers.csv"])


def job(*rdds, stage="collect at program.py:1", **more):
    return JobStart(id=1, stage_infos=[Stage(name=stage, rdds=list(rdds))], **more)


def rdd(number, name, method="", parents=()):
    return Rdd(id=number, name=name, scope=json.dumps({"id": "1", "name": method}) if method else None,
               parents=list(parents))  # fmt: skip


SCAN = rdd(1, "FileScanRDD", "Scan csv ")
QUERY = rdd(3, "SQLExecutionRDD", parents=[1])
UNREAD = Rows(unread=frozenset({(1, "Scan csv: its files")}))


def test_a_scan_without_a_name_is_unread_in_its_first_job_alone() -> None:
    rows = RddRows(Tables())
    assert rows.of_job(job(SCAN, QUERY)) == UNREAD
    assert rows.of_job(job(SCAN, QUERY, rdd(4, "PythonRDD", parents=[3]))) == Rows()


OVER_CONNECT = 'Spark Connect - session_id: "1"\nuser_context {\n  user_id: "ada"\n}\nplan {\n  command {\n    %s {...'


@pytest.mark.parametrize(
    "stage",
    [
        "csv at NativeMethodAccessorImpl.java:0",
        "json at A.scala:1",
        "load at B.scala:2",
        OVER_CONNECT % "write_operation",
    ],
)
def test_schema_inference_has_no_unread_files(stage) -> None:
    assert RddRows(Tables()).of_job(job(SCAN, QUERY, stage=stage)) == Rows()


def test_rows_of_a_model_over_connect_are_unread() -> None:
    assert RddRows(Tables()).of_job(job(SCAN, QUERY, stage=OVER_CONNECT % "ml_command")) == UNREAD


def test_a_scan_that_the_plan_of_an_execution_has_names_the_rdd_in_later_jobs() -> None:
    rows, read = RddRows(Tables()), Tables().at("/in/a.csv")
    assert rows.of_job(job(SCAN, QUERY)) == UNREAD
    own = job(SCAN, rdd(2, "MapPartitionsRDD", "Scan csv ", [1]))
    assert rows.of_execution(own, {"Scan csv": (read,)}, has_rows_of_program=False) == Rows()
    assert rows.of_job(job(SCAN, QUERY)) == Rows(frozenset({read}))


def test_two_scans_of_a_name_in_a_plan_name_no_rdd() -> None:
    rows = RddRows(Tables())
    rows.of_execution(job(SCAN), {"Scan csv": None}, has_rows_of_program=False)
    assert rows.of_job(job(SCAN, QUERY)) == UNREAD


def test_an_execution_without_rdds_of_the_program_has_none_that_is_unread() -> None:
    """Delta and others read through RDDs of their own."""
    jobs = job(SCAN, QUERY, rdd(4, "MapPartitionsRDD", "map", [3]), rdd(5, "MapPartitionsRDD", "Exchange", [4]))
    assert RddRows(Tables()).of_execution(jobs, {}, has_rows_of_program=False) == Rows()
    assert RddRows(Tables()).of_execution(jobs, {}, has_rows_of_program=True) == UNREAD


@pytest.mark.parametrize(
    "leaf",
    [
        rdd(1, "ParallelCollectionRDD", "parallelize"),
        rdd(1, "my values", "parallelize"),
        rdd(1, "EmptyRDD"),
        rdd(1, "Delta Table State #1 - file:///t/_delta_log", "map", [0]),
    ],
)
def test_values_are_rows_of_no_dataset(leaf) -> None:
    assert RddRows(Tables()).of_job(job(leaf)) == Rows()


@pytest.mark.parametrize(
    ("leaf", "part"),
    [
        (rdd(1, "JDBCRDD"), "JDBCRDD: its table"),
        (rdd(1, "HadoopRDD"), "HadoopRDD: its files"),
        (rdd(1, "ReliableCheckpointRDD", "checkpoint"), "ReliableCheckpointRDD: its rows"),
        (rdd(1, "my secret"), "RDD: its rows"),
        (rdd(2, "MapPartitionsRDD", "map", [1]), "ReliableCheckpointRDD: its rows"),
    ],
)
def test_an_rdd_that_names_no_dataset_is_unread(leaf, part) -> None:
    assert RddRows(Tables()).of_job(job(leaf)).parts == (part,)


def test_jobs_of_the_drivers_ui_have_no_rdds_and_what_they_read_is_unread() -> None:
    ui = decoded(b'{"Event":"SparkListenerJobStart","Job ID":3}')
    rows = RddRows(Tables()).of_execution(ui, {}, has_rows_of_program=True)
    assert rows.parts == ("Scan ExistingRDD: its rows",)
    assert RddRows(Tables()).of_execution(job(), {}, has_rows_of_program=True) == Rows()


def test_a_scope_that_is_no_json_names_nothing() -> None:
    assert Rdd(scope="{").method == ""


def test_rdds_are_forgotten_when_there_are_many(monkeypatch) -> None:
    monkeypatch.setattr("spark_lineage.plans.rdds._REMEMBERED", 2)
    rows = RddRows(Tables())
    rows.of_job(job(*(rdd(number, "EmptyRDD") for number in range(5))))
    assert len(rows._known) == 2
