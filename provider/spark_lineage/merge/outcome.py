"""How runs ended (M3), whether a write happened at all (M5), and what kind of write it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from spark_lineage.merge.execution import NO_EXECUTION, Execution
from spark_lineage.merge.lineage import IDENTITY, Operation, Write
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import COMPLETED, CUT_OFF, FAILED, RAN, STARTED, LineageState, RunContent, RunState
from spark_lineage.naming.identity import is_path_namespace

RunOutcome = Literal["succeeded", "failed", "open", "cut off"]

# A part of the names of runs that give out what a command has returned: what they name as written is of that command.
RESULT = ".command_result"
# The outer run of CREATE TABLE AS SELECT and of saveAsTable.
CTAS_COMMAND = "execute_create_data_source_table_as_select_command"
# Commands whose query is written by a run of its own.
_OUTER_COMMANDS = ("as_select", "_dir_command")
# Spark commands whose successful runs carried outputStatistics in every case seen, also for zero rows; without them
# mode `ignore` left the write out, or it failed in the driver and the program caught that.
_COMMANDS_WITH_STATISTICS = (
    *("execute_insert_into_hadoop_fs_relation_command", "execute_insert_into_hive_table", "adaptive_spark_plan"),
    CTAS_COMMAND,
)
# Sources that write through `createRelation` (JDBC, Delta, Kafka, ...): some give no statistics for a write that
# happened, and a failure in the driver looks the same.
_COMMAND_OF_SOURCES = "execute_save_into_data_source_command"
# Commands that write a dataset which the listener names on none of their events.
_SILENT_COMMANDS = (
    *("update_command", "delete_command", "insert_into_hive_dir", "restore_table_command", "save_into_data_source"),
    *("insert_into_hoodie_table", "merge_into_hoodie_table", "update_hoodie_table", "delete_hoodie_table"),
)
# Runs of these kinds write the rows that they read; to a sink that the listener does not know they have no output.
_TABLE_WRITES = (
    ".append_data",
    ".overwrite_by_expression",
    ".overwrite_partitions_dynamic",
    ".replace_data",
    ".write_delta",
)
_V2_WRITES = (*_TABLE_WRITES, ".write_to_continuous_data_source")
# It writes nothing.
_NOOP = "noop"
# Whose target the log may not know either: its plan does not name it, or in words of another release.
_OPEN_COMMANDS = frozenset({"MergeIntoHoodieTableCommand", "InsertIntoHiveDirCommand", "LoadDataCommand"})
# The listener's names of jobs have these parts, which are Spark's plan nodes in snake case.
_OPERATIONS: Mapping[str, Operation] = {
    "merge_into": "MERGE",
    "update_command": "UPDATE",
    "update_table": "UPDATE",
    "delete_command": "DELETE",
    "update_hoodie": "UPDATE",
    "delete_hoodie": "DELETE",
    "delete_from_table": "DELETE",
    "truncate_table": "TRUNCATE",
    "replace_data": "UPDATE",
    "write_delta": "UPDATE",
}
_METADATA = frozenset({"ALTER", "RENAME", "DROP"})
_DECLARING = frozenset({"CREATE", "OVERWRITE"})
# These commands write rows, though neither columns nor numbers of them may be known.
_WITH_ROWS = ("as_select", "insert_into", "overwrite", _COMMAND_OF_SOURCES)


def run_outcome(run: RunState, state: LineageState) -> RunOutcome:
    """Return a run's outcome (M3): FAIL sticks; a lone COMPLETE after the application's end proves nothing."""
    if run.seen & FAILED:
        return "failed"
    if run.seen & COMPLETED:
        application = state.runs.get(run.content.parent_run_id)
        is_late = application is not None and application.seen & COMPLETED and run.first > application.last
        if run.seen != COMPLETED or not is_late:
            return "succeeded"
    return "cut off" if run.seen & CUT_OFF else "open"


def is_unwritten(run: RunState, output: Observed, execution: Execution = NO_EXECUTION) -> bool:
    """Whether a run that reports success did not write this output: mode ``ignore``, or a failure that was caught.

    Where SparkJobs ran for it, the statistics may have been lost: they are when threads write at the same time. A
    listener that lags behind loses them with the START. The event log knows the mode; a query may have run before it
    was seen that there was nothing to do, unless it is run within the command, which looks first.
    """
    if output.statistics is not None:
        return False
    if execution.mode == "Ignore":
        return not execution.has_jobs or (has_statistics(run) and not is_outer(run))
    return run.seen & (STARTED | RAN) == STARTED and has_statistics(run)


def is_unconfirmed(run: RunState, output: Observed, execution: Execution = NO_EXECUTION) -> bool:
    """Whether nothing but the listener's word says that this output was written."""
    if output.statistics is not None or execution.is_failed is False:
        return False
    return _COMMAND_OF_SOURCES in run.content.job_name or has_statistics(run)


def is_of_catalog(run: RunState, output: Observed) -> bool:
    """Whether an output is a table of a database that a catalog of Spark has, as it is there before it is written."""
    is_to_table = any(kind in run.content.job_name for kind in _TABLE_WRITES)
    return is_to_table and not is_path_namespace(output.dataset.namespace)


def is_appending(run: RunState, execution: Execution, *, is_known: bool) -> bool:
    """Whether a write adds to what is there, though the listener says CREATE: it does for each JDBC write that appends.

    :param is_known: whether the task has filled the dataset before: a CREATE would have failed then
    """
    if execution.mode:
        return execution.mode == "Append"
    return is_known and _COMMAND_OF_SOURCES in run.content.job_name


def has_statistics(run: RunState) -> bool:
    """Whether successful runs of this command carry statistics."""
    return any(command in run.content.job_name for command in _COMMANDS_WITH_STATISTICS)


def is_outer(run: RunState) -> bool:
    """Whether this command has its query written by a run within it."""
    return any(command in run.content.job_name for command in _OUTER_COMMANDS)


def is_destroyed(run: RunState, output: Observed) -> bool:
    """Whether a write that did not succeed took the former content with it, as Spark's own overwrite of files does."""
    return "OVERWRITE" in output.lifecycles and bool(run.seen & RAN) and has_statistics(run)


def is_silent(run: RunState, execution: Execution) -> bool:
    """Whether a run wrote something that neither its events nor an event log name.

    A streaming query without outputs writes to files, to memory, or hands its batches to a function: only the log
    says which.
    """
    if execution.command in _OPEN_COMMANDS:
        return not run.content.outputs
    if run.content.outputs or execution is not NO_EXECUTION:
        # These are files that an RDD saves, and a table of a database that nothing names.
        is_saving = execution.execution_id < 0 or any(not one.dataset.namespace for one in execution.outputs)
        return is_saving and bool(execution.command and execution.has_jobs and not run.content.outputs)
    name = run.content.job_name
    is_v2_write = bool(run.content.inputs) and any(kind in name for kind in _V2_WRITES) and _NOOP not in name
    return run.content.is_streaming or is_v2_write or any(command in name for command in _SILENT_COMMANDS)


def is_declaration(run: RunState, output: Observed, execution: Execution) -> bool:
    """Whether a command names a table, its columns or its place, and touches no row (M5)."""
    if output.lifecycles & _METADATA:
        return True
    if not output.lifecycles & _DECLARING or not output.is_empty or execution.has_rdds or execution.mode:
        return False
    return not any(part in name for name in (execution.job_name, run.content.job_name) for part in _WITH_ROWS)


def write_of(content: RunContent, output: Observed, execution: Execution) -> Write | None:
    """Return the kind of write, None for a command that writes no data."""
    mode = execution.mode.lower()
    if (operation := _named_operation(content, execution)) is not None:
        return Write(operation, mode, execution.is_partial)
    if "TRUNCATE" in output.lifecycles:
        operation = "TRUNCATE"
    elif "OVERWRITE" in output.lifecycles:
        operation, mode = "OVERWRITE", mode or "overwrite"
    elif output.lifecycles & _METADATA or (
        "CREATE" in output.lifecycles and output.is_empty and not execution.has_rdds
    ):
        return None
    else:
        operation = "OVERWRITE" if mode == "overwrite" else "INSERT"
    return Write(operation, mode, execution.is_partial, execution.output_mode)


def _named_operation(content: RunContent, execution: Execution) -> Operation | None:
    if execution.is_merge:
        return "MERGE"
    if execution.command == "ReplaceData" and _is_copy(execution):
        return "DELETE"
    names = (execution.job_name, content.job_name)
    return next((operation for part, operation in _OPERATIONS.items() if any(part in name for name in names)), None)


def _is_copy(execution: Execution) -> bool:
    """Whether all columns of the rows that a command writes anew are those that it read: it leaves out other rows."""
    edges = [edge for one in execution.outputs for edge in one.edges if edge[0] is not None]
    copied = {column for column, _, field, how in edges if column == field and how == IDENTITY}
    columns = {field.name for one in execution.outputs for field in one.schema}
    return bool(columns) and copied == columns and len(edges) == len(columns)
