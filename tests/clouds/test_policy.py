"""Operators of clouds under the policy: each has lineage, and stays what it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.clouds
PROGRAM = """
import json, pickle
from airflow.providers.amazon.aws.operators.emr import *
from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.sdk import DAG
from spark_lineage.policy import task_policy

class Own(EmrServerlessStartJobOperator):
    def execute(self, context, event=None):
        return super().execute(context, event)

job = {"application_id": "a", "execution_role_arn": "r", "job_driver": {}}
with DAG("clouds") as dag:
    EmrServerlessStartJobOperator(task_id="serverless", **job)
    Own(task_id="own", **job)
    EmrServerlessStartJobOperator.partial(task_id="mapped", application_id="a", execution_role_arn="r").expand(
        job_driver=[{}]
    )
    EmrContainerOperator(
        task_id="eks", name="n", virtual_cluster_id="v", execution_role_arn="r", release_label="l", job_driver={}
    )
    EmrAddStepsOperator(task_id="steps", job_flow_id="j", steps=[])
    GlueJobOperator(task_id="glue", job_name="g")
for task in dag.tasks:
    task_policy(task)
    pickle.loads(pickle.dumps(task))
made = {task.task_id: getattr(task, "operator_class", type(task)) for task in dag.tasks}
print(json.dumps({name: [kind.__name__ for kind in one.__mro__] for name, one in made.items()}))
"""


def test_operators_have_lineage_by_the_policy(tmp_path: Path) -> None:
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout.splitlines()[-1])
    serverless = ["LineageEmrServerlessStartJobOperator", "LineageAwsOperator", "LineageOperator"]
    assert made["serverless"][:4] == ["EmrServerlessStartJobOperator", *serverless]
    assert made["mapped"][:4] == ["EmrServerlessStartJobOperator", *serverless]
    assert made["own"][:5] == ["Own", *serverless, "Own"]
    assert made["eks"][:2] == ["EmrContainerOperator", "LineageEmrContainerOperator"]
    assert made["steps"][:2] == ["EmrAddStepsOperator", "LineageEmrAddStepsOperator"]
    assert made["glue"][:2] == ["GlueJobOperator", "LineageGlueJobOperator"]
