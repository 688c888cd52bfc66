"""What Airflow is told of the assets of a task: through its own classes, by the task's own thread."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow.sdk.execution_time.task_runner import _serialize_outlet_events

from spark_lineage.notify.context import OutletEvents

log = logging.getLogger("task")
ORDERS, REPORT = "s3://lake/orders", "file:///wh/report"


@pytest.fixture
def accessors() -> OutletEventAccessors:
    return OutletEventAccessors()


def sent(accessors: OutletEventAccessors) -> list[dict[str, Any]]:
    return list(_serialize_outlet_events(accessors))


def test_through_an_alias(accessors: OutletEventAccessors) -> None:
    outlets = OutletEvents([AssetAlias("spark")], accessors, log)
    assert outlets.has_aliases
    assert outlets.add(ORDERS, {"row_count": 3})
    # Not before it is handed over: another thread may still add.
    assert sent(accessors) == []
    assert outlets.hand_over() == 1
    events = [event for event in sent(accessors) if "source_alias_name" in event]
    assert events == [
        {
            "source_alias_name": "spark",
            "dest_asset_key": {"name": ORDERS, "uri": ORDERS},
            "dest_asset_extra": {},
            "extra": {"row_count": 3},
        }
    ]


def test_through_each_alias(accessors: OutletEventAccessors) -> None:
    outlets = OutletEvents([AssetAlias("one"), AssetAlias("two")], accessors, log)
    outlets.add(ORDERS, {})
    outlets.hand_over()
    assert [event["source_alias_name"] for event in sent(accessors)] == ["one", "two"]


def test_an_outlet_of_the_task_is_told_what_the_task_does_not_say_itself(accessors: OutletEventAccessors) -> None:
    asset = Asset(name="report", uri=REPORT)
    accessors[asset].extra = {"row_count": 9}
    outlets = OutletEvents([asset, AssetAlias("spark")], accessors, log)
    assert outlets.add("file:///wh/report/", {"row_count": 3, "size": 30})
    outlets.hand_over()
    assert sent(accessors) == [
        {"dest_asset_key": {"name": "report", "uri": REPORT}, "extra": {"row_count": 9, "size": 30}}
    ]


def test_the_same_asset_is_told_once(accessors: OutletEventAccessors) -> None:
    outlets = OutletEvents([AssetAlias("spark")], accessors, log)
    outlets.add(ORDERS, {"row_count": 3})
    outlets.add(ORDERS, {"row_count": 4})
    assert outlets.hand_over() == 1
    assert [event["extra"] for event in sent(accessors)] == [{"row_count": 4}]


def test_an_asset_that_airflow_knows_keeps_its_name(
    accessors: OutletEventAccessors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OutletEventAccessors, "_asset_ref_cache", {})
    monkeypatch.setattr(
        OutletEventAccessors, "_get_asset_from_db", staticmethod(lambda **by: Asset(name="orders", uri=by["uri"]))
    )
    outlets = OutletEvents([AssetAlias("spark")], accessors, log)
    outlets.add(ORDERS, {})
    outlets.hand_over()
    # Looking it up has made no event of its own.
    assert [event["dest_asset_key"] for event in sent(accessors)] == [{"name": "orders", "uri": ORDERS}]


def test_with_many_assets_the_rest_goes_without_their_names(
    accessors: OutletEventAccessors, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(**by: str) -> Any:
        raise AssertionError("asked")

    monkeypatch.setattr("spark_lineage.notify.context._SECONDS_FOR_NAMES", -1.0)
    monkeypatch.setattr(OutletEventAccessors, "_get_asset_from_db", staticmethod(slow))
    outlets = OutletEvents([AssetAlias("spark")], accessors, log)
    outlets.add(ORDERS, {})
    assert outlets.hand_over() == 1


@pytest.mark.parametrize("outlets", [[], [Asset(REPORT)]])
def test_without_an_alias_there_is_no_way(accessors: OutletEventAccessors, outlets: list[Any]) -> None:
    events = OutletEvents(outlets, accessors, log)
    assert not events.has_aliases
    assert not events.add(ORDERS, {})
    assert events.hand_over() == 0


def test_without_events_there_is_no_way() -> None:
    outlets = OutletEvents([AssetAlias("spark")], None, log)
    assert not outlets.has_aliases
    assert not outlets.add(ORDERS, {})


def test_who_is_late_is_not_heard(accessors: OutletEventAccessors) -> None:
    outlets = OutletEvents([AssetAlias("spark")], accessors, log)
    assert outlets.hand_over() == 0
    assert not outlets.add(ORDERS, {})
    assert sent(accessors) == []


def test_what_is_no_uri_of_an_asset_is_refused(accessors: OutletEventAccessors) -> None:
    outlets = OutletEvents([AssetAlias("spark")], accessors, log)
    for uri in ("airflow://x", "s3://lake/" + "x" * 1500):
        with pytest.raises(ValueError, match=r"reserved|exceed"):
            outlets.add(uri, {})


def test_an_event_that_airflow_refuses_costs_no_other(logged: pytest.LogCaptureFixture) -> None:
    class Refusing(dict[Any, Any]):
        def __missing__(self, key: Any) -> Any:
            raise TypeError(f"not {key.name}: password=hunter2")

    report = Asset(REPORT)
    accepted = OutletEventAccessors()[report]
    outlets = OutletEvents([report, AssetAlias("spark")], Refusing({report: accepted}), log)
    outlets.add(ORDERS, {})
    outlets.add(REPORT, {"size": 1})
    assert outlets.hand_over() == 1
    assert accepted.extra == {"size": 1}
    assert f"No asset event for {ORDERS}: TypeError: not spark: password=***" in logged.text
