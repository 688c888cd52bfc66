"""The notebook of the example answers its questions, on the tables of a small shop."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from archive_bench import documents, merged_event

from spark_lineage.archive.destination import Current, Destination
from spark_lineage.archive.tables import write_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.shares("spark"), pytest.mark.truth]

NOTEBOOK = Path(__file__).parents[2] / "dags_example" / "notebooks" / "lineage_questions.py"


def task(number: int, day: str, job: str, sources: list[str], target: str, state: str = "COMPLETE") -> dict[str, Any]:
    """Return a task that makes column ``x`` of a table of those of others, and filters by ``y``."""
    run_id = f"0190e6e0-0000-7000-8000-{number:012}"
    event = merged_event("i2_ol1", run_id=run_id, day=day, job=job)
    names = [{"namespace": "hive", "name": source} for source in sources]
    event["eventType"] = state
    if state == "FAIL":
        event["run"]["facets"]["errorMessage"] = {"message": f"boom {number}"}
    event["inputs"] = names
    direct = [{**each, "field": "x", "transformations": [{"type": "DIRECT", "masking": False}]} for each in names]
    indirect = [{**each, "field": "y", "transformations": [{"type": "INDIRECT", "masking": False}]} for each in names]
    lineage = {"fields": {"x": {"inputFields": [*direct, *indirect]}}, "dataset": indirect}
    event["outputs"] = [{"namespace": "hive", "name": target, "facets": {"columnLineage": lineage}}]
    event["job"]["facets"]["lineage"] = {"entries": [{"namespace": "hive", "name": target, "inputs": names}]}
    return event


@pytest.fixture(scope="module")
def archive(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("shop")
    dropped = task(4, "2026-01-20", "old", ["raw"], "gone")
    change = {"change": "DROP", "objectType": "TABLE", "objectName": "gone", "namespace": "hive", "name": "gone"}
    cleaning = task(5, "2026-01-30", "clean", ["raw"], "orders", "FAIL")
    cleaning["run"]["facets"]["sparkLineage_catalogChanges"] = {
        "changes": [{**change, "time": "2026-01-31T00:00:00Z", "isCertain": True}]
    }
    events = [
        task(1, "2026-01-20", "load", ["raw"], "archive"),
        task(2, "2026-01-30", "load", ["raw", "customers"], "orders"),
        # What feeds itself does not keep the walk going.
        task(3, "2026-01-31", "sum up", ["orders", "totals"], "totals"),
        dropped,
        cleaning,
        task(6, "2026-01-31", "clean", ["raw"], "orders", "FAIL"),
        task(7, "2026-01-31", "load", ["raw"], "orders", "FAIL"),
    ]
    destination = Destination(spark, str(home / "out"))
    version = destination.begin()
    frame = documents(spark, events, home / "documents.json")
    destination.commit(Current(version=version, days=write_tables(destination, version, frame, None)))
    return home / "out"


def answers(archive: Path, *asked: str, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setattr(sys, "argv", [str(NOTEBOOK), str(archive), *asked])
    return runpy.run_path(str(NOTEBOOK))


def test_what_the_shop_wants_to_know(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answers(archive, "hive", "totals", "x", patch=monkeypatch)
    assert [tuple(row) for row in found["downstream"].collect()] == []
    assert [(row["steps"], row["name"], row["field"]) for row in found["sources"].collect()] == [
        (1, "orders", "x"),
        (2, "customers", "x"),
        (2, "raw", "x"),
    ]
    assert [tuple(row)[1:] for row in found["failures"].collect()] == [
        ("clean", 2, 2, 100.0, "boom 6"),
        ("load", 3, 1, 33.0, "boom 7"),
    ]
    assert [row["name"] for row in found["stale"].collect()] == ["archive"]
    assert "Columns that feed totals.x:" in capsys.readouterr().out


def test_without_a_name_the_table_that_most_tasks_read(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = answers(archive, patch=monkeypatch)
    assert found["name"] == "raw"
    assert [(row["steps"], row["name"]) for row in found["downstream"].collect()] == [
        (1, "archive"),
        (1, "gone"),
        (1, "orders"),
        (2, "totals"),
    ]
