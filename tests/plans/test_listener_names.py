"""The listener's options of naming hold for what an event log names."""

from __future__ import annotations

import json

import pytest

from spark_lineage.merge.accounting import PlanPart
from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import IDENTITY, Symlink
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.listener_options import listener_names
from spark_lineage.plans.event_log import EventLogReader, with_listener_names

REMOVED = "spark.openlineage.dataset.removePath.pattern"
START = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
END = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd"
SCAN = """== Physical Plan ==
Scan parquet  (1)


(1) Scan parquet
Output [1]: [id#1]
Location: InMemoryFileIndex [file:/raw/20240102/sales]
ReadSchema: struct<id:int>

"""


@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.parametrize(
    ("properties", "name", "unread"),
    [
        ({}, DatasetName("file", "/raw/20240102/sales"), ()),
        ({REMOVED: r"(?<remove>/\d{8})/"}, DatasetName("file", "/raw/sales", "20240102"), ()),
        ({REMOVED: r"\p{Digit}"}, DatasetName("file", "/raw/20240102/sales"), (REMOVED,)),
    ],
)
def test_event_log_reader_execution_has_the_names_of_the_applications_options(
    properties: dict[str, str], name: DatasetName, unread: tuple[str, ...], *, is_ended: bool
) -> None:
    reader = EventLogReader()
    found: list[Execution] = []
    for event in (
        {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties},
        {"Event": START, "executionId": 0, "time": 1000, "physicalPlanDescription": SCAN},
        *([{"Event": END, "executionId": 0, "time": 2000}] if is_ended else []),
    ):
        found += reader.add(json.dumps(event, separators=(",", ":")).encode())
    found += reader.finish()
    (execution,) = found
    assert [read.dataset for read in execution.inputs] == [name]
    assert execution.unread == unread


def test_with_listener_names_names_sources_renamed_tables_feeds_and_parts_alike() -> None:
    names = listener_names({"dataset.removePath.pattern": r"(?<remove>/v\d+)"})
    former, other = DatasetName("file", "/t/v1"), DatasetName("file", "/t/v2")
    table = frozenset({Symlink("file:/wh/v1", "db.t", "TABLE")})
    parts = ("file:/t/v1/a", "s3a://b/a/v1/t", "db.v1", "file:/t")
    execution = Execution(
        "app",
        1,
        1,
        0.0,
        inputs=(Observed(former), Observed(other)),
        outputs=(Observed(other, table, previous_name=former, edges=frozenset({("a", former, "b", IDENTITY)})),),
        feeds=frozenset({former}),
        unnamed=(PlanPart("Scan", "input", parts),),
    )
    found = with_listener_names(execution, names)
    first, second = DatasetName("file", "/t", "v1"), DatasetName("file", "/t", "v2")
    assert [read.dataset for read in found.inputs] == [first, second]
    (written,) = found.outputs
    assert (written.dataset, written.symlinks, written.previous_name) == (second, table, first.whole)
    assert written.edges == {("a", first, "b", IDENTITY)}
    assert found.feeds == {first.whole}
    assert found.unnamed[0].sources == ("/t/a", "/a/t", "db.v1", "file:/t")
