from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields
from openlineage.client.serde import Serde
from referencing import Registry, Resource

from spark_lineage.emit import facets
from spark_lineage.emit.facets import (
    PRODUCER,
    AttemptedOutput,
    AttemptedOutputsRunFacet,
    CatalogChange,
    CatalogChangesRunFacet,
    CollectionRunFacet,
    ColumnChange,
    LeftOut,
    ReducedDataset,
    ReducedRunFacet,
    SparkApplication,
    SparkApplicationRunFacet,
    SparkJobFacet,
    UnconfirmedOutput,
    UnconfirmedOutputsRunFacet,
    UnknownCommand,
    UnknownDatasetsRunFacet,
    UnreadPlanPart,
    UnreadPlansRunFacet,
    WriteOperation,
    WritesOutputDatasetFacet,
)
from spark_lineage.emit.status_facet import STATUS_KEY, StatusCount, StatusRunFacet, Transition

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
        "OutputDatasetFacet": {"type": "object", "allOf": [{"$ref": "#/$defs/BaseFacet"}]},
    },
}
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
TIME = "2024-01-31T12:00:00.000000Z"

FACETS = [
    SparkApplicationRunFacet(
        applications=[
            SparkApplication(RUN_ID, "spark", "app"),
            SparkApplication(
                RUN_ID, "ns", "n", "a-1", "4.0.1", "1.53.0", "yarn", "client", "http://h:4040", isEnded=True
            ),
        ],
        producer=PRODUCER,
    ),
    AttemptedOutputsRunFacet(
        outputs=[
            AttemptedOutput("file", "/a", "failed"),
            AttemptedOutput("file", "/b", "unfinished"),
            AttemptedOutput("file", "/c", "not written"),
        ],
        producer=PRODUCER,
    ),
    UnconfirmedOutputsRunFacet(outputs=[UnconfirmedOutput("file", "/a")], producer=PRODUCER),
    CollectionRunFacet(linesRead=3, linesSetAside=1, runs=2, setAside={"no JSON": 1}, producer=PRODUCER),
    WritesOutputDatasetFacet(
        operations=[
            WriteOperation("OVERWRITE", "overwrite", isPartial=True),
            WriteOperation("INSERT", outputMode="append"),
        ],
        producer=PRODUCER,
    ),
    CatalogChangesRunFacet(
        changes=[
            CatalogChange("DROP", "DATABASE", "shop", "file", "/wh/shop.db", TIME, isCertain=False),
            CatalogChange("RENAME", "VIEW", "shop.v2", "file", "/wh/v2", TIME, previousObjectName="shop.v"),
            CatalogChange(
                "ALTER",
                "TABLE",
                "shop.orders",
                "file",
                "/wh/shop.db/orders",
                TIME,
                columns=[
                    ColumnChange(old=SchemaDatasetFacetFields("a", "int"), new=SchemaDatasetFacetFields("a", "bigint")),
                    ColumnChange(new=SchemaDatasetFacetFields("b")),
                ],
                schema=[
                    SchemaDatasetFacetFields("a", "bigint", "an amount"),
                    SchemaDatasetFacetFields("b", "struct<c:int>", fields=[SchemaDatasetFacetFields("c", "int")]),
                ],
                properties={"comment": "one row per order"},
                catalog="spark_catalog",
                database="shop",
                partitionedBy=["day", "bucket(4, id)"],
            ),
        ],
        producer=PRODUCER,
    ),
    UnknownDatasetsRunFacet(commands=[UnknownCommand("execute_update_command", 2)], producer=PRODUCER),
    UnreadPlansRunFacet(parts=[UnreadPlanPart("CoolVendorJoinIndex", 1)], producer=PRODUCER),
    StatusRunFacet(
        state="FAIL",
        transitions=[
            Transition("DRIVER", "host:1", "SUBMITTED", TIME, "spark-submit"),
            Transition("SPARK_JOB", "3", "FAILED", TIME, "event log", "RUNNING", "app-1", "a word", "Job aborted"),
        ],
        counts=[StatusCount("SPARK_JOB", "FAILED", 1)],
        error="ValueError: no",
        uiUrl="http://host:4040",
        historyUrl="https://history/history/app-1/jobs/",
        logsUrl="http://host/logs",
        producer=PRODUCER,
    ),
    ReducedRunFacet(
        limitBytes=10,
        fullBytes=99,
        isOverLimit=True,
        leftOut=[LeftOut("schemas", 50, 2, [ReducedDataset("file", "/a"), ReducedDataset("file", "/b", 3)])],
        producer=PRODUCER,
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


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: type(facet).__name__)
def test_a_facet_is_valid_against_its_schema(facet: object) -> None:
    written = Serde.to_dict(facet)
    assert written["_producer"] == PRODUCER
    assert written["_schemaURL"].endswith(f"#/$defs/{type(facet).__name__}")
    validate(written)


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: type(facet).__name__)
def test_every_field_is_described_in_the_schema(facet: object) -> None:
    definitions = json.loads((DOCS / "1-0-0" / f"{type(facet).__name__}.json").read_text())["$defs"]
    described = definitions[type(facet).__name__]["allOf"][1]["properties"]
    assert set(Serde.to_dict(facet)) == {*described, "_producer", "_schemaURL"}
    for definition in (described, *(each.get("properties", {}) for each in definitions.values())):
        assert all(field.get("description") for field in definition.values())


def test_the_schema_refuses_an_unknown_reason() -> None:
    written = Serde.to_dict(FACETS[1])
    written["outputs"][0]["reason"] = "lost"
    with pytest.raises(Exception, match="is not one of"):
        validate(written)


@pytest.mark.parametrize(("field", "value"), [("change", "CLONE"), ("objectType", "INDEX"), ("columns", [{}])])
def test_the_schema_refuses_a_catalog_change_that_is_none(field: str, value: object) -> None:
    written = next(Serde.to_dict(each) for each in FACETS if isinstance(each, CatalogChangesRunFacet))
    written["changes"][0][field] = value
    with pytest.raises(ValidationError):
        validate(written)


def test_what_an_application_did_not_say_is_left_out() -> None:
    assert Serde.to_dict(FACETS[0])["applications"][0] == {
        "runId": RUN_ID,
        "namespace": "spark",
        "name": "app",
        "isEnded": False,
    }


def test_the_readme_shows_each_facet_with_a_valid_example() -> None:
    blocks = re.findall(r"```json\n(.*?)```", (DOCS / "README.md").read_text(), re.DOTALL)
    shown = {key: facet for block in blocks for key, facet in json.loads(block).items()}
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
        facets.REDUCED_KEY,
        STATUS_KEY,
    }
    for facet in shown.values():
        validate(facet)


def test_the_producer_names_a_version_or_the_source_tree() -> None:
    assert re.fullmatch(
        r"https://github\.com/spark-lineage/airflow-provider-spark-lineage/tree/(main|\d[\w.+]*)", PRODUCER
    )
