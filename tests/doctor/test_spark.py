"""Spark as spark-submit finds it, and the connection as the Spark provider reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.doctor.setup import Setup
from spark_lineage.doctor.spark import check_spark


def told(findings: Any) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in findings]


def test_a_spark_that_is_there(setup: Any, program: Any, spark_home: Any) -> None:
    program("spark-submit")
    home = spark_home("4.0.1", "2.13")
    assert told(check_spark(setup(env={"SPARK_HOME": str(home)}))) == [
        ("ok", "connection my_spark: master local[2], deploy mode client"),
        ("ok", f"Spark 4.0.1, Scala 2.13, in {home}"),
    ]


def test_no_spark_submit_and_a_wrong_home(setup: Any, tmp_path: Any) -> None:
    _, first, second = told(check_spark(setup(env={"SPARK_HOME": str(tmp_path)})))
    assert first == ("problem", "there is no spark-submit on PATH: tasks cannot submit")
    assert second[0] == "warning"
    assert "has no folder 'jars'" in second[1]


def test_an_old_spark(setup: Any, program: Any, spark_home: Any) -> None:
    program("spark-submit")
    *_, last = told(check_spark(setup(env={"SPARK_HOME": str(spark_home("3.3.0"))})))
    assert last[0] == "warning"


def test_no_connection(setup: Any, program: Any, spark_home: Any) -> None:
    program("spark-submit")
    without = setup(env={"SPARK_HOME": str(spark_home())}, master="yarn", has_connection=False)
    first, *_ = told(check_spark(without))
    assert first == ("warning", "Airflow has no connection my_spark here: the Spark provider submits to yarn then")


CONNECTIONS = [
    json.dumps({"conn_type": "spark", "host": "local[2]"}),
    json.dumps({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster", "queue": "q"}}),
    json.dumps(
        {"conn_type": "spark", "host": "spark://master", "port": 7077, "extra": {"spark-binary": "spark3-submit"}}
    ),
    json.dumps({"conn_type": "spark", "host": "k8s://https://api:6443", "extra": {"deploy-mode": "cluster"}}),
    json.dumps({"conn_type": "spark", "host": "master", "port": 7077}),
    json.dumps({"conn_type": "spark"}),
    "spark://master:7077?deploy-mode=cluster",
    "k8s://https%3A%2F%2Fapi:6443?deploy-mode=client",
    None,
]


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_a_connection_is_read_as_the_provider_reads_it(connection: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.providers.apache.spark.hooks import spark_submit

    # The hook makes sure that the package is there, whose client is not asked anything.
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)
    if connection is not None:
        monkeypatch.setenv("AIRFLOW_CONN_OURS", connection)
    theirs = spark_submit.SparkSubmitHook(conn_id="ours")._connection
    ours = Setup.of("ours", [])
    assert ours.places.has_connection == (connection is not None)
    assert (ours.master, ours.spark_binary) == (theirs["master"], theirs["spark_binary"])
    assert ours.submitter.deploy_mode({}) == (theirs["deploy_mode"] or "client")


def test_the_files_of_two_pysparks(setup: Any, program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("pyspark", "3.5.9"), ("pyspark-client", "4.2.0")):
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pyspark" / "jars").mkdir(parents=True)
    (tmp_path / "pyspark" / "jars" / "spark-core_2.13-3.5.9.jar").touch()
    program("spark-submit")
    *_, last = check_spark(setup(env={"SPARK_HOME": str(tmp_path / "pyspark")}))
    assert (last.level, last.text.startswith("pyspark 3.5.9 and pyspark-client 4.2.0 overwrite")) == ("warning", True)
