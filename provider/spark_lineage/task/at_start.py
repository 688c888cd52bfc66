"""What is said of a task when it begins: what its last successful run read, and perhaps wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage.deliver.stored_event import made
from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.guard import Guard
from spark_lineage.settings.defaults import lineage_directory
from spark_lineage.settings.places import TaskSettings
from spark_lineage.submit.submission_digest import submission_digest
from spark_lineage.task.last_end import LastEnd, last_end_file, read_end

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.launch.log import Log
    from spark_lineage.settings import Settings


@LINEAGE_FILES.bounded
def file_of(settings: Settings, task: Any) -> Path:
    """Return where the end of a task is kept, as long as it submits what it does now."""
    return last_end_file(Path(lineage_directory(settings)), task.dag_id, task.task_id, submission_digest(task))


def repeated(settings: Settings, file: Path) -> LastEnd | None:
    """Return the datasets that a START repeats, as the setting ``start_datasets`` says; None for none.

    :raises OSError: when they cannot be read
    """
    if settings.start_datasets == "none":
        return None
    end = read_end(file)
    if end is None or end.is_streaming or settings.start_datasets == "all":
        return end
    return LastEnd(end.is_streaming, end.inputs, [])


def with_last_end(told: OperatorLineage[Any, Any], end: LastEnd | None) -> OperatorLineage[Any, Any]:
    """Add the datasets that are repeated to what is known of the task, which comes first."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    if end is None:
        return told
    sides: dict[str, list[Any]] = {"inputs": list(told.inputs), "outputs": list(told.outputs)}
    for side, kind in (("inputs", InputDataset), ("outputs", OutputDataset)):
        known = {(one.namespace, one.name) for one in sides[side]}
        repeating = (one for one in getattr(end, side) if (one["namespace"], one["name"]) not in known)
        sides[side] += [made(kind, one) for one in repeating]
    return OperatorLineage(**sides, run_facets=told.run_facets, job_facets=told.job_facets)


def lineage_at_start(
    task: Any, arguments: Mapping[str, Any], conn_id: str, logger: Log, *, task_instance: Any = None
) -> OperatorLineage[Any, Any]:
    """Return what the OpenLineage provider is to say with its START; trouble is logged, and it says nothing then.

    :param task: the operator, whose ``arguments`` are those for lineage
    """
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.emit.task_event import JobDetails

    with Guard(lambda: False, logger)("START names no datasets", can_fail=False):
        settled = TaskSettings(arguments, conn_id)
        settled.settle()
        settings = settled.settings
        if settings.lineage_enabled:
            end = repeated(settings, file_of(settings, task))
            details = JobDetails.of(settings, task, task_instance)
            facets = details.facets(is_streaming=end is not None and end.is_streaming)
            return with_last_end(OperatorLineage(job_facets=facets), end)
    return OperatorLineage()
