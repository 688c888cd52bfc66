"""How a driver is told to send its raw events itself: real operator, real hook, a fake ``spark-submit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
SECRET = "hunter2ofthedriver"  # noqa: S105
PREFIX = "spark.openlineage.transport."


@pytest.fixture
def driver(bench: Any) -> Any:
    """A task whose driver sends to a connection."""
    bench.env["AIRFLOW__SPARK_LINEAGE__DRIVER_OPENLINEAGE_CONN_ID"] = "raw"

    def run(connection: dict[str, Any], **scenario: Any) -> Any:
        bench.env["AIRFLOW_CONN_RAW"] = json.dumps({"conn_type": "openlineage", **connection})
        return bench.run(lineage=[EVENTS], **scenario)

    return run


def test_http_is_told_by_properties_with_the_secret_off_the_command_line(driver: Any) -> None:
    outcome = driver({"host": "http://marquez:5000", "password": SECRET})
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    conf, properties = outcome.command["conf"], outcome.command["properties"]
    assert conf[f"{PREFIX}type"] == "composite"
    assert conf[f"{PREFIX}transports.user.url"] == "http://marquez:5000"
    assert "api[.]?key" in conf["spark.redaction.regex"]
    assert SECRET not in str(outcome.command["argv"])
    assert SECRET in properties["text"]
    assert properties["mode"] == 0o600
    assert not Path(properties["path"]).exists()
    assert SECRET not in outcome.printed


def test_a_transport_of_the_users_own_stays(driver: Any) -> None:
    own = {f"{PREFIX}type": "http", f"{PREFIX}url": "http://own:1"}
    conf = driver({"host": "http://marquez:5000"}, conf=own).command["conf"]
    assert conf[f"{PREFIX}transports.user.url"] == "http://own:1"
    assert "marquez" not in str(conf)


KAFKA = {
    "host": "broker:9092",
    "login": "me",
    "password": SECRET,
    "extra": {"kind": "kafka", "topic": "raw", "sasl_mechanism": "SCRAM-SHA-512"},
}

CLIENT = {"jars": "/opt/kafka-clients.jar"}


def test_kafka_is_told_in_a_private_file(driver: Any, bench: Any) -> None:
    outcome = driver(KAFKA, **CLIENT, conf={"spark.openlineage.facets.debug.disabled": "false"})
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    conf, env = outcome.command["conf"], outcome.command["env"]
    assert not [key for key in conf if key.startswith(PREFIX)]
    assert [key for key in conf if key.startswith("spark.openlineage.facets.")] == [
        "spark.openlineage.facets.debug.disabled"
    ]
    file = Path(env["OPENLINEAGE_CONFIG"])
    assert not file.exists()
    transports = json.loads(outcome.command["config"]["text"])["transport"]["transports"]
    assert outcome.command["config"]["mode"] == 0o600
    assert transports["spark_lineage"] == {"type": "file", "location": str(file.with_name("openlineage-events.ndjson"))}
    assert transports["user"]["properties"]["bootstrap.servers"] == "broker:9092"
    assert SECRET in transports["user"]["properties"]["sasl.jaas.config"]
    for text in (
        str(outcome.command["argv"]),
        outcome.printed,
        *(path.read_text() for path in bench.lineage_dir.rglob("*.json*")),
    ):
        assert SECRET not in text


@pytest.mark.parametrize(
    ("connection", "arguments", "said"),
    [
        ({"host": "http://marquez:5000", "extra": {"kind": "composite"}}, {}, "sends no raw events"),
        (
            KAFKA,
            {**CLIENT, "conf": {f"{PREFIX}type": "http", f"{PREFIX}url": "http://own:1"}},
            "OpenLineage transport of its own",
        ),
        (KAFKA, {}, "the driver has no Kafka client"),
        (KAFKA, {"collect": "kafka"}, "not by kafka: JarNotFoundError: the driver has no Kafka client"),
    ],
)
def test_what_the_driver_cannot_use_costs_no_lineage(
    driver: Any, connection: dict[str, Any], arguments: dict[str, Any], said: str
) -> None:
    outcome = driver(connection, **arguments)
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert said in outcome.printed
    assert SECRET not in outcome.printed


def test_a_kafka_transport_of_the_jobs_own_is_left_alone_and_said(bench: Any) -> None:
    # The listener loses all events, its own and ours, where such a one is a member of a composite.
    conf = {f"{PREFIX}type": "kafka", f"{PREFIX}topicName": "own", f"{PREFIX}properties.bootstrap.servers": "b:1"}
    outcome = bench.run(conf=conf)
    assert outcome.error is None
    assert {key: value for key, value in outcome.command["conf"].items() if key.startswith(PREFIX)} == conf
    assert "driver_openlineage_conn_id" in outcome.printed
