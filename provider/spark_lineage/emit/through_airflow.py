"""Hands a task's lineage over to Airflow's OpenLineage provider, and sends its child runs through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_lineage.emit.bounded_sending import send_within
from spark_lineage.emit.child_events import child_events
from spark_lineage.emit.facets import REDUCED_KEY
from spark_lineage.emit.limit import AIRFLOW_BYTES, limited, reduction_text
from spark_lineage.emit.run_event import input_datasets, job_facets, output_datasets, run_event, run_facets
from spark_lineage.merge.lineage import ParentRun, TaskLineage

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.generated.base import RunEvent

    from spark_lineage.collect.collector import Log
    from spark_lineage.collect.line import LineCounts
    from spark_lineage.settings import Granularity

# Airflow kills a task five seconds after it has asked it to end.
_SECONDS, _SECONDS_WHEN_KILLED = 10.0, 1.0
_ANY_RUN_ID = "00000000-0000-0000-0000-000000000000"


def operator_lineage(
    lineage: TaskLineage, counts: LineCounts, limit_bytes: int, logger: Log
) -> OperatorLineage[Any, Any]:
    """Give what the OpenLineage provider asks an operator for, small enough for the event that it is going to make."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    def as_event(lineage: TaskLineage) -> RunEvent:
        # The provider's own names are part of the room that is reserved.
        return run_event(lineage, counts, job_namespace="", job_name="", run_id=_ANY_RUN_ID)

    kept, reduced = limited(lineage, limit_bytes, as_event, reserved_bytes=AIRFLOW_BYTES)
    facets = run_facets(kept, counts)
    if reduced is not None:
        facets[REDUCED_KEY] = reduced
        logger.warning(reduction_text(reduced))
    return OperatorLineage(
        inputs=input_datasets(kept), outputs=output_datasets(kept), run_facets=facets, job_facets=job_facets(kept)
    )


def send_running(lineage: TaskLineage, counts: LineCounts, limit_bytes: int, task_instance: Any) -> bool:
    """Send a RUNNING event of the task's own run with its lineage so far; not before there are datasets.

    :return: whether there was something to send
    """
    from airflow.providers.openlineage.api import emit_dataset_lineage

    if not (lineage.inputs or lineage.outputs):
        return False

    def as_event(lineage: TaskLineage) -> RunEvent:
        return run_event(lineage, counts, job_namespace="", job_name="", run_id=_ANY_RUN_ID)

    kept, _ = limited(lineage, limit_bytes, as_event, reserved_bytes=AIRFLOW_BYTES)
    emit_dataset_lineage(
        inputs=[*input_datasets(kept)],
        outputs=[*output_datasets(kept)],
        task_instance=task_instance,
        additional_run_facets=run_facets(kept, counts),
        additional_job_facets=job_facets(kept),
    )
    return True


def send_children(
    lineage: TaskLineage, granularity: Granularity, limit_bytes: int, task_instance: Any, logger: Log
) -> None:
    """Send the child runs of a task over the transport of the OpenLineage provider, if it sends this task at all."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.api import emit
    from airflow.providers.openlineage.plugins import macros
    from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy

    if granularity == "task":
        return
    policy = resolve_task_emission_policy(task_instance.task, task_instance.dag_id, task_instance.task_id)
    if not (policy.emit and policy.extract_operator_metadata):
        return
    task = ParentRun(
        macros.lineage_run_id(task_instance),
        conf.namespace(),
        macros.lineage_job_name(task_instance),
    )
    root = ParentRun(
        macros.lineage_root_run_id(task_instance),
        macros.lineage_root_job_namespace(task_instance),
        macros.lineage_root_job_name(task_instance),
    )
    events = child_events(lineage, granularity, task=task, root=root, limit_bytes=limit_bytes)
    sent = send_within(_SECONDS_WHEN_KILLED if lineage.state == "ABORT" else _SECONDS, events, emit)
    logger.info("Sent %d of %d events of child runs.", sent, len(events))
