"""Tasks whose events come from the driver's log or from a topic of Kafka; real clusters are in ``tests/clusters``."""

from __future__ import annotations

import json
import logging
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster_manager import APPLICATION_ID, Cluster
from lineage_backends.kafka import COORDINATES
from lineage_backends.maven import jars

from spark_lineage.launch.launch import Launch, LostTry, TaskKey
from spark_lineage.recover.recovery import recover
from spark_lineage.settings.places import Places

if TYPE_CHECKING:
    from collections.abc import Callable

    from lineage_backends.kafka import Kafka
    from real_spark import RealSpark

LOG = Path(__file__).parents[1] / "fixtures" / "driver_logs" / "plain.log"
RUN = "01900000-0000-7000-8000-000000000001"
EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
PREFIX = "spark.openlineage.transport."
PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
orders = spark.read.option("header", True).csv(sys.argv[1] + "/orders.csv")
orders.where("amount > 10").write.parquet(sys.argv[1] + "/big")
spark.stop()
"""
LINE = f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"


@pytest.fixture
def submit(bench: Any) -> Callable[..., Any]:
    """Submits to a YARN whose NodeManager gives a log of the driver."""

    def run(log: bytes, **arguments: Any) -> Any:
        with Cluster(["SUCCEEDED"]).serving() as cluster:
            cluster.log = log
            extra = {
                "deploy-mode": "cluster",
                "yarn_resourcemanager_webapp_address": f"http://127.0.0.1:{cluster.port}",
            }
            bench.connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
            # As recorded.
            conf = {"spark.openlineage.applicationRunId": RUN, **arguments.pop("conf", {})}
            return bench.run(
                **{"log": [LINE], "store": {}, "evidence": "listener", "status_poll_interval": 0, **arguments},
                conf=conf,
            )

    return run


def collection(outcome: Any) -> dict[str, Any]:
    facet = outcome.lineage["run_facets"]["sparkLineage_collection"]
    return {key: facet[key] for key in ("linesRead", "setAside", "collectedFrom")}


@pytest.mark.parametrize("deferrable", [False, True])
def test_events_come_from_the_log(submit: Callable[..., Any], deferrable: bool) -> None:
    outcome = submit(LOG.read_bytes(), collect="driver_log", deferrable=deferrable)
    assert outcome.error is None, outcome.printed
    assert outcome.command["conf"][f"{PREFIX}type"] == "console"
    assert f"{PREFIX}location" not in outcome.command["conf"]
    assert (outcome.names("inputs"), outcome.names("outputs")) == (["/data/lab/orders.csv"], ["/data/lab/big"])
    assert collection(outcome) == {"linesRead": 12, "setAside": {}, "collectedFrom": ["driver_log"]}
    assert "its log, which is read from the cluster (collect=driver_log)" in outcome.printed


def test_a_job_that_prints_its_events_anyway_needs_no_setting(submit: Callable[..., Any]) -> None:
    outcome = submit(LOG.read_bytes(), conf={f"{PREFIX}type": "console"}, lineage_dir=None)
    assert outcome.command["conf"][f"{PREFIX}type"] == "console"
    assert collection(outcome)["collectedFrom"] == ["driver_log"]


def test_auto_does_not_print_events_into_a_log(submit: Callable[..., Any]) -> None:
    outcome = submit(LOG.read_bytes(), lineage_dir=None)
    assert outcome.command["conf"][f"{PREFIX}type"] == "file"
    assert "No lineage came from the driver" in outcome.printed


def test_a_log_that_ends_early_is_said(submit: Callable[..., Any]) -> None:
    content = LOG.read_bytes()
    outcome = submit(content[: content.rfind(b"ConsoleTransport") + 500], collect="driver_log")
    assert outcome.names("outputs") == ["/data/lab/big"]
    assert collection(outcome)["setAside"] == {"not JSON": 1, "events without the application's end": 1}
    assert "did not all come: events without the application's end" in outcome.printed


def test_a_log_without_events_says_what_to_check(submit: Callable[..., Any]) -> None:
    outcome = submit(b"26/11/25 03:52:05 WARN NativeCodeLoader: nothing\n", collect="driver_log")
    assert outcome.error is None
    assert "its level leaves out the lines of ConsoleTransport" in outcome.printed


def test_in_client_mode_the_log_is_that_of_the_task(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], collect="driver_log")
    assert outcome.command["conf"][f"{PREFIX}type"] == "file"
    assert collection(outcome)["collectedFrom"] == ["directory"]
    assert "The driver runs on this machine" in outcome.printed


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({}, "names no topic or no bootstrap.servers"),
        ({"topicName": "events", "properties.bootstrap.servers": "127.0.0.1:1"}, "the Kafka topic events"),
    ],
)
def test_a_topic_that_cannot_be_read_costs_no_more_than_the_listener(
    bench: Any, conf: dict[str, str], said: str
) -> None:
    conf = {f"{PREFIX}{key}": value for key, value in {"type": "kafka", **conf}.items()}
    outcome = bench.run(conf=conf)
    assert outcome.error is None
    assert said in outcome.printed
    assert "not by kafka" in outcome.printed
    assert "a form that a second one cannot be added to" in outcome.printed
    assert outcome.command["conf"][f"{PREFIX}type"] == "kafka"


def test_a_lost_try_has_what_its_driver_has_printed(tmp_path: Path) -> None:
    with Cluster(["SUCCEEDED"]).serving() as cluster:
        cluster.log = LOG.read_bytes()
        launch = Launch(
            str(tmp_path / "launch"),
            RUN,
            external_id=APPLICATION_ID,
            master="yarn",
            deploy_mode="cluster",
            yarn_urls=(f"http://127.0.0.1:{cluster.port}",),
            events_from="driver_log",
        )
        lost = LostTry(TaskKey("dag", "run", "task"), launch, end="failed")
        found = recover(lost, Places(), ended_processes=0, logger=logging.getLogger("task"))
    assert found.counts.sources == {"driver_log"}
    assert [one.dataset.name for one in found.lineage.outputs] == ["/data/lab/big"]
    assert found.lineage.state == "COMPLETE"


@pytest.mark.spark
@pytest.mark.truth
def test_events_come_from_the_topic_of_a_connection(real_spark: RealSpark, kafka: Kafka, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,amount\n1,10\n2,20\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    topic = kafka.create_topic(f"events-{uuid.uuid4().hex}", 2)
    host, port = kafka.bootstrap.split(":")
    connection = {
        "conn_type": "openlineage",
        "host": host,
        "port": int(port),
        "login": kafka.user,
        "password": kafka.password,
        "extra": {
            "kind": "kafka",
            "topic": topic,
            "sasl_mechanism": "SCRAM-SHA-512",
            "security_protocol": "sasl_plaintext",
        },
    }
    real_spark.bench.env = {"AIRFLOW_CONN_TOPIC": json.dumps(connection)}
    (client,) = jars("kafka", COORDINATES).glob("kafka-clients-*.jar")
    outcome = real_spark.run(
        tmp_path / "program.py",
        tmp_path,
        evidence="listener",
        collect="kafka",
        driver_openlineage_conn_id="topic",
        jars=str(client),
        lineage_required=True,
    )
    assert outcome.error is None, outcome.printed
    assert outcome.names("outputs") == [str(tmp_path / "big")]
    found = collection(outcome)
    assert (found["collectedFrom"], found["setAside"]) == (["kafka"], {}), outcome.printed
    assert found["linesRead"] == len(kafka.read(topic, found["linesRead"]))
    assert kafka.password not in outcome.printed + json.dumps(outcome.lineage)
