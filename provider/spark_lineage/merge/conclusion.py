"""How a task ended (M4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from spark_lineage.merge.lineage import TaskState
from spark_lineage.merge.transition import ENDED, Status, StatusTransition

# A user has set `success` and `skipped`: no try is lost that ended so by itself.
TryEnd = Literal["success", "failed", "skipped"]
# They say that an application ended by itself; cluster managers say so of client programs that failed.
_WITNESSES = ("event log", "History Server")


@dataclass(frozen=True)
class EndFacts:
    """All that decides how a task ended; what is not known is None.

    :param is_killed: whether the end of the task was asked for
    :param driver: its status in cluster mode; none in client mode, where YARN says that failed programs succeeded
    :param exit_code: of spark-submit in client mode
    :param is_succeeded: whether the operator has succeeded; None of a try whose process is lost
    :param airflow_end: the state that Airflow has for a lost try
    :param is_retried: whether another try follows a lost one, which may go on with its driver
    :param has_uncaught_failure: whether a part of the application failed, and nothing of it succeeded any more
    """

    is_killed: bool = False
    driver: Status | None = None
    exit_code: int | None = None
    is_succeeded: bool | None = None
    airflow_end: TryEnd = "failed"
    is_retried: bool = False
    has_uncaught_failure: bool = False


def conclude(facts: EndFacts, transitions: Sequence[StatusTransition] = ()) -> TaskState:
    """Return the task's state: killed by us, then the driver's final state, then the exit code, then the operator.

    The application's own event is no evidence: it says COMPLETE for programs that failed. Of a lost try Airflow's word
    counts last. A success that was set by hand is believed only if a source saw the application end, and nothing
    contradicts it.

    :param transitions: the timeline of a lost try
    """
    if facts.is_killed:
        return "ABORT"
    is_succeeded = facts.is_succeeded
    if facts.driver in ENDED:
        is_succeeded = facts.driver == "FINISHED"
    elif facts.exit_code is not None:
        is_succeeded = facts.exit_code == 0
    elif is_succeeded is None and facts.airflow_end != "failed" and not facts.has_uncaught_failure:
        whole = [one for one in transitions if one.subject in {"APPLICATION", "DRIVER"}]
        ends = {one.source for one in whole if one.subject == "APPLICATION" and one.new_status == "FINISHED"}
        has_failed = any(one.new_status in {"FAILED", "KILLED"} for one in whole)
        is_succeeded = not (has_failed or ends.isdisjoint(_WITNESSES))
    return "COMPLETE" if is_succeeded and not facts.is_retried else "FAIL"


def is_kill_asked(transitions: Sequence[StatusTransition]) -> bool:
    """Whether this try asked for the kill: a cluster deletes pods on its own, and an earlier try is not this one."""
    of_airflow = [one.new_status for one in transitions if one.subject == "DRIVER" and one.source == "Airflow"]
    return [status for status in of_airflow if status in {"KILLING", "REATTACHED"}][-1:] == ["KILLING"]


def reported_end(state: TaskState, failure: BaseException | None) -> TaskState:
    """Return the end that is reported: FAIL where Airflow lets the task fail though the application succeeded (M4)."""
    return "FAIL" if failure is not None and state == "COMPLETE" else state
