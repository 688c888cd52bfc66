"""How a lost try ended, by what is left of the evidence (M4); pure."""

from __future__ import annotations

from spark_lineage.launch.lost_try import TryEnd
from spark_lineage.merge.launch_status import is_kill_asked
from spark_lineage.merge.lineage import TaskState
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.transition import Status, StatusSummary

# They say that an application ended by itself; cluster managers say so of client programs that failed.
_WITNESSES = ("event log", "History Server")


def verdict(summary: StatusSummary, driver: Status | None, end: TryEnd, *, has_uncaught_failure: bool) -> TaskState:
    """Return the state of the try: asked to be killed, then the driver's final state, then what Airflow says.

    A success that was set by hand is believed only if a witness saw the application end, and nothing tells otherwise.

    :param driver: what the cluster manager says of the driver in cluster mode, None in client mode
    :param has_uncaught_failure: whether a part of the application failed, and nothing of it succeeded any more
    """
    return task_state(
        is_killed=is_kill_asked(summary),
        driver=driver,
        is_succeeded=end != "failed" and not has_uncaught_failure and _is_proven(summary),
    )


def _is_proven(summary: StatusSummary) -> bool:
    whole = [one for one in summary.transitions if one.subject in ("APPLICATION", "DRIVER")]
    has_ended = any(
        one.subject == "APPLICATION" and one.new_status == "FINISHED" and one.source in _WITNESSES for one in whole
    )
    has_failed = any(one.new_status in ("FAILED", "KILLED") for one in whole)
    return has_ended and not has_failed
