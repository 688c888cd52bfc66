"""A task as the files that were kept of it tell it: for whoever merges later, without Airflow and without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.lineage import ParentRun, TaskLineage, TaskState
from spark_lineage.merge.outcome import task_state as state_by
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.merge.transition import ENDED, StatusLedger, StatusSummary, StatusTransition, report_of, sort_key
from spark_lineage.naming.chain import Naming
from spark_lineage.naming.options import DEFAULT_NAMING

_UNKNOWN = "unknown"


def kept_lineage(
    state: LineageState,
    task_state: TaskState | None = None,
    *,
    naming: Naming = DEFAULT_NAMING,
    has_actions: bool = False,
) -> TaskLineage:
    """Return the lineage of a task with its status, as far as that was kept.

    :param task_state: how the task ended, where that is known; else the status tells, and where that does not either,
        the task is taken to have succeeded: lineage files cannot tell
    """
    status = summary_of(state.transitions) if state.transitions else None
    by_status = state_of(status) if status is not None else None
    lineage = task_lineage(state, task_state or by_status or "COMPLETE", naming=naming, has_actions=has_actions)
    return structs.replace(lineage, status=status)


def identity_of(lineage: TaskLineage, state: LineageState) -> ParentRun:
    """Return run and job of the task: what the application names as its parent, else the application itself.

    Where the files hold no event of the application, its run is what their runs have as parent.
    """
    if lineage.parent is not None:
        return lineage.parent
    if lineage.applications:
        last = lineage.applications[-1]
        return ParentRun(last.run_id, last.job_namespace or _UNKNOWN, last.job_name or _UNKNOWN)
    run_ids = (run.content.parent_run_id or run_id for run_id, run in state.runs.items())
    return ParentRun(max(run_ids, default=str(uuid.UUID(int=0))), _UNKNOWN, _UNKNOWN)


def summary_of(transitions: Iterable[StatusTransition]) -> StatusSummary:
    """Return the timeline of a launch by its transitions in any order, with why its driver failed, where it did."""
    ledger = StatusLedger()
    for one in sorted(transitions, key=sort_key):
        ledger.add(report_of(one))
    drivers = [one for one in ledger.transitions if one.subject == "DRIVER"]
    errors = [one.exception for one in drivers if one.new_status in {"FAILED", "KILLED"}]
    return StatusSummary(tuple(ledger.transitions), ledger.summed(), " ".join(errors[-1].split()) if errors else "")


def state_of(summary: StatusSummary) -> TaskState | None:
    """Return how the task ended (M4), None where its driver's end was not seen."""
    statuses = [one.new_status for one in summary.transitions if one.subject == "DRIVER"]
    is_killed = is_kill_asked(summary)
    if not is_killed and ENDED.isdisjoint(statuses):
        return None
    return state_by(is_killed=is_killed, driver=statuses[-1])


def is_kill_asked(summary: StatusSummary) -> bool:
    """Whether this try asked for the kill: a cluster deletes pods on its own, and an earlier try is not this one."""
    drivers = [one for one in summary.transitions if one.subject == "DRIVER" and one.source == "Airflow"]
    words = [one.new_status for one in drivers if one.new_status in {"KILLING", "REATTACHED"}]
    return words[-1:] == ["KILLING"]
