"""Each merged event is valid, and names no column that no table has.

The listener and the truth know all columns of an application.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lineage_backends.schemas import faults

from spark_lineage.launch.directory import EVENTS_FILE

pytestmark = pytest.mark.shares("recordings")

# Tests are no package, and the tool is a program: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
recordings = importlib.import_module("truth_recording")
truth_file = importlib.import_module("truth_file")


# What Spark calls the column of `DataFrame.groupBy(…).count()`.
OWN = {"count"}
PASSING_ON = {"IDENTITY", "TRANSFORMATION", "AGGREGATION"}


def columns(value: Any) -> Iterator[str]:
    """Return the names of all columns in the schemas and in the column lineage of datasets."""
    for dataset in (*value.get("inputs", ()), *value.get("outputs", ())):
        yield from of_schema(dataset)
        yield from (column for _, column in of_lineage(dataset))


def of_schema(dataset: Any) -> Iterator[str]:
    """Return the names of the columns in the schema of a dataset."""
    yield from (field["name"] for field in dataset.get("facets", {}).get("schema", {}).get("fields", ()))


def of_lineage(dataset: Any) -> Iterator[tuple[Any, str]]:
    """Return the columns that the lineage of a dataset names, its own and their sources, each with its dataset."""
    lineage = dataset.get("facets", {}).get("columnLineage", {})
    yield from ((dataset, column) for column in lineage.get("fields", {}))
    sources = (source for field in lineage.get("fields", {}).values() for source in field["inputFields"])
    yield from ((source, source["field"]) for source in (*sources, *lineage.get("dataset", ())))


def without_schema(event: Any) -> Iterator[str]:
    """Return the columns that column lineage names, and that the schema of their dataset does not have."""
    schemas: dict[tuple[str, str], set[str]] = {}
    for dataset in (*event["inputs"], *event["outputs"]):
        known = schemas.setdefault((dataset["namespace"], dataset["name"]), set())
        known.update(map(str.casefold, of_schema(dataset)))
    for dataset in event["outputs"]:
        for one, column in of_lineage(dataset):
            name = column.casefold()
            if schemas[one["namespace"], one["name"]].isdisjoint({name, name.partition(".")[0]}):
                yield f"{one['name']}: {column}"


def outside_of_the_specification(event: Any) -> Iterator[str]:
    """Return the edges that decide, with the subtype of one that passes a value on."""
    for dataset in event["outputs"]:
        lineage = dataset.get("facets", {}).get("columnLineage", {})
        sources = [source for field in lineage.get("fields", {}).values() for source in field["inputFields"]]
        for source in (*sources, *lineage.get("dataset", ())):
            kinds = {each["subtype"] for each in source.get("transformations", ()) if each["type"] == "INDIRECT"}
            yield from (f"{source['field']}: INDIRECT {kind}" for kind in kinds & PASSING_ON)


def stated(truth: Any) -> Iterator[str]:
    """Return the names of columns that the truth states: of outputs, and of what they are made from."""
    for output in truth.outputs.values():
        for kind in ("direct", "indirect"):
            for column, sources in output.get(kind, {}).items():
                yield column
                yield from (source.partition(".")[2] for source in sources)
    for rows in truth.parquet.values():
        yield from (column for row in rows for column in row)


def programs(job: str) -> list[Path]:
    """Return the program of a job, and the one that runs before it."""
    truth = truth_file.read_truth(job)
    return [truth.program, *([truth.program.parent / truth.before] if truth.before else [])]


@pytest.mark.parametrize("evidence", ["all", "event_log"])
@pytest.mark.parametrize(("version", "job"), recordings.recordings())
def test_event_of_recording_is_valid_and_names_no_column_that_no_table_has(version, job, evidence) -> None:
    application, event = recordings.merged_recording(job, version, evidence)
    events = application.home / "lineage" / EVENTS_FILE
    lines = events.read_text().splitlines() if events.exists() else []
    known = {name.casefold() for line in lines for name in columns(json.loads(line))}
    known.update(name.casefold() for name in stated(truth_file.read_truth(job)))
    assert (faults(event), [*without_schema(event)], [*outside_of_the_specification(event)]) == ([], [], [])
    named = set(columns(event))
    # A column that nothing reads stands in the program alone.
    text = "".join(path.read_text() for path in programs(job))
    unknown = {name for name in named - OWN if name.casefold() not in known}
    assert {name for name in unknown if not re.search(rf"[\"'`(, ]{re.escape(name)}[\"'`), ]", text)} == set()
