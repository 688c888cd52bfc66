"""A DAG with stock operators of each cloud, and nothing of lineage; ``SHOP`` in its environment names what they use."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

from airflow.providers.amazon.aws.operators.emr import (
    EmrAddStepsOperator,
    EmrContainerOperator,
    EmrServerlessStartJobOperator,
)
from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.providers.amazon.aws.sensors.emr import EmrStepSensor
from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator
from airflow.providers.google.cloud.operators.dataproc import DataprocCreateBatchOperator, DataprocSubmitJobOperator
from airflow.sdk import DAG

shop: dict[str, Any] = json.loads(os.environ["SHOP"])
ROLE = "arn:aws:iam::123456789012:role/shop"
google = {"gcp_conn_id": "gcp", "region": "local", "project_id": "shop"}
waiting = {"aws_conn_id": "shop_aws", "waiter_delay": 1, "waiter_max_attempts": 200}


def at_google(name: str) -> dict[str, Any]:
    return {"main_python_file_uri": shop["program"], "args": [f"{shop['home']}/{name}", "succeed"]}


def step(name: str, how: str) -> dict[str, Any]:
    words = ["spark-submit", shop["program"], f"{shop['lake']}/{name}", how]
    jar = {"Jar": "command-runner.jar", "Args": words}
    return {"Name": name, "ActionOnFailure": "CONTINUE", "HadoopJarStep": jar}


with DAG("clouds", start_date=datetime(2024, 1, 1, tzinfo=UTC), schedule=None):
    EmrServerlessStartJobOperator(
        task_id="serverless",
        application_id=shop["application"],
        execution_role_arn=ROLE,
        job_driver={
            "sparkSubmit": {
                "entryPoint": shop["program"],
                "entryPointArguments": [f"{shop['lake']}/serverless", "succeed"],
            }
        },
        **waiting,
    )
    EmrContainerOperator(
        task_id="eks",
        name="shop",
        aws_conn_id="shop_aws",
        virtual_cluster_id=shop["virtual_cluster"],
        execution_role_arn=ROLE,
        release_label="emr-7.9.0-latest",
        job_driver={
            "sparkSubmitJobDriver": {
                "entryPoint": shop["program"],
                "entryPointArguments": [f"{shop['lake']}/eks", "fail"],
            }
        },
        poll_interval=1,
    )
    steps = EmrAddStepsOperator(
        task_id="steps",
        job_flow_id=shop["cluster"],
        steps=[step("first", "succeed"), step("second", "fail")],
        **waiting,
    )
    steps >> EmrStepSensor(
        task_id="waiting",
        aws_conn_id="shop_aws",
        job_flow_id=shop["cluster"],
        step_id="{{ ti.xcom_pull(task_ids='steps')[1] }}",
        poke_interval=1,
    )
    GlueJobOperator(
        task_id="glue",
        job_name=shop["glue"],
        script_args={"--lake": f"{shop['lake']}/glue", "--how": "succeed"},
        iam_role_arn=ROLE,
        job_poll_interval=1,
        **waiting,
    )
    DataprocSubmitJobOperator(
        task_id="job", job={"placement": {"cluster_name": "c"}, "pyspark_job": at_google("job")}, **google
    )
    DataprocCreateBatchOperator(task_id="batch", batch={"pyspark_batch": at_google("batch")}, **google)
    DatabricksSubmitRunOperator(
        task_id="run",
        databricks_conn_id="bricks",
        polling_period_seconds=1,
        new_cluster={"num_workers": 1},
        spark_python_task={"python_file": shop["program"], "parameters": [f"{shop['home']}/run", "succeed"]},
    )
