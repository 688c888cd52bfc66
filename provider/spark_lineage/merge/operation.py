"""What kind of write a run was: by the name of Spark's command, the lifecycle facet, and the event log's save mode."""

from __future__ import annotations

from collections.abc import Mapping

from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import IDENTITY, Operation, Write
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import RunContent

# Parts of the listener's job names, which are Spark's plan nodes in snake case.
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
_LIFECYCLES: Mapping[str, Operation] = {"TRUNCATE": "TRUNCATE", "OVERWRITE": "OVERWRITE"}
_METADATA = frozenset({"ALTER", "RENAME", "DROP"})


def write_of(content: RunContent, output: Observed, execution: Execution | None) -> Write | None:
    """Return the kind of write, None for a command that writes no data."""
    mode = execution.mode.lower() if execution is not None else ""
    is_partial = execution is not None and execution.is_partial
    output_mode = execution.output_mode if execution is not None else ""
    if execution is not None and execution.is_merge:
        return Write("MERGE", mode, is_partial)
    if execution is not None and execution.command == "ReplaceData" and _is_copy(execution):
        return Write("DELETE", mode, is_partial)
    named = _command(execution.command) if execution is not None and execution.command else content.job_name
    for part, operation in _OPERATIONS.items():
        if part in named or part in content.job_name:
            return Write(operation, mode, is_partial)
    for lifecycle, operation in _LIFECYCLES.items():
        if lifecycle in output.lifecycles:
            mode = mode or ("overwrite" if operation == "OVERWRITE" else "")
            return Write(operation, mode, is_partial, output_mode)
    if output.lifecycles & _METADATA or ("CREATE" in output.lifecycles and output.is_empty):
        return None
    return Write("OVERWRITE" if mode == "overwrite" else "INSERT", mode, is_partial, output_mode)


def _is_copy(execution: Execution) -> bool:
    """Whether all columns of the rows that a command writes anew are those that it read: it leaves out other rows."""
    edges = [edge for one in execution.outputs for edge in one.edges if edge[0] is not None]
    copied = {column for column, _, field, how in edges if column == field and how == IDENTITY}
    columns = {field.name for one in execution.outputs for field in one.schema}
    return bool(columns) and copied == columns and len(edges) == len(columns)


def _command(name: str) -> str:
    """Return a Spark class name as the listener writes it: ``MergeIntoCommand`` is ``merge_into_command``."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
