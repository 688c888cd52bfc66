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
HOOKS = """
from functools import cached_property
from airflow.providers.amazon.aws.hooks.emr import EmrServerlessHook
from spark_lineage.operators.lineage_emr import LineageEmrServerlessStartJobOperator as Plain

def made(self):
    return EmrServerlessHook(aws_conn_id=None, region_name="eu-west-1")

class Fresh(Plain):
    hook = property(made)

class Below(Fresh):
    pass

class Kept(Plain):
    hook = cached_property(made)

class Calling(Plain):
    @property
    def hook(self):
        return super().hook

class Mixin:
    hook = property(made)

class Mixed(Mixin, Plain):
    pass

job = {"application_id": "a", "execution_role_arn": "r", "job_driver": {}}
for kind in (Plain, Fresh, Below, Kept, Calling, Mixed):
    task = kind(task_id="a", aws_conn_id=None, region_name="eu-west-1", **job)
    clients = []
    task.lineage_connect = clients.append
    assert task.hook is task.hook, kind
    assert set(clients) == {task.hook.conn}, kind
"""


def test_hook_of_a_subclass_has_its_client_connected(tmp_path: Path) -> None:
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", HOOKS], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_operators_have_lineage_by_the_policy(tmp_path: Path) -> None:
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout.splitlines()[-1])
    serverless = ["LineageEmrServerlessStartJobOperator", "LineageAwsOperator", "HookOperator", "LineageOperator"]
    assert made["serverless"][:5] == ["EmrServerlessStartJobOperator", *serverless]
    assert made["mapped"][:5] == ["EmrServerlessStartJobOperator", *serverless]
    assert made["own"][:6] == ["Own", *serverless, "Own"]
    assert made["eks"][:2] == ["EmrContainerOperator", "LineageEmrContainerOperator"]
    assert made["steps"][:2] == ["EmrAddStepsOperator", "LineageEmrAddStepsOperator"]
    assert made["glue"][:2] == ["GlueJobOperator", "LineageGlueJobOperator"]
