"""The operator in real DAG runs, with the real listener in a real driver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "modes.py"

DAG = """
from datetime import datetime, timedelta
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r}

def task(mode, **arguments):
    arguments.setdefault("conf", {{}})["spark.ui.enabled"] = "false"
    return LineageSparkSubmitOperator(
        task_id=arguments.pop("task_id", mode),
        application={program!r},
        application_args=[mode, HOME + "/orders.csv", HOME + "/out"],
        **arguments,
    )

with DAG("modes", start_date=datetime(2024, 1, 1), schedule=None, tags=["nightly"]):
    namespace = {{"spark.openlineage.namespace": "{{{{ dag.dag_id }}}}-cluster"}}
    task("success", lineage_tags={{"team": "sales"}}, conf=namespace)
    task("own", conf={{
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": HOME + "/own.ndjson",
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
    }})
    task("retry", retries=1, retry_delay=timedelta(seconds=0))
    task("no_jar", openlineage_jar="/nowhere/openlineage-spark.jar")
    task("required", openlineage_jar="/nowhere/openlineage-spark.jar", evidence="listener", lineage_required=True)

# What tests without Spark show, too.
with DAG("variants", start_date=datetime(2024, 1, 1), schedule=None):
    task("no_lineage")
    task("no_evidence", openlineage_jar="/nowhere/openlineage-spark.jar", evidence="listener")
    task("no_dir", lineage_dir="/proc/lineage")
    task("off", lineage_enabled=False)
"""

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.fixture(scope="module")
def log(airflow: Any) -> str:
    """What the DAG run printed; it runs once for all tests of this module."""
    return printed(airflow, "modes")


@pytest.fixture(scope="module")
def log_of_variants(airflow: Any) -> str:
    """What the run of the other DAG printed."""
    return printed(airflow, "variants")


def printed(airflow: Any, dag: str) -> str:
    source = DAG.format(home=str(airflow.home), program=str(PROGRAM))
    (airflow.home / "dags" / "modes.py").write_text(source)
    printed: str = airflow.command("dags", "test", dag)
    (airflow.home / f"{dag}.log").write_text(printed)
    return printed


def names(datasets: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in datasets]


def terminal(airflow: Any, task: str, dag: str = "modes") -> dict[str, Any]:
    """The one terminal event of a task that ran once: nothing else but START was sent for it."""
    events = airflow.events_of(f"{dag}.{task}")
    assert [event["eventType"] for event in events[:-1]] == ["START"], [event["eventType"] for event in events]
    last: dict[str, Any] = events[-1]
    return last


def test_success(airflow: Any, log: str) -> None:
    event = terminal(airflow, "success")
    assert event["eventType"] == "COMPLETE", log[-3000:]
    assert names(event["inputs"]) == [f"{airflow.home}/orders.csv"]
    (output,) = event["outputs"]
    assert output["name"] == f"{airflow.home}/out/success"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 20
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["order_id", "amount"]
    (source,) = output["facets"]["columnLineage"]["fields"]["amount"]["inputFields"]
    assert (source["name"], source["field"]) == (f"{airflow.home}/orders.csv", "amount")
    application = event["run"]["facets"]["sparkLineage_application"]["applications"][0]
    assert application["applicationId"].startswith("local-")
    assert application["namespace"] == "modes-cluster"
    assert application["name"] == "modes_success_spark"
    counts = event["run"]["facets"]["sparkLineage_collection"]
    assert counts["linesRead"] > 4
    assert counts["linesSetAside"] == 0


def test_without_the_jar_the_event_log_tells_the_same(airflow: Any, log: str) -> None:
    event, other = terminal(airflow, "no_jar"), terminal(airflow, "success")
    assert event["run"]["facets"]["sparkLineage_collection"]["evidence"] == ["event_log"]
    (output,), (as_both,) = event["outputs"], other["outputs"]
    assert (names(event["inputs"]), output["name"]) == (names(other["inputs"]), f"{airflow.home}/out/no_jar")
    assert output["facets"]["columnLineage"]["fields"] == as_both["facets"]["columnLineage"]["fields"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 20


def test_the_driver_names_the_task_as_its_parent(airflow: Any, log: str) -> None:
    (file,) = airflow.home.glob("spark_lineage/modes/*/success/-1/1-*/openlineage-events.ndjson")
    first = json.loads(file.read_text().splitlines()[0])
    start = airflow.events_of("modes.success")[0]
    parent = first["run"]["facets"]["parent"]
    assert parent["run"]["runId"] == start["run"]["runId"]
    assert parent["job"] == {"namespace": "test", "name": "modes.success"}
    assert parent["root"]["job"] == {"namespace": "test", "name": "modes"}
    assert parent["root"]["run"]["runId"] == start["run"]["facets"]["parent"]["run"]["runId"]
    assert [(tag["key"], tag["value"]) for tag in first["job"]["facets"]["tags"]["tags"]] == [("team", "sales")]
    # The listener tells where the event log is, and nothing else of the application's properties.
    told = {key for key in first["run"]["facets"]["spark_properties"]["properties"] if key.startswith("spark.")}
    assert told == {"spark.eventLog.dir"}
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_job_without_lineage(airflow: Any, log_of_variants: str) -> None:
    event = terminal(airflow, "no_lineage", "variants")
    assert (event["eventType"], event["inputs"], event["outputs"]) == ("COMPLETE", [], [])
    assert event["run"]["facets"]["sparkLineage_collection"]["linesRead"] >= 2


def test_the_users_own_transport_keeps_receiving(airflow: Any, log: str) -> None:
    event = terminal(airflow, "own")
    assert names(event["outputs"]) == [f"{airflow.home}/out/own"]
    (ours,) = airflow.home.glob("spark_lineage/modes/*/own/-1/1-*/openlineage-events.ndjson")
    own = (airflow.home / "own.ndjson").read_text()
    assert own == ours.read_text()
    assert "spark_properties" in own


def test_a_retry_is_a_run_of_its_own(airflow: Any, log: str) -> None:
    events = airflow.events_of("modes.retry")
    assert [event["eventType"] for event in events] == ["START", "FAIL", "START", "COMPLETE"]
    assert events[0]["run"]["runId"] == events[1]["run"]["runId"] != events[2]["run"]["runId"]
    assert events[2]["run"]["runId"] == events[3]["run"]["runId"]
    for event in (events[1], events[3]):
        assert names(event["outputs"]) == [f"{airflow.home}/out/retry"]
        assert event["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 20
    assert len(list(airflow.home.glob("spark_lineage/modes/*/retry/-1/[12]-*"))) == 2


@pytest.mark.parametrize(
    ("task", "cause"), [("no_evidence", "/nowhere/openlineage-spark.jar"), ("no_dir", "/proc/lineage")]
)
def test_trouble_with_lineage_does_not_fail_the_task(airflow: Any, log_of_variants: str, task: str, cause: str) -> None:
    event = terminal(airflow, task, "variants")
    assert (event["eventType"], event["inputs"], event["outputs"]) == ("COMPLETE", [], [])
    assert (airflow.home / "out" / task / "_SUCCESS").exists()
    lines = [line for line in log_of_variants.splitlines() if "The job runs without lineage" in line and cause in line]
    assert lines


def test_required_lineage_fails_the_task_before_it_submits(airflow: Any, log: str) -> None:
    assert terminal(airflow, "required")["eventType"] == "FAIL"
    assert not (airflow.home / "out" / "required").exists()
    assert "lineage_required is set, and there is no lineage" in log


def test_switched_off_it_is_the_stock_operator(airflow: Any, log_of_variants: str) -> None:
    event = terminal(airflow, "off", "variants")
    assert (event["eventType"], event["inputs"], event["outputs"]) == ("COMPLETE", [], [])
    assert (airflow.home / "out" / "off" / "_SUCCESS").exists()
    assert not list(airflow.home.glob("spark_lineage/variants/*/off"))


def test_no_secret_is_in_the_log_or_in_an_event(airflow: Any, log: str) -> None:
    assert "fails the first time" in log
    assert "hunter2" not in log
    assert "hunter2" not in (airflow.home / "events.ndjson").read_text()
    for file in airflow.home.rglob("openlineage-events.ndjson"):
        assert "hunter2" not in file.read_text()
