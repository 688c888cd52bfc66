"""Keeps the datasets of the last successful end of a task, and repeats them in the START of its next run.

One file for each submission of a task, below the lineage directory: another program or other arguments have none. Nor
has a worker that does not share the directory with the one that ran the task before: its START names no datasets. What
reads or writes the file raises ``OSError`` when it cannot; what was kept before is there still.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from spark_lineage.adapters.submission_digest import submission_digest
from spark_lineage.deliver.stored_event import made
from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import LAST_ENDS_DIRECTORY, create_private, encoded, read_small, replace_private
from spark_lineage.launch.log import Guard
from spark_lineage.settings.places import TaskSettings, lineage_directory

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.settings import Settings

# What an event says of a dataset that is true before it was read or written again. Without its schema Marquez would
# show it without columns.
_FACETS = ("schema", "symlinks", "dataSource", "catalog", "storage", "datasetType")


class LastEnd(Struct, frozen=True):
    """The datasets of an end, as the JSON of OpenLineage."""

    is_streaming: bool
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


@LINEAGE_FILES.bounded
def keep_end(file: Path, content: bytes) -> None:
    """Keep the datasets of an event in the place of those before.

    :param content: the JSON of a ``RunEvent``, without secrets
    """
    event = msgspec.json.decode(content)
    processing = event["job"].get("facets", {}).get("jobType", {}).get("processingType")
    sides = {side: [_kept(one) for one in event.get(side, ())] for side in ("inputs", "outputs")}
    if not any(sides.values()):
        return
    create_private(file.parent)
    replace_private(file, msgspec.json.encode(LastEnd(processing == "STREAMING", **sides)))


@LINEAGE_FILES.bounded
def last_end(settings: Settings, task: Any) -> tuple[Path, LastEnd | None]:
    """Return where the end of a task is kept, as long as it submits what it does now, and the end; None for none."""
    name = f"{encoded(f'{task.dag_id}/{task.task_id}')}-{submission_digest(task)[:32]}.json"
    file = Path(lineage_directory(settings), LAST_ENDS_DIRECTORY, name)
    try:
        return file, msgspec.json.decode(read_small(file), type=LastEnd)
    except (FileNotFoundError, msgspec.DecodeError):
        return file, None


def with_last_end(known: OperatorLineage[Any, Any], end: LastEnd | None) -> OperatorLineage[Any, Any]:
    """Add the inputs of an end, and a stream's outputs, to what is known of the task, which comes first."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    if end is None:
        return known
    sides: dict[str, list[Any]] = {"inputs": list(known.inputs), "outputs": list(known.outputs)}
    for side, kind in (("inputs", InputDataset), *([("outputs", OutputDataset)] if end.is_streaming else [])):
        names = {(one.namespace, one.name) for one in sides[side]}
        repeating = (one for one in getattr(end, side) if (one["namespace"], one["name"]) not in names)
        sides[side] += [made(kind, one) for one in repeating]
    return OperatorLineage(**sides, run_facets=known.run_facets, job_facets=known.job_facets)


def lineage_at_start(
    task: Any, arguments: Mapping[str, Any], conn_id: str, logger: Any, *, task_instance: Any = None
) -> OperatorLineage[Any, Any]:
    """Return what the OpenLineage provider is to say with its START; trouble is logged, and it says nothing then.

    :param task: the operator, whose ``arguments`` are those for lineage
    """
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.emit.task_event import JobDetails

    settled = TaskSettings(arguments, conn_id)
    if settled.is_off():
        return lineage_of_stock(task)
    with Guard(lambda: False, logger)("START names no datasets", can_fail=False):
        settled.settle()
        settings = settled.settings
        _, end = last_end(settings, task)
        details = JobDetails.of(settings, task, task_instance)
        facets = details.facets(is_streaming=end is not None and end.is_streaming)
        return with_last_end(OperatorLineage(job_facets=facets), end)
    return OperatorLineage()


def lineage_of_stock(task: Any) -> OperatorLineage[Any, Any]:
    """Return what the OpenLineage provider puts into the events of an operator that it does not know."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.providers.openlineage.utils.utils import get_unknown_source_attribute_run_facet

    return OperatorLineage(run_facets=get_unknown_source_attribute_run_facet(task=task))


def _kept(dataset: dict[str, Any]) -> dict[str, Any]:
    facets = {name: facet for name, facet in dataset.get("facets", {}).items() if name in _FACETS}
    return {"namespace": dataset["namespace"], "name": dataset["name"], "facets": facets}
