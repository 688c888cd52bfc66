"""How runs and the task ended (M3, M4), and whether a write happened at all (M5)."""

from __future__ import annotations

from typing import Literal

from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import TaskState
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import COMPLETED, FAILED, RAN, LineageState, RunState
from spark_lineage.merge.transition import ENDED, Status

RunOutcome = Literal["succeeded", "failed", "open"]

# The outer run of CREATE TABLE AS SELECT and of saveAsTable.
CTAS_COMMAND = "execute_create_data_source_table_as_select_command"
# Commands whose query is written by a run of its own.
_OUTER_COMMANDS = ("as_select", "_dir_command")
# Spark commands whose successful runs carried outputStatistics in every case seen, also for zero rows; without them
# mode `ignore` left the write out, or it failed in the driver and the program caught that.
_COMMANDS_WITH_STATISTICS = (
    "execute_insert_into_hadoop_fs_relation_command",
    "execute_insert_into_hive_table",
    CTAS_COMMAND,
    "adaptive_spark_plan",
)
# Sources that write through `createRelation` (JDBC, Delta, Kafka, ...): some give no statistics for a write that
# happened, and a failure in the driver looks the same.
_COMMAND_OF_SOURCES = "execute_save_into_data_source_command"


def task_state(
    *,
    is_killed: bool = False,
    driver: Status | None = None,
    exit_code: int | None = None,
    is_succeeded: bool | None = None,
) -> TaskState:
    """Return the task's state (M4): killed by us, then the driver's final state, then the exit code, then the provider.

    The application's own event is no evidence: it says COMPLETE for programs that failed.

    :param driver: what the cluster manager says of the driver in cluster mode; a state that is not final counts for
        nothing. None in client mode, where YARN says that failed programs succeeded
    :param exit_code: of spark-submit in client mode, None when it is not known
    :param is_succeeded: the Spark provider's verdict, None when it gave none
    """
    if is_killed:
        return "ABORT"
    if driver in ENDED:
        return "COMPLETE" if driver == "FINISHED" else "FAIL"
    if exit_code is None and is_succeeded is not None:
        return "COMPLETE" if is_succeeded else "FAIL"
    return "COMPLETE" if exit_code == 0 else "FAIL"


def told_end(state: TaskState, failure: BaseException | None) -> TaskState:
    """Return the end that is told of the task.

    The application may have succeeded where Airflow lets the task fail; the reverse stays a failure (M4).
    """
    return "FAIL" if failure is not None and state == "COMPLETE" else state


def run_outcome(run: RunState, state: LineageState) -> RunOutcome:
    """Return a run's outcome (M3): FAIL sticks; a lone COMPLETE after the application's end proves nothing."""
    if run.seen & FAILED:
        return "failed"
    if run.seen & COMPLETED:
        application = state.runs.get(run.content.parent_run_id)
        is_late = application is not None and application.seen & COMPLETED and run.first > application.last
        if run.seen != COMPLETED or not is_late:
            return "succeeded"
    return "open"


def is_unwritten(run: RunState, output: Observed, execution: Execution | None = None) -> bool:
    """Whether a run that reports success did not write this output: mode ``ignore``, or a failure that was caught.

    Where SparkJobs ran for it, the statistics may have been lost: they are when threads write at the same time. The
    event log knows the mode; a query may have run before it was seen that there was nothing to do.
    """
    if output.statistics is not None:
        return False
    if execution is not None and execution.mode == "Ignore":
        return not execution.has_jobs or has_statistics(run.content.job_name)
    return not run.seen & RAN and has_statistics(run.content.job_name)


def is_unconfirmed(run: RunState, output: Observed, execution: Execution | None = None) -> bool:
    """Whether nothing but the listener's word says that this output was written."""
    if output.statistics is not None or (execution is not None and execution.is_failed is False):
        return False
    job_name = run.content.job_name
    return _COMMAND_OF_SOURCES in job_name or has_statistics(job_name)


def is_doubtful(run: RunState, output: Observed, execution: Execution | None, task_state: TaskState) -> bool:
    """Whether this may be the write that the task failed in: the listener says COMPLETE also of one that tasks broke.

    A source that never gives statistics is believed.
    """
    is_failed = task_state != "COMPLETE"
    return is_failed and is_unconfirmed(run, output, execution) and has_statistics(run.content.job_name)


def is_appending(run: RunState, execution: Execution | None, *, is_known: bool) -> bool:
    """Whether a write adds to what is there, though the listener says CREATE: it does for each JDBC write that appends.

    :param is_known: whether the task has filled the dataset before: a CREATE would have failed then
    """
    if execution is not None and execution.mode:
        return execution.mode == "Append"
    return is_known and _COMMAND_OF_SOURCES in run.content.job_name


def has_statistics(job_name: str) -> bool:
    """Whether successful runs of this command carry statistics."""
    return any(command in job_name for command in _COMMANDS_WITH_STATISTICS)


def is_outer(job_name: str) -> bool:
    """Whether this command has its query written by a run within it."""
    return any(command in job_name for command in _OUTER_COMMANDS)


def is_destroyed(run: RunState, output: Observed) -> bool:
    """Whether a write that did not succeed took the former content with it, as Spark's own overwrite of files does."""
    return "OVERWRITE" in output.lifecycles and bool(run.seen & RAN) and has_statistics(run.content.job_name)


# Commands that write a dataset which the listener names on none of their events.
_SILENT_COMMANDS = (
    "update_command",
    "delete_command",
    "insert_into_hive_dir",
    "restore_table_command",
    "insert_into_hoodie_table",
    "merge_into_hoodie_table",
    "update_hoodie_table",
    "delete_hoodie_table",
)
# Whose target the log may not know either: its plan does not name it.
_MERGE_OF_HUDI = "MergeIntoHoodieTableCommand"


def is_silent(run: RunState, execution: Execution | None) -> bool:
    """Whether a run wrote something that neither its events nor an event log name.

    A streaming query without outputs writes to files, to memory, or hands its batches to a function: only the log
    tells.
    """
    content = run.content
    if execution is not None and execution.command == _MERGE_OF_HUDI:
        return not execution.outputs
    if content.outputs or execution is not None:
        return False
    return content.is_streaming or any(command in content.job_name for command in _SILENT_COMMANDS)
