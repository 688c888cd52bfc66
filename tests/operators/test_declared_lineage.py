"""Declared lineage in real DAG runs: by the program and by the DAG, beside what the listener sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "declares.py"

DAG = """
from datetime import datetime
from airflow.providers.common.compat.sdk import DAG
from airflow.sdk import Asset
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HOME = {home!r}

with DAG({mode!r}, start_date=datetime(2024, 1, 1), schedule=None):
    LineageSparkSubmitOperator(
        task_id="task",
        application={program!r},
        application_args=[{mode!r}, HOME + "/orders.csv", HOME + "/out"],
        conf={{"spark.ui.enabled": "false"}},
        py_files=HOME + "/mine.py",
        inlets=[Asset("s3://landing/orders/"), "just a name"],
        outlets=[Asset("file://" + HOME + "/out/{mode}"), Asset("file://" + HOME + "/promised")],
    )
"""

pytestmark = [pytest.mark.spark, pytest.mark.truth]


MODES = ["declares", pytest.param("declares_and_fails", marks=pytest.mark.nightly)]


@pytest.fixture(scope="module", params=MODES)
def mode(request: Any) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def log(airflow: Any, mode: str) -> str:
    """What the DAG run of a mode printed."""
    (airflow.home / "mine.py").write_text("")
    source = DAG.format(home=str(airflow.home), program=str(PROGRAM), mode=mode)
    (airflow.home / "dags" / f"{mode}.py").write_text(source)
    printed: str = airflow.command("dags", "test", mode)
    (airflow.home / f"{mode}.log").write_text(printed)
    return printed


def lineage(airflow: Any, mode: str, log: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The terminal event of a mode, its inputs by name, and its outputs by name."""
    events = airflow.events_of(f"{mode}.task")
    assert [event["eventType"] for event in events[:-1]] == ["START"], log[-4000:]
    event = events[-1]
    by_name = ({f"{one['namespace']} {one['name']}": one for one in event[kind]} for kind in ("inputs", "outputs"))
    return event, *by_name


def test_declared_and_observed_lineage_are_one(airflow: Any, log: str, mode: str) -> None:
    _, inputs, outputs = lineage(airflow, mode, log)
    orders, rates = f"file {airflow.home}/orders.csv", "https://rates.example.com /latest"
    assert inputs.keys() == {orders, rates, "s3://landing orders"}
    assert outputs.keys() - {f"file {airflow.home}/promised"} == {
        f"file {airflow.home}/out/{mode}",
        "postgres://warehouse:5432 shop.public.totals",
    }
    both = outputs[f"file {airflow.home}/out/{mode}"]
    assert both["outputFacets"]["outputStatistics"]["rowCount"] == 20
    columns = [(field["name"], field["type"]) for field in both["facets"]["schema"]["fields"]]
    assert columns == [("order_id", "integer"), ("amount", "integer")]
    sources = both["facets"]["columnLineage"]["fields"]["amount"]["inputFields"]
    assert {(one["name"], one["field"]) for one in sources} == {
        (f"{airflow.home}/orders.csv", "amount"),
        ("/latest", "rate"),
    }
    totals = outputs["postgres://warehouse:5432 shop.public.totals"]
    assert totals["outputFacets"]["outputStatistics"]["rowCount"] == 1
    composed = totals["facets"]["columnLineage"]["fields"]["total"]["inputFields"]
    assert sorted(one["field"] for one in composed) == ["amount", "rate"]


def test_outlets_are_promises_that_a_failed_task_has_not_kept(airflow: Any, log: str, mode: str) -> None:
    promised = f"{airflow.home}/promised"
    event, _, outputs = lineage(airflow, mode, log)
    attempted = event["run"]["facets"].get("sparkLineage_attemptedOutputs", {"outputs": []})["outputs"]
    if mode == "declares":
        assert event["eventType"] == "COMPLETE"
        assert f"file {promised}" in outputs
        assert attempted == []
    else:
        assert event["eventType"] == "FAIL"
        assert f"file {promised}" not in outputs
        assert attempted == [{"namespace": "file", "name": promised, "reason": "unfinished"}]


def test_the_program_writes_beside_the_listener_and_names_the_application_as_its_parent(
    airflow: Any, log: str, mode: str
) -> None:
    (folder,) = airflow.home.glob(f"spark_lineage/{mode}/*/task/-1/1-*")
    declared, listened = sorted(file.name for file in folder.glob("*.ndjson"))
    assert (declared[:9], listened) == ("declared-", "openlineage-events.ndjson")
    lines = [json.loads(line) for line in (folder / declared).read_text().splitlines()]
    assert len(lines) == 6  # two for each call in the driver, and none for those on executors
    first = json.loads((folder / listened).read_text().splitlines()[0])
    assert {line["run"]["facets"]["parent"]["run"]["runId"] for line in lines} == {first["run"]["runId"]}
    assert "hunter2" not in (folder / declared).read_text()
    assert "/mine.py,***" not in log
    assert f"{airflow.home}/mine.py,{folder}/spark_lineage_declare.zip" in log
