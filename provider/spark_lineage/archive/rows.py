"""Lays one merged event flat: the rows of every table that tell of it; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from spark_lineage.archive import columns as ddl

Row = dict[str, Any]
_Json = Mapping[str, Any]

# What a BIGINT holds; Spark's JSON reader makes null of the whole row for a greater one.
_LONGS = range(-(2**63), 2**63)
_NOTHING: _Json = {}


def rows(event: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Return the rows of one task, by table; all tables but ``datasets``, which is made of the rows of many tasks.

    A column that the event does not tell is None; times are spelled as in the event. ``run_id`` and ``day``, and of all
    tables but ``runs`` the columns of ``columns.OF_RUN``, are not in the rows: they are the same for all of them.

    :param event: the JSON document of a task's ``RunEvent``, as ``emit.run_event`` makes it (OpenLineage 2-0-2)
    """
    run, job = _of(event, "run", "facets"), _of(event, "job", "facets")
    inputs, outputs = event.get("inputs") or (), event.get("outputs") or ()
    unconfirmed = _rows(ddl.DATASET, run, "sparkLineage_unconfirmedOutputs", "outputs")
    changes = _each(run, "sparkLineage_catalogChanges", "changes")
    transitions = _each(run, "sparkLineage_status", "transitions")
    return {
        "runs": [_run(event, run, job)],
        "run_inputs": [_dataset(each, _of(each, "inputFacets", "inputStatistics")) for each in inputs],
        "run_outputs": [_output(each, unconfirmed) for each in outputs],
        "dataset_edges": [
            {**_row(ddl.DATASET, source, "input_"), **_row(ddl.DATASET, entry, "output_")}
            for entry in _each(job, "lineage", "entries")
            for source in entry.get("inputs") or ()
        ],
        "column_edges": [edge for output in outputs for edge in _column_edges(output)],
        "catalog_changes": [_catalog_change(position, each) for position, each in enumerate(changes)],
        "status_transitions": [
            {"position": position, **_row(ddl.TRANSITION, each), "subject_id": each["id"]}
            for position, each in enumerate(transitions)
        ],
    }


def _run(event: _Json, run: _Json, job: _Json) -> Row:
    engine = _of(run, "processing_engine")
    return {
        **_row(ddl.DATASET, event["job"], "job_"),
        **_row(ddl.EVENT, event),
        "processing_type": _of(job, "jobType").get("processingType"),
        "spark_version": engine.get("version"),
        "openlineage_adapter_version": engine.get("openlineageAdapterVersion"),
        "applications": _rows(ddl.APPLICATION, run, "sparkLineage_application", "applications"),
        "input_count": len(event.get("inputs") or ()),
        "output_count": len(event.get("outputs") or ()),
        "attempted_outputs": _rows(ddl.ATTEMPT, run, "sparkLineage_attemptedOutputs", "outputs"),
        "unknown_commands": _rows(ddl.COMMAND, run, "sparkLineage_unknownDatasets", "commands"),
        "status_counts": _rows(ddl.COUNT, run, "sparkLineage_status", "counts"),
        "error_message": _of(run, "errorMessage").get("message"),
        **_row(ddl.LINKS, _of(run, "sparkLineage_status")),
    }


def _dataset(dataset: _Json, statistics: _Json) -> Row:
    facets = _of(dataset, "facets")
    numbers = _row(ddl.STATISTICS, statistics).items()
    return {
        **_row(ddl.DATASET, dataset),
        "schema": _columns(_each(facets, "schema", "fields")),
        "symlinks": _rows(ddl.SYMLINK, facets, "symlinks", "identifiers"),
        **_row(ddl.STORAGE, _of(facets, "storage")),
        **_row(ddl.CATALOG, _of(facets, "catalog"), "catalog_"),
        "dataset_version": _of(facets, "version").get("datasetVersion"),
        **{name: value if isinstance(value, int) and value in _LONGS else None for name, value in numbers},
    }


def _output(dataset: _Json, unconfirmed: Sequence[Row]) -> Row:
    change = _of(dataset, "facets", "lifecycleStateChange")
    return {
        **_dataset(dataset, _of(dataset, "outputFacets", "outputStatistics")),
        "lifecycle_state_change": change.get("lifecycleStateChange"),
        **_row(ddl.DATASET, _of(change, "previousIdentifier"), "previous_"),
        "writes": _rows(ddl.WRITE, dataset, "outputFacets", "sparkLineage_writes", "operations"),
        "is_unconfirmed": _row(ddl.DATASET, dataset) in unconfirmed,
    }


def _column_edges(output: _Json) -> Iterator[Row]:
    lineage = _of(output, "facets", "columnLineage")
    fields = [(name, field["inputFields"]) for name, field in _of(lineage, "fields").items()]
    for field, sources in (*fields, (None, _each(lineage, "dataset"))):
        for source in sources:
            for transformation in source.get("transformations") or (_NOTHING,):
                yield {
                    **_row(ddl.DATASET, source, "input_"),
                    "input_field": source["field"],
                    **_row(ddl.DATASET, output, "output_"),
                    "output_field": field,
                    **_row(ddl.TRANSFORMATION, transformation, "transformation_"),
                    "masking": transformation.get("masking"),
                }


def _catalog_change(position: int, change: _Json) -> Row:
    return {
        "position": position,
        **_row(ddl.CHANGE, change),
        "columns": [
            {side: _columns([each[side]])[0] if each.get(side) else None for side in ("old", "new")}
            for each in _each(change, "columns")
        ],
        "schema": _columns(_each(change, "schema")),
        "properties": dict(_of(change, "properties")),
        "catalog": change.get("catalog"),
        "database": change.get("database"),
        "partitioned_by": list(_each(change, "partitionedBy")),
    }


def _columns(fields: Iterable[_Json], within: str = "") -> list[Row]:
    """Return columns, each struct followed by what is in it, with dots: tables cannot nest as deep as schemas do."""
    columns: list[Row] = []
    for field in fields:
        columns.append({**_row(ddl.COLUMN, field), "name": (name := within + field["name"])})
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
