"""Restores what the OpenLineage provider overwrites on the events of a task, or has no word for."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_lineage.emit.facets import JOB_KEY, PRODUCER, STATUS_KEY, SparkJobFacet
from spark_lineage.launch.launch import indexed

if TYPE_CHECKING:
    from openlineage.client.client import Event
    from openlineage.client.event_v2 import Job, RunEvent


def as_meant(event: Event) -> Event:
    """Return an event as our operator means it; any other event as it is.

    The provider (2.20) says BATCH of every job, puts the tags of the DAG in the place of the task's, and says FAIL of a
    task that was killed. The facets ``sparkLineage_job`` and ``sparkLineage_status`` say what is right.
    """
    from openlineage.client.event_v2 import RunEvent

    if not isinstance(event, RunEvent):
        return event
    ours = (event.job.facets or {}).get(JOB_KEY)
    is_killed = is_fail(event) and value_of((event.run.facets or {}).get(STATUS_KEY), "state") == "ABORT"
    if not is_killed and not isinstance(ours, SparkJobFacet):
        return event
    meant = copy.copy(event)
    if is_killed:
        meant.eventType = type(event.eventType)("ABORT")  # type: ignore[misc]
    if isinstance(ours, SparkJobFacet):
        index = value_of(value_of((event.run.facets or {}).get("airflow"), "taskInstance"), "map_index")
        meant.job = _job_as_meant(event.job, ours)
        meant.job.name = indexed(event.job.name, index if ours.isMapIndexInName else None)
    return meant


def is_fail(event: RunEvent) -> bool:
    """Whether an event says that its run has failed."""
    return event.eventType is not None and event.eventType.value == "FAIL"


def value_of(facet: Any, name: str) -> Any:
    """Return a value of a facet, which is an object where it was made, and a mapping where it was read; else None."""
    return facet.get(name) if isinstance(facet, Mapping) else getattr(facet, name, None)


def _job_as_meant(job: Job, ours: SparkJobFacet) -> Job:
    from openlineage.client.generated.tags_job import TagsJobFacet, TagsJobFacetFields

    meant = copy.copy(job)
    facets = dict(job.facets or {})
    del facets[JOB_KEY]
    if (job_type := facets.get("jobType")) is not None:
        facets["jobType"] = copy.copy(job_type)
        facets["jobType"].processingType = ours.processingType  # type: ignore[attr-defined]
    if ours.tags:
        others = [one for one in getattr(facets.get("tags"), "tags", None) or () if one.key not in ours.tags]
        own = [TagsJobFacetFields(key=key, value=text or key, source="USER") for key, text in ours.tags.items()]
        facets["tags"] = TagsJobFacet(tags=[*others, *own], producer=PRODUCER)
    meant.facets = facets
    return meant
