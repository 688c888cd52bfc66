"""A driver that runs elsewhere: it is found again by a retry, with its lineage."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from cluster_manager import APPLICATION_ID, DRIVER_ID, standalone, yarn
from launches import EVENTS_FILE

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
EVENTS = FIXTURES / "a_414.ndjson"


def test_the_launch_handle_is_stored_before_the_driver_is_waited_for(bench: Any) -> None:
    outcome = standalone(bench, ["RUNNING", "FAILED"], store={})
    assert "exited with status FAILED" in outcome.error
    assert outcome.last["driver"]["driver_id"] == DRIVER_ID
    launch = outcome.store["spark_lineage_launch"]
    conf = outcome.command["conf"]
    assert launch.pop("process_id") == outcome.command["pid"]
    assert launch.pop("run_id") == conf["spark.openlineage.parentRunId"]
    assert launch == {
        "directory": str(Path(conf["spark.openlineage.transport.location"]).parent),
        "application_run_id": conf["spark.openlineage.applicationRunId"],
        "external_id": DRIVER_ID,
        "conn_id": "spark_default",
        "master": outcome.command["argv"][1],
        "deploy_mode": "cluster",
        "try_number": 1,
        "host": socket.gethostname(),
    }
    # Ours without its id, with its process, and with its id; the provider's key comes after that, and waiting begins.
    # What the tab shows of this try comes at its end.
    stored = [entry.partition("=")[0] for entry in outcome.store_log]
    assert stored == [*["spark_lineage_launch"] * 3, "spark_job_id", "spark_lineage_tries"]


def test_lineage_that_comes_while_the_driver_is_waited_for_is_collected(bench: Any) -> None:
    lines = EVENTS.read_bytes().splitlines(keepends=True)

    def write() -> None:
        told = json.loads((bench.root / "bin" / "told.jsonl").read_text().splitlines()[-1])
        with Path(told["conf"]["spark.openlineage.transport.location"]).open("ab") as stream:
            stream.write(lines.pop(0) if len(lines) > 1 else b"")

    last = bench.file("last", lines[-1])
    outcome = standalone(bench, ["RUNNING"] * 25 + ["FINISHED"], write, poll_interval_seconds=0.01, lineage=[last])
    assert outcome.error is None
    assert outcome.lineage["run_facets"]["sparkLineage_collection"]["linesRead"] == 21
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_failed_driver_is_a_failed_task_whatever_the_exit_code(bench: Any) -> None:
    outcome = standalone(bench, ["FAILED"], lineage=[FIXTURES / "gkillmid_414.ndjson"], store={})
    assert "Lineage: FAIL" in outcome.printed
    assert len(outcome.attempted()) == 1


def test_a_driver_that_its_master_has_lost_sight_of_is_waited_for(bench: Any) -> None:
    states = ["RUNNING", *["UNKNOWN"] * 3, "RUNNING", "FINISHED"]
    outcome = standalone(bench, states, lineage=[EVENTS], unknown_seconds=60)
    assert outcome.error is None, outcome.printed
    assert outcome.printed.count("[warning  ] It is not known what the driver does: UNKNOWN") == 1
    assert "Lineage: COMPLETE" in outcome.printed


def test_a_master_that_is_away_is_waited_for(bench: Any) -> None:
    away = [True] * 15  # the hook itself gives up after ten

    def hang_up() -> None:
        if away:
            away.pop()
            raise ConnectionError

    outcome = standalone(bench, ["FINISHED"], hang_up, lineage=[EVENTS], unknown_seconds=60)
    assert outcome.error is None, outcome.printed
    assert not away
    assert outcome.printed.count("[warning  ] It is not known what the driver does: its master does not answer") == 1


def test_a_driver_that_nobody_knows_for_too_long_may_still_run(bench: Any) -> None:
    outcome = standalone(bench, ["UNKNOWN"], lineage=[EVENTS], unknown_seconds=0.5)
    assert "(UNKNOWN): its end is not known; it may still run" in outcome.error


@pytest.mark.parametrize("states", [["RUNNING", "RUNNING", "FINISHED"], ["FINISHED"]])
def test_a_retry_that_re_attaches_finds_the_lineage_of_the_running_job(bench: Any, states: list[str]) -> None:
    first = standalone(bench, ["UNKNOWN"], lineage=[EVENTS], store={})
    retry = standalone(bench, states, store=first.store, task={"try_number": 2})
    assert retry.error is None
    assert len(retry.told) == 1, "the retry has submitted again"
    assert retry.names("inputs") == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert retry.names("outputs") == ["/data/lab/out/a_parquet"]
    assert "Lineage: COMPLETE" in retry.printed
    assert retry.threads == ["MainThread"]


def test_a_retry_on_yarn_finds_the_lineage_of_the_job_too(bench: Any) -> None:
    first = yarn(bench, "FAILED", lineage=[EVENTS], store={})
    assert "ended with final status: FAILED" in first.error
    assert "Lineage: FAIL" in first.printed
    assert first.store["spark_lineage_launch"]["external_id"] == first.store["spark_job_id"] == APPLICATION_ID
    # By who took the first try for lost.
    first.store["spark_lineage_launch"]["is_closed"] = True
    retry = yarn(bench, "SUCCEEDED", store=first.store, task={"try_number": 2})
    assert retry.error is None
    assert len(retry.told) == 1, "the retry has submitted again"
    assert retry.names("outputs") == ["/data/lab/out/a_parquet"]
    assert not retry.store["spark_lineage_launch"].get("is_closed"), "the retry reports an end of its own"


@pytest.mark.parametrize("lost", ["spark_job_id", "both"])
def test_a_job_whose_worker_was_lost_while_it_submitted_is_found_on_yarn(bench: Any, lost: str) -> None:
    first = yarn(bench, "FAILED", lineage=[EVENTS], store={}, conf={"spark.yarn.tags": "nightly,shop"})
    tags, launch = first.command["conf"]["spark.yarn.tags"], first.store["spark_lineage_launch"]
    assert tags == f"nightly,shop,{launch['application_run_id']}"
    del first.store["spark_job_id"]
    if lost == "both":
        del launch["external_id"]
    retry = yarn(bench, "SUCCEEDED", store=first.store, task={"try_number": 2}, tags=tags)
    assert retry.error is None
    assert len(retry.told) == 1, "the retry has submitted again"
    assert retry.names("outputs") == ["/data/lab/out/a_parquet"]
    assert retry.store["spark_job_id"] == retry.store["spark_lineage_launch"]["external_id"] == APPLICATION_ID


def test_a_job_that_yarn_does_not_know_is_submitted(bench: Any) -> None:
    first = yarn(bench, "FAILED", store={})
    del first.store["spark_job_id"], first.store["spark_lineage_launch"]["external_id"]
    retry = yarn(bench, "SUCCEEDED", store=first.store, task={"try_number": 2})
    assert retry.error is None
    assert len(retry.told) == 2


def test_no_secret_of_a_diagnosis_gets_out_with_the_error(bench: Any) -> None:
    outcome = yarn(bench, "FAILED", store={})
    assert "Cannot log in with apiKey=***" in outcome.error
    assert "hunter2" not in json.dumps(outcome.executions)


def test_a_retry_after_a_failed_job_is_a_new_launch(bench: Any) -> None:
    first = standalone(bench, ["FAILED"], lineage=[EVENTS], store={})
    retry = standalone(bench, ["FAILED", "FINISHED"], lineage=[EVENTS], store=first.store, task={"try_number": 2})
    assert len(retry.told) == 2
    assert retry.store["spark_lineage_launch"]["directory"] != first.store["spark_lineage_launch"]["directory"]
    assert retry.names("outputs") == ["/data/lab/out/a_parquet"]
    assert retry.lineage["run_facets"]["sparkLineage_collection"]["linesRead"] == 21


@pytest.mark.parametrize("handle", ["none", "of another job"])
def test_a_job_that_was_submitted_without_lineage_is_told(bench: Any, handle: str) -> None:
    store: dict[str, Any] = {"spark_job_id": DRIVER_ID}
    if handle == "of another job":
        other = bench.lineage_dir / "shop" / "manual" / "load" / "-1" / "1-x"
        other.mkdir(parents=True)
        (other / EVENTS_FILE).write_bytes(EVENTS.read_bytes())
        store["spark_lineage_launch"] = {
            "directory": str(other),
            "application_run_id": "x",
            "external_id": "driver-20240101000000-0001",
        }
    outcome = standalone(bench, ["RUNNING", "FINISHED"], store=store)
    assert outcome.error is None
    assert outcome.told == []
    assert outcome.lineage is None
    assert "it submitted no job, or re-attached to one without lineage." in outcome.printed


def test_a_re_attached_job_without_a_handle_fails_the_task_that_requires_lineage(bench: Any) -> None:
    outcome = standalone(bench, ["FINISHED"], store={"spark_job_id": DRIVER_ID}, lineage_required=True)
    assert (outcome.error or "").startswith("LineageRequiredError")
    assert "re-attached to one without lineage" in outcome.error


@pytest.mark.parametrize("handle", ["text", {"directory": 7}, [1], {"directory": "/", "application_run_id": "x"}])
def test_a_handle_that_makes_no_sense_does_not_fail_the_task(bench: Any, handle: object) -> None:
    outcome = standalone(bench, ["FINISHED"], store={"spark_job_id": DRIVER_ID, "spark_lineage_launch": handle})
    assert outcome.error is None
    assert outcome.lineage is None


def test_without_a_store_there_is_lineage_all_the_same(bench: Any) -> None:
    outcome = standalone(bench, ["FINISHED"], lineage=[EVENTS], store=None)
    assert outcome.error is None
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
