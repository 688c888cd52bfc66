"""What a task sends to its own connections: real operator, real hook, a fake ``spark-submit``, a strict backend."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from lineage_backends.http_answers import Hang, Refuse

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
EVENTS = FIXTURES / "a_414.ndjson"
STREAM = FIXTURES / "e_414.ndjson"


def types(backend: Any) -> list[str]:
    """Return the types of the events that the backend has, in the order of their coming."""
    assert not backend.refused, backend.refused[0].reason
    return [event["eventType"] for event in backend.events]


def names(event: Any, side: str) -> list[str]:
    """Return the names of the inputs or outputs of an event."""
    return [dataset["name"] for dataset in event[side]]


def test_a_run_begins_and_ends(shop: Any, openlineage_backend: Any) -> None:
    outcome = shop.run(lineage=[EVENTS], lineage_tags={"team": "sales"}, application="/jobs/daily report.py")
    assert outcome.error is None
    assert types(openlineage_backend) == ["START", "COMPLETE"]
    start, end = openlineage_backend.events
    assert start["run"]["runId"] == end["run"]["runId"] == outcome.command["conf"]["spark.openlineage.parentRunId"]
    assert start["eventTime"] < end["eventTime"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("airflow-of-the-test", "shop.load")
    assert names(end, "outputs") == outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert names(end, "inputs") == outcome.names("inputs")
    job, run = end["job"]["facets"], end["run"]["facets"]
    assert job["jobType"]["processingType"] == "BATCH"
    assert {(tag["key"], tag["value"], tag["source"]) for tag in job["tags"]["tags"]} == {
        ("nightly", "nightly", "AIRFLOW"),
        ("team", "sales", "USER"),
    }
    assert [owner["name"] for owner in job["ownership"]["owners"]] == ["the-shop"]
    assert job["sourceCodeLocation"]["url"] == "file:///jobs/daily%20report.py"
    assert run["parent"]["job"]["name"] == run["parent"]["root"]["job"]["name"] == "shop"
    assert run["nominalTime"]["nominalStartTime"].startswith("2024-01-31T00:00:00")
    assert run["airflow"]["taskInstance"]["try_number"] == 1
    assert shop.kept == [end]


def test_the_beginning_names_what_is_declared(shop: Any, openlineage_backend: Any) -> None:
    shop.run(lineage=[EVENTS], context={"inlets": ["s3://shop/prices"], "outlets": ["s3://shop/report"]})
    start, end = openlineage_backend.events
    # Marquez makes an output of what any event of a run named, and this has not been written yet.
    assert (names(start, "inputs"), names(start, "outputs")) == (["prices"], [])
    assert "prices" in names(end, "inputs")
    assert "report" in names(end, "outputs")


def test_a_stream_is_one(shop: Any, openlineage_backend: Any) -> None:
    shop.run(lineage=[STREAM], tracking_interval_seconds=0.001, poll_interval_seconds=0.01)
    *_, end = openlineage_backend.events
    assert end["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert types(openlineage_backend) in (["START", "COMPLETE"], ["START", "RUNNING", "COMPLETE"])


@pytest.mark.parametrize(
    ("how", "end"),
    [
        ({"exit_code": 1}, "FAIL"),
        ({"signal_parent": signal.SIGUSR1}, "ABORT"),
        ({"signal_parent": signal.SIGUSR2}, "ABORT"),
    ],
)
def test_other_ends(shop: Any, openlineage_backend: Any, how: dict[str, int], end: str) -> None:
    outcome = shop.run(lineage=[FIXTURES / "gtask_414.ndjson"], **how)
    assert outcome.error is not None
    assert types(openlineage_backend) == ["START", end]
    last = openlineage_backend.events[-1]
    assert names(last, "outputs") == ["/data/lab/out/g_ok_task"]
    assert last["run"]["facets"]["errorMessage"]["message"]
    assert last["run"]["facets"]["sparkLineage_status"]["state"] == end


@pytest.mark.parametrize(("how", "count"), [({}, 1), ({"exit_code": 1}, 0), ({"signal_parent": signal.SIGUSR1}, 0)])
def test_only_a_task_that_succeeds_makes_asset_events(
    shop: Any, openlineage_backend: Any, how: dict[str, int], count: int
) -> None:
    outcome = shop.run(lineage=[EVENTS], emit_assets=True, **how)
    end = types(openlineage_backend)[-1]
    (line,) = [line for line in outcome.printed.splitlines() if "Delivery: " in line]
    # One that was killed may have no time to wait.
    assert re.search(f"Delivery: START, {end} (to|for) shop", line)
    assert ("outputs given to Airflow as assets: 1" in line) == bool(count)
    assert "makes no asset events" not in outcome.printed


def test_five_lines_are_logged_of_a_try(shop: Any, openlineage_backend: Any) -> None:
    outcome = shop.run(lineage=[EVENTS])
    ours = re.findall(r"\[info +\] (.*?) +\[airflow\.task\.operators\..*LineageSparkSubmitOperator\]", outcome.printed)
    assert [line.split(" ")[0] for line in ours] == ["Lineage", "Lineage:", "Read:", "Wrote:", "Delivery:"], ours


def test_a_task_that_cannot_submit_has_an_end(shop: Any, openlineage_backend: Any) -> None:
    outcome = shop.run(openlineage_jar="/no/such.jar", evidence="listener", lineage_required=True)
    assert "lineage_required is set" in outcome.error
    assert not outcome.told
    assert types(openlineage_backend) == ["START", "FAIL"]
    assert "lineage_required" in openlineage_backend.events[-1]["run"]["facets"]["errorMessage"]["message"]


def test_a_task_that_requires_lineage_and_has_none_fails_in_its_event_too(shop: Any, openlineage_backend: Any) -> None:
    outcome = shop.run(lineage=[], lineage_required=True)
    assert "No lineage came from the driver" in outcome.error
    assert types(openlineage_backend) == ["START", "FAIL"]
    assert "No lineage came" in openlineage_backend.events[-1]["run"]["facets"]["errorMessage"]["message"]


def test_lineage_that_is_off_sends_nothing(shop: Any, openlineage_backend: Any) -> None:
    assert shop.run(lineage=[EVENTS], lineage_enabled=False).error is None
    assert openlineage_backend.received == []


def test_child_runs_are_sent_and_kept(shop: Any, openlineage_backend: Any) -> None:
    shop.run(lineage=[EVENTS], granularity="path")
    start, end, *children = openlineage_backend.events
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert [child["eventType"] for child in children] == ["START", "COMPLETE"]
    assert {child["run"]["facets"]["parent"]["run"]["runId"] for child in children} == {end["run"]["runId"]}
    assert shop.kept == [end, *children]


def test_several_connections_each_in_its_namespace(shop: Any, openlineage_backend: Any) -> None:
    shop.connect("other", openlineage_backend.url.replace("127.0.0.1", "localhost"), namespace="elsewhere")
    shop.run(lineage=[EVENTS], lineage_conn_id=["shop", "other", "shop"])
    assert sorted(types(openlineage_backend)) == ["COMPLETE", "COMPLETE", "START", "START"]
    namespaces = [event["job"]["namespace"] for event in openlineage_backend.events]
    assert sorted(namespaces) == ["airflow-of-the-test"] * 2 + ["elsewhere"] * 2
    for event in openlineage_backend.events:
        parent = event["run"]["facets"]["parent"]
        assert {parent["job"]["namespace"], parent["root"]["job"]["namespace"]} == {event["job"]["namespace"]}


def test_a_backend_that_is_away_holds_nobody_up_and_gets_everything_later(shop: Any, openlineage_backend: Any) -> None:
    openlineage_backend.stop()
    outcome = shop.run(lineage=[EVENTS])
    assert outcome.error is None
    assert "Delivery: START, COMPLETE for shop (2 wait in the outbox)" in outcome.printed
    openlineage_backend.start()
    shop.flush()
    assert types(openlineage_backend) == ["START", "COMPLETE"]


def test_a_backend_that_never_answers_holds_the_task_up_for_no_longer_than_it_may(
    shop: Any, openlineage_backend: Any
) -> None:
    openlineage_backend.always = Hang()
    began = time.monotonic()
    outcome = shop.run(lineage=[EVENTS], lineage_timeout=12)
    assert time.monotonic() - began < 10
    assert outcome.error is None
    assert "wait in the outbox" in outcome.printed


def test_what_a_backend_refuses_is_said_and_kept(shop: Any, openlineage_backend: Any) -> None:
    openlineage_backend.always = Refuse(status=422)
    outcome = shop.run(lineage=[EVENTS])
    assert outcome.error is None
    assert "(2 were refused, see `spark-lineage outbox list --dead`)" in outcome.printed


def test_a_connection_that_is_not_there_costs_no_event(shop: Any, openlineage_backend: Any) -> None:
    outcome = shop.run(lineage=[EVENTS], lineage_conn_id="later")
    assert outcome.error is None
    assert "The events for the connection later wait in the outbox" in outcome.printed
    shop.connect("later", openlineage_backend.url)
    shop.flush()
    assert types(openlineage_backend) == ["START", "COMPLETE"]


def test_a_connection_that_does_not_fit_is_told_without_its_secret(shop: Any) -> None:
    shop.bench.env["AIRFLOW_CONN_SHOP"] = json.dumps({"conn_type": "openlineage", "host": "gopher://u:hunter2-x@h"})
    outcome = shop.run(lineage=[EVENTS])
    assert outcome.error is None
    assert "'shop'" in outcome.printed
    assert "hunter2-x" not in outcome.printed


def test_an_outbox_that_cannot_be_written_costs_no_event_while_the_backend_is_there(
    shop: Any, openlineage_backend: Any
) -> None:
    shop.outbox.parent.mkdir()
    shop.outbox.write_text("a file where the directory should be")
    outcome = shop.run(lineage=[EVENTS])
    assert outcome.error is None
    assert types(openlineage_backend) == ["START", "COMPLETE"]
    assert "outbox" in outcome.printed


def test_a_task_that_waits_for_nobody_leaves_its_end_in_the_outbox(shop: Any, openlineage_backend: Any) -> None:
    outcome = shop.run(lineage=[EVENTS], lineage_timeout=0)
    assert outcome.error is None
    shop.flush()
    assert types(openlineage_backend) == ["START", "COMPLETE"]


def test_only_the_member_that_the_provider_tells_already_is_left_out(shop: Any, openlineage_backend: Any) -> None:
    own = {"type": "http", "url": "http://127.0.0.1:1", "retry": {"total": 0}}
    shop.bench.env["AIRFLOW__OPENLINEAGE__TRANSPORT"] = json.dumps(own)
    members = {"own": own, "audit": {"type": "http", "url": openlineage_backend.url}}
    shop.bench.env["AIRFLOW_CONN_SHOP"] = json.dumps(
        {"conn_type": "openlineage", "extra": {"kind": "composite", "transports": members}}
    )
    outcome = shop.run(lineage=[EVENTS])
    assert "the backend of the connection shop/own as well" in outcome.printed
    assert types(openlineage_backend) == ["START", "COMPLETE"]


def test_a_backend_of_the_provider_is_told_once(shop: Any, openlineage_backend: Any) -> None:
    provider = {"type": "http", "url": f"{openlineage_backend.url}/", "retry": {"total": 0}}
    shop.bench.env["AIRFLOW__OPENLINEAGE__TRANSPORT"] = json.dumps(provider)
    outcome = shop.run(lineage=[EVENTS])
    assert "Remove one of them from the configuration" in outcome.printed
    assert openlineage_backend.received == []
    assert shop.kept


def test_an_outbox_that_cannot_be_used_fails_a_task_that_requires_lineage(shop: Any) -> None:
    shop.bench.env["AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR"] = "relative/dir"
    outcome = shop.run(lineage_required=True)
    assert "lineage_required is set" in outcome.error
    assert any("relative/dir" in error for error in outcome.last["errors"])
