from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openlineage.client.serde import Serde

from spark_lineage.emit.run_event import PRODUCER, job_facets, run_event
from spark_lineage.merge.lineage import DatasetLineage, TaskLineage
from spark_lineage.naming.identity import DatasetName

pytestmark = pytest.mark.oldest

A, B, C = (DatasetName("file", name) for name in ("/a", "/b", "/c"))
LANDING = DatasetName("s3://me:hunter2@landing", "orders")

# The parts of the published LineageFacet.json 1-0-0 that are used, so that no test needs the network.
ENTITY = {
    "namespace": {"type": "string"},
    "name": {"type": "string"},
    "type": {"enum": ["DATASET"]},
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "_producer": {"const": PRODUCER},
        "_schemaURL": {"const": "https://openlineage.io/spec/facets/1-0-0/LineageFacet.json#/$defs/LineageJobFacet"},
        "entries": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    **ENTITY,
                    "inputs": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {**ENTITY, "transformations": {"type": "array"}},
                            "required": ["namespace", "name", "type"],
                            "additionalProperties": False,
                        },
                    },
                    "fields": {"type": "object"},
                },
                "required": ["namespace", "name", "type"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["_producer", "_schemaURL", "entries"],
    "additionalProperties": False,
}


def written(*outputs: DatasetLineage) -> dict[str, Any]:
    facets = job_facets(TaskLineage("COMPLETE", inputs=(DatasetLineage(A), DatasetLineage(B)), outputs=outputs))
    document = Serde.to_dict(facets["lineage"])
    Draft202012Validator(SCHEMA).validate(document)
    return document


def edges(document: dict[str, Any]) -> dict[str, list[str]]:
    return {entry["name"]: [source["name"] for source in entry["inputs"]] for entry in document["entries"]}


def test_each_output_has_the_inputs_that_fed_it_and_no_others() -> None:
    document = written(DatasetLineage(B, fed_by=(A,)), DatasetLineage(C, fed_by=(A, B)))
    assert edges(document) == {"/b": ["/a"], "/c": ["/a", "/b"]}


def test_an_output_that_nothing_fed_says_so() -> None:
    assert edges(written(DatasetLineage(B), DatasetLineage(C, fed_by=(A,)))) == {"/b": [], "/c": ["/a"]}


def test_no_facet_where_no_edge_is_known() -> None:
    assert job_facets(TaskLineage("COMPLETE", outputs=(DatasetLineage(A), DatasetLineage(B)))) == {}
    assert job_facets(TaskLineage("FAIL")) == {}


def test_names_are_those_of_the_event_without_secrets() -> None:
    lineage = TaskLineage("COMPLETE", outputs=(DatasetLineage(LANDING, fed_by=(LANDING,)),))
    run_id = "0190a5b2-7c1e-7d5f-9d4b-000000000000"
    event = run_event(lineage, None, job_namespace="n", job_name="j", run_id=run_id)
    document = json.loads(Serde.to_json((event.job.facets or {})["lineage"]))
    (entry,) = document["entries"]
    assert entry["namespace"] == entry["inputs"][0]["namespace"] == "s3://+2A++2A++2A+@landing"
    assert "hunter2" not in json.dumps(document)


def test_the_key_is_that_of_the_spec() -> None:
    assert list(job_facets(TaskLineage("COMPLETE", outputs=(DatasetLineage(B, fed_by=(A,)),)))) == ["lineage"]
