"""The events that our code makes of the recorded Spark applications in ``tests/fixtures/events``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spark_lineage.emit.child_events import child_events
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.merge.lineage import ParentRun
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector

RECORDED = sorted((Path(__file__).parents[2] / "fixtures" / "events").glob("*.ndjson"))
NAMESPACE = "backends"
TASK = ParentRun("01a20094-7f6b-7344-9318-173d5c9a7332", NAMESPACE, "dag.task")
ROOT = ParentRun("01a20094-7f6b-7b07-b129-5d4acfacfb0e", NAMESPACE, "dag")


def task_event(recorded: Path, run_id: str = TASK.run_id) -> dict[str, Any]:
    """The terminal event of a task that ran this application, as it is sent, without what Airflow's provider adds."""
    lineage, collector = _lineage(recorded)
    job = {"job_namespace": TASK.job_namespace, "job_name": TASK.job_name}
    event = run_event(lineage, collector.counts, **job, run_id=run_id)
    return dict(json.loads(to_json(event)))


def events_of_children(recorded: Path) -> Iterator[dict[str, Any]]:
    """The events of the child runs."""
    lineage, _ = _lineage(recorded)
    yield from (json.loads(to_json(event)) for event in child_events(lineage, "path", task=TASK, root=ROOT))


def airflow_event(event: Mapping[str, Any], run_id: str, dag_run: Mapping[str, Any]) -> dict[str, Any]:
    """The event with the facets that Airflow's OpenLineage provider (2.20) puts on the event of a task."""
    bare = {"_producer": "https://github.com/apache/airflow/tree/providers-openlineage/2.20.3"}
    bare["_schemaURL"] = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunFacet"
    task = {"task_id": "task", "operator_class": "LineageSparkSubmitOperator", "upstream_task_ids": "[]"}
    airflow = bare | {
        "dag": {"dag_id": "dag", "owner": "shop", "tags": "['shop']"},
        "dagRun": dict(dag_run),
        "task": task | {"downstream_task_ids": "[]"},
        "taskInstance": {"try_number": 1, "map_index": -1},
        "taskUuid": run_id,
    }
    job_type = event["job"]["facets"]["jobType"] | {"integration": "AIRFLOW", "jobType": "TASK"}
    run = {"runId": run_id, "facets": event["run"]["facets"] | {"airflow": airflow}}
    return {**event, "run": run, "job": {**event["job"], "facets": event["job"]["facets"] | {"jobType": job_type}}}


def _lineage(recorded: Path) -> tuple[Any, Collector]:
    collector = Collector()
    with recorded.open("rb") as stream:
        collector.read(stream, source=recorded.name)
    return task_lineage(collector.state, "COMPLETE", has_actions=True), collector
