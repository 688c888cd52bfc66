"""The columns of the tables, in Spark's DDL; ``docs/archive-tables.md`` says what they mean."""

from __future__ import annotations


def _list_of(columns: str) -> str:
    return f"array<struct<{columns}>>"


def _prefixed(prefix: str, columns: str) -> str:
    return ", ".join(f"{prefix}{column}" for column in columns.split(", "))


DATASET = "namespace string, name string"
COLUMN = "name string, type string, description string"
SYMLINK = f"{DATASET}, type string"
STORAGE = "storage_layer string, file_format string"
CATALOG = "framework string, type string, name string, metadata_uri string, warehouse_uri string"
STATISTICS = "row_count bigint, size bigint, file_count bigint"
WRITE = "operation string, mode string, is_partial boolean, output_mode string"
APPLICATION = (
    f"run_id string, {DATASET}, application_id string, master string, deploy_mode string, ui_url string, "
    "is_ended boolean"
)
ATTEMPT = f"{DATASET}, reason string"
COMMAND = "command string, count bigint"
COUNT = "subject string, status string, count bigint"
LINKS = "ui_url string, history_url string, logs_url string"
TRANSFORMATION = "type string, subtype string, description string"
CHANGE = (
    f"change string, object_type string, object_name string, previous_object_name string, {DATASET}, time timestamp, "
    "is_certain boolean, is_ignored boolean"
)
TRANSITION = (
    "subject string, subject_id string, old_status string, new_status string, time timestamp, source string, "
    "application_id string, detail string, exception string"
)
EVENT = "event_type string, event_time timestamp"

OF_RUN = f"run_id string, {_prefixed('job_', DATASET)}, {EVENT}"
"""What every row of a run begins with, whatever its table."""

_WHAT = (
    f"{DATASET}, schema {_list_of(COLUMN)}, symlinks {_list_of(SYMLINK)}, {STORAGE}, {_prefixed('catalog_', CATALOG)}, "
    "dataset_version string"
)

OF_ROWS = {
    "runs": (
        f"{OF_RUN.partition(', ')[2]}, processing_type string, spark_version string, "
        f"openlineage_adapter_version string, applications {_list_of(APPLICATION)}, input_count int, output_count int, "
        f"attempted_outputs {_list_of(ATTEMPT)}, unknown_commands {_list_of(COMMAND)}, "
        f"status_counts {_list_of(COUNT)}, error_message string, {LINKS}"
    ),
    "run_inputs": f"{_WHAT}, {STATISTICS}",
    "run_outputs": (
        f"{_WHAT}, {STATISTICS}, lifecycle_state_change string, {_prefixed('previous_', DATASET)}, "
        f"writes {_list_of(WRITE)}, is_unconfirmed boolean"
    ),
    "dataset_edges": f"{_prefixed('input_', DATASET)}, {_prefixed('output_', DATASET)}",
    "column_edges": (
        f"{_prefixed('input_', DATASET)}, input_field string, {_prefixed('output_', DATASET)}, output_field string, "
        f"{_prefixed('transformation_', TRANSFORMATION)}, masking boolean"
    ),
    "catalog_changes": (
        f"position int, {CHANGE}, columns array<struct<old struct<{COLUMN}>, new struct<{COLUMN}>>>, "
        f"schema {_list_of(COLUMN)}, properties map<string, string>, catalog string, database string, "
        "partitioned_by array<string>"
    ),
    "status_transitions": f"position int, {TRANSITION}",
}
"""What ``rows.rows`` returns, by table."""

TABLES = {
    **{name: f"{OF_RUN}, {columns}" for name, columns in OF_ROWS.items()},
    "runs": f"run_id string, {OF_ROWS['runs']}",
    "datasets": (
        f"{_WHAT}, read_count bigint, last_read_at timestamp, last_read_run_id string, write_count bigint, "
        "last_written_at timestamp, last_written_run_id string"
    ),
}
"""The columns of each table, but for ``day``, by which all are partitioned."""

DOCUMENT = "run_id string, day string, event string, problem string, " + ", ".join(
    f"{name} {_list_of(columns)}" for name, columns in OF_ROWS.items()
)
"""What is staged for a task: its event, as a line of JSON, and its rows; or the problem that it has instead."""
