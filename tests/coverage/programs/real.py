"""Tasks that a real Spark runs: one that leaves its log, one that turns it off, and one that a command submits."""

import os

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

JOB = os.environ["COVERAGE_JOB"]

with DAG("real", schedule=None):
    given = {"application": JOB, "evidence": "event_log", "application_args": [os.environ["AIRFLOW_HOME"]]}
    (
        LineageSparkSubmitOperator(task_id="logged", **given)
        >> LineageSparkSubmitOperator(task_id="silent", conf={"spark.eventLog.enabled": "false"}, **given)
        >> BashOperator(task_id="bash", bash_command="spark-submit --version")
    )
