"""The columns of the tables, in Spark's DDL, and the rows of one merged event in each of them; pure.

``docs/archive.md`` says what the columns mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any


def _list_of(columns: str) -> str:
    return f"array<struct<{columns}>>"


def _prefixed(prefix: str, columns: str) -> str:
    return ", ".join(f"{prefix}{column}" for column in columns.split(", "))


_DATASET = "namespace string, name string"
_COLUMN = "name string, type string, description string"
_SYMLINK = f"{_DATASET}, type string"
_STORAGE = "storage_layer string, file_format string"
_PARTITION = "old string, new string, location string"
_CATALOG = "framework string, type string, name string, metadata_uri string, warehouse_uri string"
_STATISTICS = "row_count bigint, size bigint, file_count bigint"
_WRITE = "operation string, mode string, is_partial boolean, output_mode string"
_APPLICATION = (
    f"run_id string, {_DATASET}, application_id string, master string, deploy_mode string, ui_url string, "
    "is_ended boolean"
)
_ATTEMPT = f"{_DATASET}, reason string, error string"
_COMMAND = "command string, count bigint"
_PART = "name string, count bigint"
_COUNT = "subject string, status string, count bigint"
_LINKS = "ui_url string, history_url string, logs_url string"
_TRANSFORMATION = "type string, subtype string, description string"
_CHANGE = (
    f"change string, object_type string, object_name string, previous_object_name string, {_DATASET}, time timestamp, "
    "is_certain boolean, is_ignored boolean"
)
_TRANSITION = (
    "subject string, subject_id string, old_status string, new_status string, time timestamp, source string, "
    "application_id string, detail string, exception string"
)
_EVENT = "event_type string, event_time timestamp"

OF_RUN = f"run_id string, {_prefixed('job_', _DATASET)}, {_EVENT}"
"""What every row of a run begins with, whatever its table."""

_WHAT = (
    f"{_DATASET}, schema {_list_of(_COLUMN)}, symlinks {_list_of(_SYMLINK)}, {_STORAGE}, "
    f"{_prefixed('catalog_', _CATALOG)}, dataset_version string"
)

OF_ROWS = {
    "runs": (
        f"{OF_RUN.partition(', ')[2]}, processing_type string, spark_version string, "
        f"openlineage_adapter_version string, applications {_list_of(_APPLICATION)}, input_count int, "
        f"output_count int, attempted_outputs {_list_of(_ATTEMPT)}, unknown_commands {_list_of(_COMMAND)}, "
        f"unread_parts {_list_of(_PART)}, status_counts {_list_of(_COUNT)}, error_message string, {_LINKS}"
    ),
    "run_inputs": f"{_WHAT}, {_STATISTICS}",
    "run_outputs": (
        f"{_WHAT}, {_STATISTICS}, lifecycle_state_change string, {_prefixed('previous_', _DATASET)}, "
        f"writes {_list_of(_WRITE)}, is_unconfirmed boolean"
    ),
    "dataset_edges": f"{_prefixed('input_', _DATASET)}, {_prefixed('output_', _DATASET)}",
    "column_edges": (
        f"{_prefixed('input_', _DATASET)}, input_field string, {_prefixed('output_', _DATASET)}, output_field string, "
        f"{_prefixed('transformation_', _TRANSFORMATION)}, masking boolean"
    ),
    "catalog_changes": (
        f"position int, {_CHANGE}, columns array<struct<old struct<{_COLUMN}>, new struct<{_COLUMN}>>>, "
        f"schema {_list_of(_COLUMN)}, properties map<string, string>, catalog string, database string, "
        "partitioned_by array<string>, unset_properties array<string>, "
        f"partitions {_list_of(_PARTITION)}, repair string"
    ),
    "status_transitions": f"position int, {_TRANSITION}",
}
"""What ``rows`` returns, by table."""

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

Row = dict[str, Any]
_Json = Mapping[str, Any]

# What a BIGINT holds; Spark's JSON reader makes null of the whole row for a greater one.
_LONGS = range(-(2**63), 2**63)
_NOTHING: _Json = {}


def rows(event: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Return the rows of one task, by table; all tables but ``datasets``, which is made of the rows of many tasks.

    A column without a value in the event is None; times are spelled as in the event. ``run_id`` and ``day``, and of all
    tables but ``runs`` the columns of ``OF_RUN``, are not in the rows: they are the same for all of them.

    :param event: the JSON document of a task's ``RunEvent``, as ``emit.run_event`` makes it (OpenLineage 2-0-2)
    """
    run, job = _of(event, "run", "facets"), _of(event, "job", "facets")
    inputs, outputs = event.get("inputs") or (), event.get("outputs") or ()
    unconfirmed = _rows(_DATASET, run, "sparkLineage_unconfirmedOutputs", "outputs")
    changes = _each(run, "sparkLineage_catalogChanges", "changes")
    transitions = _each(run, "sparkLineage_status", "transitions")
    return {
        "runs": [_run(event, run, job)],
        "run_inputs": [_dataset(each, _of(each, "inputFacets", "inputStatistics")) for each in inputs],
        "run_outputs": [_output(each, unconfirmed) for each in outputs],
        "dataset_edges": [
            {**_row(_DATASET, source, "input_"), **_row(_DATASET, entry, "output_")}
            for entry in _each(job, "lineage", "entries")
            for source in entry.get("inputs") or ()
        ],
        "column_edges": [edge for output in outputs for edge in _column_edges(output)],
        "catalog_changes": [_catalog_change(position, each) for position, each in enumerate(changes)],
        "status_transitions": [
            {"position": position, **_row(_TRANSITION, each), "subject_id": each["id"]}
            for position, each in enumerate(transitions)
        ],
    }


def _run(event: _Json, run: _Json, job: _Json) -> Row:
    engine = _of(run, "processing_engine")
    return {
        **_row(_DATASET, event["job"], "job_"),
        **_row(_EVENT, event),
        "processing_type": _of(job, "jobType").get("processingType"),
        "spark_version": engine.get("version"),
        "openlineage_adapter_version": engine.get("openlineageAdapterVersion"),
        "applications": _rows(_APPLICATION, run, "sparkLineage_application", "applications"),
        "input_count": len(event.get("inputs") or ()),
        "output_count": len(event.get("outputs") or ()),
        "attempted_outputs": _rows(_ATTEMPT, run, "sparkLineage_attemptedOutputs", "outputs"),
        "unknown_commands": _rows(_COMMAND, run, "sparkLineage_unknownDatasets", "commands"),
        "unread_parts": _rows(_PART, run, "sparkLineage_unreadPlans", "parts"),
        "status_counts": _rows(_COUNT, run, "sparkLineage_status", "counts"),
        "error_message": _of(run, "errorMessage").get("message"),
        **_row(_LINKS, _of(run, "sparkLineage_status")),
    }


def _dataset(dataset: _Json, statistics: _Json) -> Row:
    facets = _of(dataset, "facets")
    numbers = _row(_STATISTICS, statistics).items()
    return {
        **_row(_DATASET, dataset),
        "schema": _columns(_each(facets, "schema", "fields")),
        "symlinks": _rows(_SYMLINK, facets, "symlinks", "identifiers"),
        **_row(_STORAGE, _of(facets, "storage")),
        **_row(_CATALOG, _of(facets, "catalog"), "catalog_"),
        "dataset_version": _of(facets, "version").get("datasetVersion"),
        **{name: value if isinstance(value, int) and value in _LONGS else None for name, value in numbers},
    }


def _output(dataset: _Json, unconfirmed: Sequence[Row]) -> Row:
    change = _of(dataset, "facets", "lifecycleStateChange")
    return {
        **_dataset(dataset, _of(dataset, "outputFacets", "outputStatistics")),
        "lifecycle_state_change": change.get("lifecycleStateChange"),
        **_row(_DATASET, _of(change, "previousIdentifier"), "previous_"),
        "writes": _rows(_WRITE, dataset, "outputFacets", "sparkLineage_writes", "operations"),
        "is_unconfirmed": _row(_DATASET, dataset) in unconfirmed,
    }


def _column_edges(output: _Json) -> Iterator[Row]:
    lineage = _of(output, "facets", "columnLineage")
    fields = [(name, field["inputFields"]) for name, field in _of(lineage, "fields").items()]
    for field, sources in (*fields, (None, _each(lineage, "dataset"))):
        for source in sources:
            for transformation in source.get("transformations") or (_NOTHING,):
                yield {
                    **_row(_DATASET, source, "input_"),
                    "input_field": source["field"],
                    **_row(_DATASET, output, "output_"),
                    "output_field": field,
                    **_row(_TRANSFORMATION, transformation, "transformation_"),
                    "masking": transformation.get("masking"),
                }


def _catalog_change(position: int, change: _Json) -> Row:
    return {
        "position": position,
        **_row(_CHANGE, change),
        "columns": [
            {side: _columns([each[side]])[0] if each.get(side) else None for side in ("old", "new")}
            for each in _each(change, "columns")
        ],
        "schema": _columns(_each(change, "schema")),
        "properties": dict(_of(change, "properties")),
        "catalog": change.get("catalog"),
        "database": change.get("database"),
        "partitioned_by": list(_each(change, "partitionedBy")),
        "unset_properties": list(_each(change, "unsetProperties")),
        "partitions": _rows(_PARTITION, change, "partitions"),
        "repair": change.get("repair"),
    }


def _columns(fields: Iterable[_Json], within: str = "") -> list[Row]:
    """Return columns, each struct followed by what is in it, with dots: tables cannot nest as deep as schemas do."""
    columns: list[Row] = []
    for field in fields:
        columns.append({**_row(_COLUMN, field), "name": (name := within + field["name"])})
        columns += _columns(field.get("fields") or (), f"{name}.")
    return columns


def _row(columns: str, value: _Json, prefix: str = "") -> Row:
    """Return simple columns: each has the value of its name in camel case, and is named with the prefix."""
    return {prefix + name: value.get(key) for name, key in _keys(columns)}


def _rows(columns: str, value: _Json, *keys: str) -> list[Row]:
    return [_row(columns, each) for each in _each(value, *keys)]


@cache
def _keys(columns: str) -> list[tuple[str, str]]:
    names = [column.split()[0] for column in columns.split(", ")]
    return [(name, re.sub("_([a-z])", lambda match: match[1].upper(), name)) for name in names]


def _of(value: _Json, *keys: str) -> _Json:
    """Return what is within, or nothing where a key on the way is missing."""
    for key in keys:
        value = value.get(key) or _NOTHING
    return value


def _each(value: _Json, *keys: str) -> Sequence[_Json]:
    """Return the list that is within, an empty one where a key on the way is missing."""
    return _of(value, *keys[:-1]).get(keys[-1]) or ()
