"""One ``RunEvent`` for one ``TaskLineage``, and its bytes; a pure function of its arguments."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from openlineage.client.generated.base import EventType, InputDataset, Job, OutputDataset, Run, RunEvent
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet

from spark_lineage.emit.facets import (
    APPLICATION_KEY,
    ATTEMPTED_OUTPUTS_KEY,
    CATALOG_CHANGES_KEY,
    COLLECTION_KEY,
    LINEAGE_KEY,
    PRODUCER,
    STATUS_KEY,
    UNCONFIRMED_OUTPUTS_KEY,
    UNKNOWN_DATASETS_KEY,
    UNREAD_PLANS_KEY,
    facet,
    facets_of_input,
    facets_of_output,
    input_facets,
    known,
    named,
    output_facets,
    passing,
    schema_fields,
)
from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.launch.log import without_controls

if TYPE_CHECKING:
    from spark_lineage.launch.line import LineCounts
    from spark_lineage.merge.lineage import Application, Attempt, CatalogChange, TaskLineage
    from spark_lineage.merge.transition import StatusTransition, TaskNumbers

# Of the texts that a source gives; with the number of transitions that a ledger keeps, this bounds the facet.
_TEXT_LENGTH = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def run_event(
    lineage: TaskLineage, counts: LineCounts | None, *, job_namespace: str, job_name: str, run_id: str
) -> RunEvent:
    """The terminal event of the task's run, with all of its lineage; without a parent facet.

    ``eventTime`` is when Spark ended, else when it started, else the epoch; ``run_id`` is a UUID (else ``ValueError``).
    Spec: OpenLineage 2-0-2, ``RunEvent``.
    """
    lineage = redact_lineage(lineage)
    job_type = job_type_facet("TASK", is_streaming=lineage.is_streaming)
    return RunEvent(
        eventType=EventType(lineage.state),
        eventTime=event_time(lineage.ended_at or lineage.started_at or _EPOCH),
        producer=PRODUCER,
        run=Run(runId=run_id, facets={**collection_facet(lineage, counts), **run_facets(lineage)}),
        job=Job(namespace=job_namespace, name=job_name, facets={"jobType": job_type, **job_facets(lineage)}),
        inputs=input_datasets(lineage),
        outputs=output_datasets(lineage),
    )


def input_datasets(lineage: TaskLineage) -> list[InputDataset]:
    """What the task read, with ``inputStatistics``."""
    return [
        InputDataset(**named(each.dataset), facets=facets_of_input(each), inputFacets=input_facets(each))
        for each in lineage.inputs
    ]


def output_datasets(lineage: TaskLineage) -> list[OutputDataset]:
    """What the task left behind, with ``outputStatistics``, kinds of write, column lineage and lifecycle."""
    return [
        OutputDataset(**named(each.dataset), facets=facets_of_output(each), outputFacets=output_facets(each))
        for each in lineage.outputs
    ]


def event_time(moment: datetime) -> str:
    """An aware time as ``RunEvent.eventTime`` has it: RFC 3339, in UTC, with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def job_facets(lineage: TaskLineage) -> dict[str, Any]:
    """OpenLineage's ``lineage`` facet: for each output the inputs that it was made from (M8).

    It is left out where no edge is known. An output that nothing fed has an empty list, by which the spec says that it
    has no tracked source. Edges are between datasets: those between columns are in each output's ``columnLineage``, and
    would nearly double an event here. Spec: ``LineageFacet.json`` 1-0-0, ``LineageJobFacet``.
    """
    others = passing(lineage.foreign_of_job)
    if not any(output.fed_by for output in lineage.outputs):
        return others
    a_dataset = {"type": "DATASET"}
    entries = [
        {**named(output.dataset), **a_dataset, "inputs": [{**named(source), **a_dataset} for source in output.fed_by]}
        for output in lineage.outputs
    ]
    return {**others, LINEAGE_KEY: facet(LINEAGE_KEY, entries=entries)}


def job_type_facet(kind: str, *, is_streaming: bool) -> JobTypeJobFacet:
    """OpenLineage's ``jobType``: STREAMING where a streaming query ran."""
    processing = "STREAMING" if is_streaming else "BATCH"
    return JobTypeJobFacet(processingType=processing, integration="SPARK", jobType=kind, producer=PRODUCER)


def collection_facet(lineage: TaskLineage, counts: LineCounts | None) -> dict[str, Any]:
    """What the lineage was made from. Without ``counts`` input that is given twice makes the same facet."""
    lines: dict[str, Any] = {}
    if counts is not None:
        set_aside = dict(counts.set_aside)
        lines = {"linesRead": counts.read, "linesSetAside": sum(set_aside.values()), "setAside": set_aside}
        if counts.sources:
            lines["collectedFrom"] = sorted(counts.sources)
    return {COLLECTION_KEY: facet(COLLECTION_KEY, **lines, runs=lineage.run_count, evidence=list(lineage.evidence))}


def run_facets(lineage: TaskLineage) -> dict[str, Any]:
    """``processing_engine``, and our own facets but the collection's.

    One says how the task ended as far as Spark is concerned, beside an ``errorMessage`` where the application failed.
    """
    facets = passing(lineage.foreign)
    for each in lineage.applications:
        if each.spark_version is not None:
            facets["processing_engine"] = ProcessingEngineRunFacet(
                each.spark_version, "spark", openlineageAdapterVersion=each.adapter_version, producer=PRODUCER
            )
            break
    lists = (
        (APPLICATION_KEY, "applications", [_application(each) for each in lineage.applications]),
        (ATTEMPTED_OUTPUTS_KEY, "outputs", [_attempt(each) for each in lineage.attempted]),
        (UNCONFIRMED_OUTPUTS_KEY, "outputs", [named(each) for each in lineage.unconfirmed]),
        (CATALOG_CHANGES_KEY, "changes", [_catalog_change(each) for each in lineage.catalog_changes]),
        (UNKNOWN_DATASETS_KEY, "commands", [known(command=e.command, count=e.count) for e in lineage.unknown]),
        (UNREAD_PLANS_KEY, "parts", [known(name=each.part, count=each.count) for each in lineage.unread]),
    )
    facets |= {key: facet(key, **{field: entries}) for key, field, entries in lists if entries}
    if (status := lineage.status) is None:
        return facets
    error = without_controls(status.error)
    facets[STATUS_KEY] = facet(
        STATUS_KEY,
        state=lineage.state,
        transitions=[_transition(each) for each in status.transitions],
        counts=[{"subject": subject, "status": one, "count": count} for subject, one, count in status.counts],
        applications=[_numbers(each) for each in status.numbers] or None,
        error=error or None,
        uiUrl=status.ui_url,
        historyUrl=status.history_url,
        logsUrl=status.logs_url,
    )
    if error:
        facets["errorMessage"] = ErrorMessageRunFacet(error, "PYTHON", producer=PRODUCER)
    return facets


def _attempt(one: Attempt) -> dict[str, Any]:
    error = without_controls(one.error)
    return known(**named(one.dataset), reason=one.reason, error=error or None)


def to_json(event: RunEvent) -> bytes:
    """The event as canonical JSON: UTF-8, sorted keys, no spaces, no nulls, no newline at the end.

    What ``Serde.to_dict`` would give, in a fifth of its time, which an archive takes for each task.
    """
    text = json.dumps(event, default=_plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate cannot be written in UTF-8; a question mark for it is better than no event.
    return text.encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """What ``json.dumps`` is to write for a class of openlineage-python: its fields, without nulls."""
    if isinstance(value, Enum):
        return value.value
    # What `attr.fields` gives, without its checks.
    names = [field.name for field in value.__attrs_attrs__]
    return {name: field for name in names if (field := getattr(value, name)) is not None}


def _application(application: Application) -> dict[str, Any]:
    return known(
        runId=application.run_id,
        namespace=application.job_namespace,
        name=application.job_name,
        applicationId=application.application_id,
        sparkVersion=application.spark_version,
        openlineageAdapterVersion=application.adapter_version,
        master=application.master,
        deployMode=application.deploy_mode,
        uiUrl=application.ui_url,
        isEnded=application.is_ended,
    )


def _catalog_change(change: CatalogChange) -> dict[str, Any]:
    columns = [
        {side: schema_fields((field,))[0] for side, field in (("old", each.old), ("new", each.new)) if field}
        for each in change.columns
    ]
    return known(
        change=change.change,
        objectType=change.object_type,
        objectName=change.name,
        **named(change.dataset),
        time=event_time(change.time),
        isCertain=change.is_certain,
        isIgnored=change.is_ignored,
        previousObjectName=change.previous_name,
        columns=columns or None,
        schema=schema_fields(change.schema) or None,
        properties=dict(change.properties) or None,
        catalog=change.catalog or None,
        database=change.database or None,
        partitionedBy=list(change.partitioned_by) or None,
        unsetProperties=list(change.unset_properties) or None,
        partitions=[known(old=p.old, new=p.new, location=p.location or None) for p in change.partitions] or None,
        repair=change.repair or None,
    )


def _transition(one: StatusTransition) -> dict[str, Any]:
    return known(
        subject=one.subject,
        id=one.subject_id,
        newStatus=one.new_status,
        time=event_time(one.time),
        source=one.source,
        oldStatus=one.old_status,
        applicationId=one.application_id or None,
        detail=without_controls(one.detail)[:_TEXT_LENGTH] or None,
        exception=without_controls(one.exception)[:_TEXT_LENGTH] or None,
    )


def _numbers(one: TaskNumbers) -> dict[str, Any]:
    return known(
        applicationId=one.application_id or None,
        attemptId=one.attempt_id or None,
        source=one.source,
        tasks={"finished": one.finished, "failed": one.failed, "killed": one.killed},
        bytesRead=one.bytes_read,
        bytesWritten=one.bytes_written,
        memoryBytesSpilled=one.memory_bytes_spilled,
        diskBytesSpilled=one.disk_bytes_spilled,
        runMillis=one.run_millis,
        gcMillis=one.gc_millis,
        gcShare=None if one.gc_share is None else round(one.gc_share, 4),
        accumulators=[{"name": each.label, "value": each.value} for each in one.accumulators] or None,
    )


to_text = json.JSONEncoder(default=_plain).encode
"""Return a facet, an event, or a dict of facets as ``Serde.to_json`` writes it, much faster: JSON in ASCII."""
