"""A real driver whose events come over HTTP: the same lineage, the token nowhere, and what is lost is said."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import requests

pytest.importorskip("uvicorn")

from receiver_service import receiver_service

from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.directory import EVENTS_FILE
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.log import Guard
from spark_lineage.receiver.service import Limits
from spark_lineage.submission import event_channel
from spark_lineage.submission.collector import DirectoryCollector
from spark_lineage.submission.event_channel import NO_END, NO_EVENTS, EventChannel, EventSource
from spark_lineage.submission.received_events import (
    ENDPOINT,
    REFUSED,
    TOKEN_HEADER,
    ReceivedEvents,
    ReceiverService,
    token_of,
)

if TYPE_CHECKING:
    from real_spark import RealSpark

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
SECRET = "planted-secret-of-the-receiver-19"  # noqa: S105
PREFIX = "spark.openlineage.transport."
# A cluster whose spark-submit stays until the driver has ended.
IN_CLUSTER = {
    "conn_type": "spark",
    "host": "yarn",
    "extra": {"deploy-mode": "cluster", "receiver_conn_id": "receiver"},
}
# As spark-submit in deploy mode cluster: the driver runs elsewhere.
SPARK_SUBMIT = """#!/bin/bash
exec "$SPARK_HOME/bin/spark-submit" "${@//cluster/client}"
"""
TOKEN = f"{PREFIX}headers.X-Spark-Lineage-Token"
# argv: home. It tells all that it can be asked for by others, and, to the test alone, the token.
PROGRAM = """
import pathlib, sys, urllib.request
from pyspark.sql import SparkSession
home = pathlib.Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
orders = spark.read.option("header", True).csv(str(home / "orders.csv"))
orders.where("amount > 10").selectExpr("id", "amount * 2 AS twice").write.parquet(str(home / "big"))
conf = dict(spark.sparkContext.getConf().getAll())
(home / "token").write_text(conf.get("spark.openlineage.transport.headers.X-Spark-Lineage-Token", "none"))
print(conf)
if spark.sparkContext.uiWebUrl:
    rest = f"/api/v1/applications/{spark.sparkContext.applicationId}/environment"
    for number, path in enumerate(("/environment/", rest)):
        with urllib.request.urlopen(spark.sparkContext.uiWebUrl + path) as page:
            (home / f"environment{number}").write_bytes(page.read())
    commands = [file.read_bytes() for file in pathlib.Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
    (home / "ps").write_bytes(b"".join(commands))
spark.stop()
"""
LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.listener.name = io.openlineage
logger.listener.level = trace
# It prints two stack traces for each part of a plan. A listener that is so busy loses events.
logger.noise.name = io.openlineage.spark3.agent.utils.CopyIntoCommandUtils
logger.noise.level = info
"""


def program(home: Path) -> Path:
    home.mkdir()
    (home / "orders.csv").write_text("id,amount\n1,10\n2,20\n3,30\n")
    (home / "program.py").write_text(PROGRAM)
    return home / "program.py"


def told(outcome: Any, home: Path) -> Any:
    """What the event says, without ids, times, and the place of the files."""
    text = json.dumps([outcome.lineage["inputs"], outcome.lineage["outputs"]], sort_keys=True)
    return json.loads(text.replace(str(home), "/home"))


@pytest.fixture
def service(tmp_path: Path, bench: Any) -> Iterator[Any]:
    """A receiver as a service, with a connection for the tasks."""
    with ExitStack() as running:

        def start(limits: Limits | None = None) -> Path:
            root = tmp_path / "kept"
            port = running.enter_context(receiver_service(root, SECRET.encode(), limits))
            connection = {"conn_type": "http", "host": "127.0.0.1", "port": port, "password": SECRET}
            bench.env["AIRFLOW_CONN_RECEIVER"] = json.dumps(connection)
            bench.connection = IN_CLUSTER
            return root

        yield start


@pytest.mark.spark
@pytest.mark.truth
def test_the_event_is_that_of_the_directory_and_the_token_is_nowhere(
    real_spark: RealSpark, tmp_path: Path, service: Any
) -> None:
    events, (listening, logs) = {}, (tmp_path / "log4j2.properties", tmp_path / "logs")
    default = real_spark.bench.laboratory.home / "spark_lineage"
    listening.write_text(LOGGING)
    logs.mkdir()
    for how in ("directory", "service"):
        home, conf = tmp_path / how, {}
        if how == "service":
            root = service()
            real_spark.bench.connection = {**IN_CLUSTER, "host": "local[2]"}
            submit = tmp_path / "cluster" / "spark-submit"
            submit.parent.mkdir()
            submit.write_text(SPARK_SUBMIT)
            submit.chmod(0o755)
            real_spark.bench.env["PATH"] = f"{submit.parent}:{real_spark.path}"
            conf = {
                "spark.ui.enabled": "true",
                "spark.ui.port": "0",
                "spark.eventLog.enabled": "true",
                "spark.eventLog.compress": "false",
                "spark.eventLog.dir": f"file://{logs}",
                # A user's own, without ours.
                "spark.redaction.regex": "(?i)secret",
                "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={listening}",
            }
        outcome = real_spark.run(
            program(home),
            home,
            conf=conf,
            evidence="listener",
            lineage_required=True,
            lineage_dir=None,
            # As a path: the driver of a cluster is handed none of the worker's own cache.
            openlineage_jar=str(next(real_spark.fast.jar_cache.rglob("openlineage-spark_2.13-*.jar"))),
        )
        assert outcome.error is None, outcome.printed
        events[how] = told(outcome, home)
        collection = outcome.lineage["run_facets"]["sparkLineage_collection"]
        assert collection["collectedFrom"] == ["directory" if how == "directory" else "receiver"]
        assert collection["setAside"] == {}
        token = (home / "token").read_text()
        assert len(token) == (4 if how == "directory" else 64)
        if how != "directory":
            kept = b"".join(file.read_bytes() for file in default.rglob("*") if file.is_file())
            for seen in (outcome.printed, json.dumps(outcome.lineage), json.dumps(outcome.store), kept.decode()):
                assert token not in seen
            assert SECRET not in outcome.printed
        if how == "service":
            page = (home / "environment0").read_text() + (home / "environment1").read_text()
            assert "X-Spark-Lineage-Token" in page, "it is shown, and masked"
            (log,) = (file for file in logs.iterdir() if not file.name.startswith("."))
            log_text = log.read_text() if log.is_file() else "".join(part.read_text() for part in log.iterdir())
            assert "X-Spark-Lineage-Token" in log_text
            assert "HttpTransport" in outcome.printed, "at the level TRACE"
            for seen in (page, log_text, (home / "ps").read_text()):
                assert token not in seen
            assert "SparkSubmit" in (home / "ps").read_text()
    (file,) = root.iterdir()
    (copy,) = (one for one in default.rglob("*.ndjson") if file.stem in str(one))
    assert copy.read_bytes() == file.read_bytes() != b""
    assert events["service"] == events["directory"]
    assert events["service"][1][0]["name"].endswith("/big")


def test_the_driver_is_told_by_properties_with_the_token_off_the_command_line(bench: Any, service: Any) -> None:
    service()
    own = {f"{PREFIX}type": "http", f"{PREFIX}url": "http://own:1"}
    for conf, prefix in (({}, PREFIX), (own, f"{PREFIX}transports.spark_lineage.")):
        outcome = bench.run(conf=conf, lineage_dir=None)
        command = outcome.command
        assert command["conf"][f"{prefix}type"] == "http"
        assert command["conf"][f"{prefix}compression"] == "gzip"
        assert int(command["conf"][f"{prefix}timeoutInMillis"]) <= 5000
        assert f"{prefix}location" not in command["conf"]
        (token,) = re.findall("=([0-9a-f]{64})$", command["properties"]["text"], re.MULTILINE)
        assert command["properties"]["mode"] == 0o600
        assert not Path(command["properties"]["path"]).exists()
        assert token not in str(command["argv"]) + str(command["env"]) + outcome.printed
        # Nothing came: it is said where it was looked for.
        assert "could not reach the receiver" in outcome.printed


def test_driver_in_client_mode_writes_into_the_directory(bench: Any, service: Any) -> None:
    service()
    bench.connection = {"conn_type": "spark", "host": "yarn", "extra": {"receiver_conn_id": "receiver"}}
    outcome = bench.run(lineage=[EVENTS], lineage_dir=None)
    assert outcome.command["conf"][f"{PREFIX}type"] == "file"
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"host": "receiver", "password": "too short"}, "no password of 32 characters"),
        ({"host": "ftp://receiver", "password": SECRET}, "has no host such as"),
        (None, "isn't defined"),
    ],
)
def test_a_receiver_that_cannot_be_used_costs_no_lineage(bench: Any, connection: Any, said: str) -> None:
    bench.connection = IN_CLUSTER
    if connection is not None:
        bench.env["AIRFLOW_CONN_RECEIVER"] = json.dumps({"conn_type": "http", **connection})
    outcome = bench.run(lineage=[EVENTS], lineage_dir=None)
    assert outcome.error is None
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert said in outcome.printed
    assert "through the lineage directory" in outcome.printed
    assert SECRET not in outcome.printed


def test_a_receiver_that_knows_no_token_of_ours_is_not_used(bench: Any, service: Any) -> None:
    service()
    connection = json.loads(bench.env["AIRFLOW_CONN_RECEIVER"]) | {"password": SECRET[::-1]}
    bench.env["AIRFLOW_CONN_RECEIVER"] = json.dumps(connection)
    outcome = bench.run(lineage=[EVENTS], lineage_dir=None)
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert "HTTP 401" in outcome.printed
    assert "through the lineage directory" in outcome.printed


def test_a_receiver_that_is_away_may_be_back_when_the_driver_sends(bench: Any, service: Any) -> None:
    service()
    connection = json.loads(bench.env["AIRFLOW_CONN_RECEIVER"]) | {"port": 1}
    bench.env["AIRFLOW_CONN_RECEIVER"] = json.dumps(connection)
    outcome = bench.run(lineage_dir=None, evidence="listener")
    facet = outcome.lineage["run_facets"]["sparkLineage_collection"]
    assert (facet["collectedFrom"], facet["setAside"]) == (["receiver"], {NO_EVENTS: 1})
    assert "the receiver http://127.0.0.1:1 cannot be asked" in outcome.printed


def launched(tmp_path: Path, receiver: str) -> Launch:
    directory = tmp_path / "launch"
    directory.mkdir(exist_ok=True)
    return Launch(str(directory), "0193a4b2-7c1d-7e3f-8a5b-1c2d3e4f5a6b", receiver=receiver, events_from="receiver")


@pytest.mark.parametrize(("sent", "lost"), [(None, ""), (-1, NO_END), (0, NO_EVENTS)])
def test_what_the_receiver_has_not_got_is_said(
    tmp_path: Path, bench: Any, service: Any, caplog: pytest.LogCaptureFixture, sent: int | None, lost: str
) -> None:
    launch = launched(tmp_path, "receiver")
    guard, file = Guard(lambda: False, logging.getLogger("task")), Path(launch.directory) / EVENTS_FILE
    service()
    base = f"http://127.0.0.1:{json.loads(bench.env['AIRFLOW_CONN_RECEIVER'])['port']}"
    channel = EventChannel(Launch("", ""), SimpleNamespace(), guard)
    channel._source = ReceivedEvents(ReceiverService(base, SECRET.encode()), launch.application_run_id, file)
    url = f"{base}{ENDPOINT}{launch.application_run_id}"
    headers = {TOKEN_HEADER: token_of(SECRET.encode(), launch.application_run_id)}
    lines = EVENTS.read_bytes().splitlines()[:sent]
    for line in [*lines, b"torn", b"torn"]:
        assert requests.post(url, line, headers=headers, timeout=5).status_code == (400 if line == b"torn" else 201)
    collector = DirectoryCollector(file.parent)
    began = time.monotonic()
    channel.finish(collector, Deadline(0.8))
    assert time.monotonic() - began < 2
    collector.finish()
    assert collector.counts.read == len(lines)
    assert collector.counts.set_aside == {REFUSED: 2} | ({lost: 1} if lost else {})
    assert f"({REFUSED}): 2" in caplog.text
    assert ("did not all come" in caplog.text) is bool(lost)


def test_the_last_events_are_waited_for_a_little_and_their_source_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_channel, "_PATIENCE_SECONDS", 0.1)
    closed: list[bool] = []
    channel = EventChannel(Launch("", ""), SimpleNamespace(), Guard(lambda: False, logging.getLogger("task")))
    channel._source = EventSource("", tmp_path / EVENTS_FILE)
    monkeypatch.setattr(channel._source, "close", lambda: closed.append(True))
    collector, began = DirectoryCollector(tmp_path), time.monotonic()
    channel.finish(collector, Deadline(12))
    assert time.monotonic() - began < 6
    assert collector.counts.set_aside == {NO_EVENTS: 1}
    assert closed == [True]


def test_a_lost_try_has_what_the_service_has_taken(bench: Any, service: Any, tmp_path: Path) -> None:
    root, launch = service(), launched(tmp_path, "receiver")
    (root / f"{launch.application_run_id}.ndjson").write_bytes(EVENTS.read_bytes())
    file = tmp_path / "launch.json"
    file.write_bytes(msgspec.json.encode(launch))
    env = {**os.environ, **bench.env, "AIRFLOW_HOME": str(tmp_path / "airflow")}
    done = subprocess.run(
        [sys.executable, "-c", RECOVERY, file], env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [["receiver"], ["/data/lab/out/a_parquet"]]
    assert SECRET not in done.stdout + done.stderr


RECOVERY = """
import json, logging, pathlib, sys
import msgspec
from spark_lineage.launch.launch import Launch, TaskKey
from spark_lineage.recover.recovery import recover
from spark_lineage.recover.search import LostTry
from spark_lineage.settings.places import Places
logging.basicConfig(stream=sys.stderr)
launch = msgspec.json.decode(pathlib.Path(sys.argv[1]).read_bytes(), type=Launch)
lost = LostTry(TaskKey("dag", "run", "task"), launch, end="success")
found = recover(lost, Places(), ended_processes=0, logger=logging.getLogger("task"))
names = [one.dataset.name for one in found.lineage.outputs or found.lineage.attempted]
print()
print(json.dumps([sorted(found.counts.sources), names]))
"""
