"""Adds to what the driver wrote for a task: Spark's event log, and what the DAG declares."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.collect.declared import declared_events, declared_span
from spark_lineage.collect.event_log_files import logs_of
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.collect.collector import DirectoryCollector
    from spark_lineage.inject.event_log import EventLogInjection
    from spark_lineage.merge.lineage import TaskLineage
    from spark_lineage.merge.transition import StatusReport
    from spark_lineage.tolerance import Tolerance


def read_event_logs(
    collector: DirectoryCollector,
    log: EventLogInjection | None,
    tell: Callable[[StatusReport], object] | None,
    tolerating: Tolerance,
) -> None:
    """Read what the driver logged, in its own directory or in the user's; ours has then served its purpose."""
    if log is None or log.directory is None:
        return
    with tolerating("Some lineage may be missing, because the event log cannot be read", can_fail=False):
        for path in logs_of(Path(log.directory), collector.application_ids):
            collector.read_event_log(path, tell)
    if log.is_ours:
        with tolerating("An event log stays", can_fail=False):
            shutil.rmtree(log.directory)


def declared_lineage(context: Context, namespace: str, started: datetime, tolerating: Tolerance) -> TaskLineage | None:
    """Give what the DAG declares as a lineage of its own, which is all that is known at first; None for nothing."""
    state = LineageState()
    add_inlets_and_outlets(state, context, namespace, started, tolerating)
    return task_lineage(state, "RUNNING") if state.runs else None


def add_inlets_and_outlets(
    state: LineageState, context: Context, namespace: str, started: datetime, tolerating: Tolerance
) -> None:
    """Add what the DAG declares of the task; ``namespace`` is that of the Spark job, empty for Airflow's own."""
    inlets, outlets = context.get("inlets") or [], context.get("outlets") or []
    if not (inlets or outlets):
        return
    with tolerating("Inlets and outlets are missing in the lineage", can_fail=False):
        from airflow.providers.openlineage import conf
        from airflow.providers.openlineage.plugins.macros import lineage_job_name
        from openlineage.client.uuid import generate_new_uuid

        started, ended = declared_span(state, started, datetime.now(UTC))
        events = declared_events(
            inlets,
            outlets,
            run_id=str(generate_new_uuid()),
            job_namespace=namespace or conf.namespace(),
            job_name=f"{lineage_job_name(context['ti'])}.declared",
            started=started,
            ended=ended,
        )
        for event in events:
            state.add(*event)
