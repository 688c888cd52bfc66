"""``make demo`` as a user runs it: a real Airflow, a real Spark, and one truthful event of the task."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fast_spark import JAVA_ENV

pytestmark = pytest.mark.oldest

EXAMPLES = Path(__file__).parents[2] / "dags_example"
ROWS = {
    "bronze/orders": 200,
    "bronze/customers": 20,
    "silver.db/orders": 194,
    "silver/customers": 20,
    "gold.db/revenue_by_country": 13,
    "gold/top_customers": 10,
}


@pytest.fixture(
    scope="module",
    params=[
        "both",
        pytest.param("event_log", marks=pytest.mark.truth),
        pytest.param("no Maven", marks=pytest.mark.nightly),
    ],
)
def demo(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> subprocess.CompletedProcess[str]:
    # The demo works beside its own directory, and the checkout's own demo stays as it is.
    root = tmp_path_factory.mktemp("demo")
    shutil.copytree(EXAMPLES, root / "dags_example", ignore=shutil.ignore_patterns("lake", "__pycache__"))
    env = {key: value for key, value in os.environ.items() if key not in ("MARQUEZ_URL", "ATLAS_URL")} | JAVA_ENV
    # What is there stays, and the lake gets another name.
    (root / "d").mkdir()
    (root / "d" / "someone's").touch()
    (root / "d1").mkdir()
    (root / "d1" / ".spark-lineage-demo").touch()
    (root / "d1" / "of the run before").touch()
    env["TMPDIR"] = str(root)
    if request.param == "event_log":
        env["EVIDENCE"] = "event_log"
    elif request.param == "no Maven":
        env |= {"DEFAULT_ARTIFACT_REPOSITORY": "http://127.0.0.1:1", "XDG_CACHE_HOME": str(root / "empty")}
    command = [sys.executable, str(root / "dags_example" / "demo.py")]
    done = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in (root / "d").iterdir()] == ["someone's"]
    assert "of the run before" not in {path.name for path in (root / "d1").iterdir()}
    return done


@pytest.fixture(scope="module")
def events(demo: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    path = Path(demo.stdout.splitlines()[-2].removeprefix("events: "))
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def complete(events: list[dict[str, Any]]) -> dict[str, Any]:
    start, *running, end = (event for event in events if event["job"]["name"] == "orders_medallion.build_gold")
    assert all(event["eventType"] == "RUNNING" for event in running)
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert end["job"]["namespace"] == "demo"
    return end


def _outputs(event: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {dataset["name"].partition("/d1/")[2]: dataset for dataset in event["outputs"]}


@pytest.mark.spark
def test_prints_what_was_done(demo: subprocess.CompletedProcess[str], complete: dict[str, Any]) -> None:
    evidence = complete["run"]["facets"]["sparkLineage_collection"]["evidence"]
    *shown, spark_events, events, picture = demo.stdout.splitlines()

    assert (int(spark_events.removeprefix("Spark events: ")) > len(ROWS)) is ("listener" in evidence)
    assert events.startswith("events: ")
    page = Path(picture.removeprefix("picture: ")).read_text()
    assert "<title>orders_medallion.build_gold</title>" in page
    assert "revenue_by_country" in page
    assert any("gold.revenue_by_country" in line for line in shown)


@pytest.mark.spark
def test_nothing_but_airflow_sends_events(events: list[dict[str, Any]], complete: dict[str, Any]) -> None:
    assert {event["job"]["name"] for event in events} == {"orders_medallion", complete["job"]["name"]}


@pytest.mark.spark
def test_inputs_and_outputs(complete: dict[str, Any]) -> None:
    inputs = {dataset["name"].partition("/d1/")[2] for dataset in complete["inputs"]}
    assert inputs == {"data/orders.csv", "data/customers.csv"}
    # What Marquez shows of names in a lake whose path is as short as it is for a user: 15 characters.
    names = [f"/tmp/d/{name}" for name in (*inputs, *ROWS)]  # noqa: S108 (nothing is written there)
    assert len({name[:15] for name in names}) == len(names)
    assert {
        name: output["outputFacets"]["outputStatistics"]["rowCount"] for name, output in _outputs(complete).items()
    } == ROWS


@pytest.mark.spark
def test_schemas_and_columns(complete: dict[str, Any]) -> None:
    columns = {
        name: {field["name"] for field in output["facets"]["schema"]["fields"]}
        for name, output in _outputs(complete).items()
    }
    traced = {name: set(output["facets"]["columnLineage"]["fields"]) for name, output in _outputs(complete).items()}

    assert columns["gold/top_customers"] == {"customer_id", "name", "revenue"}
    assert columns["gold.db/revenue_by_country"] == {"country", "revenue", "orders"}
    assert traced == columns
    assert all(
        "value" not in {field["name"] for field in each["facets"]["schema"]["fields"]} for each in complete["inputs"]
    )
