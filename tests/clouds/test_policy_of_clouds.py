"""One DAG with the stock operators of all clouds, which the policy gives lineage, by ``airflow dags test``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from databricks_server import DatabricksServer
from real_spark import environment
from service_jobs import PROGRAM

if TYPE_CHECKING:
    from airflow_home import Airflow
    from fast_spark import FastSpark

pytestmark = [
    *(pytest.mark.spark, pytest.mark.clouds),
    # Of the providers' own modules.
    pytest.mark.filterwarnings("ignore"),
]
PLUGINS = [Path(__file__).parents[1] / name for name in ("plugins", "backends")]
POLICY = """
import contextlib
from dataproc_server import connect
connect()
with contextlib.suppress(ModuleNotFoundError):
    from spark_lineage.policy import task_policy
"""
# What a scheduler does every five minutes.
LOST = """
import sys, msgspec
from spark_lineage.recover.search import lost_within
sys.stdout.buffer.write(msgspec.json.encode(lost_within(1)))
"""
LAKE, DISK = ("serverless", "eks", "glue", "first", "second"), ("job", "batch", "run")
ENDS = {
    **{f"clouds.{name}": "COMPLETE" for name in ("serverless", "glue", *DISK)},
    "clouds.eks": "FAIL",
    "first@clouds.steps": "COMPLETE",
    "second@clouds.steps": "FAIL",
}


@pytest.fixture
def shop(aws: Any, airflow: Airflow) -> dict[str, str]:
    """What the DAG uses, with orders for each of its jobs."""
    home, orders = airflow.home, '{"id": 1, "amount": 20}'
    for name in LAKE:
        aws.client("s3").put_object(Bucket=aws.bucket, Key=f"lake/{name}/orders/part.json", Body=orders.encode())
    for name in DISK:
        (home / name / "orders").mkdir(parents=True)
        (home / name / "orders" / "part.json").write_text(orders)
    serverless = aws.client("emr-serverless")
    application = serverless.create_application(name="shop", releaseLabel="emr-7.9.0", type="SPARK")["applicationId"]
    serverless.start_application(applicationId=application)
    eks = {"type": "EKS", "id": aws.bucket, "info": {"eksInfo": {"namespace": aws.bucket}}}
    virtual = aws.client("emr-containers").create_virtual_cluster(name=aws.bucket, containerProvider=eks)
    instances = {"MasterInstanceType": "m5.xlarge", "InstanceCount": 1, "KeepJobFlowAliveWhenNoSteps": True}
    roles = {"JobFlowRole": "r", "ServiceRole": "r"}
    cluster = aws.client("emr").run_job_flow(Name="shop", ReleaseLabel="emr-7.9.0", Instances=instances, **roles)
    command = {"Name": "glueetl", "ScriptLocation": str(PROGRAM)}
    aws.client("glue").create_job(Name=aws.bucket, Role="r", Command=command)
    return {
        "program": str(PROGRAM),
        "lake": aws.lake,
        "home": str(home),
        "application": application,
        "virtual_cluster": virtual["id"],
        "cluster": cluster["JobFlowId"],
        "glue": aws.bucket,
    }


def test_each_task_of_a_dag_has_its_own_lineage(
    aws: Any, shop: dict[str, str], airflow: Airflow, fast_spark: FastSpark, tmp_path: Path
) -> None:
    from dataproc_server import DataprocServer

    home = airflow.home
    for name in ("config", "logs", "spark-events"):
        (home / name).mkdir(exist_ok=True)
    (home / "config" / "airflow_local_settings.py").write_text(POLICY)
    shutil.copy(Path(__file__).with_name("dag_of_clouds.py"), home / "dags")
    env = environment(fast_spark)
    bricks = DatabricksServer(env, tmp_path)
    with DataprocServer(env, tmp_path).running() as address, bricks.running() as port:
        disk = {"event_log_dir": str(home / "spark-events")}
        databricks = {"conn_type": "databricks", "host": "127.0.0.1", "schema": "http", "port": port, "password": "t"}
        google = {"conn_type": "google_cloud_platform", "extra": {"is_anonymous": True, **disk}}
        of_task = {
            **airflow.env,
            **aws.bench.env,
            "PYTHONPATH": os.pathsep.join([airflow.env["PYTHONPATH"], *map(str, PLUGINS)]),
            "DATAPROC_SERVER": address,
            "AIRFLOW_CONN_GCP": json.dumps(google),
            "AIRFLOW_CONN_BRICKS": json.dumps({**databricks, "extra": disk}),
            "SHOP": json.dumps(shop),
        }
        printed = python(of_task, "-m", "airflow", "dags", "test", "clouds")
    until = time.monotonic() + 60
    # A task that fails fails the DAG run; the sensor waits for a step that fails.
    while not airflow.events_of("second@clouds.steps")[1:]:
        assert time.monotonic() < until, printed
        python(of_task, "-m", "spark_lineage.recover", given=python(of_task, "-c", LOST))
    jobs = {event["job"]["name"] for event in airflow.events}
    assert jobs == {"clouds", "clouds.steps", "clouds.waiting", *ENDS}, printed
    for job, end in ENDS.items():
        assert [one["eventType"] for one in airflow.events_of(job)] == ["START", end], printed
        name = job.split("@")[0].removeprefix("clouds.")
        root, namespace = (f"lake/{name}", f"s3://{aws.bucket}") if name in LAKE else (f"{home}/{name}", "file")
        ended = airflow.events_of(job)[-1]
        assert [(one["namespace"], one["name"]) for one in ended["inputs"]] == [(namespace, f"{root}/orders")]
        (output,) = ended["outputs"]
        assert (output["namespace"], output["name"]) == (namespace, f"{root}/doubled")
        fields = output["facets"]["columnLineage"]["fields"]
        assert [one["field"] for one in fields["doubled"]["inputFields"]] == ["amount"]
    of_task = airflow.events_of("clouds.steps")
    assert [(one["eventType"], one["outputs"]) for one in of_task] == [("START", []), ("COMPLETE", [])]
    for name in ("first", "second"):
        parent = airflow.events_of(f"{name}@clouds.steps")[-1]["run"]["facets"]["parent"]
        assert parent["run"]["runId"] == of_task[-1]["run"]["runId"]


def python(env: dict[str, str], *arguments: str, given: str = "") -> str:
    """Run Python, and return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments], env=env, input=given, capture_output=True, text=True, timeout=300, check=False
    )
    if arguments[0] == "-c":
        assert done.returncode == 0, done.stderr
        return done.stdout
    return f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
