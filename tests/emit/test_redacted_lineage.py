"""No secret leaves in a lineage, and what has none leaves as it is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.merge.lineage import (
    Action,
    Application,
    Attempt,
    Catalog,
    CatalogChange,
    ColumnLineage,
    DatasetLineage,
    InputField,
    SchemaField,
    Symlink,
    TaskLineage,
    Transformation,
    UnknownDatasets,
    UnreadPart,
)
from spark_lineage.merge.task import task_lineage
from spark_lineage.merge.transition import Accumulator, StatusSummary, StatusTransition, TaskNumbers
from spark_lineage.naming.identity import DatasetName
from spark_lineage.submission.collector import Collector

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
NAME = DatasetName("s3://me:hunter2@bucket", "orders?token=hunter2")
TEXT = "it said password=hunter2"
LINEAGE = TaskLineage(
    "FAIL",
    inputs=(DatasetLineage(NAME),),
    outputs=(
        DatasetLineage(
            NAME,
            schema=(SchemaField("password", "struct<token:string>", TEXT, (SchemaField("inner", None, TEXT),)),),
            symlinks=(Symlink(NAME.namespace, NAME.name, "TABLE"),),
            catalog=Catalog("iceberg", "rest", "c", metadata_uri="https://me:hunter2@h/", warehouse_uri=NAME.namespace),
            column_lineage=ColumnLineage(
                (("a", (InputField(NAME, "password", (Transformation("DIRECT", description=TEXT),)),)),),
                (InputField(NAME, "b"),),
            ),
            previous_name=NAME,
            fed_by=(NAME,),
        ),
    ),
    attempted=(Attempt(NAME, "failed"),),
    unconfirmed=(NAME,),
    catalog_changes=(
        CatalogChange(
            "RENAME", "TABLE", NAME, NAME.name, NOON, previous_name=NAME.name, properties=(("api.key", "hunter2"),)
        ),
    ),
    unknown=(UnknownDatasets(TEXT, 1),),
    unread=(UnreadPart(TEXT, 1),),
    actions=(Action("r", "ns", TEXT, "FAIL", NOON, NOON, False, (NAME,), (NAME,)),),
    applications=(Application("r", "ns", TEXT, master="spark://me:hunter2@h:7077"),),
    status=StatusSummary(
        transitions=(StatusTransition("DRIVER", "d", None, "FAILED", NOON, "x", "", TEXT, TEXT),),
        error=TEXT,
        ui_url="http://me:hunter2@h:4040",
        numbers=(TaskNumbers("app-1", "", "event log", accumulators=(Accumulator("token=hunter2", 1),)),),
    ),
)


def test_no_secret_is_left_anywhere() -> None:
    redacted = redact_lineage(LINEAGE)
    assert "hunter2" in str(LINEAGE)
    assert "hunter2" not in str(redacted)
    assert redact_lineage(redacted) is redacted


def test_what_is_no_secret_stays() -> None:
    (output,) = redact_lineage(LINEAGE).outputs
    (column,) = output.schema
    assert (column.name, column.type, column.fields[0].name) == ("password", "struct<token:string>", "inner")
    assert output.column_lineage is not None
    assert output.column_lineage.fields[0][1][0].field == "password"
    assert output.dataset == output.fed_by[0] == output.symlinks[0].dataset


@pytest.mark.parametrize("name", ["a_414", "b_414", "gtask_414"])
def test_a_lineage_without_secrets_is_the_same_object(name: str) -> None:
    collector = Collector()
    with (FIXTURES / f"{name}.ndjson").open("rb") as stream:
        collector.read(stream, source=name)
    lineage = task_lineage(collector.state, "COMPLETE", has_actions=True)
    assert redact_lineage(lineage) is lineage
    assert msgspec.json.decode(msgspec.json.encode(lineage), type=TaskLineage) == lineage
