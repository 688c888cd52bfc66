"""How a launch went, by the transitions that were kept beside its lineage; in any order, however often told."""

from __future__ import annotations

from collections.abc import Iterable

from spark_lineage.merge.lineage import TaskState
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.transition import ENDED, StatusLedger, StatusSummary, StatusTransition, report_of, sort_key

_AIRFLOW = "Airflow"


def summary_of(transitions: Iterable[StatusTransition]) -> StatusSummary:
    """Return the timeline of a launch, with why its driver failed, where it did."""
    ledger = StatusLedger()
    for one in sorted(transitions, key=sort_key):
        ledger.add(report_of(one))
    kept = tuple(ledger.transitions)
    failed = [one for one in kept if one.subject == "DRIVER" and one.new_status in ("FAILED", "KILLED")]
    return StatusSummary(
        transitions=kept,
        counts=ledger.summed(),
        error=" ".join(failed[-1].exception.split()) if failed else "",
    )


def state_of(summary: StatusSummary) -> TaskState | None:
    """Return how the task ended (M4), None where its driver's end was not seen."""
    driver = [one.new_status for one in summary.transitions if one.subject == "DRIVER"]
    is_killed = is_kill_asked(summary)
    if not is_killed and not any(status in ENDED for status in driver):
        return None
    return task_state(is_killed=is_killed, driver=driver[-1])


def is_kill_asked(summary: StatusSummary) -> bool:
    """Whether this try asked for the kill: a cluster deletes pods on its own, and an earlier try is not this one."""
    drivers = [one for one in summary.transitions if one.subject == "DRIVER" and one.source == _AIRFLOW]
    words = [one.new_status for one in drivers if one.new_status in ("KILLING", "REATTACHED")]
    return words[-1:] == ["KILLING"]
