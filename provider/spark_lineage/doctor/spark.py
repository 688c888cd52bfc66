"""Whether spark-submit is there, and which Spark it is going to use."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.doctor.spark_connection import elsewhere
from spark_lineage.inject.installation import InstallationNotFoundError, find_installation

_OLDEST_TESTED = (3, 5)


def check_spark(setup: Setup) -> Iterator[Finding]:
    """Look where spark-submit looks."""
    spark, env = setup.spark, setup.env
    if not spark.exists:
        yield warning(
            f"Airflow gives no connection {spark.conn_id} here: the Spark provider submits to {spark.master} then",
            f"{elsewhere(spark.conn_id)}, or name another one with --spark-conn-id",
        )
    else:
        yield ok(f"connection {spark.conn_id}: master {spark.master}, deploy mode {setup.deploy_mode}")
    if shutil.which(spark.spark_binary, path=env.get("PATH")) is None:
        yield problem(
            f"there is no {spark.spark_binary} on PATH: tasks cannot submit",
            "install Spark (pip install 'airflow-provider-spark-lineage[spark]'), or put its bin on the worker's PATH",
        )
    try:
        found = find_installation(spark.spark_binary, env)
    except InstallationNotFoundError as error:
        # Whoever gives the jar by its path needs none; the check of the jar tells.
        yield warning(str(error), "see there")
        return
    text = f"Spark {found.spark_version}, Scala {found.scala_version}, in {found.home}"
    number = re.match(r"(\d+)\.(\d+)", found.spark_version)
    if number and (int(number[1]), int(number[2])) < _OLDEST_TESTED:
        yield warning(f"{text}: lineage is tested with Spark 3.5 and newer", "use a newer Spark")
    else:
        yield ok(text)
    full, client = _version("pyspark"), _version("pyspark-client")
    if full and client and full != client and found.home.name == "pyspark":
        yield warning(
            f"pyspark {full} and pyspark-client {client} lie in the same files, and are of different versions",
            "install one Spark: pip uninstall pyspark pyspark-client, then "
            + (
                f"pip install pyspark=={full} 'apache-airflow-providers-apache-spark<6', which needs no client"
                if full.startswith("3.")
                else f"pip install pyspark=={client} pyspark-client=={client}"
            ),
        )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
