"""One DAG with stock operators of Dataproc and Databricks, which the policy gives lineage, by ``airflow dags test``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from databricks_server import DatabricksServer
from real_spark import environment
from service_jobs import PROGRAM

if TYPE_CHECKING:
    from fast_spark import FastSpark

pytestmark = [
    *(pytest.mark.spark, pytest.mark.clouds),
    # Of the providers' own modules.
    pytest.mark.filterwarnings("ignore"),
]
PLUGINS = [Path(__file__).parents[1] / name for name in ("plugins", "backends")]
SETTINGS = """
import contextlib
from dataproc_server import connect
connect()
with contextlib.suppress(ModuleNotFoundError):
    from spark_lineage.policy import task_policy
"""
DAG = """
from datetime import datetime
from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator
from airflow.providers.google.cloud.operators.dataproc import DataprocCreateBatchOperator, DataprocSubmitJobOperator
from airflow.sdk import DAG

def program(name):
    return {{"main_python_file_uri": {program!r}, "args": [{home!r} + "/" + name, "succeed"]}}

google = {{"gcp_conn_id": "gcp", "region": "local", "project_id": "shop"}}
with DAG("clouds", start_date=datetime(2024, 1, 1), schedule=None):
    job = {{"placement": {{"cluster_name": "c"}}, "pyspark_job": program("job")}}
    python = {{"python_file": {program!r}, "parameters": [{home!r} + "/run", "succeed"]}}
    (
        DataprocSubmitJobOperator(task_id="job", job=job, **google)
        >> DataprocCreateBatchOperator(task_id="batch", batch={{"pyspark_batch": program("batch")}}, **google)
        >> DatabricksSubmitRunOperator(
            task_id="run", databricks_conn_id="bricks", polling_period_seconds=1,
            new_cluster={{"num_workers": 1}}, spark_python_task=python,
        )
    )
"""


def test_each_task_of_a_dag_is_one_job(airflow: Any, fast_spark: FastSpark, tmp_path: Path) -> None:
    from dataproc_server import DataprocServer

    home: Path = airflow.home
    (home / "config").mkdir(exist_ok=True)
    (home / "config" / "airflow_local_settings.py").write_text(SETTINGS)
    (home / "dags" / "clouds.py").write_text(DAG.format(program=str(PROGRAM), home=str(home)))
    (home / "logs").mkdir(exist_ok=True)
    for name in ("job", "batch", "run"):
        (home / name / "orders").mkdir(parents=True)
        (home / name / "orders" / "part.json").write_text('{"id": 1, "amount": 20}')
    (home / "spark-events").mkdir()
    env = environment(fast_spark)
    bricks = DatabricksServer(env, tmp_path)
    with DataprocServer(env, tmp_path).running() as address, bricks.running() as port:
        databricks = {"conn_type": "databricks", "host": "127.0.0.1", "schema": "http", "port": port, "password": "t"}
        google = {"conn_type": "google_cloud_platform", "extra": {"is_anonymous": True}}
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "dags", "test", "clouds"],
            env={
                **airflow.env,
                "PYTHONPATH": os.pathsep.join([airflow.env["PYTHONPATH"], *map(str, PLUGINS)]),
                "DATAPROC_SERVER": address,
                "AIRFLOW_CONN_GCP": json.dumps(google),
                "AIRFLOW_CONN_BRICKS": json.dumps(databricks),
                "AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": str(home / "spark-events"),
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    jobs = {event["job"]["name"] for event in airflow.events} - {"clouds"}
    assert jobs == {"clouds.job", "clouds.batch", "clouds.run"}
    for name in ("job", "batch", "run"):
        ended = airflow.events_of(f"clouds.{name}")[-1]
        assert ended["eventType"] == "COMPLETE"
        assert [one["name"] for one in ended["inputs"]] == [str(home / name / "orders")]
        (output,) = ended["outputs"]
        assert output["name"] == str(home / name / "doubled")
        fields = output["facets"]["columnLineage"]["fields"]
        assert [one["field"] for one in fields["doubled"]["inputFields"]] == ["amount"]
