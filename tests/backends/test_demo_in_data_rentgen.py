"""The demo's DAG in a real Airflow, into real Data.Rentgens by Kafka and by HTTP, in runs of all four kinds."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lineage_backends.airflow_home import REPOSITORY, AirflowHome, airflow_home
from lineage_backends.connections import to_data_rentgen, to_kafka, to_strict
from lineage_backends.data_rentgen import DataRentgen
from lineage_backends.data_rentgen import data_rentgen as run_data_rentgen
from lineage_backends.http_backend import OpenLineageBackend, openlineage_backend

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from lineage_backends.kafka import Kafka
    from lineage_backends.postgresql import PostgreSql

EXAMPLES = REPOSITORY / "dags_example"
BACKFILLED = date(2024, 3, 5)
RUN_SECONDS = 600
KINDS = {"manual": "MANUAL", "scheduled": "AUTOMATIC", "backfill": "AUTOMATIC", "asset_triggered": "AUTOMATIC"}
INPUTS = {"orders.csv", "customers.csv"}
OUTPUTS = {
    "bronze/orders", "bronze/customers", "silver.db/orders", "silver/customers",
    "gold.db/revenue_by_country", "gold/top_customers",
}  # fmt: skip

# Each is the demo's DAG but for its schedule and its name.
SCHEDULES = {
    "orders_manual": "None",
    "orders_daily_medallion": '"@daily"',
    "orders_on_asset": '[__import__("airflow.sdk").sdk.Asset(name="delivered", uri="file:///delivered")]',
}
PRODUCER = """
from airflow.sdk import DAG, Asset, task

with DAG("delivery", schedule=None):

    @task(outlets=[Asset(name="delivered", uri="file:///delivered")])
    def deliver():
        pass

    deliver()
"""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.shares("kafka"),
]  # test_data_rentgen sends it what was recorded


@dataclass
class Ran:
    """The Airflow in which the runs were, what they told, and where it arrived."""

    airflow: AirflowHome
    strict: OpenLineageBackend
    rentgens: dict[str, DataRentgen]
    """By the way that the events took: kafka, and http where that version takes HTTP."""

    def ends(self) -> dict[str, dict[str, Any]]:
        """The last event of the task in each run, by the kind of the run, which is in the name of its lake."""
        found: dict[str, dict[str, Any]] = {}
        for event in self.strict.events:
            dag_id, _, task_id = event["job"]["name"].partition(".")
            if event["eventType"] == "COMPLETE" and dag_id in SCHEDULES and task_id:
                found[event["outputs"][0]["name"].rpartition("/lake/")[2].partition("/")[0]] = event
        return found


@pytest.fixture(scope="module")
def ran(
    data_rentgen: DataRentgen,
    kafka: Kafka,
    postgresql: PostgreSql,
    tmp_path_factory: pytest.TempPathFactory,
    fast_spark: FastSpark,
    airflow_database: Path,
) -> Iterator[Ran]:
    home = tmp_path_factory.mktemp("airflow")
    _write_dags(home / "dags")
    with openlineage_backend() as strict, run_data_rentgen(postgresql, kafka, "input.http") as second:
        connections = {"strict": to_strict(strict), "kafka": to_kafka(kafka, data_rentgen.topic)}
        rentgens = {"kafka": data_rentgen}
        if second.http2kafka_url is not None:
            connections["http"] = to_data_rentgen(second)
            rentgens["http"] = second
        for rentgen in rentgens.values():
            rentgen.create_partitions(BACKFILLED.replace(day=1), BACKFILLED.replace(month=BACKFILLED.month + 1, day=1))
        env = {
            **fast_spark.env,
            "XDG_CACHE_HOME": str(fast_spark.caches),
            "SPARK_LINEAGE_EXAMPLE_LAKE": str(home / "lake"),
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "demo",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(home / "event")}),
            "AIRFLOW__SPARK_LINEAGE__LINEAGE_CONN_ID": ";".join(connections),
            "AIRFLOW__SPARK_LINEAGE__DELIVERY_TIMEOUT_SECONDS": "30",
            **{f"AIRFLOW_CONN_{name.upper()}": connection for name, connection in connections.items()},
        }
        with airflow_home(home, env, airflow_database) as airflow:
            airflow.wait_for_dags(*SCHEDULES, "delivery")
            airflow.command("dags", "trigger", "orders_manual")
            airflow.command("dags", "trigger", "delivery")
            days = ["--from-date", BACKFILLED.isoformat(), "--to-date", BACKFILLED.isoformat()]
            airflow.command("backfill", "create", "--dag-id", "orders_daily_medallion", *days)
            airflow.schedule()
            _wait_for_runs(airflow)
            yield Ran(airflow, strict, rentgens)


def _write_dags(folder: Path) -> None:
    shutil.copytree(EXAMPLES / "spark_jobs", folder / "spark_jobs")
    shutil.copytree(EXAMPLES / "data", folder / "data")
    text = (EXAMPLES / "orders_medallion.py").read_text()
    for dag_id, schedule in SCHEDULES.items():
        own = text.replace('dag_id="orders_medallion"', f'dag_id="{dag_id}"')
        own = own.replace("schedule=None", f"schedule={schedule}")
        # Runs of one DAG are at work at the same time: a lake for each.
        own = own.replace("{{ params.lake }}", "{{ params.lake }}/{{ run_id.split('__')[0] }}")
        assert own.count(dag_id) == 1
        assert own.count("{{ run_id.split('__')[0] }}") == 2
        (folder / f"{dag_id}.py").write_text(own)
    (folder / "delivery.py").write_text(PRODUCER)


def _wait_for_runs(airflow: AirflowHome) -> None:
    deadline = time.monotonic() + RUN_SECONDS
    while True:
        runs = airflow.rows("SELECT run_type, state FROM dag_run WHERE dag_id LIKE 'orders_%'")
        assert "failed" not in {state for _, state in runs}, [runs, _logs(airflow.home)]
        if Counter(runs) == Counter((kind, "success") for kind in KINDS):
            return
        assert time.monotonic() < deadline, [runs, _logs(airflow.home)]
        time.sleep(1)


def _logs(home: Path) -> str:
    """The ends of the tasks' logs."""
    paths = sorted(home.glob("logs/dag_id=orders_*/**/*.log"))
    return "\n".join(path.read_text(errors="replace")[-3000:] for path in paths)


def _short(names: Any, lake: str) -> set[str]:
    """Names of inputs below the examples' data, of outputs below the run's lake."""
    return {re.sub(rf".*/(data|lake/{lake})/", "", name) for name in names}


def test_every_event_is_right(ran: Ran) -> None:
    assert [(each.reason, each.event) for each in ran.strict.refused] == []
    assert set(ran.ends()) == set(KINDS)


@pytest.mark.parametrize("way", ["kafka", "http"])
@pytest.mark.parametrize("kind", KINDS)
def test_data_rentgen_gives_inputs_outputs_and_columns(ran: Ran, kind: str, way: str) -> None:
    if way not in ran.rentgens:
        assert ran.rentgens["kafka"].version == "0.3.1"  # without HTTP; the strict one has had it so
        return
    rentgen = ran.rentgens[way]
    run_id = ran.ends()[kind]["run"]["runId"]
    run = rentgen.ended_run(run_id)
    assert (run["status"], run["start_reason"]) == ("SUCCEEDED", KINDS[kind])
    assert run["external_id"].startswith(kind)
    lineage = rentgen.lineage(run_id)
    assert _short(lineage.inputs, kind) == INPUTS
    assert _short(lineage.outputs, kind) == OUTPUTS
    columns = {
        (name.rpartition("/")[2], column): {(source.rpartition("/")[2], field) for source, field in fed}
        for (name, column), fed in lineage.columns.items()
    }
    assert columns["revenue_by_country", "country"] == {("customers.csv", "country")}
    assert columns["revenue_by_country", "revenue"] == {("orders.csv", "quantity"), ("orders.csv", "unit_price")}
    assert columns["top_customers", "name"] == {("customers.csv", "name")}
