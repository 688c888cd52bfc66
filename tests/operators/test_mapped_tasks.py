"""Mapped tasks of one operator that run at the same time, in the processes of a real executor."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from http_server import Handler, serving

PROGRAM = Path(__file__).parent / "programs" / "rendezvous.py"

DAG = """
from datetime import datetime
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r}

with DAG("mapped", start_date=datetime(2024, 1, 1), schedule=None):
    LineageSparkSubmitOperator.partial(
        task_id="copy",
        application={program!r},
        conf={{"spark.ui.enabled": "false"}},
        poll_interval_seconds=1,
    ).expand(application_args=[[HOME + "/orders.csv", HOME + "/mapped", name, "2"] for name in "ab"])
"""

LAUNCHES = "spark_lineage/mapped/*/copy/{}/1-*/openlineage-events.ndjson"

pytestmark = [pytest.mark.spark, pytest.mark.truth, pytest.mark.shares("airflow")]


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """The paths that were asked for where the jar lies."""
    return []


@pytest.fixture(scope="module")
def jar_url(fast_spark: Any, asked: list[str]) -> Iterator[str]:
    """Where the listener jar lies, on a server that takes as long for it as the others take to come."""
    jar = next(fast_spark.jar_cache.rglob("openlineage-spark_2.13-*.jar"))

    class Slow(Handler):
        def do_GET(self) -> None:
            asked.append(self.path)
            time.sleep(2)
            self.answer(jar.read_bytes())

    with serving(Slow) as url:
        yield f"{url}/{jar.name}"


@pytest.fixture(scope="module")
def home(executing_airflow: Any, background: Any, jar_url: str) -> Path:
    """The Airflow home after one run of the DAG, which began with no listener jar in the cache."""
    home: Path = executing_airflow.home
    env = executing_airflow.env | {
        "AIRFLOW__SPARK_LINEAGE__OPENLINEAGE_JAR": jar_url,
        "AIRFLOW__SPARK_LINEAGE__EVIDENCE": "both",
        "XDG_CACHE_HOME": str(home / "mapped-jars"),
    }
    (home / "dags" / "mapped.py").write_text(DAG.format(home=str(home), program=str(PROGRAM)))
    background.logs.append((home / "logs" / "dag_id=mapped", "**/*.log"))
    command = [sys.executable, "-m", "airflow", "dags", "test", "--use-executor", "mapped"]
    process = background.start("dags-test", command, env)
    background.wait_for("the DAG run", lambda: process.poll() is not None)
    return home


@pytest.fixture(scope="module")
def events(executing_airflow: Any, home: Path, background: Any) -> dict[str, list[dict[str, Any]]]:
    """The events of the task by run id: one run for each mapped task."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for event in executing_airflow.events_of("mapped.copy"):
        runs.setdefault(event["run"]["runId"], []).append(event)
    assert len(runs) == 2, background.tails
    launches = sorted(file.parent.parent.name for file in home.glob(LAUNCHES.format("*")))
    assert launches == ["0", "1"], background.tails
    return runs


def event_time(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["eventTime"])


def spark_events(home: Path, map_index: int) -> list[dict[str, Any]]:
    """What the driver of one mapped task wrote."""
    (file,) = home.glob(LAUNCHES.format(map_index))
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_mapped_task_has_one_event_of_its_own(
    home: Path, events: dict[str, list[dict[str, Any]]], background: Any
) -> None:
    for map_index, name in enumerate("ab"):
        run_id = spark_events(home, map_index)[0]["run"]["facets"]["parent"]["run"]["runId"]
        run = events[run_id]
        assert [event["eventType"] for event in run] == ["START", "COMPLETE"], background.tails
        assert [dataset["name"] for dataset in run[1]["inputs"]] == [f"{home}/orders.csv"]
        assert [dataset["name"] for dataset in run[1]["outputs"]] == [f"{home}/mapped/{name}"]
        assert run[1]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 20
        counts = run[1]["run"]["facets"]["sparkLineage_collection"]
        assert counts["linesSetAside"] == 0
        assert counts["linesRead"] == len(spark_events(home, map_index))


def test_they_really_ran_at_the_same_time(home: Path, events: dict[str, list[dict[str, Any]]]) -> None:
    drivers = [[event_time(event) for event in spark_events(home, map_index)] for map_index in range(2)]
    tasks = [[event_time(event) for event in run] for run in events.values()]
    for times in (drivers, tasks):
        assert max(min(each) for each in times) < min(max(each) for each in times)


def test_the_listener_jar_is_fetched_once_for_all(home: Path, asked: list[str]) -> None:
    assert len(list((home / "mapped-jars").rglob("*.jar"))) == 1
    assert len(asked) == 1
