"""Airflow's OpenLineage provider: whether it is on, which events it allows, its transport, and what it overwrites.

It has an API for these from 2.16 on, and the emission policy from 2.19; here only what older ones also have is used.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_lineage.emit.facets import JOB_KEY, PRODUCER, STATUS_KEY, SparkJobFacet
from spark_lineage.emit.facets import value_of as value_of  # noqa: PLC0414 - deliver has it from here
from spark_lineage.launch.launch import indexed

if TYPE_CHECKING:
    from openlineage.client.client import Event
    from openlineage.client.generated.base import RunEvent


class Emission(NamedTuple):
    """What the provider emits of a task: any event at all, and its lineage in it."""

    is_sent: bool
    has_lineage: bool


def is_active() -> bool:
    """Whether the provider sends anything."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    return not conf.is_disabled() and get_openlineage_listener() is not None


def transport_text() -> str:
    """Return what the provider sends by: a connection, or a kind of transport; empty where it sends nothing."""
    if not is_active():
        return ""
    from airflow.providers.openlineage import conf

    transport = conf.transport()
    if "conn_id" in transport:
        return f"the connection {transport['conn_id']}"
    return f"the transport {transport['type']}" if "type" in transport else "its own configuration"


def send(event: RunEvent) -> bool:
    """Send an event over the provider's transport; False where that is switched off."""
    if not is_active():
        return False
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    get_openlineage_listener().adapter.emit(event)
    return True


def emission(task: Any, dag_id: str, task_id: str) -> Emission:
    """Return what the provider's configuration, and the task's own, say of a task."""
    try:
        from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy
    except ImportError:
        return _older_emission(task)
    policy = resolve_task_emission_policy(task, dag_id, task_id)
    return Emission(policy.emit, policy.extract_operator_metadata)


def _older_emission(task: Any) -> Emission:
    """Decide as the listener of a provider without emission policy does."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.utils.selective_enable import is_task_lineage_enabled
    from airflow.providers.openlineage.utils.utils import is_operator_disabled

    is_wanted = not conf.selective_enable() or is_task_lineage_enabled(task)
    return Emission(is_wanted and not is_operator_disabled(task), has_lineage=True)


def as_meant(event: Event) -> Event:
    """Return an event as our operator means it; any other event as it is.

    The provider (2.20) says BATCH of every job, puts the tags of the DAG in the place of the task's, and says FAIL of a
    task that was killed. The facets ``sparkLineage_job`` and ``sparkLineage_status`` say what is right.
    """
    from openlineage.client.event_v2 import RunEvent
    from openlineage.client.generated.tags_job import TagsJobFacet, TagsJobFacetFields

    if not isinstance(event, RunEvent):
        return event
    ours = (event.job.facets or {}).get(JOB_KEY)
    is_fail = event.eventType is not None and event.eventType.value == "FAIL"
    is_killed = is_fail and value_of((event.run.facets or {}).get(STATUS_KEY), "state") == "ABORT"
    if not is_killed and not isinstance(ours, SparkJobFacet):
        return event
    meant = copy.copy(event)
    if is_killed:
        meant.eventType = type(event.eventType)("ABORT")  # type: ignore[misc]
    if isinstance(ours, SparkJobFacet):
        facets: dict[str, Any] = {key: each for key, each in (event.job.facets or {}).items() if key != JOB_KEY}
        if (job_type := facets.get("jobType")) is not None:
            facets["jobType"] = copy.copy(job_type)
            facets["jobType"].processingType = ours.processingType
        if ours.tags:
            others = [one for one in getattr(facets.get("tags"), "tags", None) or () if one.key not in ours.tags]
            own = [TagsJobFacetFields(key=key, value=text or key, source="USER") for key, text in ours.tags.items()]
            facets["tags"] = TagsJobFacet(tags=[*others, *own], producer=PRODUCER)
        meant.job = copy.copy(event.job)
        meant.job.facets = facets
        if ours.isMapIndexInName:
            index = value_of(value_of((event.run.facets or {}).get("airflow"), "taskInstance"), "map_index")
            meant.job.name = indexed(event.job.name, index)
    return meant
