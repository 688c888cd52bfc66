"""One ``RunEvent`` for one ``TaskLineage``, and its bytes; a pure function of its arguments."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from openlineage.client.generated.base import EventType, InputDataset, Job, OutputDataset, Run, RunEvent
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet

from spark_lineage.emit.dataset_facets import (
    facets_of_input,
    facets_of_output,
    input_statistics,
    output_facets,
    schema_fields,
)
from spark_lineage.emit.facets import (
    APPLICATION_KEY,
    ATTEMPTED_OUTPUTS_KEY,
    CATALOG_CHANGES_KEY,
    COLLECTION_KEY,
    PRODUCER,
    UNCONFIRMED_OUTPUTS_KEY,
    UNKNOWN_DATASETS_KEY,
    UNREAD_PLANS_KEY,
    AttemptedOutput,
    AttemptedOutputsRunFacet,
    CatalogChange,
    CatalogChangesRunFacet,
    CollectionRunFacet,
    ColumnChange,
    SparkApplication,
    SparkApplicationRunFacet,
    UnconfirmedOutput,
    UnconfirmedOutputsRunFacet,
    UnknownCommand,
    UnknownDatasetsRunFacet,
    UnreadPlanPart,
    UnreadPlansRunFacet,
)
from spark_lineage.emit.openlineage_facets import LineageEntry, LineageInput, LineageJobFacet
from spark_lineage.emit.status_facet import status_facets
from spark_lineage.secrets.redaction import redact, redact_dataset, redact_value
from spark_lineage.secrets.spelling import event_time, sent_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openlineage.client.generated.base import JobFacet, RunFacet
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields

    from spark_lineage.launch.line import LineCounts
    from spark_lineage.merge.lineage import Application, SchemaField, TaskLineage
    from spark_lineage.merge.lineage import CatalogChange as MergedCatalogChange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def run_event(
    lineage: TaskLineage, counts: LineCounts | None, *, job_namespace: str, job_name: str, run_id: str
) -> RunEvent:
    """The terminal event of the task's run, with all of its lineage; without a parent facet.

    ``eventTime`` is when Spark ended, else when it started, else the epoch; ``run_id`` is a UUID (else ``ValueError``).
    Spec: OpenLineage 2-0-2, ``RunEvent``.
    """
    job_type = job_type_facet("TASK", is_streaming=lineage.is_streaming)
    return RunEvent(
        eventType=EventType(lineage.state),
        eventTime=event_time(lineage.ended_at or lineage.started_at or _EPOCH),
        producer=PRODUCER,
        run=Run(runId=run_id, facets=run_facets(lineage, counts)),
        job=Job(namespace=job_namespace, name=job_name, facets={"jobType": job_type, **job_facets(lineage)}),
        inputs=input_datasets(lineage),
        outputs=output_datasets(lineage),
    )


def input_datasets(lineage: TaskLineage) -> list[InputDataset]:
    """What the task read, with ``inputStatistics``."""
    return [
        InputDataset(
            namespace=sent.namespace,
            name=sent.name,
            facets=facets_of_input(each),
            inputFacets=input_statistics(each.statistics),
        )
        for each in lineage.inputs
        for sent in [sent_name(each.dataset)]
    ]


def output_datasets(lineage: TaskLineage) -> list[OutputDataset]:
    """What the task left behind, with ``outputStatistics``, kinds of write, column lineage and lifecycle."""
    return [
        OutputDataset(
            namespace=sent.namespace, name=sent.name, facets=facets_of_output(each), outputFacets=output_facets(each)
        )
        for each in lineage.outputs
        for sent in [sent_name(each.dataset)]
    ]


def job_facets(lineage: TaskLineage) -> dict[str, JobFacet]:
    """OpenLineage's ``lineage`` facet: for each output the inputs that it was made from (M8).

    It is left out where no edge is known. An output that nothing fed has an empty list, by which the spec says that it
    has no tracked source. Edges are between datasets: those between columns are in each output's ``columnLineage``, and
    would nearly double an event here. Spec: ``LineageFacet.json`` 1-0-0, ``LineageJobFacet``.
    """
    if not any(output.fed_by for output in lineage.outputs):
        return {}
    entries = [
        LineageEntry(
            sent.namespace,
            sent.name,
            [LineageInput(source.namespace, source.name) for source in map(sent_name, output.fed_by)],
        )
        for output in lineage.outputs
        for sent in [sent_name(output.dataset)]
    ]
    return {"lineage": LineageJobFacet(entries=entries, producer=PRODUCER)}


def job_type_facet(kind: str, *, is_streaming: bool) -> JobTypeJobFacet:
    """OpenLineage's ``jobType``: STREAMING where a streaming query ran."""
    processing = "STREAMING" if is_streaming else "BATCH"
    return JobTypeJobFacet(processingType=processing, integration="SPARK", jobType=kind, producer=PRODUCER)


def run_facets(lineage: TaskLineage, counts: LineCounts | None) -> dict[str, RunFacet]:
    """``processing_engine`` and our own facets.

    The collection facet is there whenever lines were counted, as its zeros say something. Without ``counts`` the facets
    are a function of the lineage alone, so that input given twice makes the same event.
    """
    facets: dict[str, RunFacet] = {}
    if counts is not None:
        facets[COLLECTION_KEY] = _collection(lineage, counts)
    engine = _processing_engine(lineage.applications)
    if engine is not None:
        facets["processing_engine"] = engine
    if lineage.applications:
        applications = [_application(each) for each in lineage.applications]
        facets[APPLICATION_KEY] = SparkApplicationRunFacet(applications=applications, producer=PRODUCER)
    if lineage.attempted:
        attempted = [
            AttemptedOutput(sent.namespace, sent.name, each.reason)
            for each in lineage.attempted
            for sent in [sent_name(each.dataset)]
        ]
        facets[ATTEMPTED_OUTPUTS_KEY] = AttemptedOutputsRunFacet(outputs=attempted, producer=PRODUCER)
    if lineage.unconfirmed:
        unconfirmed = [UnconfirmedOutput(sent.namespace, sent.name) for sent in map(sent_name, lineage.unconfirmed)]
        facets[UNCONFIRMED_OUTPUTS_KEY] = UnconfirmedOutputsRunFacet(outputs=unconfirmed, producer=PRODUCER)
    if lineage.catalog_changes:
        changes = [_catalog_change(each) for each in lineage.catalog_changes]
        facets[CATALOG_CHANGES_KEY] = CatalogChangesRunFacet(changes=changes, producer=PRODUCER)
    if lineage.unknown:
        commands = [UnknownCommand(redact(each.command), each.count) for each in lineage.unknown]
        facets[UNKNOWN_DATASETS_KEY] = UnknownDatasetsRunFacet(commands=commands, producer=PRODUCER)
    if lineage.unread:
        parts = [UnreadPlanPart(redact(each.part), each.count) for each in lineage.unread]
        facets[UNREAD_PLANS_KEY] = UnreadPlansRunFacet(parts=parts, producer=PRODUCER)
    if lineage.status is not None:
        facets.update(status_facets(lineage.state, lineage.status))
    return facets


def to_json(event: RunEvent) -> bytes:
    """The event as canonical JSON: UTF-8, sorted keys, no spaces, no nulls, no newline at the end.

    What ``Serde.to_dict`` would give, in a fifth of its time, which an archive takes for each task.
    """
    text = json.dumps(event, default=_plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate cannot be written in UTF-8; a question mark for it is better than no event.
    return text.encode("utf-8", "replace")


def json_bytes(value: Any) -> int:
    """Return the bytes of a facet, an event, or a dict of facets: the length of ``Serde.to_json``, much faster."""
    return len(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    """What ``json.dumps`` is to write for a class of openlineage-python: its fields, without nulls."""
    if isinstance(value, Enum):
        return value.value
    # What `attr.fields` gives, without its checks.
    names = [field.name for field in value.__attrs_attrs__]
    return {name: field for name in names if (field := getattr(value, name)) is not None}


def _collection(lineage: TaskLineage, counts: LineCounts) -> CollectionRunFacet:
    return CollectionRunFacet(
        linesRead=counts.read,
        linesSetAside=sum(counts.set_aside.values()),
        runs=lineage.run_count,
        setAside=dict(counts.set_aside),
        producer=PRODUCER,
    )


def _processing_engine(applications: Sequence[Application]) -> ProcessingEngineRunFacet | None:
    for each in applications:
        if each.spark_version is not None:
            return ProcessingEngineRunFacet(
                version=each.spark_version,
                name="spark",
                openlineageAdapterVersion=each.adapter_version,
                producer=PRODUCER,
            )
    return None


def _application(application: Application) -> SparkApplication:
    return SparkApplication(
        runId=application.run_id,
        namespace=redact(application.job_namespace),
        name=redact(application.job_name),
        applicationId=application.application_id,
        sparkVersion=application.spark_version,
        openlineageAdapterVersion=application.adapter_version,
        master=None if application.master is None else redact(application.master),
        deployMode=application.deploy_mode,
        uiUrl=None if application.ui_url is None else redact(application.ui_url),
        isEnded=application.is_ended,
    )


def _catalog_change(change: MergedCatalogChange) -> CatalogChange:
    sent = sent_name(change.dataset)
    columns = [ColumnChange(_field(each.old), _field(each.new)) for each in change.columns]
    return CatalogChange(
        change=change.change,
        objectType=change.object_type,
        objectName=redact_dataset(change.name),
        namespace=sent.namespace,
        name=sent.name,
        time=event_time(change.time),
        isCertain=change.is_certain,
        isIgnored=change.is_ignored,
        previousObjectName=None if change.previous_name is None else redact_dataset(change.previous_name),
        columns=columns or None,
        schema=schema_fields(change.schema) or None,
        properties=redact_value(dict(change.properties)) or None,
        catalog=change.catalog or None,
        database=redact_dataset(change.database) or None,
        partitionedBy=list(change.partitioned_by) or None,
    )


def _field(field: SchemaField | None) -> SchemaDatasetFacetFields | None:
    return None if field is None else schema_fields((field,))[0]
