"""What ``spark-lineage init`` prints and writes, pasted into an Airflow of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection
from fast_spark import JAVA_ENV

from spark_lineage.atlas.hook import AtlasHook
from spark_lineage.cli import main
from spark_lineage.deliver.connections import ConnectionFields, transport_config

KEY = 'hunter2/"of\\backend'
IN_JSON = json.dumps(KEY)[1:-1]
PROGRAM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv(sys.argv[1], header=True).write.parquet(sys.argv[2])
spark.stop()
"""
DAG = """
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG("shop"):
    SparkSubmitOperator(task_id="copy", application="{home}/copies.py", application_args=["{home}/in", "{home}/out"])
"""


def pasted(lines: str, *commands: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the lines and the commands in a shell without Airflow's settings."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE", "SPARK"))}
    clean["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}"
    program = "\n".join(["set -euo pipefail", lines, *commands])
    return subprocess.run(
        ["bash", "-c", program], env=clean | JAVA_ENV | env, capture_output=True, text=True, check=False, timeout=300
    )


def connection_of(lines: str, conn_id: str, **env: str) -> Connection:
    done = pasted(lines, f'printf %s "$AIRFLOW_CONN_{conn_id.upper()}"', **env)
    assert done.returncode == 0, done.stderr
    return Connection.from_json(done.stdout, conn_id=conn_id)


def shell_lines(printed: str) -> str:
    """Return the first of the two blocks."""
    return printed.partition("\n\n")[0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--marquez", "http://m:5000"], {"url": "http://m:5000", "endpoint": "/api/v1/lineage", "backend": "marquez"}),
        (["--http", "http://m:5000/lake"], {"url": "http://m:5000", "endpoint": "/lake/api/v1/lineage"}),
        (["--data-rentgen", "http://r:8000"], {"endpoint": "/v1/openlineage", "compression": "gzip"}),
        (["--datahub", "https://d"], {"endpoint": "/openapi/openlineage/api/v1/lineage"}),
        (["--openmetadata", "https://o"], {"endpoint": "/api/v1/openlineage/lineage"}),
        (["--kafka", "b1:9094,b2", "--extra", "topic=input.runs"], {"type": "kafka", "topic": "input.runs"}),
        (["--http", "https://user@h"], {"custom_headers": {"Authorization": "Basic dXNlcjpodW50ZXIyLyJvZlxiYWNrZW5k"}}),
        (["--http", "https://h", "--key"], {"auth": {"type": "api_key", "apiKey": KEY}}),
        (
            ["--http", "https://h", "--key", "--extra", 'headers={"X-Api-Key": "{password}"}'],
            {"custom_headers": {"X-Api-Key": KEY}},
        ),
    ],
)
def test_init_prints_a_connection_that_sends_to_the_backend(
    arguments: list[str], expected: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *arguments, "--conn-id", "mine"]) == 0
    lines = shell_lines(capsys.readouterr().out)
    config = transport_config(ConnectionFields.of(connection_of(lines, "mine", MINE_PASSWORD=IN_JSON)))
    assert {key: config.get(key) for key in expected} == expected
    assert (
        '"conn_id": "mine"'
        in pasted(lines, 'printf %s "$AIRFLOW__OPENLINEAGE__TRANSPORT"', MINE_PASSWORD=IN_JSON).stdout
    )


def test_init_for_atlas_prints_a_connection_that_tasks_send_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["init", "--atlas", "http://admin@atlas:21000"]) == 0
    lines = shell_lines(capsys.readouterr().out)
    named = ('printf "%s\\n" "$AIRFLOW__SPARK_LINEAGE__LINEAGE_CONN_ID" "$AIRFLOW_CONN_ATLAS"',)
    conn_id, connection = pasted(lines, *named, ATLAS_PASSWORD=IN_JSON).stdout.splitlines()
    monkeypatch.setenv("AIRFLOW_CONN_ATLAS", connection)
    assert (AtlasHook(conn_id).url, AtlasHook(conn_id).fields.password) == ("http://atlas:21000", KEY)


def test_init_with_password_in_the_url_prints_and_writes_no_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--datahub", "https://me:hunter2hunter@d", "--write", str(tmp_path)]) == 0
    assert (
        main(["init", "--kafka", "me:hunter2hunter@b:9092", "--extra", "topic=t", "--extra", "sasl_mechanism=PLAIN"])
        == 0
    )
    printed = capsys.readouterr()
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "DATAHUB_PASSWORD" in written
    assert "hunter2" not in printed.out + printed.err + written


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--http", "http://h", "--key", "--extra", 'headers={"X-Api-Key": "hunter2"}'], "nobody should see"),
        (["--http", "http://h?api_key=hunter2"], "has a '?'"),
        (["--marquez", "http://h", "--extra", "namspace=prod"], "did you mean 'namespace'?"),
        (["--kafka", "b:9092"], "'topic'"),
        (["--atlas", "http://h", "--extra", "topik=t"], "did you mean 'topic'?"),
        (["--marquez", ""], "'host'"),
        (["--marquez", "http://h", "--conn-id", "a b"], "--conn-id 'a b'"),
        (["--marquez", "http://h", "--extra", "namespace"], "--extra wants KEY=VALUE"),
        (["--marquez", "http://h", "--write", "/nope"], "there is no directory /nope"),
    ],
)
def test_init_with_unusable_arguments_prints_the_problem_alone(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *arguments]) == 2
    printed = capsys.readouterr()
    assert (printed.out, problem in printed.err, "hunter2" in printed.err) == ("", True, False)


def test_init_where_a_file_exists_leaves_it_and_prints_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "config" / "airflow_local_settings.py"
    own.parent.mkdir()
    own.write_text("POLICY = 'of the user'\n")
    assert main(["init", "--marquez", "http://m:5000", "--write", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert own.read_text() == "POLICY = 'of the user'\n"
    assert (tmp_path / "spark-lineage.sh").read_text().startswith("export AIRFLOW_CONN_MARQUEZ=")
    assert "from spark_lineage.policy import task_policy" in printed.out
    assert f"{own} exists and stays as it is" in printed.err
    own.write_text(f"POLICY = 'of the user'\n{printed.out.partition(chr(10))[2]}")

    assert main(["init", "--marquez", "http://m:5000", "--write", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("has these lines already") == 2


@pytest.mark.truth
@pytest.mark.airflow
def test_init_in_a_fresh_airflow_home_makes_the_events_of_a_task_arrive(
    tmp_path: Path, openlineage_backend: Any
) -> None:
    openlineage_backend.token = KEY
    (tmp_path / "in").mkdir()
    for name, content in (("in/a.csv", "id\n1\n"), ("copies.py", PROGRAM), ("dags/shop.py", DAG.format(home=tmp_path))):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    env = {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[1]"}',
        "AIRFLOW__SPARK_LINEAGE__EVIDENCE": "event_log",
        "HTTP_PASSWORD": IN_JSON,
    }
    done = pasted(
        f"spark-lineage init --http {openlineage_backend.url} --key --write {tmp_path}",
        f". {tmp_path}/spark-lineage.sh",
        "airflow db migrate > /dev/null",
        "spark-lineage doctor",
        "airflow dags test shop",
        **env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok      airflow transport: the connection http:" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith("problem")]
    (end,) = [
        event for event in openlineage_backend.events
        if event["job"]["name"] == "shop.copy" and event["eventType"] == "COMPLETE"
    ]  # fmt: skip
    assert [len(end[side]) for side in ("inputs", "outputs")] == [1, 1]
    assert "hunter2" not in done.stdout + done.stderr
