"""The events of a task's child runs, a START and an end for each; a pure function of its arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import structs
from openlineage.client.generated import parent_run
from openlineage.client.generated.base import EventType, Job, Run, RunEvent
from openlineage.client.generated.documentation_job import DocumentationJobFacet
from openlineage.client.generated.ownership_job import Owner, OwnershipJobFacet
from openlineage.client.generated.tags_job import TagsJobFacet, TagsJobFacetFields
from openlineage.client.uuid import generate_static_uuid

from spark_lineage.emit.child_runs import ChildRun, child_runs
from spark_lineage.emit.facets import PRODUCER, REDUCED_KEY
from spark_lineage.emit.run_event import input_datasets, job_facets, job_type_facet, output_datasets, run_facets
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES, limited
from spark_lineage.merge.lineage import ParentRun, TaskLineage
from spark_lineage.secrets.spelling import event_time, sent_name
from spark_lineage.settings import Granularity

# Room for the facet ``tags``, in which openlineage-python names itself.
_CLIENT_BYTES = 1_024


def child_events(
    lineage: TaskLineage,
    granularity: Granularity,
    *,
    task: ParentRun,
    root: ParentRun | None = None,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    owners: Iterable[str] = (),
    tags: Iterable[str] = (),
    description: str | None = None,
) -> list[RunEvent]:
    """The events of all child runs, START and end of one after those of the other; none for ``task``.

    ``lineage`` is that of the task as the merge gives it (``has_actions=True``), not yet cut to a limit, because its
    content names the jobs. ``task`` is the run and job of the task, the parent of all; ``root`` is what the task itself
    has as root, left out where it is not known; ``owners``, ``tags`` and ``description`` are those of its job. Each
    event is kept under ``limit_bytes`` (M12). The same arguments give the same run ids (UUIDv7 of the run's start), so
    that sending twice changes nothing.

    Spec: OpenLineage 2-0-2 ``RunEvent``, ``ParentRunFacet`` 1-2-0.
    """
    job: dict[str, Any] = {}
    if found := [Owner(name=owner) for owner in owners]:
        job["ownership"] = OwnershipJobFacet(owners=found, producer=PRODUCER)
    if labels := [TagsJobFacetFields(key=tag, value=tag, source="AIRFLOW") for tag in sorted(tags)]:
        job["tags"] = TagsJobFacet(tags=labels, producer=PRODUCER)
    parent = _parent(task, root)
    return [
        event
        for child in child_runs(lineage, granularity)
        for event in _events(child, task, parent, {**job, **_described(child, task, description)}, limit_bytes)
    ]


def _events(
    child: ChildRun, task: ParentRun, parent: parent_run.ParentRunFacet, job_of_all: dict[str, Any], limit_bytes: int
) -> list[RunEvent]:
    """Return the START and the end of one child run."""
    identity = json.dumps([task.run_id, child.kind, child.job, child.key]).encode()
    run_id = str(generate_static_uuid(child.started_at, identity))

    def event(event_type: EventType, moment: datetime, lineage: TaskLineage, **facets: Any) -> RunEvent:
        return RunEvent(
            eventType=event_type,
            eventTime=event_time(moment),
            producer=PRODUCER,
            run=Run(runId=run_id, facets={"parent": parent, **run_facets(lineage, None), **facets}),
            # What differs comes first: backends cut long names.
            job=Job(task.job_namespace, f"{child.job}@{task.job_name}", {**job_of_all, **job_facets(lineage)}),
            inputs=input_datasets(lineage),
            outputs=output_datasets(lineage),
        )

    def end(lineage: TaskLineage, **facets: Any) -> RunEvent:
        return event(EventType(lineage.state), child.ended_at, lineage, **facets)

    lineage, reduced = limited(child.lineage, limit_bytes, end, reserved_bytes=_CLIENT_BYTES)
    # The datasets are named from the beginning on: Marquez drops the edges of a job at an event without any.
    outputs = (structs.replace(each, statistics=None, column_lineage=None, writes=()) for each in lineage.outputs)
    begun = structs.replace(lineage, outputs=tuple(outputs), attempted=(), unconfirmed=())
    start = event(EventType.START, child.started_at, begun)
    return [start, end(lineage, **({} if reduced is None else {REDUCED_KEY: reduced}))]


def _described(child: ChildRun, task: ParentRun, description: str | None) -> dict[str, Any]:
    names = [*(each.dataset for each in child.lineage.outputs), *(each.dataset for each in child.lineage.attempted)]
    written = ", ".join(sent_name(name).name for name in names)
    what = "All that leads to" if child.kind == "PATH" else "A Spark action that writes"
    first = f"{what} {written}" if written else "A Spark action that only reads"
    text = "\n\n".join(filter(None, (f"{first}, in the task {task.job_name}.", description)))
    return {
        "documentation": DocumentationJobFacet(description=text, producer=PRODUCER),
        "jobType": job_type_facet(child.kind, is_streaming=child.is_streaming),
    }


def _parent(task: ParentRun, root: ParentRun | None) -> parent_run.ParentRunFacet:
    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=task.run_id),
        job=parent_run.Job(namespace=task.job_namespace, name=task.job_name),
        root=None
        if root is None
        else parent_run.Root(
            run=parent_run.RootRun(runId=root.run_id),
            job=parent_run.RootJob(namespace=root.job_namespace, name=root.job_name),
        ),
        producer=PRODUCER,
    )
