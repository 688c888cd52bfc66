"""Which outputs make asset events, and what is said of the others."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow.sdk.execution_time.task_runner import _serialize_outlet_events

from spark_lineage.listeners.asset_listener import AssetListener, written_outputs
from spark_lineage.merge.lineage import Application, DatasetLineage, Statistics, Symlink, TaskLineage, TaskState, Write
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.context import ListenerContext, OutletEvents
from spark_lineage.notify.job_events import JobEvents

log = logging.getLogger("task")
ORDERS = DatasetLineage(
    DatasetName("s3://lake", "gold/orders"),
    symlinks=(Symlink("s3://lake/gold", "gold.orders", "TABLE"),),
    statistics=Statistics(0, 30, 1),
    lifecycle="OVERWRITE",
    writes=(Write("OVERWRITE", "overwrite"),),
)


@pytest.fixture
def accessors() -> OutletEventAccessors:
    return OutletEventAccessors()


def told(
    context: ListenerContext,
    job_events: JobEvents,
    accessors: OutletEventAccessors,
    outputs: tuple[DatasetLineage, ...],
    *,
    outlets: tuple[Any, ...] = (AssetAlias("spark"),),
    state: TaskState = "COMPLETE",
) -> list[dict[str, Any]]:
    """Tell the listener of a whole job, and give what Airflow would be sent."""
    events = OutletEvents(outlets, accessors, log)
    listener = AssetListener(msgspec.structs.replace(context, outlets=events))
    listener.on_event(job_events.created({}, lineage=TaskLineage("RUNNING", outputs=outputs)))
    applications = (Application("r1", "ns", "app", application_id="local-1"),)
    lineage = TaskLineage(state, outputs=outputs, applications=applications)
    listener.on_event(job_events.ended(state, lineage))
    listener.close()
    events.hand_over()
    return list(_serialize_outlet_events(accessors))


def test_an_output_makes_an_event(context: ListenerContext, job_events: JobEvents, accessors: Any) -> None:
    (event,) = told(context, job_events, accessors, (ORDERS,))
    assert event["dest_asset_key"]["uri"] == "s3://lake/gold/orders"
    # Zero rows count.
    assert event["extra"] == {
        "namespace": "s3://lake",
        "name": "gold/orders",
        "table": "gold.orders",
        "lifecycle": "OVERWRITE",
        "row_count": 0,
        "size": 30,
        "application_ids": ["local-1"],
    }


def test_what_nobody_told_is_left_out(context: ListenerContext, job_events: JobEvents, accessors: Any) -> None:
    bare = DatasetLineage(DatasetName("file", "/out"), writes=(Write("INSERT"),))
    (event,) = told(context, job_events, accessors, (bare,))
    assert event["extra"] == {"namespace": "file", "name": "/out", "application_ids": ["local-1"]}


@pytest.mark.parametrize("state", ["FAIL", "ABORT"])
def test_a_task_that_does_not_succeed_makes_none(
    context: ListenerContext, job_events: JobEvents, accessors: Any, logged: Any, state: TaskState
) -> None:
    assert told(context, job_events, accessors, (ORDERS,), state=state) == []
    assert "No asset events: Airflow accepts only those of a task that succeeds." in logged.text


def test_what_was_not_written_makes_none() -> None:
    altered = msgspec.structs.replace(ORDERS, lifecycle="ALTER", writes=())
    renamed = msgspec.structs.replace(ORDERS, lifecycle="RENAME", writes=())
    swapped = msgspec.structs.replace(ORDERS, lifecycle="RENAME")
    created = msgspec.structs.replace(ORDERS, lifecycle="CREATE", writes=())
    outputs = (altered, renamed, swapped, created)
    assert list(written_outputs(TaskLineage("COMPLETE", outputs=outputs))) == [swapped, created]
    unconfirmed = TaskLineage("COMPLETE", outputs=(ORDERS,), unconfirmed=(ORDERS.dataset,))
    assert list(written_outputs(unconfirmed)) == []


def test_without_an_alias_the_log_says_what_to_do(
    context: ListenerContext, job_events: JobEvents, accessors: Any, logged: Any
) -> None:
    assert told(context, job_events, accessors, (ORDERS,), outlets=()) == []
    assert "1 outputs make no asset event: give the task outlets=[AssetAlias('a name of yours')]." in logged.text


def test_an_outlet_of_the_task_is_told_how_it_was_written(
    context: ListenerContext, job_events: JobEvents, accessors: Any, logged: Any
) -> None:
    outlets = (Asset(name="orders", uri="s3://lake/gold/orders"),)
    (event,) = told(context, job_events, accessors, (ORDERS,), outlets=outlets)
    assert (event["dest_asset_key"]["name"], event["extra"]["row_count"]) == ("orders", 0)
    assert logged.records == []


def test_what_has_no_asset_is_named(
    context: ListenerContext, job_events: JobEvents, accessors: Any, logged: Any
) -> None:
    nowhere = DatasetLineage(DatasetName("arn:aws:glue:eu:1", "table/db/t"), writes=(Write("INSERT"),))
    endless = DatasetLineage(DatasetName("file", "/" + "x" * 1500), writes=(Write("INSERT"),))
    (event,) = told(context, job_events, accessors, (nowhere, endless, ORDERS))
    assert event["dest_asset_key"]["uri"] == "s3://lake/gold/orders"
    assert "Airflow takes no asset file:///xxx" in logged.text
    assert "There is no asset for arn:aws:glue:eu:1 table/db/t, file /xxx" in logged.text


def test_a_job_without_lineage_makes_none(context: ListenerContext, job_events: JobEvents) -> None:
    AssetListener(context).on_event(job_events.ended("COMPLETE", None))
