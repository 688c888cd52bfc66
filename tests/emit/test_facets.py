from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.openlineage.utils.utils import OpenLineageRedactor
from jsonschema import Draft202012Validator, ValidationError
from openlineage.client.serde import Serde
from referencing import Registry, Resource

from spark_lineage.emit import run_event as facets
from spark_lineage.emit.run_event import PRODUCER, SparkJobFacet, facet

DOCS = Path(__file__).parents[2] / "docs" / "facets"

# The part of the published spec that ours refer to, so that no test needs the network.
OPENLINEAGE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://openlineage.io/spec/2-0-2/OpenLineage.json",
    "$defs": {
        "BaseFacet": {
            "type": "object",
            "properties": {
                "_producer": {"type": "string", "format": "uri"},
                "_schemaURL": {"type": "string", "format": "uri"},
            },
            "additionalProperties": True,
            "required": ["_producer", "_schemaURL"],
        },
        "RunFacet": {"type": "object", "allOf": [{"$ref": "#/$defs/BaseFacet"}]},
        "JobFacet": {"type": "object", "allOf": [{"$ref": "#/$defs/BaseFacet"}]},
        "InputDatasetFacet": {"type": "object", "allOf": [{"$ref": "#/$defs/BaseFacet"}]},
        "OutputDatasetFacet": {"type": "object", "allOf": [{"$ref": "#/$defs/BaseFacet"}]},
        "DatasetFacet": {"type": "object", "allOf": [{"$ref": "#/$defs/BaseFacet"}]},
    },
}
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
TIME = "2024-01-31T12:00:00.000000Z"

ONE = {"namespace": "file", "name": "/a"}
CHANGE = {**ONE, "time": TIME, "isCertain": True}

FACETS = [
    facet(
        facets.APPLICATION_KEY,
        applications=[
            {"runId": RUN_ID, "namespace": "spark", "name": "app", "isEnded": False},
            {
                "runId": RUN_ID,
                "namespace": "ns",
                "name": "n",
                "applicationId": "a-1",
                "sparkVersion": "4.0.1",
                "openlineageAdapterVersion": "1.53.0",
                "master": "yarn",
                "deployMode": "client",
                "uiUrl": "http://h:4040",
                "isEnded": True,
            },
        ],
    ),
    facet(
        facets.ATTEMPTED_OUTPUTS_KEY,
        outputs=[{**ONE, "reason": reason} for reason in ("failed", "unfinished", "not written")],
    ),
    facet(facets.UNCONFIRMED_OUTPUTS_KEY, outputs=[ONE]),
    facet(
        facets.COLLECTION_KEY,
        linesRead=3,
        linesSetAside=1,
        runs=2,
        setAside={"no JSON": 1},
        evidence=["listener"],
        collectedFrom=["directory", "event_log", "history"],
        typesFrom="2026-01-02T03:04:05+00:00",
    ),
    facet(facets.VERSIONS_KEY, versions=["1", "3"]),
    facet(
        facets.WRITES_KEY,
        operations=[
            {"operation": "OVERWRITE", "mode": "overwrite", "isPartial": True},
            {"operation": "INSERT", "isPartial": False, "outputMode": "append"},
        ],
    ),
    facet(
        facets.CATALOG_CHANGES_KEY,
        changes=[
            {**CHANGE, "change": "DROP", "objectType": "DATABASE", "objectName": "shop", "isCertain": False},
            {
                **CHANGE,
                "change": "RENAME",
                "objectType": "VIEW",
                "objectName": "shop.v2",
                "previousObjectName": "shop.v",
                "isIgnored": False,
            },
            {
                **CHANGE,
                "change": "ALTER",
                "objectType": "TABLE",
                "objectName": "shop.orders",
                "columns": [
                    {"old": {"name": "a", "type": "int"}, "new": {"name": "a", "type": "bigint"}},
                    {"new": {"name": "b"}},
                ],
                "schema": [
                    {"name": "a", "type": "bigint", "description": "an amount"},
                    {"name": "b", "type": "struct<c:int>", "fields": [{"name": "c", "type": "int"}]},
                ],
                "properties": {"comment": "one row per order"},
                "catalog": "spark_catalog",
                "database": "shop",
                "partitionedBy": ["day", "bucket(4, id)"],
            },
        ],
    ),
    facet(facets.UNKNOWN_DATASETS_KEY, commands=[{"command": "execute_update_command", "count": 2}]),
    facet(facets.UNREAD_PLANS_KEY, parts=[{"name": "CoolVendorJoinIndex", "count": 1}]),
    facet(
        facets.STATUS_KEY,
        state="FAIL",
        transitions=[
            {"subject": "DRIVER", "id": "host:1", "newStatus": "SUBMITTED", "time": TIME, "source": "spark-submit"},
            {
                "subject": "SPARK_JOB",
                "id": "3",
                "oldStatus": "RUNNING",
                "newStatus": "FAILED",
                "time": TIME,
                "source": "event log",
                "applicationId": "app-1",
                "detail": "a word",
                "exception": "Job aborted",
            },
        ],
        counts=[{"subject": "SPARK_JOB", "status": "FAILED", "count": 1}],
        applications=[
            {
                "applicationId": "app-1",
                "attemptId": "1",
                "source": "event log",
                "tasks": {"finished": 3, "failed": 1, "killed": 0},
                "bytesRead": 10,
                "bytesWritten": 20,
                "memoryBytesSpilled": 30,
                "diskBytesSpilled": 3,
                "runMillis": 1000,
                "gcMillis": 31,
                "gcShare": 0.031,
                "accumulators": [{"name": "orders", "value": 7}, {"name": "amount", "value": -0.5}],
            }
        ],
        error="ValueError: no",
        uiUrl="http://host:4040",
        historyUrl="https://history/history/app-1/jobs/",
        logsUrl="http://host/logs",
    ),
    facet(
        facets.REDUCED_KEY,
        limitBytes=10,
        fullBytes=99,
        isOverLimit=True,
        leftOut=[{"detail": "schemas", "bytes": 50, "datasetCount": 2, "datasets": [ONE, {**ONE, "columnCount": 3}]}],
    ),
    SparkJobFacet(producer=PRODUCER),
    SparkJobFacet(processingType="STREAMING", tags={"team": "sales"}, isMapIndexInName=True, producer=PRODUCER),
]


def validate(facet: dict[str, Any]) -> None:
    """Check a facet's JSON against the schema that its own ``_schemaURL`` names."""
    schema_id, _, pointer = facet["_schemaURL"].partition("#")
    assert pointer == f"/$defs/{Path(schema_id).stem}"
    schema = json.loads((DOCS / "1-0-0" / Path(schema_id).name).read_text())
    assert schema["$id"] == schema_id
    Draft202012Validator.check_schema(schema)
    registry: Registry[Any] = Registry().with_resources(
        [(document["$id"], Resource.from_contents(document)) for document in (schema, OPENLINEAGE)]
    )
    Draft202012Validator({"$ref": facet["_schemaURL"]}, registry=registry).validate(facet)


@pytest.mark.parametrize("one", FACETS, ids=lambda one: type(one).__name__)
def test_a_facet_is_valid_against_its_schema(one: object) -> None:
    written = Serde.to_dict(one)
    assert written["_producer"] == PRODUCER
    assert written["_schemaURL"].endswith(f"#/$defs/{type(one).__name__}")
    validate(written)


@pytest.mark.parametrize("one", FACETS, ids=lambda one: type(one).__name__)
def test_every_field_is_described_in_the_schema(one: object) -> None:
    definitions = json.loads((DOCS / "1-0-0" / f"{type(one).__name__}.json").read_text())["$defs"]
    described = definitions[type(one).__name__]["allOf"][1]["properties"]
    assert set(Serde.to_dict(one)) == {*described, "_producer", "_schemaURL"}
    for definition in (described, *(each.get("properties", {}) for each in definitions.values())):
        assert all(field.get("description") for field in definition.values())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_the_same(copied: Callable[[object], object]) -> None:
    for one in FACETS:
        assert Serde.to_json(copied(one)) == Serde.to_json(one)


def test_lines_that_nobody_counted_are_left_out() -> None:
    validate(Serde.to_dict(facet(facets.COLLECTION_KEY, runs=2, evidence=["event_log"])))


def test_the_schema_refuses_an_unknown_reason() -> None:
    written: Any = Serde.to_dict(FACETS[1])
    written["outputs"][0]["reason"] = "lost"
    with pytest.raises(Exception, match="is not one of"):
        validate(written)


@pytest.mark.parametrize(("field", "value"), [("change", "CLONE"), ("objectType", "INDEX"), ("columns", [{}])])
def test_the_schema_refuses_a_catalog_change_that_is_none(field: str, value: object) -> None:
    written = next(Serde.to_dict(each) for each in FACETS if hasattr(each, "changes"))
    written["changes"][0][field] = value
    with pytest.raises(ValidationError):
        validate(written)


def test_airflow_leaves_names_alone_and_looks_at_texts_again() -> None:
    known = "hunter2-orders"
    redactor = OpenLineageRedactor()
    redactor.add_mask(known)
    attempted = facet(facets.ATTEMPTED_OUTPUTS_KEY, outputs=[{**ONE, "name": known, "reason": "failed"}])
    assert redactor.redact(attempted, max_depth=20).outputs[0]["name"] == known
    status = facet(facets.STATUS_KEY, state=known, transitions=[{"detail": known}], error=known)
    redacted = redactor.redact(status, max_depth=20)
    assert (redacted.state, redacted.transitions, redacted.error) == (known, [{"detail": "***"}], "***")


def test_each_facet_has_a_schema_with_a_valid_example_and_a_section() -> None:
    schemas = [json.loads(path.read_text()) for path in (DOCS / "1-0-0").glob("*.json")]
    shown = {key: facet for schema in schemas for key, facet in schema["examples"][0].items()}
    sections = set(re.findall(r"^## (sparkLineage_\w+)$", (DOCS / "README.md").read_text(), re.MULTILINE))
    assert set(shown) == sections
    assert set(shown) == {
        facets.APPLICATION_KEY,
        facets.JOB_KEY,
        facets.ATTEMPTED_OUTPUTS_KEY,
        facets.UNCONFIRMED_OUTPUTS_KEY,
        facets.COLLECTION_KEY,
        facets.CATALOG_CHANGES_KEY,
        facets.UNKNOWN_DATASETS_KEY,
        facets.UNREAD_PLANS_KEY,
        facets.WRITES_KEY,
        facets.VERSIONS_KEY,
        "sparkLineage_properties",
        facets.REDUCED_KEY,
        facets.STATUS_KEY,
    }
    for one in shown.values():
        validate(one)


def test_the_producer_names_a_version_or_the_source_tree() -> None:
    assert re.fullmatch(
        r"https://github\.com/spark-lineage/airflow-provider-spark-lineage/tree/(main|v\d[\w.+]*)", PRODUCER
    )
