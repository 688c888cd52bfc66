"""Which outputs make asset events, what these say, and what Airflow is sent of them."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow.sdk.execution_time.task_runner import _build_asset_profiles, _serialize_outlet_events
from msgspec import structs

from spark_lineage.merge.lineage import (
    Application,
    DatasetLineage,
    SchemaField,
    Statistics,
    Symlink,
    TaskLineage,
    Write,
)
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify import assets
from spark_lineage.notify.assets import emit_assets, written_outputs

log = logging.getLogger("task")
URI = "s3://lake/gold/orders"
ORDERS = DatasetLineage(
    DatasetName("s3://lake", "gold/orders"),
    schema=(SchemaField("id", "bigint"), SchemaField("day", "date")),
    symlinks=(Symlink("s3://lake/gold", "gold.orders", "TABLE"),),
    statistics=Statistics(0, 30, 1),
    lifecycle="OVERWRITE",
    writes=(Write("OVERWRITE", "overwrite"),),
)


class Task:
    """A task, and what Airflow is sent when it has succeeded."""

    def __init__(self, *outlets: Any) -> None:
        self.task = SimpleNamespace(outlets=list(outlets))
        self.accessors = OutletEventAccessors()

    def emit(self, *outputs: DatasetLineage) -> int:
        applications = (Application("r1", "ns", "app", application_id="local-1"),)
        lineage = TaskLineage("COMPLETE", outputs=outputs, applications=applications)
        context: Any = {"ti": self, "outlet_events": self.accessors}
        return emit_assets(lineage, context, log)

    @property
    def outlets(self) -> list[tuple[str, str | None]]:
        return [(one.type, one.name) for one in _build_asset_profiles(self.task.outlets)]

    @property
    def events(self) -> list[Any]:
        # An alias makes an entry of its own, which is no event.
        return list(_serialize_outlet_events(self.accessors))


def test_an_output_makes_an_event_without_anything_in_the_dag_file() -> None:
    task = Task()
    assert task.emit(ORDERS) == 1
    assert task.outlets == [("AssetAlias", "spark_lineage")]
    (event,) = task.events
    assert (event["source_alias_name"], event["dest_asset_key"]) == ("spark_lineage", {"name": URI, "uri": URI})
    # Zero rows count.
    assert event["extra"] == {
        "namespace": "s3://lake",
        "name": "gold/orders",
        "table": "gold.orders",
        "lifecycle": "OVERWRITE",
        "row_count": 0,
        "size": 30,
        "columns": ("id", "day"),
        "application_ids": ("local-1",),
    }
    # Airflow 2 puts them into a set.
    assert frozenset(event["extra"].items())


def test_what_is_unknown_is_left_out() -> None:
    task = Task()
    task.emit(DatasetLineage(DatasetName("file", "/out"), writes=(Write("INSERT"),)))
    assert task.events[0]["extra"] == {"namespace": "file", "name": "/out", "application_ids": ("local-1",)}
    task = Task()
    wide = tuple(SchemaField(f"c{number}", "int") for number in range(1001))
    task.emit(structs.replace(ORDERS, schema=wide))
    assert len(task.events[0]["extra"]["columns"]) == 1000


def test_a_task_that_has_written_nothing_has_the_outlets_that_it_had() -> None:
    task = Task(Asset(URI))
    assert task.emit() == 0
    assert (task.outlets, task.events) == ([("Asset", URI)], [])


def test_what_was_not_written_makes_none() -> None:
    altered = structs.replace(ORDERS, lifecycle="ALTER", writes=())
    renamed = structs.replace(ORDERS, lifecycle="RENAME", writes=())
    swapped = structs.replace(ORDERS, lifecycle="RENAME")
    created = structs.replace(ORDERS, lifecycle="CREATE", writes=())
    outputs = (altered, renamed, swapped, created)
    assert list(written_outputs(TaskLineage("COMPLETE", outputs=outputs))) == [swapped, created]
    unconfirmed = TaskLineage("COMPLETE", outputs=(ORDERS,), unconfirmed=(ORDERS.dataset,))
    assert list(written_outputs(unconfirmed)) == []


def test_the_aliases_of_the_task_are_used() -> None:
    task = Task(AssetAlias("one"), AssetAlias("two"))
    assert task.emit(ORDERS) == 1
    assert task.outlets == [("AssetAlias", "one"), ("AssetAlias", "two")]
    assert [event["source_alias_name"] for event in task.events] == ["one", "two"]


def test_an_outlet_of_the_task_gets_what_the_task_does_not_say_itself() -> None:
    asset = Asset(name="orders", uri=URI)
    task = Task(asset)
    task.accessors[asset].extra = {"row_count": 9}
    task.emit(ORDERS)
    (event,) = task.events
    assert event["dest_asset_key"]["name"] == "orders"
    assert (event["extra"]["row_count"], event["extra"]["size"]) == (9, 30)


def test_airflow_2_gets_the_datasets_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Asset, "ref")
    task = Task()
    assert task.emit(ORDERS) == 1
    assert task.outlets == [("Asset", URI)]
    assert [(event["dest_asset_key"]["uri"], event["extra"]["size"]) for event in task.events] == [(URI, 30)]


def test_an_asset_that_airflow_knows_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutletEventAccessors, "_asset_ref_cache", {})
    monkeypatch.setattr(
        OutletEventAccessors, "_get_asset_from_db", staticmethod(lambda **by: Asset(name="orders", uri=by["uri"]))
    )
    task = Task()
    task.emit(ORDERS)
    # Looking it up has made no event of its own.
    assert [event["dest_asset_key"] for event in task.events] == [{"name": "orders", "uri": URI}]


def test_with_many_assets_the_rest_goes_without_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(**by: str) -> Any:
        pytest.fail("asked")

    monkeypatch.setattr(assets, "_SECONDS_FOR_NAMES", -1.0)
    monkeypatch.setattr(OutletEventAccessors, "_get_asset_from_db", staticmethod(slow))
    assert Task().emit(ORDERS) == 1


def test_what_has_no_asset_is_named(logged: pytest.LogCaptureFixture) -> None:
    logged.set_level(logging.DEBUG, logger="task")
    nowhere = DatasetLineage(DatasetName("arn:aws:glue:eu:1", "table/db/t"), writes=(Write("INSERT"),))
    endless = DatasetLineage(DatasetName("file", "/" + "x" * 1500), writes=(Write("INSERT"),))
    task = Task()
    assert task.emit(nowhere, endless, ORDERS) == 1
    assert [event["dest_asset_key"]["uri"] for event in task.events] == [URI]
    assert "Airflow takes no asset file:///xxx" in logged.text
    assert "There is no asset for arn:aws:glue:eu:1 table/db/t" in logged.text


def test_no_secret_is_in_an_asset() -> None:
    task = Task()
    name = DatasetName("s3://me:hunter2@lake", "gold/orders?token=hunter2")
    task.emit(structs.replace(ORDERS, dataset=name, symlinks=(Symlink("x", "t?password=hunter2", "TABLE"),)))
    assert len(task.events) == 1
    assert "hunter2" not in str(task.events)
