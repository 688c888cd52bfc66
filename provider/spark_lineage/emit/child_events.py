"""The events of a task's child runs, a START and an end for each; a pure function of its arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from openlineage.client.generated.base import JobFacet, RunFacet

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
    facets: dict[str, JobFacet] = {}
    if found := [Owner(name=owner) for owner in owners]:
        facets["ownership"] = OwnershipJobFacet(owners=found, producer=PRODUCER)
    if labels := [TagsJobFacetFields(key=tag, value=tag, source="AIRFLOW") for tag in sorted(tags)]:
        facets["tags"] = TagsJobFacet(tags=labels, producer=PRODUCER)
    children = child_runs(lineage, granularity)
    return [event for child in children for event in _Events(child, task, root, facets, description).both(limit_bytes)]


class _Events:
    """Makes the two events of one child run."""

    def __init__(
        self,
        child: ChildRun,
        task: ParentRun,
        root: ParentRun | None,
        facets: Mapping[str, JobFacet],
        description: str | None,
    ) -> None:
        self._lineage = child.lineage
        self._started_at, self._ended_at = child.started_at, child.ended_at
        self._task = task
        # What differs comes first: backends cut long names.
        self._name = f"{child.job}@{task.job_name}"
        self._parent = _parent(task, root)
        text = "\n\n".join(filter(None, (_description(child, task), description)))
        self._job = {
            **facets,
            "documentation": DocumentationJobFacet(description=text, producer=PRODUCER),
            "jobType": job_type_facet(child.kind, is_streaming=child.is_streaming),
        }
        identity = json.dumps([task.run_id, child.kind, child.job, child.key]).encode()
        self._run_id = str(generate_static_uuid(self._started_at, identity))

    def both(self, limit_bytes: int) -> list[RunEvent]:
        lineage, reduced = limited(self._lineage, limit_bytes, self._end, reserved_bytes=_CLIENT_BYTES)
        end = self._end(lineage)
        if reduced is not None:
            end.run.facets = {**(end.run.facets or {}), REDUCED_KEY: reduced}
        return [self._start(lineage), end]

    def _start(self, lineage: TaskLineage) -> RunEvent:
        # The datasets are named from the beginning on: Marquez drops the edges of a job at an event without any.
        outputs = (structs.replace(each, statistics=None, column_lineage=None, writes=()) for each in lineage.outputs)
        begun = structs.replace(lineage, outputs=tuple(outputs), attempted=(), unconfirmed=())
        return self._event(EventType.START, self._started_at, begun)

    def _end(self, lineage: TaskLineage) -> RunEvent:
        return self._event(EventType(lineage.state), self._ended_at, lineage)

    def _event(self, event_type: EventType, moment: datetime, lineage: TaskLineage) -> RunEvent:
        run: dict[str, RunFacet] = {"parent": self._parent, **run_facets(lineage, None)}
        job: dict[str, JobFacet] = {**self._job, **job_facets(lineage)}
        return RunEvent(
            eventType=event_type,
            eventTime=event_time(moment),
            producer=PRODUCER,
            run=Run(runId=self._run_id, facets=run),
            job=Job(namespace=self._task.job_namespace, name=self._name, facets=job),
            inputs=input_datasets(lineage),
            outputs=output_datasets(lineage),
        )


def _description(child: ChildRun, task: ParentRun) -> str:
    lineage = child.lineage
    names = [*(each.dataset for each in lineage.outputs), *(each.dataset for each in lineage.attempted)]
    written = [sent_name(name).name for name in names]
    what = "All that leads to" if child.kind == "PATH" else "A Spark action that writes"
    target = f"{what} {', '.join(written)}" if written else "A Spark action that only reads"
    return f"{target}, in the task {task.job_name}."


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
