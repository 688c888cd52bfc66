"""The example DAGs in a real Airflow, with its scheduler, on a real Spark."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

EXAMPLES = Path(__file__).parents[2] / "dags_example"
# The class of the last one is compiled.
STARTED = ("orders_daily", "orders_check", "orders_stream", "chain", "orders_windows", "orders_exported")
STARTED += ("orders_by_product",) * bool(shutil.which("javac"))
DAGS = (*STARTED, "orders_report")
FAILED = {"orders_stream", "orders_check"}

pytestmark = [pytest.mark.spark, pytest.mark.truth, pytest.mark.shares("airflow")]


@pytest.fixture(scope="module")
def ran(executing_airflow: Any, background: Any) -> Any:
    """The Airflow in which all examples have run, the report because of what another one had written."""
    home: Path = executing_airflow.home
    shutil.copytree(
        EXAMPLES,
        home / "dags",
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("demo.py", "lake", "lineage_*", "outbox_*"),
    )
    env = executing_airflow.env | {
        "SPARK_LINEAGE_EXAMPLE_LAKE": str(home / "lake"),
        "SPARK_LINEAGE_EXAMPLE_SECONDS": "90",
        "SPARK_LINEAGE_EXAMPLE_INTERVAL": "3",
        "AIRFLOW__SPARK_LINEAGE__FAILURE_REPORT_PATH": str(home / "failures.txt"),
        "AIRFLOW__SPARK_LINEAGE__EMIT_ASSETS": "True",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        # Nobody changes them: to read one again costs as much as to run a task.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
    }
    background.start("dag-processor", [sys.executable, "-m", "airflow", "dag-processor"], env)
    background.logs.append((home / "logs", "dag_id=orders_*/**/*.log"))

    def rows(query: str) -> dict[str, Any]:
        with closing(sqlite3.connect(f"file:{home}/airflow.db?mode=ro", uri=True, timeout=60)) as database:
            return dict(database.execute(query).fetchall())

    background.wait_for("the DAGs", lambda: set(DAGS) <= rows("SELECT dag_id, 1 FROM serialized_dag").keys())
    background.start("scheduler", [sys.executable, "-m", "airflow", "scheduler"], env)
    for dag in STARTED:
        executing_airflow.ask("POST", f"dags/{dag}/dagRuns", {"logical_date": None})

    def states() -> dict[str, Any]:
        return {dag: state for dag, state in rows("SELECT dag_id, state FROM dag_run").items() if dag in DAGS}

    ended = {"success", "failed"}
    background.wait_for("the DAG runs", lambda: [states().get(dag) in ended for dag in DAGS] == [True] * len(DAGS), 500)
    assert states() == {dag: "failed" if dag in FAILED else "success" for dag in DAGS}, background.tails
    return executing_airflow


def told(airflow: Any, job: str, *, is_running: bool = False) -> list[dict[str, Any]]:
    return sorted(airflow.events_of(job, is_running=is_running), key=lambda event: str(event["eventTime"]))


def outputs(event: dict[str, Any]) -> list[str]:
    return [one["name"].partition("/lake/")[2] for one in event["outputs"]]


def test_a_stream_tells_its_lineage_while_it_runs_and_keeps_it_when_its_time_is_over(ran: Any) -> None:
    start, *running, last = told(ran, "orders_stream.follow_orders", is_running=True)
    assert (start["eventType"], last["eventType"]) == ("START", "FAIL")
    assert len(running) >= 2
    for event in running:
        assert event["eventType"] == "RUNNING"
        assert event["run"]["runId"] == start["run"]["runId"]
        assert event["run"]["facets"]["sparkLineage_status"]["state"] == "RUNNING"
        # Once each, by the names that they have at the end, too.
        assert [one["name"] for one in event["inputs"]] == [f"{ran.home}/dags/data"]
        assert outputs(event) == ["stream/orders"]
        (output,) = event["outputs"]
        columns = {field["name"]: field.get("type") for field in output["facets"]["schema"]["fields"]}
        assert columns == {"order_id": "integer", "customer_id": "integer", "ordered_at": "timestamp"}
        assert output["facets"]["columnLineage"]["fields"].keys() == columns.keys()
    status = last["run"]["facets"]["sparkLineage_status"]
    assert status["state"] == "ABORT"
    driver = [one["newStatus"] for one in status["transitions"] if one["subject"] == "DRIVER"]
    assert driver == ["SUBMITTED", "KILLING", "KILLED"]
    assert any(one["subject"] == "STREAMING_QUERY" for one in status["transitions"])
    assert outputs(last) == ["stream/orders"]
    assert [one["name"] for one in last["inputs"]] == [f"{ran.home}/dags/data"]


def test_a_failing_job_says_why_and_what_is_there_all_the_same(ran: Any) -> None:
    start, last = told(ran, "orders_check.check_orders")
    assert (start["eventType"], last["eventType"]) == ("START", "FAIL")
    reason = "ValueError: 2 orders without a quantity (exit code 1)"
    assert last["run"]["facets"]["errorMessage"]["message"].startswith(reason)
    assert outputs(last) == ["delivered/orders"]


def test_the_listener_of_the_example_keeps_a_line_of_the_failure(ran: Any) -> None:
    (line,) = (ran.home / "failures.txt").read_text().splitlines()
    assert "orders_check.check_orders: ValueError: 2 orders without a quantity (exit code 1); had written " in line
    assert line.endswith("/lake/delivered/orders")


def test_what_a_task_has_written_triggers_a_dag(ran: Any) -> None:
    end = told(ran, "orders_daily.count_orders")[-1]
    assert outputs(end) == ["daily/orders"]
    rows = end["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"]
    (log,) = ran.home.glob("logs/dag_id=orders_report/*/task_id=report/attempt=1.log")
    assert f"file://{ran.home}/lake/daily/orders: 1 times written, {rows} rows" in log.read_text()


def test_what_failing_tasks_have_written_makes_no_asset_event(ran: Any) -> None:
    with closing(sqlite3.connect(f"file:{ran.home}/airflow.db?mode=ro", uri=True, timeout=60)) as database:
        events = database.execute("SELECT source_dag_id, uri FROM asset_event e JOIN asset a ON a.id = asset_id")
        found = sorted((dag, uri.partition("/lake/")[2]) for dag, uri in events)
    chain = [("chain", name) for name in ("cleaned", "enriched", "landed", "revenue")]
    others = {("orders_windows", "windows/orders"), ("orders_by_product", "by_product/orders")}
    assert [one for one in found if one not in others] == [
        *chain,
        ("orders_daily", "daily/orders"),
        ("orders_exported", "exported/orders.jsonl"),
    ]


def test_each_task_of_a_chain_reads_what_the_one_before_has_written(ran: Any) -> None:
    ends = [told(ran, f"chain.{step}")[-1] for step in ("land", "clean", "enrich", "report")]
    assert [outputs(end) for end in ends] == [["landed"], ["cleaned"], ["enriched"], ["revenue"]]
    for before, after in pairwise(ends):
        assert before["outputs"][0]["name"] in {one["name"] for one in after["inputs"]}


def test_stateful_stream_has_no_state_as_dataset_and_the_sums_come_from_the_source(ran: Any) -> None:
    end = told(ran, "orders_windows.sum_days")[-1]
    assert [one["name"] for one in end["inputs"]] == [f"{ran.home}/dags/data"]
    assert outputs(end) == ["windows/orders"]
    (output,) = end["outputs"]
    fields = output["facets"]["columnLineage"]["fields"]
    sources = {
        column: {(one["field"], each["type"]) for one in told["inputFields"] for each in one["transformations"]}
        for column, told in fields.items()
    }
    assert sources == {
        "day": {("ordered_at", "DIRECT"), ("ordered_at", "INDIRECT")},
        "product": {("product", "DIRECT")},
        "sold": {("quantity", "DIRECT")},
    }
    deciding = {one["field"] for one in output["facets"]["columnLineage"]["dataset"]}
    assert deciding == {"ordered_at", "product", "order_id"}
    assert pyarrow.parquet.read_table(f"{ran.home}/lake/windows/orders").num_rows > 0


def test_accumulators_are_the_numbers_of_a_declared_output(ran: Any) -> None:
    end = told(ran, "orders_exported.export_orders")[-1]
    (output,) = end["outputs"]
    lines = (ran.home / "lake" / "exported" / "orders.jsonl").read_text().splitlines()
    orders = (ran.home / "dags" / "data" / "orders.csv").read_text().splitlines()[1:]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == len(lines)
    assert output["facets"]["sparkLineage_properties"]["properties"] == {"rejected": str(len(orders) - len(lines))}
    assert len(lines) < len(orders)
    assert [one["name"] for one in end["inputs"]] == [f"{ran.home}/dags/data/orders.csv"]


@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java compiler is installed (javac is not on the PATH)")
def test_job_on_the_jvm_has_its_columns(ran: Any) -> None:
    end = told(ran, "orders_by_product.sum_products")[-1]
    assert ([one["name"] for one in end["inputs"]], outputs(end)) == (
        [f"{ran.home}/dags/data/orders.csv"],
        ["by_product/orders"],
    )
    lineage = end["outputs"][0]["facets"]["columnLineage"]
    sources = {column: [one["field"] for one in each["inputFields"]] for column, each in lineage["fields"].items()}
    assert sources == {"product": ["product"], "quantity": ["quantity"]}
    assert {"status", "product"} <= {one["field"] for one in lineage["dataset"]}
