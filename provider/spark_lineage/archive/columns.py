"""The columns of the tables, in Spark's DDL; ``docs/archive-tables.md`` says what they mean."""

from __future__ import annotations

EVENTS = "events"
"""The name of what is beside the tables, as lines of JSON."""

_DATASET = "namespace string, name string"
_SCHEMA = "schema array<struct<name: string, type: string, description: string>>"
_COLUMN = "struct<name: string, type: string, description: string>"
_WHAT = (
    "symlinks array<struct<namespace: string, name: string, type: string>>, storage_layer string, file_format string, "
    "catalog_framework string, catalog_type string, catalog_name string, catalog_metadata_uri string, "
    "catalog_warehouse_uri string, dataset_version string"
)
_STATISTICS = "row_count bigint, size bigint, file_count bigint"

OF_RUN = "run_id string, job_namespace string, job_name string, event_type string, event_time timestamp"
"""What every row of a run begins with, whatever its table."""

_ONLY_RUNS = (
    "processing_type string, spark_version string, openlineage_adapter_version string, "
    "applications array<struct<run_id: string, namespace: string, name: string, application_id: string, "
    "master: string, deploy_mode: string, ui_url: string, is_ended: boolean>>, "
    "input_count int, output_count int, "
    "attempted_outputs array<struct<namespace: string, name: string, reason: string>>, "
    "unknown_commands array<struct<command: string, count: bigint>>, "
    "status_counts array<struct<subject: string, status: string, count: bigint>>, "
    "error_message string, ui_url string, history_url string, logs_url string"
)

OF_ROWS = {
    "runs": f"{OF_RUN.partition(', ')[2]}, {_ONLY_RUNS}",
    "run_inputs": f"{_DATASET}, {_SCHEMA}, {_WHAT}, {_STATISTICS}",
    "run_outputs": (
        f"{_DATASET}, {_SCHEMA}, {_WHAT}, {_STATISTICS}, lifecycle_state_change string, previous_namespace string, "
        "previous_name string, writes array<struct<operation: string, mode: string, is_partial: boolean, "
        "output_mode: string>>, is_unconfirmed boolean"
    ),
    "dataset_edges": "input_namespace string, input_name string, output_namespace string, output_name string",
    "column_edges": (
        "input_namespace string, input_name string, input_field string, output_namespace string, output_name string, "
        "output_field string, transformation_type string, transformation_subtype string, "
        "transformation_description string, masking boolean"
    ),
    "catalog_changes": (
        "position int, change string, object_type string, object_name string, previous_object_name string, "
        f"{_DATASET}, time timestamp, is_certain boolean, is_ignored boolean, "
        f"columns array<struct<old: {_COLUMN}, new: {_COLUMN}>>, {_SCHEMA}, properties map<string, string>, "
        "catalog string, database string, partitioned_by array<string>"
    ),
    "status_transitions": (
        "position int, subject string, subject_id string, old_status string, new_status string, time timestamp, "
        "source string, application_id string, detail string, exception string"
    ),
}
"""What ``rows.rows`` gives, by table."""

TABLES = {
    "runs": f"{OF_RUN}, {_ONLY_RUNS}",
    **{name: f"{OF_RUN}, {columns}" for name, columns in OF_ROWS.items() if name != "runs"},
    "datasets": (
        f"{_DATASET}, {_SCHEMA}, {_WHAT}, read_count bigint, last_read_at timestamp, last_read_run_id string, "
        "write_count bigint, last_written_at timestamp, last_written_run_id string"
    ),
}
"""The columns of each table, but for ``day``, by which all are partitioned."""

DOCUMENT = "run_id string, day string, event string, problem string, " + ", ".join(
    f"{name} array<struct<{columns}>>" for name, columns in OF_ROWS.items()
)
"""What is staged for a task: its event, as a line of JSON, and its rows; or the problem that it has instead."""
