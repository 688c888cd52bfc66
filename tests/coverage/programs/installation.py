"""DAGs of an installation: 200 tasks, of which some run Spark, and 18 gaps in their lineage.

``COVERAGE_DAGS`` adds as many DAGs of a hundred Spark tasks.
"""

import os
from datetime import UTC, datetime

from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator
from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, BaseOperator, task

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

DATE = datetime(2024, 1, 1, tzinfo=UTC)


def of_provider(name: str, module: str, fields: str) -> type[BaseOperator]:
    """An operator as a provider that is not installed here has it, as far as Airflow serializes it."""

    def init(self, *, values, **kwargs):
        BaseOperator.__init__(self, **kwargs)
        vars(self).update(dict.fromkeys(fields.split()), **values)

    namespace = {"__init__": init, "__module__": f"airflow.providers.{module}", "template_fields": fields.split()}
    return type(name, (BaseOperator,), namespace)


Emr = of_provider("EmrAddStepsOperator", "amazon.aws.operators.emr", "job_flow_id steps")
Serverless = of_provider(
    "EmrServerlessStartJobOperator", "amazon.aws.operators.emr", "application_id execution_role_arn job_driver"
)
Glue = of_provider("GlueJobOperator", "amazon.aws.operators.glue", "job_name script_location script_args")
Dataproc = of_provider("DataprocSubmitJobOperator", "google.cloud.operators.dataproc", "region job")
Sensor = of_provider("SparkKubernetesSensor", "cncf.kubernetes.sensors.spark_kubernetes", "application_name")


class OrdersOnGlue(Glue):
    """A subclass by another name."""


class OwnLineage(SparkSubmitOperator):
    """A subclass that refuses."""

    lineage_enabled = False


class Clashing(SparkSubmitOperator):
    """A subclass with a name of ours."""

    evidence = "of a court"


class Silenced(SparkSubmitOperator):
    """What ``[openlineage] disabled_for_operators`` names."""


class Ours(SparkSubmitOperator):
    """A subclass that has lineage by the policy."""


Silenced.__module__ = "shop.operators"


def submit(task_id: str, kind: type[SparkSubmitOperator] = SparkSubmitOperator, **arguments):
    return kind(task_id=task_id, application="load.py", **arguments)


for number in range(10):
    with DAG(f"shop_{number}", start_date=DATE, schedule=None):
        for each in range(8):
            submit(f"load_{each}", (SparkSubmitOperator, Ours, LineageSparkSubmitOperator)[each % 3])
        SparkSqlOperator(task_id="sql", sql="CREATE TABLE daily AS SELECT day FROM orders")
        SparkJDBCOperator(task_id="jdbc")
        for each in range(5):
            EmptyOperator(task_id=f"empty_{each}")
        PythonOperator(task_id="python", python_callable=print)

with DAG("no_spark", start_date=DATE, schedule=None):
    BashOperator(task_id="echo", bash_command="echo spark-submit load.py")
    BashOperator(task_id="which", bash_command="which spark-submit && pgrep -f spark-submit")
    BashOperator(task_id="version", bash_command="spark-submit --version")
    BashOperator(task_id="comment", bash_command="# spark-submit load.py\ntrue")
    BashOperator(task_id="install", bash_command="pip install pyspark")
    BashOperator(task_id="logs", bash_command="tail -n 20 /var/log/spark-submit.log")
    KubernetesPodOperator(task_id="pod", image="alpine", cmds=["echo"], arguments=["spark-submit"])
    Sensor(task_id="sensor", values={"application_name": "orders"})
    Emr(task_id="hive", values={"steps": [{"HadoopJarStep": {"Args": ["hive-script", "--run"]}}]})
    Dataproc(task_id="presto", values={"region": "eu", "job": {"presto_job": {"query_file_uri": "gs://q"}}})
    Serverless(task_id="serverless_hive", values={"job_driver": {"hive": {"query": "s3://q"}}})

with DAG("gaps", start_date=DATE, schedule=None):
    Serverless(task_id="emr", values={"job_driver": {"sparkSubmit": {"entryPoint": "s3://load.py"}}})
    OrdersOnGlue(task_id="glue", values={"script_location": "s3://load.py"})
    Dataproc(task_id="dataproc", values={"region": "eu", "job": {"pyspark_job": {"main_python_file_uri": "gs://l"}}})
    BashOperator(task_id="bash", bash_command="cd jobs && SPARK_HOME=/opt/spark $SPARK_HOME/bin/spark-submit load.py")
    BashOperator.partial(task_id="bash_kwargs").expand_kwargs([{"bash_command": "spark-submit load.py"}])
    KubernetesPodOperator(task_id="pod", image="spark", cmds=["/opt/spark/bin/spark-submit"], arguments=["load.py"])
    submit("off", LineageSparkSubmitOperator, lineage_enabled=False)
    submit("refusing", OwnLineage)
    submit("clashing", Clashing)
    submit("silenced", Silenced)
    submit("unread")
    submit("log_off")
    submit("never_ran")
    submit("counting")
    submit("left_nothing")
    submit("undelivered")
    SparkSubmitOperator.partial(task_id="mapped").expand(application=["a.py", "b.py"])

with DAG("sandbox_of_ann", start_date=DATE, schedule=None):
    submit("excluded")

with DAG("paused", start_date=DATE, schedule=None, is_paused_upon_creation=True):
    submit("waiting")

with DAG("decorated", start_date=DATE, schedule=None):

    @task.bash
    def bash():
        return "true"

    @task.pyspark
    def pyspark(spark):
        return spark

    bash()
    pyspark()
    for number in range(9):
        EmptyOperator(task_id=f"empty_{number}")

for number in range(int(os.environ.get("COVERAGE_DAGS", "0"))):
    with DAG(f"many_{number}", start_date=DATE, schedule=None) as many:
        for each in range(100):
            submit(f"load_{each}")
    globals()[many.dag_id] = many
