"""The command as a user runs it, in an Airflow of its own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from warm_python import WarmPython

CLASS = "io/openlineage/spark/agent/OpenLineageSparkListener.class"


def lines(done: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    """Return the texts by level and check, ``problem java``."""
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        head, _, text = line.partition(": ")
        found.setdefault(" ".join(head.split()), []).append(text)
    return found


@pytest.fixture
def well(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing is wrong: a Spark, its jar, a transport."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    jar = tmp_path / "openlineage-spark_2.13-1.53.0.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr(CLASS, b"")
    (tmp_path / "bin").mkdir()
    for name, says in (("java", 'openjdk version "17.0.15"'), ("spark-submit", "")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho '{says}' >&2\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "JAVA_HOME": "",
        "SPARK_HOME": str(home),
        "AIRFLOW__SPARK_LINEAGE__OPENLINEAGE_JAR": str(jar),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(tmp_path / "events")}),
    }


def test_nothing_is_wrong(doctor: Any, well: dict[str, str], tmp_path: Path) -> None:
    done = doctor(env=well)
    assert done.returncode == 0, done.stdout + done.stderr
    found = lines(done)
    assert {line.split(maxsplit=1)[0] for line in found} == {"ok"}, done.stdout
    assert {line.split(maxsplit=1)[1] for line in found} == {
        *(
            "versions",
            "settings",
            "java",
            "spark",
            "spark properties",
            "listener jar",
            "lineage directory",
            "status endpoints",
        ),
        *("airflow openlineage", "outbox", "connections", "airflow transport"),
    }
    assert not (tmp_path / "airflow" / "spark_lineage").exists()


def test_what_the_generated_configuration_repeats_is_not_set(
    doctor: Any, well: dict[str, str], tmp_path: Path, warm_python: WarmPython
) -> None:
    generate = ("-m", "airflow", "config", "get-value", "core", "executor")
    warm_python.run(*generate, env={**os.environ, "AIRFLOW_HOME": str(tmp_path / "airflow")}).check_returncode()
    assert "\nretention_days = 30\n" in (tmp_path / "airflow" / "airflow.cfg").read_text()
    for env, number in ((well, 1), ({**well, "AIRFLOW__SPARK_LINEAGE__RETENTION_DAYS": "7"}, 2)):
        done = doctor(env=env)
        assert f" settings, {number} of them set;" in "".join(lines(done)["ok settings"]), done.stdout


@pytest.mark.parametrize("option", ["openlineage_jar_cmd".upper(), "granularity"])
def test_variables_that_keep_airflow_from_reading_the_section(doctor: Any, well: dict[str, str], option: str) -> None:
    name = f"AIRFLOW__SPARK_LINEAGE__{option}"
    done = doctor(env={**well, name: "path"})
    assert done.returncode == 1
    assert any(name in line for line in lines(done)["problem settings"]), done.stdout


def test_all_that_can_be_wrong(doctor: Any, well: dict[str, str], tmp_path: Path, server: Any, dead_port: int) -> None:
    (tmp_path / "file").touch()
    refusing = server({"*": (401, {"message": "who are you?"})})
    dead = f"http://127.0.0.1:{dead_port}"
    transport = {"type": "async_http", "url": dead, "auth": {"type": "api_key", "apiKey": "hunter2-of-airflow"}}

    def backend(url: str, kind: str = "openlineage") -> str:
        return json.dumps({"conn_type": kind, "host": url, "password": "hunter2-of-backend"})

    env = {
        **well,
        "PATH": str(tmp_path / "nothing"),
        "SPARK_HOME": str(tmp_path / "gone"),
        "AIRFLOW__SPARK_LINEAGE__OPENLINEAGE_JAR": "io.openlineage:openlineage-spark_{scala}:1.53.0",
        "AIRFLOW__SPARK_LINEAGE__LINEAGE_DIR": str(tmp_path / "file" / "below"),
        "AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(tmp_path / "file"),
        "AIRFLOW__SPARK_LINEAGE__RETENTION_DAYS": "soon, password=hunter2-of-setting",
        "AIRFLOW__SPARK_LINEAGE__RETENTON_DAYS": "3",
        "AIRFLOW__SPARK_LINAGE__GRANULARITY": "path",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "2",
        "AIRFLOW__OPENLINEAGE__SELECTIVE_ENABLE": "True",
        "AIRFLOW__OPENLINEAGE__SPARK_INJECT_TRANSPORT_INFO": "True",
        "AIRFLOW__OPENLINEAGE__SPARK_INJECT_PARENT_JOB_INFO": "True",
        "AIRFLOW__OPENLINEAGE__DISABLED_FOR_OPERATORS": (
            "spark_lineage.operators.lineage_spark_submit.LineageSparkSubmitOperator"
        ),
        "AIRFLOW_CONN_REFUSING": backend(refusing),
        "AIRFLOW_CONN_AGAIN": backend(f"{refusing}/"),
        "AIRFLOW_CONN_DEAD": backend(dead),
        "AIRFLOW_CONN_OTHER": backend(dead, "http"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
            {"conn_type": "spark", "host": "local", "extra": {"history_server_url": dead, "status_con_id": "hunter2"}}
        ),
    }
    asked = [part for conn_id in ("refusing", "again", "dead", "other", "gone") for part in ("--conn-id", conn_id)]
    done = doctor(*asked, env=env)

    assert done.returncode == 1
    found = lines(done)
    assert "hunter2" not in done.stdout + done.stderr
    expected = {
        "problem settings": "[spark_lineage] retention_days is",
        "problem java": "no java on PATH",
        "problem spark": "there is no spark-submit on PATH",
        "warning spark": "SPARK_HOME is",
        "problem listener jar": "needs Spark",
        "problem lineage directory": "cannot be written (",
        "problem outbox": "cannot be written (",
        "warning status endpoints": "Connection refused",
        "warning airflow transport": "Connection refused",
    }
    assert {head: text for head, text in expected.items() if text not in "".join(found.get(head, ()))} == {}, (
        done.stdout
    )
    misspelt = found["problem settings"]
    assert any("has no option 'retenton_days'; is 'retention_days' meant?" in line for line in misspelt)
    assert any("'status_con_id' is not read; is 'status_conn_id' meant?" in line for line in misspelt)
    assert any(
        "AIRFLOW__SPARK_LINAGE__GRANULARITY is not read; ours begin with AIRFLOW__SPARK_LINEAGE__" in line
        for line in misspelt
    )
    connections = found["problem connections"]
    words = {
        "401 Unauthorized": 2,
        "Connection refused": 1,
        "of type 'http'": 1,
        "Airflow has no connection gone here": 1,
    }
    assert {word: sum(word in line for line in connections) for word in words} == words, done.stdout
    airflow = "\n".join(found["warning airflow openlineage"])
    for word in ("async_http", "disabled_for_operators", "selective_enable", "transport_info", "execution_timeout"):
        assert word in airflow
    same = found["warning same backend"]
    assert [("refusing" in line, "again" in line, "dead" in line) for line in same] == [
        (True, True, False),
        (False, False, True),
    ], same
    assert "needs" not in "".join(found.get("warning listener jar", ()))


def test_a_terminal_gets_colours(well: dict[str, str], tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE"))}
    env = {
        **clean,
        **well,
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW_CONN_SPARK_DEFAULT": "local://",
        "COLUMNS": "100",
        "TERM": "xterm",
    }
    command = [sys.executable, "-m", "spark_lineage.cli", "doctor"]
    with subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL, env=env) as process:
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 65536):
                shown += chunk
        except OSError:  # Linux says EIO where the other end is closed.
            pass
    os.close(leader)
    text = shown.decode()
    assert process.returncode == 0, text
    assert "\x1b[32mok      \x1b[0mlineage directory: " in text
    # A long line is left to the terminal.
    assert well["AIRFLOW__SPARK_LINEAGE__OPENLINEAGE_JAR"] in text
