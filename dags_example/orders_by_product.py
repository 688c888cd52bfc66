"""An example: a job on the JVM. Its lineage is that of a Python program; it needs no change, and no library.

The first task compiles the class with ``javac`` against the jars of PySpark, as a build would: it needs a JDK.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.providers.common.compat.sdk import DAG, Param, task

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HERE = Path(__file__).resolve().parent
LAKE = os.environ.get("SPARK_LINEAGE_EXAMPLE_LAKE", str(HERE / "lake"))
DATA = os.environ.get("SPARK_LINEAGE_EXAMPLE_DATA", str(HERE / "data"))

with DAG(
    dag_id="orders_by_product",
    description="The orders of each product, by a Java class.",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    params={"lake": Param(LAKE, type="string", description="Directory below which the tasks write")},
    tags=["example", "spark", "lineage"],
):

    @task
    def build(source: str, directory: str) -> str:
        """Compile a Java class, and return the path of its jar."""
        import subprocess
        from importlib.util import find_spec

        spec = find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("The class is compiled against the jars of PySpark, which is not installed.")
        classes, jar = Path(directory) / "classes", Path(directory) / f"{Path(source).stem}.jar"
        classes.mkdir(parents=True, exist_ok=True)
        jars = Path(spec.origin).parent / "jars"
        subprocess.run(["javac", "--release", "17", "-cp", f"{jars}/*", "-d", classes, source], check=True)
        subprocess.run(["jar", "--create", "--file", jar, "-C", classes, "."], check=True)
        return str(jar)

    jar = build(str(HERE / "spark_jobs" / "OrdersByProduct.java"), "{{ params.lake }}/_build")
    LineageSparkSubmitOperator(
        task_id="sum_products",
        conn_id="spark_default",
        application="{{ ti.xcom_pull(task_ids='build') }}",
        java_class="OrdersByProduct",
        application_args=[f"{DATA}/orders.csv", "{{ params.lake }}/by_product/orders"],
    ).set_upstream(jar)
