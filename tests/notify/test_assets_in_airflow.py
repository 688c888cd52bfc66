"""A real Airflow, on SQLite: what a task has written makes asset events without outlets, and these trigger a DAG."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from airflow_home import IS_AIRFLOW_2

pytestmark = [pytest.mark.oldest, pytest.mark.truth]

ROOT = Path(__file__).parents[2]
DAGS = '''
from datetime import datetime

from airflow.providers.common.compat.sdk import DAG, Asset, AssetAlias, BaseOperator

from spark_lineage.merge.lineage import DatasetLineage, SchemaField, Statistics, TaskLineage, Write
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.assets import emit_assets


class Job(BaseOperator):
    """Ends as a Spark job does whose lineage names these outputs."""

    def __init__(self, *, written, is_failing=False, **kwargs):
        super().__init__(**kwargs)
        self.written, self.is_failing = written, is_failing

    def execute(self, context):
        outputs = tuple(
            DatasetLineage(
                DatasetName("file" if name.startswith("/") else "s3://lake", name),
                schema=(SchemaField("id", "bigint"), SchemaField("day", "date")),
                statistics=Statistics(3, 30, 1),
                writes=(Write("INSERT"),),
            )
            for name in self.written
        )
        emit_assets(TaskLineage("COMPLETE", outputs=outputs), context, self.log)
        if self.is_failing:
            raise RuntimeError("failed after it had written")


OTHER = {"name": "orders"} if hasattr(Asset, "ref") else {}
START = datetime(2024, 1, 1)
with DAG("writer", start_date=START, schedule=None):
    Job(task_id="job", written=["/wh/orders", "gold/größe"])
    Job(task_id="declaring", written=["gold/report"], outlets=[Asset(uri="s3://lake/gold/report")])
    Job.partial(task_id="mapped").expand(written=[["/wh/orders"]])
    Job(task_id="failing", written=["/wh/failed"], is_failing=True)

# Airflow 3 knows this one by a name of its own.
with DAG("reader", start_date=START, schedule=[Asset(uri="file:///wh/orders", **OTHER)]):
    BaseOperator(task_id="read")

with DAG("never", start_date=START, schedule=[Asset(uri="file:///wh/failed")]):
    BaseOperator(task_id="read")
'''
EXTRA = {"namespace": "file", "name": "/wh/orders", "row_count": 3, "size": 30, "columns": ["id", "day"]}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, airflow_database: Path, warm_python: Any) -> Path:
    """The home of an Airflow in which the tasks have run."""
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
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
    }
    if IS_AIRFLOW_2:
        # Airflow 3 does it in the next command.
        warm_python.run("-m", "airflow", "dags", "reserialize", env=env, is_one_stream=True)
    done = warm_python.run("-m", "airflow", "dags", "test", "writer", env=env, is_one_stream=True)
    assert "failed after it had written" in done.stdout, done.stdout
    return home


def rows(home: Path, query: str) -> list[Any]:
    """Ask the database; its tables have another name in Airflow 2."""
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        return database.execute(query.replace("asset", "dataset") if IS_AIRFLOW_2 else query).fetchall()


def test_what_was_written_makes_events_and_a_task_that_fails_makes_none(home: Path) -> None:
    found = rows(home, "select uri, source_task_id, e.extra from asset_event e join asset a on a.id = e.asset_id")
    # Airflow 2 makes none of a dataset that no DAG names.
    unknown = [] if IS_AIRFLOW_2 else [("s3://lake/gold/gr%C3%B6%C3%9Fe", "job")]
    assert sorted((uri, task) for uri, task, _ in found) == [
        ("file:///wh/orders", "job"),
        ("file:///wh/orders", "mapped"),
        *unknown,
        ("s3://lake/gold/report", "declaring"),
    ]
    assert [json.loads(extra) for uri, task, extra in found if task == "mapped"] == [EXTRA]


def test_they_trigger_dags(home: Path) -> None:
    assert rows(home, "select distinct target_dag_id from asset_dag_run_queue") == [("reader",)]


def test_every_task_that_should_has_succeeded(home: Path) -> None:
    states = dict(rows(home, "select task_id, state from task_instance where dag_id = 'writer'"))
    assert states == {"job": "success", "declaring": "success", "mapped": "success", "failing": "failed"}
