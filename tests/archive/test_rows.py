"""Events laid flat: those of the corpus, and one that has everything."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from archive_bench import CORPUS, corpus_events, merged_event
from openlineage.client.serde import Serde

from spark_lineage.archive.rows import OF_ROWS, rows
from spark_lineage.emit.run_event import run_event
from spark_lineage.merge.lineage import (
    Application,
    Attempt,
    Catalog,
    CatalogChange,
    ColumnChange,
    ColumnLineage,
    DatasetLineage,
    InputField,
    PartitionChange,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    TaskLineage,
    Transformation,
    UnknownDatasets,
    UnreadPart,
    Write,
)
from spark_lineage.merge.transition import StatusSummary, StatusTransition
from spark_lineage.naming.identity import DatasetName

TIME = datetime(2026, 1, 31, 12, 30, 15, 123456, tzinfo=UTC)
TIME_TEXT = "2026-01-31T12:30:15.123456Z"
RAW, MART = DatasetName("hdfs://prod", "/raw"), DatasetName("hive://prod", "shop.mart")
NESTED = SchemaField(
    "address", "struct", "where", (SchemaField("city", "string", None, (SchemaField("code", "int"),)),)
)
SCHEMA = [
    {"name": "address", "type": "struct", "description": "where"},
    {"name": "address.city", "type": "string", "description": None},
    {"name": "address.city.code", "type": "int", "description": None},
    {"name": "amount", "type": "decimal", "description": None},
]


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """Return an event that has something of everything."""
    direct = InputField(RAW, "amount", (Transformation("DIRECT", "AGGREGATION", "sum", masking=True),))
    twice = InputField(
        RAW, "address", (Transformation("DIRECT", "IDENTITY"), Transformation("INDIRECT", "FILTER", "", masking=False))
    )
    lineage = TaskLineage(
        state="FAIL",
        inputs=(
            DatasetLineage(RAW, statistics=Statistics(row_count=0, size=2**70)),
            DatasetLineage(DatasetName("file", "/other")),
        ),
        outputs=(
            DatasetLineage(
                MART,
                schema=(NESTED, SchemaField("amount", "decimal")),
                symlinks=(Symlink("hdfs://prod", "/mart", "LOCATION"),),
                storage=Storage("iceberg", "parquet"),
                catalog=Catalog("iceberg", "hive", "prod", "spark", "thrift://meta", "hdfs://prod/wh"),
                versions=("7",),
                statistics=Statistics(3, 4, 5),
                column_lineage=ColumnLineage((("total", (direct, twice)),), (InputField(RAW, "amount"),)),
                lifecycle="RENAME",
                previous_name=DatasetName("hive://prod", "shop.old"),
                fed_by=(RAW,),
                writes=(Write("OVERWRITE", "overwrite", is_partial=True), Write("INSERT", output_mode="append")),
            ),
        ),
        attempted=(Attempt(DatasetName("file", "/bad"), "failed", "no space"),),
        unconfirmed=(MART,),
        unknown=(UnknownDatasets("DoSomethingCommand", 2),),
        unread=(UnreadPart("BatchScan prices", 1),),
        catalog_changes=(
            CatalogChange("DROP", "TABLE", DatasetName("file", "/x"), "db.x", TIME, is_certain=False, is_ignored=None),
            CatalogChange(
                "RENAME",
                "TABLE",
                MART,
                "shop.mart",
                TIME,
                "shop.old",
                columns=(ColumnChange(None, NESTED), ColumnChange(SchemaField("gone"), None)),
                schema=(NESTED, SchemaField("amount", "decimal")),
                properties=(("comment", "the mart"), ("password", "hunter2")),
                catalog="ice",
                partitioned_by=("days(at)",),
                unset_properties=("owner",),
                partitions=(PartitionChange(None, "day=1", "/data/day"), PartitionChange("day=0", None)),
                repair="SYNC",
            ),
        ),
        applications=(
            Application("r", "shop", "load", "app-1", "4.2.0", "1.53.0", "yarn", "cluster", "http://ui", True),
        ),
        ended_at=TIME,
        is_streaming=True,
        status=StatusSummary(
            transitions=(
                StatusTransition("APPLICATION", "app-1", None, "RUNNING", TIME, "driver UI"),
                StatusTransition("DRIVER", "d", "RUNNING", "FAILED", TIME, "standalone", "app-1", "ERROR", "Boom"),
            ),
            counts=(("SPARK_JOB", "FAILED", 3),),
            error="out of memory",
            ui_url="http://ui",
            history_url="http://history",
            logs_url="http://logs",
        ),
    )
    event: dict[str, Any] = Serde.to_dict(
        run_event(
            lineage, None, job_namespace="shop", job_name="etl.load", run_id="0190e6e0-0000-7000-8000-000000000000"
        )
    )
    return event


def test_a_run(whole: dict[str, Any]) -> None:
    assert rows(whole)["runs"] == [
        {
            "job_namespace": "shop",
            "job_name": "etl.load",
            "event_type": "FAIL",
            "event_time": TIME_TEXT,
            "processing_type": "STREAMING",
            "spark_version": "4.2.0",
            "openlineage_adapter_version": "1.53.0",
            "applications": [
                {
                    "run_id": "r",
                    "namespace": "shop",
                    "name": "load",
                    "application_id": "app-1",
                    "master": "yarn",
                    "deploy_mode": "cluster",
                    "ui_url": "http://ui",
                    "is_ended": True,
                }
            ],
            "input_count": 2,
            "output_count": 1,
            "attempted_outputs": [{"namespace": "file", "name": "/bad", "reason": "failed", "error": "no space"}],
            "unknown_commands": [{"command": "DoSomethingCommand", "count": 2}],
            "unread_parts": [{"name": "BatchScan prices", "count": 1}],
            "status_counts": [{"subject": "SPARK_JOB", "status": "FAILED", "count": 3}],
            "error_message": "out of memory",
            "ui_url": "http://ui",
            "history_url": "http://history",
            "logs_url": "http://logs",
        }
    ]


def test_inputs_and_outputs(whole: dict[str, Any]) -> None:
    first, second = rows(whole)["run_inputs"]
    # A true 0 is a number; what no BIGINT holds is not told.
    assert (first["namespace"], first["name"], first["row_count"], first["size"]) == ("hdfs://prod", "/raw", 0, None)
    assert (second["name"], second["schema"], second["symlinks"], second["row_count"]) == ("/other", [], [], None)
    (output,) = rows(whole)["run_outputs"]
    assert output == {
        "namespace": "hive://prod",
        "name": "shop.mart",
        "schema": SCHEMA,
        "symlinks": [{"namespace": "hdfs://prod", "name": "/mart", "type": "LOCATION"}],
        "storage_layer": "iceberg",
        "file_format": "parquet",
        "catalog_framework": "iceberg",
        "catalog_type": "hive",
        "catalog_name": "prod",
        "catalog_metadata_uri": "thrift://meta",
        "catalog_warehouse_uri": "hdfs://prod/wh",
        "dataset_version": "7",
        "row_count": 3,
        "size": 4,
        "file_count": 5,
        "lifecycle_state_change": "RENAME",
        "previous_namespace": "hive://prod",
        "previous_name": "shop.old",
        "writes": [
            {"operation": "OVERWRITE", "mode": "overwrite", "is_partial": True, "output_mode": None},
            {"operation": "INSERT", "mode": None, "is_partial": False, "output_mode": "append"},
        ],
        "is_unconfirmed": True,
    }


def test_edges(whole: dict[str, Any]) -> None:
    ends = {"input_namespace": "hdfs://prod", "input_name": "/raw", "output_namespace": "hive://prod"}
    ends["output_name"] = "shop.mart"
    assert rows(whole)["dataset_edges"] == [ends]
    edges = rows(whole)["column_edges"]
    assert all(ends.items() <= edge.items() for edge in edges)
    assert [[value for key, value in edge.items() if key not in ends] for edge in edges] == [
        ["amount", "total", "DIRECT", "AGGREGATION", "sum", True],
        ["address", "total", "DIRECT", "IDENTITY", None, False],
        ["address", "total", "INDIRECT", "FILTER", None, False],
        ["amount", None, None, None, None, None],
    ]


def test_catalog_changes(whole: dict[str, Any]) -> None:
    drop, rename = rows(whole)["catalog_changes"]
    assert (drop["position"], drop["is_certain"], drop["is_ignored"], drop["columns"]) == (0, False, None, [])
    assert rename == {
        "position": 1,
        "change": "RENAME",
        "object_type": "TABLE",
        "object_name": "shop.mart",
        "previous_object_name": "shop.old",
        "namespace": "hive://prod",
        "name": "shop.mart",
        "time": TIME_TEXT,
        "is_certain": True,
        "is_ignored": False,
        "columns": [
            {"old": None, "new": SCHEMA[0]},
            {"old": {"name": "gone", "type": None, "description": None}, "new": None},
        ],
        "schema": SCHEMA,
        # As in the event.
        "properties": {"comment": "the mart", "password": "***"},
        "catalog": "ice",
        "database": "shop",
        "partitioned_by": ["days(at)"],
        "unset_properties": ["owner"],
        "partitions": [
            {"old": None, "new": "day=1", "location": "/data/day"},
            {"old": "day=0", "new": None, "location": None},
        ],
        "repair": "SYNC",
    }


def test_status_transitions(whole: dict[str, Any]) -> None:
    first, second = rows(whole)["status_transitions"]
    assert (first["position"], first["old_status"], first["detail"]) == (0, None, None)
    assert second == {
        "position": 1,
        "subject": "DRIVER",
        "subject_id": "d",
        "old_status": "RUNNING",
        "new_status": "FAILED",
        "time": TIME_TEXT,
        "source": "standalone",
        "application_id": "app-1",
        "detail": "ERROR",
        "exception": "Boom",
    }


def test_an_event_with_nothing_in_it_is_one_row() -> None:
    event = Serde.to_dict(
        run_event(
            TaskLineage("COMPLETE"),
            None,
            job_namespace="a",
            job_name="b",
            run_id="0190e6e0-0000-7000-8000-000000000000",
        )
    )
    made = rows(event)
    assert {name: len(each) for name, each in made.items()} == dict.fromkeys(OF_ROWS, 0) | {"runs": 1}


@pytest.mark.parametrize("name", [path.stem for path in CORPUS])
def test_nothing_of_the_corpus_is_lost(name: str) -> None:
    event = merged_event(name)
    made = rows(event)
    assert [(row["namespace"], row["name"]) for row in made["run_outputs"]] == [
        (output["namespace"], output["name"]) for output in event["outputs"]
    ]
    assert len(made["run_inputs"]) == len(event["inputs"])
    assert len(made["column_edges"]) == json.dumps(event).count('"masking"')
    assert len(made["dataset_edges"]) == sum(
        len(entry["inputs"]) for entry in event["job"]["facets"].get("lineage", {"entries": []})["entries"]
    )


def test_the_corpus_has_rows_of_nearly_all_tables() -> None:
    found = {name for event in corpus_events() for name, made in rows(event).items() if made}
    assert found == set(OF_ROWS) - {"status_transitions"}


def test_executors_need_nothing_for_it() -> None:
    program = (
        "import sys; before = set(sys.modules); import spark_lineage.archive.rows; "
        "print(*{name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.split() == ["spark_lineage"]
