"""What the OpenLineage provider overwrites is restored, and events of others stay as they are."""

from __future__ import annotations

from typing import Any

import pytest
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.tags_job import TagsJobFacet, TagsJobFacetFields

from spark_lineage.emit.run_event import JOB_KEY, STATUS_KEY, SparkJobFacet, facet
from spark_lineage.emit.task_event import corrected_event

RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-000000000000"


def event(state: str, run_facets: dict[str, Any], job_facets: dict[str, Any]) -> RunEvent:
    """Make an event as the provider makes it."""
    job_type = JobTypeJobFacet(processingType="BATCH", integration="AIRFLOW", jobType="TASK")
    return RunEvent(
        eventType=RunState(state),
        eventTime="2024-01-31T12:00:00Z",
        producer="https://github.com/apache/airflow",
        run=Run(RUN_ID, run_facets),
        job=Job("airflow", "shop.load", {"jobType": job_type, **job_facets}),
    )


@pytest.mark.parametrize("status", [facet(STATUS_KEY, state="ABORT"), {"state": "ABORT"}])
def test_a_killed_task_is_an_abort(status: Any) -> None:
    assert corrected_event(event("FAIL", {STATUS_KEY: status}, {})).eventType is RunState.ABORT
    # Somebody has set it to success meanwhile.
    assert corrected_event(event("COMPLETE", {STATUS_KEY: status}, {})).eventType is RunState.COMPLETE


def test_a_failed_task_is_not() -> None:
    assert corrected_event(event("FAIL", {STATUS_KEY: facet(STATUS_KEY, state="FAIL")}, {})).eventType is RunState.FAIL


def test_a_stream_has_its_type_and_its_tags() -> None:
    tags = TagsJobFacet(
        tags=[TagsJobFacetFields("nightly", "nightly", "AIRFLOW"), TagsJobFacetFields("team", "b", "X")]
    )
    ours = SparkJobFacet(processingType="STREAMING", tags={"team": "sales", "gold": ""})
    given = event("RUNNING", {}, {"tags": tags, JOB_KEY: ours})
    facets: Any = corrected_event(given).job.facets
    assert facets["jobType"].processingType == "STREAMING"
    assert [(tag.key, tag.value) for tag in facets["tags"].tags] == [
        ("nightly", "nightly"),
        ("team", "sales"),
        ("gold", "gold"),
    ]
    assert JOB_KEY not in facets
    assert given.job.facets["jobType"].processingType == "BATCH", "the provider's own event stays"


@pytest.mark.parametrize(("is_wanted", "index", "name"), [
    (True, 3, "shop.load[3]"), (True, -1, "shop.load"), (True, None, "shop.load"), (False, 3, "shop.load"),
])  # fmt: skip
def test_an_index_may_be_in_the_name(is_wanted: bool, index: int | None, name: str) -> None:
    airflow = {"taskInstance": {"map_index": index}}
    ours = SparkJobFacet(isMapIndexInName=is_wanted)
    assert corrected_event(event("START", {"airflow": airflow}, {JOB_KEY: ours})).job.name == name


def test_an_event_of_another_task_stays() -> None:
    other = event("FAIL", {}, {})
    assert corrected_event(other) is other
