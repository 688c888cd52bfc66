"""The task's inlets and outlets as events of one run, which ends as the task does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import msgspec
from msgspec import structs

from spark_lineage import declare
from spark_lineage.launch.line import Line
from spark_lineage.launch.log import Log
from spark_lineage.merge.event import (
    Dataset,
    ForeignFacet,
    Job,
    JobFacets,
    JobTypeFacet,
    RawDataset,
    Run,
    RunEvent,
    foreign_facets,
    observe,
)
from spark_lineage.merge.lineage import Statistics
from spark_lineage.merge.state import LineageState, utc
from spark_lineage.merge.task import task_lineage

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Guard
    from spark_lineage.merge.lineage import TaskLineage, TaskState

log = Log(__name__)

_JOB = JobFacets(jobType=JobTypeFacet(processingType="BATCH", jobType="DECLARED"))

# A dataset, and its facets as they are.
_Both = tuple[Dataset, RawDataset]


def declared_events(
    inlets: Iterable[Any],
    outlets: Iterable[Any],
    *,
    run_id: str,
    job_namespace: str,
    job_name: str,
    started: datetime,
    ended: datetime,
) -> list[Line]:
    """Return what ``LineageState.add`` takes: the inlets read at the start, the outlets written at the end.

    The run has no end of its own: so its outputs count only when the task succeeded, and are attempted when it failed
    (M5). Nothing comes of a task that declares nothing.

    :param inlets: Airflow assets (datasets in Airflow 2), OpenLineage datasets, also as JSON, or URIs; others are left
        out
    :param run_id: a UUID; the times of the task are aware
    """
    read, written = list(_datasets(inlets)), list(_datasets(outlets))
    inputs = observe(one for one, _ in read)
    # Without a number this says that data was written, and takes nothing from a number that Spark gave.
    outputs = tuple(
        one if one.statistics else structs.replace(one, statistics=Statistics())
        for one in observe(one for one, _ in written)
    )
    if not (inputs or outputs):
        return []
    run, job = Run(run_id), Job(job_namespace, job_name, _JOB)
    passing = (*_foreign("inputs", read), *_foreign("outputs", written))
    return [
        (RunEvent(eventTime=started, eventType="START", run=run, job=job), inputs, outputs, passing),
        (RunEvent(eventTime=ended, eventType="RUNNING", run=run, job=job), inputs, outputs, passing),
    ]


def declared_span(state: LineageState, started: datetime, ended: datetime) -> tuple[datetime, datetime]:
    """Return start and end of the task around all times of its driver, whose clock may differ."""
    runs = state.runs.values()
    return min((started, *(utc(run.first) for run in runs))), max((ended, *(utc(run.last) for run in runs)))


def _foreign(place: Literal["inputs", "outputs"], declared: Iterable[_Both]) -> Iterator[ForeignFacet]:
    for dataset, raw in declared:
        yield from foreign_facets(place, (dataset,), (raw,))


def _datasets(declared: Iterable[Any]) -> Iterator[_Both]:
    for one in declared:
        found, why = None, ""
        try:
            found = _dataset(one)
        except Exception as error:
            # Its text may quote the URI, and that a password.
            why = type(error).__name__
        if found is not None:
            yield found
        else:
            log.debug("An inlet or outlet of type %s names no dataset. %s", type(one).__name__, why)


def _dataset(declared: Any) -> _Both | None:
    """Return the dataset and its facets as Airflow's OpenLineage provider translates them; else as its URI says."""
    # Airflow's own translation of a File is not the name that Spark gives to it.
    uri = declared if isinstance(declared, str) else getattr(declared, "url", None)
    if uri is None:
        from airflow.providers.openlineage.extractors.manager import ExtractorManager
        from openlineage.client.serde import Serde

        is_stored = isinstance(declared, Mapping)
        translated = declared if is_stored else ExtractorManager.convert_to_ol_dataset(declared)
        # Airflow knows only the schemes of the providers that are installed.
        facets = RawDataset()
        if translated is not None:
            content = msgspec.json.encode(translated if is_stored else Serde.to_dict(translated))
            made, facets = msgspec.json.decode(content, type=Dataset), msgspec.json.decode(content, type=RawDataset)
        elif (uri := getattr(declared, "uri", None)) is not None:
            made = _named(uri)
        else:
            return None
        # The URI of an asset is ASCII, with escapes for all else.
        return structs.replace(made, name=unquote(made.name)) if hasattr(declared, "uri") else made, facets
    return _named(uri), RawDataset()


def _named(uri: str) -> Dataset:
    named = declare.dataset(uri)
    return Dataset(named.namespace, named.name)


def declared_lineage(
    context: Context,
    started: datetime,
    guard: Guard,
    *,
    task_state: TaskState = "RUNNING",
    inputs: Iterable[Any] = (),
    outputs: Iterable[Any] = (),
) -> TaskLineage | None:
    """Return the lineage that the DAG declares, with these datasets of an earlier run; None for nothing.

    :param task_state: with COMPLETE the outlets are outputs, as they are to be in the end
    """
    state = LineageState()
    add_inlets_and_outlets(state, context, started, guard, inputs=inputs, outputs=outputs)
    return structs.replace(task_lineage(state, task_state), state="RUNNING") if state.runs else None


def add_inlets_and_outlets(
    state: LineageState,
    context: Context,
    started: datetime,
    guard: Guard,
    *,
    inputs: Iterable[Any] = (),
    outputs: Iterable[Any] = (),
) -> None:
    """Add what the DAG declares of the task, and more inputs and outputs."""
    inlets, outlets = [*(context.get("inlets") or []), *inputs], [*(context.get("outlets") or []), *outputs]
    if not (inlets or outlets):
        return
    with guard("Inlets and outlets are missing in the lineage", can_fail=False):
        from airflow.providers.openlineage import conf
        from airflow.providers.openlineage.plugins.macros import lineage_job_name
        from openlineage.client.uuid import generate_new_uuid

        started, ended = declared_span(state, started, datetime.now(UTC))
        events = declared_events(
            inlets,
            outlets,
            run_id=str(generate_new_uuid()),
            job_namespace=conf.namespace(),
            job_name=f"{lineage_job_name(context['ti'])}.declared",
            started=started,
            ended=ended,
        )
        for event in events:
            state.add(*event)
