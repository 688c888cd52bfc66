"""What comes of a task: real operator, real hook, a fake ``spark-submit``."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from launches import is_running

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
EVENTS = FIXTURES / "a_414.ndjson"


def test_a_success(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS])
    assert outcome.error is None
    assert outcome.names("inputs") == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    facets = outcome.lineage["run_facets"]
    assert facets["sparkLineage_collection"]["linesRead"] == 21
    assert facets["sparkLineage_collection"]["linesSetAside"] == 0
    assert facets["processing_engine"]["version"] == "4.1.4"
    assert facets["sparkLineage_application"]["applications"][0]["applicationId"] == "local-1795215390665"
    rows = outcome.lineage["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"]
    assert f"Lineage: COMPLETE, 2 inputs, 1 output, {rows} rows written (21 events of 7 Spark runs" in outcome.printed
    assert "Read: file /data/lab/data/cust.csv, file /data/lab/data/orders.csv" in outcome.printed
    assert "Wrote: file /data/lab/out/a_parquet" in outcome.printed


def test_a_failure_keeps_what_was_finished_and_names_what_was_tried(bench: Any) -> None:
    outcome = bench.run(lineage=[FIXTURES / "gtask_414.ndjson"], exit_code=1)
    assert "Error code is: 1." in outcome.error
    assert outcome.names("outputs") == ["/data/lab/out/g_ok_task"]
    assert outcome.attempted() == ["/data/lab/out/g_bad"]
    assert "Lineage: FAIL" in outcome.printed


def test_the_exit_code_decides_about_open_writes(bench: Any) -> None:
    succeeded = bench.run(lineage=[FIXTURES / "gkillmid_414.ndjson"])
    failed = bench.run(lineage=[FIXTURES / "gkillmid_414.ndjson"], exit_code=137)
    assert succeeded.attempted() == []
    assert "Lineage: COMPLETE" in succeeded.printed
    assert "Lineage: FAIL" in failed.printed
    assert len(failed.attempted()) == 1
    assert set(succeeded.names("outputs")) == {*failed.names("outputs"), *failed.attempted()}


@pytest.mark.parametrize(
    ("how", "error"), [(signal.SIGUSR1, "AirflowException: "), (signal.SIGUSR2, "AirflowTaskTimeout: ")]
)
def test_a_task_that_is_killed_or_times_out_is_aborted(bench: Any, how: int, error: str) -> None:
    outcome = bench.run(lineage=[FIXTURES / "gkillmid_414.ndjson"], signal_parent=how)
    assert outcome.error.startswith(error)
    assert "Lineage: ABORT" in outcome.printed
    assert len(outcome.attempted()) == 1
    assert outcome.threads == ["MainThread"]
    assert not is_running(outcome.command["pid"]), "the driver was left alone"


@pytest.mark.parametrize(("exit_code", "how"), [(0, 0), (1, 0), (0, signal.SIGUSR1), (0, signal.SIGUSR2)])
def test_the_follower_is_gone_after_the_session(bench: Any, exit_code: int, how: int) -> None:
    outcome = bench.run(lineage=[EVENTS], exit_code=exit_code, signal_parent=how, poll_interval_seconds=0.01)
    assert outcome.threads == ["MainThread"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_second_execution_of_the_same_operator_is_a_session_of_its_own(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], executions=2)
    first, second = outcome.executions
    assert first["session_id"] != second["session_id"]
    assert first["hook_id"] != second["hook_id"]
    for one in (first, second):
        # Of two processes and their times.
        assert one["lineage"]["run_facets"].pop("sparkLineage_status")["state"] == "COMPLETE"
    assert first["lineage"] == second["lineage"]
    assert len(outcome.told) == 2
    for key in ("spark.openlineage.applicationRunId", "spark.openlineage.transport.location"):
        assert outcome.told[0]["conf"][key] != outcome.told[1]["conf"][key]
    assert outcome.told[0]["conf"].keys() == outcome.told[1]["conf"].keys()
    assert outcome.told[1]["conf"]["spark.extraListeners"].count("OpenLineage") == 1
    assert outcome.told[1]["argv"].count("--driver-class-path") == 1
