"""A stream whose driver is killed, and a backfill, in a real Airflow on a real Spark, as the examples have them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import psutil
import pyarrow.parquet
import pytest
import requests
from lineage_backends.airflow_home import AirflowHome, airflow_home
from lineage_backends.http_backend import OpenLineageBackend, openlineage_backend

if TYPE_CHECKING:
    from fast_spark import FastSpark

EXAMPLES = Path(__file__).parents[2] / "dags_example"
LIMIT_SECONDS = 300
DAYS = ("2024-09-02", "2024-09-03", "2024-09-04")

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@dataclass
class Examples:
    """An Airflow with the examples, where their data lie, and what a backend got."""

    airflow: AirflowHome
    backend: OpenLineageBackend
    data: Path
    lake: Path

    def wait_for(self, what: str, found: Callable[[], Any]) -> Any:
        """Return what is found, in the end."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (result := found()):
            logs = [*self.airflow.home.glob("*.log"), *self.airflow.home.glob("logs/dag_id=orders_*/**/*.log")]
            tails = [f"{log}:\n{log.read_text(errors='replace')[-3000:]}" for log in logs]
            assert time.monotonic() < deadline, f"Waited for {what}\n" + "\n".join(tails)
            time.sleep(0.5)
        return result

    def tries(self, job: str) -> list[list[dict[str, Any]]]:
        """The events of each run of a job, in their order."""
        runs: dict[str, list[dict[str, Any]]] = {}
        for event in self.backend.events:
            if event["job"]["name"] == job:
                runs.setdefault(event["run"]["runId"], []).append(event)
        return list(runs.values())

    def stored(self) -> list[int]:
        """The ids in the files that the stream has committed, as a reader of Spark's sees them."""
        files: set[str] = set()
        for batch in (self.lake / "live" / "orders" / "_spark_metadata").glob("[0-9]*"):
            _, *entries = batch.read_text().splitlines()
            files |= {unquote(urlsplit(json.loads(entry)["path"]).path) for entry in entries}
        return [one for file in files for one in pyarrow.parquet.read_table(file)["order_id"].to_pylist()]

    def shipped(self) -> list[int]:
        """The ids that belong there."""
        lines = [line.split(",") for file in self.data.glob("orders*.csv") for line in file.read_text().splitlines()]
        return sorted(int(line[0]) for line in lines if line[5] == "shipped")

    def driver(self) -> psutil.Process:
        """The JVM of the stream's driver."""
        for process in psutil.process_iter():
            try:
                command = process.cmdline()
            except psutil.Error:
                continue
            if process.name() == "java" and str(self.lake / "live" / "orders") in command:
                return process
        raise AssertionError("there is no driver")


@pytest.fixture(scope="module")
def examples(
    fast_spark: FastSpark, airflow_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Examples]:
    """An Airflow whose scheduler runs."""
    folder = tmp_path_factory.mktemp("examples")
    home, lake, data = folder / "airflow", folder / "lake", folder / "data"
    home.mkdir()
    names = shutil.ignore_patterns("demo.py", "lake", "lineage_*", "outbox_*", "orders_[!lb]*", "example_*")
    shutil.copytree(EXAMPLES, home / "dags", ignore=names)
    shutil.copytree(EXAMPLES / "spark_jobs", home / "dags" / "spark_jobs", dirs_exist_ok=True)
    shutil.copytree(EXAMPLES / "data", data)
    with openlineage_backend() as backend:
        env = {
            **fast_spark.env,
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "http", "url": backend.url}),
            "SPARK_LINEAGE_EXAMPLE_LAKE": str(lake),
            "SPARK_LINEAGE_EXAMPLE_DATA": str(data),
            "SPARK_LINEAGE_EXAMPLE_INTERVAL": "3",
        }
        with airflow_home(home, env, airflow_database) as airflow:
            airflow.wait_for_dags("orders_live", "orders_by_day", "spark_maintenance")
            url = urlsplit(airflow.env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"])
            api = json.dumps({"conn_type": "http", "host": url.hostname, "port": url.port})
            airflow.command("connections", "add", "airflow_api", "--conn-json", api)
            airflow.schedule()
            yield Examples(airflow, backend, data, lake)


def names(datasets: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in datasets]


def test_a_stream_goes_on_after_its_driver_was_killed(examples: Examples) -> None:
    job = "orders_live.follow_orders"
    examples.airflow.command("dags", "unpause", "orders_live")
    examples.wait_for("the first rows", lambda: sorted(examples.stored()) == examples.shipped())
    before = examples.shipped()

    def has_tracked(number: int) -> bool:
        tries = examples.tries(job)
        events = [one for each in tries[number - 1 : number] for one in each]
        return any(one["outputs"] and one["eventType"] == "RUNNING" for one in events)

    examples.wait_for("its lineage", lambda: has_tracked(1))
    examples.driver().kill()
    header, line, *_ = (examples.data / "orders.csv").read_text().splitlines()
    new = ",".join(["9001", *line.split(",")[1:]])
    (examples.data / "orders_later.csv").write_text(f"{header}\n{new}\n")
    examples.wait_for("the row after that", lambda: len(examples.stored()) > len(before))
    assert sorted(examples.stored()) == examples.shipped() == [*before, 9001]
    examples.wait_for("its lineage again", lambda: has_tracked(2))
    ((run_id, number),) = examples.airflow.rows(
        "SELECT run_id, try_number FROM task_instance WHERE dag_id = 'orders_live'"
    )
    assert number == 2

    examples.airflow.command("dags", "pause", "orders_live")
    path = f"dags/orders_live/dagRuns/{requests.utils.quote(run_id)}/taskInstances/follow_orders"
    examples.airflow.ask("PATCH", path, {"new_state": "failed"})
    examples.wait_for("the end", lambda: examples.tries(job)[1][-1]["eventType"] == "FAIL")
    first, second = examples.tries(job)
    assert [one["eventType"] for one in first if one["eventType"] != "RUNNING"] == ["START", "FAIL"]
    assert second[0]["eventType"] == "START"
    assert "RUNNING" in {one["eventType"] for one in second}
    for events in (first, second):
        last = [one for one in events if one["outputs"]][-1]
        assert names(last["inputs"]) == [str(examples.data)]
        assert names(last["outputs"]) == [str(examples.lake / "live" / "orders")]
    end = first[-1]
    assert (names(end["inputs"]), names(end["outputs"])) == (
        [str(examples.data)],
        [str(examples.lake / "live" / "orders")],
    )
    status = end["run"]["facets"]["sparkLineage_status"]
    assert status["state"] == "FAIL"
    (numbers,) = status["applications"]
    # What the first try's log says up to the kill.
    assert numbers["source"] == "event log"
    assert numbers["tasks"]["finished"] >= 1
    assert numbers["bytesWritten"] > 0


@pytest.mark.nightly
def test_each_day_of_a_backfill_is_a_run_of_its_own(examples: Examples) -> None:
    examples.airflow.command("dags", "unpause", "orders_by_day")
    examples.airflow.command(
        "backfill", "create", "--dag-id", "orders_by_day", "--from-date", DAYS[0], "--to-date", DAYS[-1]
    )  # fmt: skip

    def states() -> list[str]:
        query = "SELECT state FROM dag_run WHERE dag_id = 'orders_by_day' AND run_type = 'backfill'"
        return [state for (state,) in examples.airflow.rows(query)]

    examples.wait_for("the days", lambda: len(states()) == len(DAYS) and set(states()) <= {"success", "failed"})
    assert states() == ["success"] * len(DAYS)
    by_day: dict[str, dict[str, Any]] = {}

    def is_there() -> bool:
        for events in examples.tries("orders_by_day.write_day"):
            day = events[-1]["run"]["facets"]["nominalTime"]["nominalStartTime"][:10]
            if day in DAYS:
                by_day[day] = events[-1]
        return [by_day.get(day, {}).get("eventType") for day in DAYS] == ["COMPLETE"] * len(DAYS)

    examples.wait_for("their events", is_there)
    assert len({event["run"]["runId"] for event in by_day.values()}) == len(DAYS)
    lines = [line.split(",") for line in (examples.data / "orders.csv").read_text().splitlines()[1:]]
    for day, event in by_day.items():
        assert names(event["inputs"]) == [str(examples.data / "orders.csv")]
        assert names(event["outputs"]) == [str(examples.lake / "orders_by_day")]
        (output,) = event["outputs"]
        rows = sum(line[6].startswith(day) for line in lines)
        assert output["outputFacets"]["outputStatistics"]["rowCount"] == rows
        assert output["outputFacets"]["sparkLineage_writes"]["operations"][0]["isPartial"]
        written = pyarrow.parquet.read_table(examples.lake / "orders_by_day" / f"day={day}", partitioning=None)
        assert written.num_rows == rows


def test_what_no_dag_has_any_more_is_removed(examples: Examples) -> None:
    old = time.time() - 40 * 86_400
    checkpoints, logs = examples.lake / "checkpoints", examples.lake / "event_logs"
    for file in [
        *(checkpoints / dag / "t" / name for dag in ("gone", "orders_by_day") for name in ("metadata", "offsets/0")),
        *(checkpoints / dag / "t" / "commits" / "0" for dag in ("gone", "orders_by_day")),
        logs / "local-1",
        logs / "local-2.inprogress",
    ]:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (old, old))

    examples.airflow.command("dags", "unpause", "spark_maintenance")

    def run(**params: Any) -> str:
        """Run the DAG, and return what its task has logged."""
        run_id = f"run_{len(params)}"
        examples.airflow.ask(
            "POST", "dags/spark_maintenance/dagRuns", {"logical_date": None, "dag_run_id": run_id, "conf": params}
        )
        query = f"SELECT state FROM dag_run WHERE run_id = '{run_id}' AND state IN ('success', 'failed')"  # noqa: S608
        examples.wait_for("the maintenance", lambda: examples.airflow.rows(query))
        logs = f"logs/dag_id=spark_maintenance/run_id={run_id}/task_id=remove_leftovers/**/attempt=1.log"
        (log,) = examples.airflow.home.glob(logs)
        assert examples.airflow.rows(query) == [("success",)], log.read_text()
        return log.read_text()

    dry = run()
    assert f"checkpoints: {checkpoints}/gone/t: would be removed: nothing was added for 40 days" in dry
    assert (checkpoints / "gone").exists()
    text = run(dry_run=False)
    assert f"checkpoints: {checkpoints}/gone/t: removed: nothing was added for 40 days" in text
    assert f"checkpoints: {checkpoints}/orders_by_day: stays: there is a DAG of that name" in text
    assert f"event_logs: {logs}/local-1: removed: nothing was added for 40 days" in text
    assert f"event_logs: {logs}/local-2.inprogress: stays: it is not known whether its application runs" in text
    assert not (checkpoints / "gone" / "t").exists()
    assert (checkpoints / "orders_by_day" / "t" / "metadata").exists()
    assert [path.name for path in logs.iterdir()] == ["local-2.inprogress"]
