"""The example in a real Airflow, on a real Spark: what it merges, and what its own event says that it did."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.archive.rows import TABLES

REPOSITORY = Path(__file__).parents[2]
EVENTS = REPOSITORY / "tests" / "fixtures" / "events"
# In the recorded files all applications are of one task.
TASK, OTHER_TASK = b"01890a5d-ac96-7dde-8a63-0123456789ab", b"01890a5d-ac96-7dde-8a63-0123456789cd"
MERGED = {"a_414": TASK, "b_414": TASK, "c_414": OTHER_TASK}

pytestmark = [pytest.mark.spark, pytest.mark.truth]


def add(files: Path, name: str, run_id: bytes) -> None:
    """Leave a file as a driver leaves it."""
    (files / name).mkdir(parents=True)
    content = (EVENTS / f"{name}.ndjson").read_bytes()
    assert TASK in content
    (files / name / "openlineage-events.ndjson").write_bytes(content.replace(TASK, run_id))


@pytest.fixture(scope="module")
def log(airflow: Any) -> str:
    """What the DAG run printed; it runs once for all tests of this module."""
    shutil.copy(REPOSITORY / "dags_example" / "lineage_archive.py", airflow.home / "dags")
    for name, run_id in MERGED.items():
        add(airflow.home / "files", name, run_id)
    airflow.env |= {
        "SPARK_LINEAGE_EXAMPLE_FILES": str(airflow.home / "files"),
        "SPARK_LINEAGE_EXAMPLE_ARCHIVE": str(airflow.home / "archive"),
    }
    printed: str = airflow.command("dags", "test", "lineage_archive", "2024-01-02")
    return printed


def names(datasets: list[dict[str, Any]]) -> list[str]:
    return sorted(f"{one['namespace']} {one['name']}" for one in datasets)


def test_it_merges_all_tasks(airflow: Any, log: str) -> None:
    files = sorted((airflow.home / "archive" / "events").rglob("part-*"))
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    applications = {
        event["run"]["runId"].encode(): len(event["run"]["facets"]["sparkLineage_application"]["applications"])
        for event in events
    }
    assert applications == {TASK: 2, OTHER_TASK: 1}, log[-6000:]


def test_its_own_event_names_the_files_and_the_tables(airflow: Any, log: str) -> None:
    start, event = airflow.events_of("lineage_archive.merge")
    assert (start["eventType"], event["eventType"]) == ("START", "COMPLETE"), log[-6000:]
    files = f"file {airflow.home}/files"
    tables = [f"file {airflow.home}/archive/{name}" for name in sorted(("events", *TABLES))]
    assert names(event["inputs"]) == [files]
    assert names(event["outputs"]) == tables
    edges = event["job"]["facets"]["lineage"]["entries"]
    assert [names(one["inputs"]) for one in edges] == [[files]] * len(tables)
    assert not {"sparkLineage_unknownDatasets", "sparkLineage_attemptedOutputs"} & event["run"]["facets"].keys()
