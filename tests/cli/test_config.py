"""``spark-lineage config``: values, where each came from, what does not fit, and what was meant."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.settings import Settings

if TYPE_CHECKING:
    from warm_python import WarmPython

DAG = """
from airflow.sdk import DAG
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

class Listener: pass

with DAG("orders"):
    LineageSparkSubmitOperator(
        task_id="load", application="x.py", conn_id="my_spark", lineage_dir="/mnt/{{ ds }}",
        lineage_tags={"team": "finance"}, lineage_listeners=[Listener, "a.B"],
    )
    LineageSparkSubmitOperator.partial(task_id="many", application="x.py", granularity="path").expand(name=["a", "b"])
    SparkSubmitOperator(task_id="plain", application="x.py")
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def config(tmp_path: Path, warm_python: WarmPython) -> Command:
    """Run the command in a process of its own, in an Airflow of its own."""
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "orders.py").write_text(DAG)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE"))}

    def run(*arguments: str, env: Mapping[str, str] = {}, cfg: str = "") -> subprocess.CompletedProcess[str]:
        if cfg:
            (home / "airflow.cfg").write_text(cfg)
        defaults = {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local"}',
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }
        return warm_python.run("-m", "spark_lineage.cli", "config", *arguments, env={**clean, **defaults, **env})

    return run


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    told = json.loads(done.stdout)
    return {row["name"]: row for group in ("settings", "options", "endpoints") for row in told[group]}


def test_each_place_and_what_wins(config: Command, tmp_path: Path) -> None:
    extra = {
        "granularity": "path",
        "evidence": "listener",
        "lineage_dir": "/of/the/extra",
        "history_server_url": "http://history:18080",
        "status_conn_id": "servers",
        "hostnamePattern.prod": "10\\..*",
    }
    connection = {"conn_type": "spark", "host": "yarn", "password": "hunter2-password", "extra": extra}
    of_the_file = (
        "retention_days = 3",
        "poll_interval_seconds = 5",
        "evidence = both",
        "outbox_dir = /f",
        "hostnameDefault = other",
    )
    cfg = "\n".join(("[spark_lineage]", *of_the_file, "HOSTNAMEpattern.prod = ["))
    env = {
        "AIRFLOW_CONN_MY_SPARK": json.dumps(connection),
        "AIRFLOW_CONN_SERVERS": json.dumps({"conn_type": "http", "password": "hunter2-token"}),
        "AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": "/of/the/environment",
        "AIRFLOW__SPARK_LINEAGE__OPENLINEAGE_JAR": "https://me:hunter2-login@jars/x.jar?token=hunter2-parameter",
    }
    done = config("--dag", "orders", "--task", "load", "--json", env=env, cfg=cfg)
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    found = rows(done)
    assert set(found) > {setting.name for setting in fields(Settings)}
    of_extra, of_file = "extra of the connection my_spark", f"[spark_lineage] in {tmp_path / 'airflow' / 'airflow.cfg'}"
    expected = {
        "lineage_dir": ("/mnt/{{ ds }}", "argument of the operator"),
        "lineage_tags": ({"team": "finance"}, "argument of the operator"),
        "granularity": ("path", of_extra),
        "evidence": ("listener", of_extra),
        "retention_days": (3.0, of_file),
        "outbox_dir": ("/of/the/environment", "environment variable AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR"),
        "lineage_timeout": (60.0, "default"),
        "poll_interval_seconds": (5.0, "default"),
        "hostnamePattern.prod": ("10\\..*", of_extra),
        "hostnameDefault": ("other", of_file),
        "history_server_url": ("http://history:18080", of_extra),
    }
    assert {name: (found[name]["value"], found[name]["source"]) for name in expected} == expected
    assert found["openlineage_jar"]["value"].startswith("https://***@jars/x.jar?token=***")
    assert found["status_conn_id"]["value"] == "servers"
    assert [row["error"] for row in found.values() if row["error"]] == []
    assert found["lineage_listeners"]["value"][0].endswith(".Listener")
    assert json.loads(done.stdout)["notes"] == ["Templates are shown as they stand in the DAG: lineage_dir."]


def test_what_does_not_fit_and_what_is_no_setting(config: Command) -> None:
    extra = {
        "lineage-dir": "/x",
        "rest-port": "many",
        "hostnamePatern.prod": "x",
        "queue": "q",
        "something": "else",
        "pathPattern.day": "(",
    }
    env = {
        "AIRFLOW_CONN_MY_SPARK": json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}),
        "AIRFLOW__SPARK_LINEAGE__EVIDENCE": "password=hunter2",
        "AIRFLOW__SPARK_LINEAGE__REDACTION_PATTERNS": "hunter2(",
        "AIRFLOW__SPARK_LINEAGE__RETENTION": "3",
        "AIRFLOW_SPARK_LINEAGE__X": "/x",
    }
    done = config("--spark-conn-id", "my_spark", env=env)
    assert done.returncode == 1
    assert "hunter2" not in done.stdout.replace("redaction_patterns = hunter2(", "")
    lines = done.stdout.splitlines()
    bad = {line.partition(" = ")[0]: line.partition("does not fit: ")[2] for line in lines if "does not fit: " in line}
    assert set(bad) == {"evidence", "redaction_patterns", "status endpoints", "pathPattern.day"}
    assert bad["evidence"] == "[spark_lineage] evidence is 'password=***'; give one of auto, both, event_log, listener"
    assert bad["status endpoints"].startswith(
        "'rest-port' in the extra of the Spark connection is 'many'; give a number"
    )
    notes = [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]
    of_extra = "extra of the connection my_spark"
    of_environment = "environment variable AIRFLOW__SPARK_LINEAGE__RETENTION"
    assert notes == [
        f"{of_environment}: [spark_lineage] has no option 'retention'; is 'retention_days' meant?",
        f"{of_extra}: 'hostnamePatern.prod' is not read; is 'hostnamePattern.<cluster>' meant?",
        f"{of_extra}: 'lineage-dir' is not read; is 'lineage_dir' meant?",
        "environment variable AIRFLOW_SPARK_LINEAGE__X is not read; ours begin with AIRFLOW__SPARK_LINEAGE__",
    ]


def test_keys_that_fit_by_themselves_and_not_together(config: Command) -> None:
    extra = {"status_conn_id": "gone"}
    env = {"AIRFLOW_CONN_MY_SPARK": json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra})}
    done = config("--spark-conn-id", "my_spark", "--json", env=env)
    assert done.returncode == 1
    assert "there is no such connection" in rows(done)["status endpoints"]["error"]


STORE = """
from airflow import models, settings
from airflow.models.base import Base
from airflow.models.connection import Connection
from airflow.models.team import Team

settings.initialize()
Base.metadata.create_all(settings.engine, tables=[Team.__table__, Connection.__table__])
with settings.Session() as session:
    session.add(Connection(conn_id="my_spark", conn_type="spark", host="local", extra='{"granularity": "path"}'))
    session.commit()
"""


def test_a_connection_of_the_database(config: Command, tmp_path: Path, warm_python: WarmPython) -> None:
    home = {"AIRFLOW_HOME": str(tmp_path / "airflow")}
    warm_python.run("-c", STORE, env=os.environ | home).check_returncode()
    done = config("--spark-conn-id", "my_spark", "--json")
    found = rows(done)["granularity"]
    assert (found["value"], found["source"]) == ("path", "extra of the connection my_spark"), done.stderr


def test_other_tasks_and_no_connection(config: Command) -> None:
    mapped = config("--dag", "orders", "--task", "many", "--json")
    assert rows(mapped)["granularity"]["value"] == "path"
    assert rows(mapped)["granularity"]["source"] == "argument of the operator"
    plain = config("--dag", "orders", "--task", "plain", "--spark-conn-id", "gone", "--json")
    notes = json.loads(plain.stdout)["notes"]
    assert notes[0] == "Airflow has no connection gone here: the Spark provider submits to YARN then."
    assert notes[1].startswith("The task is a SparkSubmitOperator, not a LineageSparkSubmitOperator")


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (("--dag", "orders", "--task", "lod"), {}, "the DAG orders has no task lod; it has load, many, plain"),
        (("--dag", "other", "--task", "load"), {}, "there is no DAG other"),
        (("--dag", "orders"), {}, "--dag and --task are given together"),
        (
            (),
            {"AIRFLOW__SPARK_LINEAGE__EVENT_LOG_CMD": "echo"},
            "does not read the variable AIRFLOW__SPARK_LINEAGE__EVENT_LOG_CMD",
        ),
        (
            (),
            {"AIRFLOW__SPARK_LINEAGE__evidence": "both"},
            "does not read the variable AIRFLOW__SPARK_LINEAGE__evidence",
        ),
    ],
)
def test_what_cannot_be_read(config: Command, arguments: tuple[str, ...], env: dict[str, str], words: str) -> None:
    done = config(*arguments, env=env)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
