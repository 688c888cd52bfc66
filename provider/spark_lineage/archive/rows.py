"""Lays one merged event flat: the rows of every table that tell of it; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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
    unconfirmed = {_name(each) for each in _each(run, "sparkLineage_unconfirmedOutputs", "outputs")}
    return {
        "runs": [_run(event, run, job)],
        "run_inputs": [_dataset(each, _of(each, "inputFacets", "inputStatistics")) for each in inputs],
        "run_outputs": [_output(each, is_unconfirmed=_name(each) in unconfirmed) for each in outputs],
        "dataset_edges": list(_dataset_edges(job)),
        "column_edges": [edge for output in outputs for edge in _column_edges(output)],
        "catalog_changes": [
            _catalog_change(position, each)
            for position, each in enumerate(_each(run, "sparkLineage_catalogChanges", "changes"))
        ],
        "status_transitions": [
            _transition(position, each)
            for position, each in enumerate(_each(run, "sparkLineage_status", "transitions"))
        ],
    }


def _run(event: _Json, run: _Json, job: _Json) -> Row:
    status, engine = _of(run, "sparkLineage_status"), _of(run, "processing_engine")
    return {
        "job_namespace": event["job"]["namespace"],
        "job_name": event["job"]["name"],
        "event_type": event["eventType"],
        "event_time": event["eventTime"],
        "processing_type": _of(job, "jobType").get("processingType"),
        "spark_version": engine.get("version"),
        "openlineage_adapter_version": engine.get("openlineageAdapterVersion"),
        "applications": [_application(each) for each in _each(run, "sparkLineage_application", "applications")],
        "input_count": len(event.get("inputs") or ()),
        "output_count": len(event.get("outputs") or ()),
        "attempted_outputs": [
            {**_named(each), "reason": each["reason"]}
            for each in _each(run, "sparkLineage_attemptedOutputs", "outputs")
        ],
        "unknown_commands": [
            {"command": each["command"], "count": _long(each["count"])}
            for each in _each(run, "sparkLineage_unknownDatasets", "commands")
        ],
        "status_counts": [
            {"subject": each["subject"], "status": each["status"], "count": _long(each["count"])}
            for each in _each(run, "sparkLineage_status", "counts")
        ],
        "error_message": _of(run, "errorMessage").get("message"),
        "ui_url": status.get("uiUrl"),
        "history_url": status.get("historyUrl"),
        "logs_url": status.get("logsUrl"),
    }


def _application(application: _Json) -> Row:
    return {
        "run_id": application["runId"],
        "namespace": application["namespace"],
        "name": application["name"],
        "application_id": application.get("applicationId"),
        "master": application.get("master"),
        "deploy_mode": application.get("deployMode"),
        "ui_url": application.get("uiUrl"),
        "is_ended": application.get("isEnded"),
    }


def _dataset(dataset: _Json, statistics: _Json) -> Row:
    facets = _of(dataset, "facets")
    storage, catalog = _of(facets, "storage"), _of(facets, "catalog")
    return {
        **_named(dataset),
        "schema": _columns(_each(facets, "schema", "fields")),
        "symlinks": [{**_named(each), "type": each["type"]} for each in _each(facets, "symlinks", "identifiers")],
        "storage_layer": storage.get("storageLayer"),
        "file_format": storage.get("fileFormat"),
        "catalog_framework": catalog.get("framework"),
        "catalog_type": catalog.get("type"),
        "catalog_name": catalog.get("name"),
        "catalog_metadata_uri": catalog.get("metadataUri"),
        "catalog_warehouse_uri": catalog.get("warehouseUri"),
        "dataset_version": _of(facets, "version").get("datasetVersion"),
        "row_count": _long(statistics.get("rowCount")),
        "size": _long(statistics.get("size")),
        "file_count": _long(statistics.get("fileCount")),
    }


def _output(dataset: _Json, *, is_unconfirmed: bool) -> Row:
    change = _of(dataset, "facets", "lifecycleStateChange")
    previous = _of(change, "previousIdentifier")
    return {
        **_dataset(dataset, _of(dataset, "outputFacets", "outputStatistics")),
        "lifecycle_state_change": change.get("lifecycleStateChange"),
        "previous_namespace": previous.get("namespace"),
        "previous_name": previous.get("name"),
        "writes": [
            {
                "operation": each["operation"],
                "mode": each.get("mode"),
                "is_partial": each.get("isPartial"),
                "output_mode": each.get("outputMode"),
            }
            for each in _each(_of(dataset, "outputFacets"), "sparkLineage_writes", "operations")
        ],
        "is_unconfirmed": is_unconfirmed,
    }


def _dataset_edges(job: _Json) -> Iterator[Row]:
    for entry in _each(job, "lineage", "entries"):
        for source in entry.get("inputs") or ():
            yield {**_named(source, "input_"), **_named(entry, "output_")}


def _column_edges(output: _Json) -> Iterator[Row]:
    lineage = _of(output, "facets", "columnLineage")
    fields = [(name, field["inputFields"]) for name, field in (lineage.get("fields") or _NOTHING).items()]
    for field, sources in (*fields, (None, lineage.get("dataset") or ())):
        for source in sources:
            for transformation in source.get("transformations") or (_NOTHING,):
                yield {
                    **_named(source, "input_"),
                    "input_field": source["field"],
                    **_named(output, "output_"),
                    "output_field": field,
                    "transformation_type": transformation.get("type"),
                    "transformation_subtype": transformation.get("subtype"),
                    "transformation_description": transformation.get("description"),
                    "masking": transformation.get("masking"),
                }


def _catalog_change(position: int, change: _Json) -> Row:
    return {
        "position": position,
        "change": change["change"],
        "object_type": change["objectType"],
        "object_name": change["objectName"],
        "previous_object_name": change.get("previousObjectName"),
        **_named(change),
        "time": change["time"],
        "is_certain": change.get("isCertain"),
        "is_ignored": change.get("isIgnored"),
        "columns": [
            {"old": _column(each.get("old")), "new": _column(each.get("new"))} for each in _each(change, "columns")
        ],
        "schema": _columns(_each(change, "schema")),
        "properties": dict(change.get("properties") or _NOTHING),
        "catalog": change.get("catalog"),
        "database": change.get("database"),
        "partitioned_by": list(_each(change, "partitionedBy")),
    }


def _transition(position: int, transition: _Json) -> Row:
    return {
        "position": position,
        "subject": transition["subject"],
        "subject_id": transition["id"],
        "old_status": transition.get("oldStatus"),
        "new_status": transition["newStatus"],
        "time": transition["time"],
        "source": transition["source"],
        "application_id": transition.get("applicationId"),
        "detail": transition.get("detail"),
        "exception": transition.get("exception"),
    }


def _columns(fields: Iterable[_Json], within: str = "") -> list[Row]:
    """Return columns, each struct followed by what is in it, with dots: tables cannot nest as deep as schemas do."""
    columns: list[Row] = []
    for field in fields:
        name = within + field["name"]
        columns.append({"name": name, "type": field.get("type"), "description": field.get("description")})
        columns += _columns(field.get("fields") or (), f"{name}.")
    return columns


def _column(field: _Json | None) -> Row | None:
    return None if field is None else _columns((field,))[0]


def _named(dataset: _Json, prefix: str = "") -> Row:
    return {f"{prefix}namespace": dataset["namespace"], f"{prefix}name": dataset["name"]}


def _name(dataset: _Json) -> tuple[str, str]:
    return dataset["namespace"], dataset["name"]


def _long(number: Any) -> int | None:
    return number if isinstance(number, int) and number in _LONGS else None


def _of(value: _Json, *keys: str) -> _Json:
    """Return what is within, or nothing where a key on the way is missing."""
    for key in keys:
        value = value.get(key) or _NOTHING
    return value


def _each(value: _Json, *keys: str) -> Sequence[_Json]:
    """Return the list that is within, an empty one where a key on the way is missing."""
    return _of(value, *keys[:-1]).get(keys[-1]) or ()
