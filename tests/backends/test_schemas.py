"""Every event that our code makes is right by OpenLineage's schemas and our own, and each trap is found."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lineage_backends.client_schemas import client_schemas
from lineage_backends.formats import is_date_time, is_uri, is_uuid
from lineage_backends.marquez import refusal
from lineage_backends.recorded import RECORDED, events_of_children, task_event
from lineage_backends.schemas import PUBLISHED, faults

OFFICIAL = "https://openlineage.io/spec/facets"


@pytest.fixture(scope="module")
def event() -> dict[str, Any]:
    return task_event(next(path for path in RECORDED if path.stem == "a_414"))


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_an_event_of_ours_is_right(recorded: Path) -> None:
    events = [task_event(recorded), *events_of_children(recorded)]
    assert {fault for event in events for fault in faults(event)} == set()
    assert {refusal(event) for event in events} == {None}


def _set(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(event: Any) -> None:
        *parents, last = path
        for each in parents:
            event = event[each]
        event[last] = to

    return change


def _drop(*path: str | int) -> Callable[[Any], None]:
    def change(event: Any) -> None:
        *parents, last = path
        for each in parents:
            event = event[each]
        del event[last]

    return change


TRAPS = {
    "no producer": (_drop("producer"), "'producer' is a required property"),
    "no time zone": (_set("eventTime", to="2024-01-31T12:00:00"), "is not a 'date-time'"),
    "run id": (_set("run", "runId", to="7"), "is not a 'uuid'"),
    "producer is no URI": (_set("producer", to="a b"), "is not a 'uri'"),
    "event type": (_set("eventType", to="DONE"), "is not one of"),
    "output without name": (_drop("outputs", 0, "name"), "'name' is a required property"),
    "facet without schema": (_drop("job", "facets", "jobType", "_schemaURL"), "'_schemaURL' is a required property"),
    "null": (_set("job", "facets", "jobType", "jobType", to=None), "None is not of type 'string'"),
    "facet of a published file": (
        _set("outputs", 0, "outputFacets", "outputStatistics", "rowCount", to="ten"),
        "'ten' is not of type 'integer'",
    ),
    "nested field": (_drop("outputs", 0, "facets", "schema", "fields", 0, "name"), "'name' is a required property"),
    "facet of ours": (
        _set("run", "facets", "sparkLineage_collection", "linesRead", to=-1),
        "-1 is less than the minimum of 0",
    ),
    "schema that nobody published": (
        _set(
            "job", "facets", "jobType", "_schemaURL", to=f"{OFFICIAL}/9-0-0/JobTypeJobFacet.json#/$defs/JobTypeJobFacet"
        ),
        "names a schema that nobody has published",
    ),
    "schema without such a definition": (
        _set("job", "facets", "jobType", "_schemaURL", to=f"{OFFICIAL}/2-0-4/JobTypeJobFacet.json#/$defs/X"),
        "has not: /$defs/X",
    ),
    "bare schema for a known facet": (
        _set(
            "job",
            "facets",
            "jobType",
            "_schemaURL",
            to="https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobFacet",
        ),
        "OpenLineage has one for it",
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_finds_what_is_wrong(trap: str, event: dict[str, Any]) -> None:
    change, fault = TRAPS[trap]
    changed = copy.deepcopy(event)
    change(changed)
    assert fault in "; ".join(faults(changed))


@pytest.mark.parametrize("event", [None, [], "text", {}])
def test_what_is_no_event_is_wrong(event: Any) -> None:
    assert faults(event)


def test_the_classes_of_the_client_tell_what_the_published_files_tell() -> None:
    for path in sorted((PUBLISHED / "facets").glob("*.json")):
        assert [url for url in client_schemas() if url.endswith(f"/{path.name}")], path.name


POISON: dict[str, tuple[Callable[[Any], None], int]] = {
    "namespace": (_set("outputs", 0, "namespace", to="kafka://a:9092,b:9092"), 400),
    "namespace of an input": (_set("inputs", 0, "namespace", to="s3://a b"), 400),
    "facet without producer": (_drop("run", "facets", "sparkLineage_collection", "_producer"), 422),
    "facet without schema": (_drop("outputs", 0, "facets", "schema", "_schemaURL"), 422),
    "no producer": (_drop("producer"), 422),
    "job type": (_drop("job", "facets", "jobType", "jobType"), 422),
    "NUL": (_set("outputs", 0, "facets", "schema", "fields", 0, "description", to="a\0b"), 500),
    "NUL in a key": (_set("outputs", 0, "facets", "a\0b", to={"_producer": "urn:x", "_schemaURL": "urn:x"}), 500),
    "column": (_set("outputs", 0, "facets", "columnLineage", "fields", "x", to={}), 500),
}


@pytest.mark.parametrize("poison", POISON)
def test_knows_what_harms_marquez(poison: str, event: dict[str, Any]) -> None:
    change, status = POISON[poison]
    changed = copy.deepcopy(event)
    change(changed)
    refused = refusal(changed)
    assert refused
    assert refused[0] == status


def test_formats() -> None:
    times = ["2024-01-31T12:00:00Z", "2024-01-31T12:00:00.123456789+05:30", "2024-01-31t12:00:00z"]
    assert [is_date_time(time) for time in times] == [True] * 3
    times = ["2024-01-31", "2024-02-31T12:00:00Z", "2024-01-31 12:00:00Z", "2024-01-31T12:00:00"]
    assert [is_date_time(time) for time in times] == [False] * 4
    assert [is_uri(uri) for uri in ("https://h/a?b=%20#c", "urn:x", "/a", "h:a b", "h:%zz")] == [True, True] + [
        False
    ] * 3
    assert [is_uuid(uuid) for uuid in ("01a20094-7f6b-7344-9318-173d5c9a7332", "01a200947f6b73449318173d5c9a7332")] == [
        True,
        False,
    ]
