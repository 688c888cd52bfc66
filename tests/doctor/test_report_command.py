"""The archive of ``spark-lineage report``, made from the launch of a real task in whose files secrets are planted."""

from __future__ import annotations

import argparse
import io
import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.doctor import report_command
from spark_lineage.launch.directory import launch_directory
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.line import LineError

FIXTURE = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
APPLICATION = "local-1795215390665"
JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJwbGFudGVkIjoxfQ.cGxhbnRlZC1zaWduYXR1cmU"
AWS = "AKIA" + "QQ1PLANTED2QQ3ID"
# In the event log, and what must be gone; the second only in another file than its key.
ENVIRONMENT = {
    "Event": "SparkListenerEnvironmentUpdate",
    "Spark Properties": {
        "spark.hadoop.fs.s3a.secret.key": "planted-conf-01",
        "spark.my.password": "Pl4nt3d-v4lu3-02",
        "spark.driver.extraJavaOptions": "-Dx.password=planted-java-03 -Dy=1",
        "spark.hadoop.fs.s3a.access.key": AWS,
        "spark.master": "local[2]",
    },
    "System Properties": {"sun.java.command": "SparkSubmit --conf spark.x.token=planted-command-04 job.py --pwd abc"},
}
SQL = {
    "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
    "executionId": 0,
    "description": f"reads with {JWT}",
    "physicalPlanDescription": "Scan JDBCRelation(t) jdbc:postgresql://h/d?user=me&password=planted-jdbc-05 [id#1]",
    "details": "login failed for me/Pl4nt3d-v4lu3-02, customer ACME-31415926",
}
SECRETS = (
    *("planted-conf-01", "Pl4nt3d-v4lu3-02", "planted-java-03", AWS, "planted-command-04", "cGxhbnRlZC1zaWduYXR1cmU"),
    *("planted-jdbc-05", "ACME-31415926", "planted-uri-06", "planted-header-07", "planted-sas-08", "plantedPEM"),
    *("Zx9!planted-conn", "planted-extra-09", "planted-torn-10", "planted-answer-11", "planted-variable-12"),
)


def event_with_secrets() -> bytes:
    """Return an event of a real driver, with secrets in its job, run and datasets."""
    event = json.loads(FIXTURE.read_text().splitlines()[0])
    event["run"]["facets"]["planted"] = {
        "uri": "postgres://me:planted-uri-06@h/d",
        "headers": {"Authorization": "Token planted-header-07"},
        "pem": "-----BEGIN PRIVATE KEY-----\nplantedPEMplantedPEM\n-----END PRIVATE KEY-----",
        "text": "nothing knows what Pl4nt3d-v4lu3-02 and Zx9!planted-conn are",
        "_producer": "https://github.com/me/x",
        "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/X.json",
    }
    sas = "abfss://c@acc.dfs.core.windows.net/t?sv=2024&sig=planted-sas-08%3D&se=1"
    event["inputs"] = [{"namespace": "abfss://c@acc.dfs.core.windows.net", "name": sas}]
    return json.dumps(event).encode() + b"\n"


@pytest.fixture
def launched(bench: Any) -> Path:
    """A task that has run, with an event log beside; the directory of its launch."""
    logs = bench.root / "logs"
    logs.mkdir()
    lines = (json.dumps(each) for each in (ENVIRONMENT, SQL))
    (logs / APPLICATION).write_text("".join(f"{line}\n" for line in lines))
    torn = b'{"password": "planted-torn-10'
    driver = bench.file("driver.ndjson", FIXTURE.read_bytes() + event_with_secrets() + torn)
    outcome = bench.run(
        lineage=[driver],
        event_log=None,
        conf={"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(logs)},
    )
    assert outcome.error is None, outcome.printed
    (launch,) = bench.lineage_dir.glob("*/*/*/*/*")
    assert (launch / "launch.json").is_file()
    found: Path = launch
    return found


@pytest.fixture
def report(bench: Any, warm_python: Any, tmp_path: Path) -> Callable[..., Any]:
    """Run the command where the task has run."""
    spark = {"conn_type": "spark", "host": "local[2]", "password": "Zx9!planted-conn"}
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE", "SPARK"))},
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({**spark, "extra": {"queue_token": "planted-extra-09"}}),
        "AIRFLOW__SPARK_LINEAGE__LINEAGE_DIR": str(bench.lineage_dir),
        "AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(tmp_path / "outbox"),
        "AIRFLOW__SPARK_LINEAGE__EVIDENCE": "event_log",
        "AIRFLOW__SPARK_LINEAGE__REDACTION_PATTERNS": "ACME-[0-9]{8}",
        "MY_DB_PASSWORD": "planted-variable-12",
    }
    return lambda *arguments: warm_python.run("-m", "spark_lineage.cli", "report", *arguments, env=env, cwd=tmp_path)


def task_of(launch: Path) -> str:
    dag, _, task = launch.parts[-5:-2]
    return f"{dag}.{task}"


def test_report_of_a_launch_has_its_files_and_no_secret(
    launched: Path, report: Callable[..., Any], tmp_path: Path
) -> None:
    run_id = json.loads((launched / "launch.json").read_text())["run_id"]
    waiting = {**json.loads(FIXTURE.read_text().splitlines()[0]), "eventType": "COMPLETE"}
    waiting["run"] = {**waiting["run"], "runId": run_id}
    spool = Outbox(tmp_path / "outbox" / str(os.getuid())).spool("marquez")
    spool.put(Outgoing.of(json.dumps(waiting).encode()))
    spool.refuse(spool.waiting()[0], "422 no: password=planted-answer-11 planted-variable-12")

    done = report(task_of(launched))
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("spark-lineage-report-*.zip")
    assert done.stdout.startswith(f"{path.name}: ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(texts) >= {
        *("README.txt", "settings.json", "doctor.json", "outbox.json", f"event-log/{APPLICATION}"),
        *(f"launch/{name}" for name in ("launch.json", "openlineage-events.ndjson", "run-events.jsonl")),
    }, done.stdout
    everything = done.stdout + done.stderr + path.name + "".join([*texts, *texts.values()])
    assert [secret for secret in SECRETS if secret in everything] == []

    events = texts["launch/openlineage-events.ndjson"].splitlines()
    assert len(events) == len(FIXTURE.read_bytes().splitlines()) + 1
    assert "1 are no JSON and left out" in texts["README.txt"]
    assert [json.loads(line)["Event"] for line in texts[f"event-log/{APPLICATION}"].splitlines()] == [
        each["Event"] for each in (ENVIRONMENT, SQL)
    ]
    assert "local[2]" in texts[f"event-log/{APPLICATION}"]
    settings = {row["name"]: row["value"] for row in json.loads(texts["settings.json"])["settings"]}
    assert settings["evidence"] == "event_log"
    assert json.loads(texts["outbox.json"])[0]["is_dead"] is True
    assert {"check", "level", "text", "remedy"} == set(json.loads(texts["doctor.json"])[0])


def test_report_without_a_launch_has_the_settings_and_names_where_it_looked(
    launched: Path, report: Callable[..., Any], tmp_path: Path
) -> None:
    done = report("shop.nothing", "-o", "mine.zip")
    assert done.returncode == 1
    assert f"not found: a launch of shop.nothing in {launched.parents[4]}" in done.stdout
    assert {"settings.json", "doctor.json"} <= set(zipfile.ZipFile(tmp_path / "mine.zip").namelist())


def test_report_with_an_output_that_exists_leaves_it(report: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_text("of the user")
    done = report("shop.load", "-o", "mine.zip")
    assert (done.returncode, (tmp_path / "mine.zip").read_text()) == (2, "of the user")
    assert "mine.zip exists and stays as it is: name another file by -o" in done.stderr


@pytest.mark.parametrize("run_id", ["again", None])
def test_report_with_a_run_takes_the_launch_of_that_run(
    launched: Path, report: Callable[..., Any], tmp_path: Path, run_id: str | None
) -> None:
    """The later of two launches is the default."""
    other = launched.parents[4] / launched.parts[-5] / "again" / Path(*launched.parts[-3:])
    other.mkdir(parents=True)
    handle = json.loads((launched / "launch.json").read_text())
    (other / "launch.json").write_text(json.dumps({**handle, "directory": str(other), "host": "of-the-other"}))
    os.utime(launched / "launch.json")
    arguments = ["--run-id", run_id] if run_id else []
    report(task_of(launched), "-o", "mine.zip", *arguments)
    with zipfile.ZipFile(tmp_path / "mine.zip") as archive:
        assert ("of-the-other" in archive.read("launch/launch.json").decode()) == bool(run_id)


def test_latest_with_dots_in_both_ids_finds_the_launch(tmp_path: Path) -> None:
    directory = launch_directory(
        tmp_path, dag_id="a.b", run_id="r", task_id="c.d", map_index=-1, try_number=12, application_run_id="x"
    )
    directory.mkdir(parents=True)
    (directory / "launch.json").write_text(json.dumps({"directory": str(directory), "application_run_id": "x"}))
    arguments = argparse.Namespace(task="a.b.c.d", run_id=None, map_index=None, try_number=None)
    found = report_command._latest(tmp_path, arguments)
    assert found is not None
    assert found.directory == str(directory)
    for other in ({"try_number": 1}, {"map_index": 0}, {"run_id": "s"}, {"task": "a.b.c"}):
        assert report_command._latest(tmp_path, argparse.Namespace(**vars(arguments) | other)) is None


def test_kept_of_a_long_file_has_its_beginning_and_its_end_within_the_limit() -> None:
    lines = [json.dumps({"number": number, "text": "x" * 80}).encode() for number in range(1_000)]
    kept = report_command._kept([*lines, LineError("torn file"), b"[1]"], 10_000)
    assert sum(map(len, kept.lines)) <= 10_000
    numbers = [json.loads(line)["number"] for line in kept.lines]
    assert (numbers[0], numbers[-1], numbers) == (0, 999, sorted(numbers))
    assert (kept.left_out, kept.unreadable) == (1_000 - len(numbers), 2)
    assert "left out of its middle" in str(kept)


def test_add_launch_with_a_rolling_compressed_log_adds_its_lines(tmp_path: Path) -> None:
    logs, application = FIXTURE.parents[1] / "event_logs", "local-1795292252861"
    report = report_command._Report()
    report_command._add_launch(report, Launch(str(tmp_path), "", application_id=application, event_logs=(str(logs),)))
    (name,) = report.files
    assert name == f"event-log/eventlog_v2_{application}"
    assert len(report.files[name].lines) > 1
    assert all("Event" in json.loads(line) for line in report.files[name].lines)


def test_archive_masks_in_each_file_what_another_shows_to_be_a_secret() -> None:
    report = report_command._Report()
    report.add_lines("a.ndjson", [b'{"text": "no access for Pl4nt3d-v4lu3-02"}'])
    report.add_lines("b.ndjson", [b'{"spark.my.password": "Pl4nt3d-v4lu3-02"}'])
    with zipfile.ZipFile(io.BytesIO(report.archive())) as archive:
        assert archive.read("a.ndjson").decode() == '{"text": "no access for ***"}\n'
