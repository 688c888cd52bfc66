"""The events of a task's child runs: of each path to an output, and of what goes on after the task; pure functions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct, structs
from openlineage.client.generated import parent_run
from openlineage.client.generated.base import EventType, Job, RunEvent
from openlineage.client.generated.documentation_job import DocumentationJobFacet
from openlineage.client.generated.ownership_job import Owner, OwnershipJobFacet
from openlineage.client.generated.tags_job import TagsJobFacet, TagsJobFacetFields
from openlineage.client.uuid import generate_static_uuid

from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.emit.run_event import PRODUCER, event_of, job_type_facet
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES, cut
from spark_lineage.launch.launch import Launch
from spark_lineage.merge.lineage import Action, DatasetLineage, ParentRun, TaskLineage
from spark_lineage.naming.backend_names import safe_name
from spark_lineage.naming.identity import DatasetName
from spark_lineage.settings import Granularity

_PATH = "PATH"
_PROPERTY = "spark.openlineage."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HASH_DIGITS = 12
_READABLE_LENGTH = 64
_NOT_READABLE = re.compile(r"[^\w.\-]+")
# Room for the facet ``tags``, in which openlineage-python names itself.
_CLIENT_BYTES = 1_024


class ChildRun(Struct, frozen=True):
    """The run of a path within the run of the task, with a lineage of its own.

    ``job`` names its job within the task's: the same for the same work on every run. ``key`` separates the runs of
    one job within one run of the task. ``started_at`` is never after ``ended_at``.
    """

    job: str
    key: str
    is_streaming: bool
    started_at: datetime
    ended_at: datetime
    lineage: TaskLineage


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
    lineage = redact_lineage(lineage)
    job = _job_of_all(owners, tags)
    parent = _parent(task, root)
    return [
        event
        for child in child_runs(lineage, granularity)
        for event in _events(child, task, parent, {**job, **_described(child, task, description)}, limit_bytes)
    ]


def going_on_event(
    event_type: Literal["START", "COMPLETE", "FAIL"],
    lineage: TaskLineage,
    launch: Launch,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    *,
    owners: Iterable[str] = (),
    tags: Iterable[str] = (),
    description: str | None = None,
) -> RunEvent:
    """Return an event of the job that goes on when its task has ended: ``child`` of its launch.

    Its parent is the task that the ``parent`` of the launch names, its run the application run of the launch. The
    event is kept under ``limit_bytes`` (M12).

    Spec: OpenLineage 2-0-2 ``RunEvent``, ``ParentRunFacet`` 1-2-0.
    """
    lineage = redact_lineage(lineage)
    known = {key.removeprefix(_PROPERTY).lower(): value for key, value in launch.parent}
    of_task, of_root = (
        [known.get(f"{prefix}{name}", "") for name in ("runid", "jobnamespace", "jobname")]
        for prefix in ("parent", "rootparent")
    )
    task, root = ParentRun(*of_task), ParentRun(*of_root) if all(of_root) else None
    written = f"What {task.job_name} has begun, and does not wait for."
    moment = lineage.ended_at or datetime.now(UTC)
    if event_type == "START":
        # A task that was deferred sends it later, maybe after the end: the id has the time of the submission.
        moment = datetime.fromtimestamp((UUID(launch.application_run_id).int >> 80) / 1000, UTC)
    of_job = {
        **_job_of_all(owners, tags),
        "documentation": DocumentationJobFacet(
            description="\n\n".join(filter(None, (written, description))), producer=PRODUCER
        ),
        "jobType": job_type_facet("APPLICATION", is_streaming=lineage.is_streaming),
    }
    job = Job(task.job_namespace, f"{launch.child}@{task.job_name}", of_job)
    facets, run_id = {"parent": _parent(task, root)}, launch.application_run_id
    event = event_of(EventType(event_type), moment, lineage, run_id=run_id, job=job, facets=facets)
    cut(event, limit_bytes, reserved_bytes=_CLIENT_BYTES)
    return event


def _job_of_all(owners: Iterable[str], tags: Iterable[str]) -> dict[str, Any]:
    job: dict[str, Any] = {}
    if found := [Owner(name=owner) for owner in owners]:
        job["ownership"] = OwnershipJobFacet(owners=found, producer=PRODUCER)
    if labels := [TagsJobFacetFields(key=tag, value=tag, source="AIRFLOW") for tag in sorted(tags)]:
        job["tags"] = TagsJobFacet(tags=labels, producer=PRODUCER)
    return job


def _events(
    child: ChildRun, task: ParentRun, parent: parent_run.ParentRunFacet, job_of_all: dict[str, Any], limit_bytes: int
) -> list[RunEvent]:
    identity = json.dumps([task.run_id, _PATH, child.job, child.key]).encode()
    run_id = str(generate_static_uuid(child.started_at, identity))

    # What differs comes first: backends cut long names.
    job = Job(task.job_namespace, f"{child.job}@{task.job_name}", job_of_all)

    # The datasets are named from the beginning on: Marquez drops the edges of a job at an event without any.
    outputs = (structs.replace(each, statistics=None, column_lineage=None, writes=()) for each in child.lineage.outputs)
    begun = structs.replace(child.lineage, outputs=tuple(outputs), attempted=(), unconfirmed=())
    events = [
        event_of(event_type, moment, known, run_id=run_id, job=job, facets={"parent": parent})
        for event_type, moment, known in (
            (EventType.START, child.started_at, begun),
            (EventType(child.lineage.state), child.ended_at, child.lineage),
        )
    ]
    for each in events:
        cut(each, limit_bytes, reserved_bytes=_CLIENT_BYTES)
    return events


def _described(child: ChildRun, task: ParentRun, description: str | None) -> dict[str, Any]:
    names = [*(each.dataset for each in child.lineage.outputs), *(each.dataset for each in child.lineage.attempted)]
    written = ", ".join(safe_name(name).name for name in names)
    text = "\n\n".join(filter(None, (f"All that leads to {written}, in the task {task.job_name}.", description)))
    return {
        "documentation": DocumentationJobFacet(description=text, producer=PRODUCER),
        "jobType": job_type_facet(_PATH, is_streaming=child.is_streaming),
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


def child_runs(lineage: TaskLineage, granularity: Granularity) -> list[ChildRun]:
    """The child runs of a task, in the order of their ends: none for ``task``.

    ``lineage`` has to have its ``actions``: paths take their times from them, and failed ones their inputs. The job of
    a path is named by its output and a hash of its inputs and output.
    """
    children = () if granularity == "task" else _paths(lineage)
    return sorted(children, key=lambda child: (child.ended_at, child.started_at, child.job, child.key))


def _paths(task: TaskLineage) -> Iterator[ChildRun]:
    # How much of an input was read is known for the task alone.
    inputs = {each.dataset: structs.replace(each, statistics=None) for each in task.inputs}
    done = [action for action in task.actions if action.state == "COMPLETE"]
    for output in task.outputs:
        path = TaskLineage(
            state="COMPLETE",
            inputs=tuple(inputs.get(name, DatasetLineage(name)) for name in output.fed_by),
            outputs=(output,),
            unconfirmed=tuple(name for name in task.unconfirmed if name == output.dataset),
        )
        job = _job(_place(output.dataset), output.fed_by, [output.dataset])
        yield _child(job, "written", lineage=path, actions=_leading_to(output.dataset, done), task=task)
    for attempt in task.attempted:
        actions = _leading_to(attempt.dataset, task.actions)
        read = {name for action in actions for name in action.inputs}
        is_aborted = attempt.reason == "unfinished" and task.state == "ABORT"
        path = TaskLineage(
            state="COMPLETE" if attempt.reason == "not written" else "ABORT" if is_aborted else "FAIL",
            inputs=tuple(each for name, each in inputs.items() if name in read),
            attempted=(attempt,),
        )
        job = _job(_place(attempt.dataset), (each.dataset for each in path.inputs), [attempt.dataset])
        yield _child(job, attempt.reason, lineage=path, actions=actions, task=task)


def _child(job: str, key: str, *, lineage: TaskLineage, actions: Sequence[Action], task: TaskLineage) -> ChildRun:
    """Return a child the time of its actions; that of the task where none is known, as of a declared output."""
    started_at = min((action.started_at for action in actions), default=task.started_at or task.ended_at or _EPOCH)
    ended_at = max((action.ended_at for action in actions), default=task.ended_at or started_at)
    return ChildRun(
        job=job,
        key=key,
        is_streaming=any(action.is_streaming for action in actions),
        started_at=started_at,
        ended_at=max(started_at, ended_at),
        lineage=structs.replace(lineage, applications=task.applications),
    )


def _leading_to(dataset: DatasetName, actions: Sequence[Action]) -> list[Action]:
    """Return those of ``actions``, in the order of time, that wrote a dataset, or before that what one of them read."""
    wanted = {dataset}
    found = []
    for action in reversed(actions):
        if not wanted.isdisjoint(action.outputs):
            found.append(action)
            wanted.update(action.inputs)
    return found


def _job(readable: str, inputs: Iterable[DatasetName], outputs: Iterable[DatasetName]) -> str:
    named = [sorted((name.namespace, name.name) for name in map(safe_name, names)) for names in (inputs, outputs)]
    digest = hashlib.sha256(json.dumps(named, separators=(",", ":")).encode()).hexdigest()
    return "_".join(part for part in (readable, digest[:_HASH_DIGITS]) if part)


def _place(dataset: DatasetName) -> str:
    """The end of a dataset's name, which people know it by: ``orders`` of ``/warehouse/shop.db/orders``."""
    last = safe_name(dataset).name.rstrip("/").rpartition("/")[2]
    return _NOT_READABLE.sub("_", last)[:_READABLE_LENGTH].strip("_.")
