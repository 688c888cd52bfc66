"""Events of tasks as the tab gets them: recorded ones, and one that is too wide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector

if TYPE_CHECKING:
    from spark_lineage.merge.lineage import TaskState

RECORDED = sorted((Path(__file__).parents[1] / "fixtures" / "events").glob("*.ndjson"))
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"


def recorded_event(path: Path, state: TaskState = "COMPLETE") -> dict[str, Any]:
    """The event of a task whose driver wrote a lineage file."""
    collector = Collector()
    collector.add(path.read_bytes().splitlines(keepends=True), source=path.name)
    lineage = task_lineage(collector.state, state)
    event = run_event(lineage, collector.counts, job_namespace="airflow", job_name="dag.task", run_id=RUN_ID)
    found: dict[str, Any] = json.loads(to_json(event))
    return found


def wide_event(datasets: int, columns: int, rows: int = 1000) -> dict[str, Any]:
    """An event with as many inputs as outputs, all of them together with so many columns, each made from one."""
    each = columns // datasets
    names = [f"column_{at:05}" for at in range(each)]
    schema = {"fields": [{"name": name, "type": "decimal(12,2)"} for name in names]}

    def name(side: str, at: int) -> dict[str, str]:
        return {"namespace": "s3://warehouse", "name": f"shop.db/{side}_orders_{at:04}"}

    def lineage(at: int) -> dict[str, Any]:
        how = [{"type": "DIRECT", "subtype": "IDENTITY"}]
        source = name("raw", at)
        return {"fields": {one: {"inputFields": [{**source, "field": one, "transformations": how}]} for one in names}}

    half = range(datasets // 2)
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-01-31T12:00:00Z",
        "run": {"runId": RUN_ID, "facets": {"sparkLineage_collection": {"evidence": ["listener"], "linesRead": 9}}},
        "job": {"namespace": "airflow", "name": "wide.first"},
        "inputs": [
            {
                **name("raw", at),
                "facets": {"schema": schema},
                "inputFacets": {"inputStatistics": {"rowCount": rows, "size": 123_456_789}},
            }
            for at in half
        ],
        "outputs": [
            {
                **name("clean", at),
                "facets": {"schema": schema, "columnLineage": lineage(at)},
                "outputFacets": {"outputStatistics": {"rowCount": rows, "size": 123_456_789}},
            }
            for at in half
        ],
    }
