"""Our types in Atlas; datasets have Atlas's own types.

A task is a ``spark_application`` (``1100-spark_model.json``) of a type of its own, because its DAG owns it: Atlas
demands an owner of all entities of a type that is owned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DAG = "spark_lineage_dag"
TASK = "spark_lineage_task"
PATH = "spark_lineage_path"
DATASET = "spark_dataset"
COLUMN = "spark_dataset_column"
COLUMN_LINEAGE = "spark_application_column_lineage"
SERVICE = "spark"
VERSION = "1.3"
"""To be raised whenever a definition changes: types of an older version are updated."""

Definition = Mapping[str, Any]
Definitions = Mapping[str, list[dict[str, Any]]]
"""``entityDefs`` and ``relationshipDefs``, as ``/v2/types/typedefs`` takes and gives them."""


def _attributes(kind: str, *names: str) -> list[dict[str, Any]]:
    return [{"name": name, "typeName": kind, "isOptional": True, "cardinality": "SINGLE"} for name in names]


def _entity(name: str, above: str, description: str, *attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "superTypes": [above],
        "serviceType": SERVICE,
        "typeVersion": VERSION,
        "description": description,
        "attributeDefs": [each for some in attributes for each in some],
    }


def _owned(name: str, owner: str, owns: str, owned: str, is_in: str) -> dict[str, Any]:
    """Return a relationship in which what is owned is deleted with its owner, and when its owner lets it go."""
    return {
        "name": name,
        "serviceType": SERVICE,
        "typeVersion": VERSION,
        "relationshipCategory": "COMPOSITION",
        "propagateTags": "NONE",
        "endDef1": {"type": owner, "name": owns, "isContainer": True, "cardinality": "SET"},
        "endDef2": {"type": owned, "name": is_in, "isContainer": False, "cardinality": "SINGLE"},
    }


DEFINITIONS: Definitions = {
    "entityDefs": [
        # As Atlas has them.
        {**_entity("spark_application", "Process", "An application of Spark"), "typeVersion": "1.0"},
        {**_entity("spark_column_lineage", "Process", "What a column is made from"), "typeVersion": "1.0"},
        _entity(DAG, "Asset", "A DAG of Airflow, with its tasks", _attributes("string", "jobNamespace", "dagId")),
        _entity(
            TASK,
            "spark_application",
            "A task of Airflow that runs Spark",
            _attributes(
                "string", "jobNamespace", "dagId", "taskId", "runId", "applicationId", "state", "error", "changesDone"
            ),
            _attributes("string", "uiUrl", "historyUrl", "logsUrl"),
            _attributes("date", "logicalDate", "startTime", "endTime", "lastEnd"),
            _attributes("int", "tryNumber"),
        ),
        _entity(PATH, "Process", "The way of data through a task to one of its outputs"),
        _entity(
            DATASET,
            "DataSet",
            "A dataset that no other type of Atlas fits",
            _attributes("string", "datasetNamespace", "datasetName", "format"),
        ),
        _entity(COLUMN, "DataSet", "A column of a dataset whose own type has none", _attributes("string", "type")),
        _entity(
            COLUMN_LINEAGE,
            "spark_column_lineage",
            "What a task makes a column from",
            _attributes("string", "expression"),
        ),
    ],
    "relationshipDefs": [
        _owned("spark_lineage_dag_tasks", DAG, "tasks", TASK, "dag"),
        _owned("spark_application_lineage_paths", TASK, "lineagePaths", PATH, "application"),
        _owned("spark_application_column_lineages", TASK, "columnLineages", COLUMN_LINEAGE, "application"),
        _owned("spark_dataset_columns", "DataSet", "sparkColumns", COLUMN, "dataset"),
    ],
}


def to_make(present: Definitions) -> Definitions:
    """Return those of our definitions that are missing; empty lists where none is."""
    return {
        kind: [each for each in ours if each["name"] not in _by_name(present, kind)]
        for kind, ours in DEFINITIONS.items()
    }


def to_update(present: Definitions) -> list[dict[str, Any]]:
    """Return the entity types that are there in an older version, with the attributes that they lack.

    Those that they have stay, for Atlas takes none away.
    """
    updates = []
    for ours, theirs in _both(present):
        if _version(theirs) < _version(ours):
            has = {each["name"] for each in theirs.get("attributeDefs") or ()}
            added = [each for each in ours["attributeDefs"] if each["name"] not in has]
            attributes = [*(theirs.get("attributeDefs") or ()), *added]
            updates.append({**theirs, "typeVersion": ours["typeVersion"], "attributeDefs": attributes})
    return updates


def left_alone(present: Definitions) -> list[str]:
    """Return the names of types that are newer than ours."""
    return [ours["name"] for ours, theirs in _both(present) if _version(theirs) > _version(ours)]


def _both(present: Definitions) -> Iterator[tuple[Definition, Definition]]:
    theirs = _by_name(present, "entityDefs")
    return ((each, theirs[each["name"]]) for each in DEFINITIONS["entityDefs"] if each["name"] in theirs)


def _by_name(present: Definitions, kind: str) -> dict[str, Definition]:
    return {each["name"]: each for each in present.get(kind) or ()}


def _version(definition: Definition) -> tuple[int, ...]:
    parts = str(definition.get("typeVersion") or "0").split(".")
    return tuple(int(part) if part.isdecimal() else 0 for part in parts)
