"""An event for each change of a table, view or database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest

from spark_lineage.merge.lineage import (
    CatalogChange,
    ChangeType,
    ColumnChange,
    ObjectType,
    PartitionChange,
    SchemaField,
    TaskLineage,
)
from spark_lineage.naming.identity import DatasetName, storage_identifier
from spark_lineage.notify.events import CatalogModificationEvent, TaskRun
from spark_lineage.notify.job_events import JobEvents

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
TABLE = DatasetName("s3://lake", "wh/db.db/t")


def told(task: TaskRun, *changes: CatalogChange) -> list[Any]:
    return list(JobEvents(task, "ns", "job").catalog(TaskLineage("COMPLETE", catalog_changes=changes)))


@pytest.mark.parametrize("kind", get_args(ObjectType))
@pytest.mark.parametrize("change", ["CREATE", "ALTER", "RENAME", "DROP"])
def test_each_change_makes_an_event(task: TaskRun, change: ChangeType, kind: ObjectType) -> None:
    (event,) = told(task, CatalogChange(change, kind, TABLE, "db.t", NOON, previous_name="db.s"))
    assert (event.change, event.object_type, event.previous_name) == (change, kind, "db.s")
    assert (event.task, event.name, event.dataset, event.time) == (task, "db.t", TABLE, NOON)
    assert event.storage == storage_identifier(TABLE)
    assert not event.is_kept
    assert msgspec.json.decode(msgspec.json.encode(event), type=type(event)) == event


@pytest.mark.parametrize(
    ("change", "kind", "expected"),
    [
        ("TRUNCATE", "TABLE", []),
        ("OVERWRITE", "TABLE", []),
        ("OVERWRITE", "VIEW", ["ALTER"]),
    ],
)
def test_what_changes_the_content_is_no_change_of_the_catalog(
    task: TaskRun, change: ChangeType, kind: ObjectType, expected: list[str]
) -> None:
    events = told(task, CatalogChange(change, kind, TABLE, "db.t", NOON))
    assert [event.change for event in events] == expected


def test_what_was_changed(task: TaskRun) -> None:
    columns = (ColumnChange(None, SchemaField("b", "int")),)
    schema = (SchemaField("a", "int"), SchemaField("b", "int"))
    properties = (("comment", "new"), ("s3.secret-key", "hunter2"))
    change = CatalogChange("ALTER", "TABLE", TABLE, "db.t", NOON, columns=columns, schema=schema, properties=properties)
    (altered,) = told(task, change)
    assert (altered.columns, altered.schema) == (columns, schema)
    assert altered.properties == {"comment": "new", "s3.secret-key": "***"}
    (created,) = told(
        task, msgspec.structs.replace(change, change="CREATE", catalog="ice", partitioned_by=("days(at)", "k"))
    )
    assert (created.schema, created.properties) == (schema, altered.properties)
    assert (created.partitioned_by, created.catalog, created.database) == (("days(at)", "k"), "ice", "db")
    assert (altered.catalog, altered.database) == ("", "db")


@pytest.mark.parametrize(("is_ignored", "count"), [(False, 2), (None, 2), (True, 0)])
def test_a_created_object_has_all_columns_as_added_ones(task: TaskRun, is_ignored: bool | None, count: int) -> None:
    schema = (SchemaField("a", "int", "the number"), SchemaField("b", "int"))
    created = CatalogChange("CREATE", "TABLE", TABLE, "db.t", NOON, schema=schema, is_ignored=is_ignored)
    (event,) = told(task, created)
    assert event.columns == tuple(ColumnChange(None, column) for column in schema)[:count]
    (dropped,) = told(task, msgspec.structs.replace(created, change="DROP"))
    assert (dropped.columns, dropped.schema) == ((), schema)


def test_what_was_unset_and_which_partitions_were_changed(task: TaskRun) -> None:
    partitions = (PartitionChange(None, "day=1", "s3://me:hunter2@lake/late"), PartitionChange("day=0", None))
    change = CatalogChange(
        "ALTER", "TABLE", TABLE, "db.t", NOON, unset_properties=("k",), partitions=partitions, repair="SYNC"
    )
    (event,) = told(task, change)
    assert (event.unset_properties, event.repair) == (("k",), "SYNC")
    assert [(one.old, one.new) for one in event.partitions] == [(None, "day=1"), ("day=0", None)]
    assert "hunter2" not in str(event)
    assert msgspec.json.decode(msgspec.json.encode(event), type=type(event)) == event


@pytest.mark.parametrize("is_ignored", [True, False, None])
def test_whether_it_was_ignored(task: TaskRun, is_ignored: bool | None) -> None:
    change = CatalogChange("CREATE", "TABLE", TABLE, "db.t", NOON, is_certain=False, is_ignored=is_ignored)
    (event,) = told(task, change)
    assert (event.is_ignored, event.is_certain) == (is_ignored, False)


def test_what_is_no_dataset_has_no_storage(task: TaskRun) -> None:
    (event,) = told(task, CatalogChange("CREATE", "VIEW", DatasetName("spark_catalog", "db.v"), "db.v", NOON))
    assert event.storage is None


def test_no_secret_is_told(task: TaskRun) -> None:
    dataset = DatasetName("postgres://me:hunter2@h:5432", "db.public.t")
    (event,) = told(task, CatalogChange("DROP", "TABLE", dataset, "t?password=hunter2", NOON))
    assert "hunter2" not in str(event)


def test_a_rename_from_an_unknown_name_has_an_empty_one(task: TaskRun) -> None:
    (event,) = told(task, CatalogChange("RENAME", "TABLE", TABLE, "db.t", NOON))
    assert event.previous_name == ""


def test_the_order_stays(task: TaskRun) -> None:
    names = [f"db.t{number}" for number in range(20)]
    events: list[CatalogModificationEvent] = told(
        task, *(CatalogChange("DROP", "TABLE", TABLE, name, NOON) for name in names)
    )
    assert [event.name for event in events] == names
