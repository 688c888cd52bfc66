"""How a task ended, by all the evidence (M4), and what led there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spark_lineage.merge.outcome import task_state

if TYPE_CHECKING:
    from spark_lineage.launch.guard import Guard
    from spark_lineage.launch.kill import Kill
    from spark_lineage.merge.lineage import TaskState
    from spark_lineage.merge.transition import Status, StatusSummary
    from spark_lineage.submit.hook import Submission
    from spark_lineage.watch.task_watch import TaskWatch

_ASK_SECONDS = 5.0
_STATUS_OF: dict[TaskState, Status] = {"COMPLETE": "FINISHED", "FAIL": "FAILED", "ABORT": "KILLED"}


def conclude(
    submission: Submission,
    watch: TaskWatch | None,
    kill: Kill,
    applications: set[str],
    failure: BaseException | None,
    *,
    is_client: bool,
    guard: Guard,
) -> tuple[TaskState, StatusSummary | None]:
    """Return how the task ended, and the timeline of it, None where nobody watched; the cluster is asked once more.

    :param applications: the ids that the events have told
    :param failure: what ended ``execute``
    """
    exit_code = submission.exit_code if is_client else None
    if watch is not None:
        with guard("The timeline may lack its end", can_fail=False):
            began = time.monotonic()
            watch.ask_at_the_end(lambda: kill.seconds(began + _ASK_SECONDS - time.monotonic()))
    state = task_state(
        is_killed=kill.is_asked,
        driver=watch.driver_status if watch is not None else None,
        exit_code=exit_code,
        is_succeeded=failure is None,
    )
    if watch is None:
        return state, None
    error = ""
    if kill.is_asked:
        error = f"killed by Airflow ({kill.why})"
    elif submission.process_id is None and is_client and failure is not None:
        # spark-submit could not be started.
        error = str(failure)
    elif state != "COMPLETE":
        error = submission.error.explain(exit_code) if is_client else watch.driver_error
    applications = applications | {submission.application_id} if submission.application_id else applications
    with guard("The timeline may lack its end", can_fail=False):
        watch.ended(_STATUS_OF[state], exit_code, error, applications)
    return state, watch.summary(error, max(applications, default=None), submission.ui_url)
