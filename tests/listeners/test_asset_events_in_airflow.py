"""A real Airflow, on SQLite: what a job really wrote makes asset events, and these trigger a DAG."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DAGS = '''
from airflow.sdk import DAG, Asset, AssetAlias, BaseOperator

from spark_lineage.merge.lineage import DatasetLineage, Statistics, TaskLineage, Write
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.context import listener_context
from spark_lineage.notify.job_events import JobEvents
from spark_lineage.notify.notifications import Notifications
from spark_lineage.settings import Settings

WRITTEN = [("file", "/wh/orders"), ("s3://lake", "gold/report"), ("postgres://db:5432", "shop.public.orders")]


class Job(BaseOperator):
    """Ends as a Spark job does whose lineage names three outputs."""

    def __init__(self, *, is_failing=False, **kwargs):
        super().__init__(**kwargs)
        self.is_failing = is_failing

    def execute(self, context):
        listeners = listener_context(context, configuration={}, options={}, logger=self.log)
        settings = Settings(
            job_status_listeners=("spark_lineage.listeners.asset_listener.AssetListener",), listener_timeout_seconds=60
        )
        notifications = Notifications(listeners, JobEvents(listeners.task, "ns", "job"), settings)
        outputs = tuple(
            DatasetLineage(DatasetName(*name), statistics=Statistics(3, 30, 1), writes=(Write("INSERT"),))
            for name in WRITTEN
        )
        state = "FAIL" if self.is_failing else "COMPLETE"
        notifications.ended(state, TaskLineage(state, outputs=outputs), "")
        notifications.close()
        if self.is_failing:
            raise RuntimeError("failed after it had written")


with DAG("writer", schedule=None):
    Job(task_id="job", outlets=[AssetAlias("spark"), Asset(name="report", uri="s3://lake/gold/report")])
    Job(task_id="failing", outlets=[AssetAlias("spark")], is_failing=True)

# Airflow knows this one by a name of its own.
with DAG("reader", schedule=[Asset(name="orders", uri="file:///wh/orders")]):
    BaseOperator(task_id="read")

with DAG("alias_reader", schedule=AssetAlias("spark")):
    BaseOperator(task_id="read")
'''


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, airflow_database: Path, warm_python: Any) -> Path:
    """The home of an Airflow in which both tasks have run."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    (home / "dags" / "dags.py").write_text(DAGS)
    shutil.copy(airflow_database, home / "airflow.db")
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")},
        "PYTHONPATH": os.pathsep.join(str(ROOT / root) for root in ("provider", "operators", "listeners")),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
    }
    done = warm_python.run("-m", "airflow", "dags", "test", "writer", env=env, is_one_stream=True)
    assert "No asset events: Airflow accepts only those of a task that succeeds." in done.stdout, done.stdout
    assert "Asset events if the task succeeds: 3" in done.stdout, done.stdout
    return home


def rows(home: Path, query: str) -> list[Any]:
    with sqlite3.connect(home / "airflow.db") as database:
        found = database.execute(query).fetchall()
    database.close()
    return found


def test_what_was_written_makes_events_and_a_task_that_fails_makes_none(home: Path) -> None:
    events = rows(
        home,
        "select name, uri, source_task_id, e.extra from asset_event e join asset a on a.id = e.asset_id order by 1",
    )
    assert [event[:3] for event in events] == [
        ("orders", "file:///wh/orders", "job"),
        ("postgres://db:5432/shop/public/orders", "postgres://db:5432/shop/public/orders", "job"),
        ("report", "s3://lake/gold/report", "job"),
    ]
    assert [json.loads(event[3])["row_count"] for event in events] == [3, 3, 3]


def test_they_trigger_dags(home: Path) -> None:
    triggered = rows(home, "select distinct target_dag_id from asset_dag_run_queue order by 1")
    assert triggered == [("alias_reader",), ("reader",)]
