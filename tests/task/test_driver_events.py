"""Tasks whose events come from the driver's log; real clusters are in ``tests/clusters``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster_manager import APPLICATION_ID, Cluster
from lineage_backends.hadoop import write_site

from spark_lineage.launch.launch import Launch, TaskKey
from spark_lineage.recover.recovery import recover
from spark_lineage.recover.search import LostTry
from spark_lineage.settings.places import Places
from spark_lineage.submission.driver_log import events_of

if TYPE_CHECKING:
    from collections.abc import Callable


LOG = Path(__file__).parents[1] / "fixtures" / "driver_logs" / "plain.log"
RUN = "01900000-0000-7000-8000-000000000001"
EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
PREFIX = "spark.openlineage.transport."
OPTIONS = "spark.driver.extraJavaOptions"
IN_LOGS = f"-D{PREFIX}location=<LOG_DIR>/openlineage-events.ndjson"
LINE = f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"


@pytest.fixture
def submit(bench: Any) -> Callable[..., Any]:
    """Submits to a YARN whose NodeManager gives a log of the driver."""

    def run(log: bytes, events: bytes | None = None, **arguments: Any) -> Any:
        with Cluster(["SUCCEEDED"]).serving() as cluster:
            cluster.log, cluster.events = log, events
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
    outcome = submit(LOG.read_bytes(), lineage_dir=None, deferrable=deferrable)
    assert outcome.error is None, outcome.printed
    assert outcome.command["conf"][f"{PREFIX}type"] == "file"
    assert f"{PREFIX}location" not in outcome.command["conf"]
    assert outcome.command["conf"][OPTIONS] == IN_LOGS
    assert (outcome.names("inputs"), outcome.names("outputs")) == (["/data/lab/orders.csv"], ["/data/lab/big"])
    assert collection(outcome) == {"linesRead": 12, "setAside": {}, "collectedFrom": ["driver_log"]}
    assert "its log, which is read from the cluster" in outcome.printed


def test_a_job_that_prints_its_events_anyway_needs_no_setting(submit: Callable[..., Any]) -> None:
    outcome = submit(LOG.read_bytes(), conf={f"{PREFIX}type": "console"}, lineage_dir=None)
    assert outcome.command["conf"][f"{PREFIX}type"] == "console"
    assert collection(outcome)["collectedFrom"] == ["driver_log"]


def test_driver_on_yarn_without_settings_writes_its_events_beside_its_log(submit: Callable[..., Any]) -> None:
    events = b"".join(event + b"\n" for line in LOG.read_bytes().splitlines() for event in events_of(line))
    outcome = submit(b"a log of WARN alone\n", events, lineage_dir=None, conf={OPTIONS: "-Da=b"})
    assert outcome.command["conf"][OPTIONS] == f"-Da=b {IN_LOGS}"
    assert "its log, which is read from the cluster" in outcome.printed
    assert collection(outcome) == {"linesRead": 12, "setAside": {}, "collectedFrom": ["driver_log"]}


def test_driver_log_of_a_job_without_the_listener_is_not_missed(submit: Callable[..., Any]) -> None:
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "memory://logs"}
    outcome = submit(b"", lineage_dir=None, evidence="auto", openlineage_jar="/gone.jar", conf=conf)
    assert "did not all come" not in outcome.printed
    assert OPTIONS not in outcome.command["conf"]


def test_driver_log_that_no_server_gives_is_said_to_be_out_of_reach(bench: Any) -> None:
    bench.connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    outcome = bench.run(log=[LINE], lineage_dir=None, evidence="listener")
    assert "No lineage can come back from YARN" in outcome.printed


def test_a_log_that_ends_early_is_said(submit: Callable[..., Any]) -> None:
    content = LOG.read_bytes()
    outcome = submit(content[: content.rfind(b"ConsoleTransport") + 500], lineage_dir=None)
    assert outcome.names("outputs") == ["/data/lab/big"]
    assert collection(outcome)["setAside"] == {"not JSON": 1, "events without the application's end": 1}
    assert "did not all come: events without the application's end" in outcome.printed


def test_a_log_without_events_says_what_to_check(submit: Callable[..., Any]) -> None:
    outcome = submit(b"26/11/25 03:52:05 WARN NativeCodeLoader: nothing\n", lineage_dir=None)
    assert outcome.error is None
    assert "its level leaves out the lines of ConsoleTransport" in outcome.printed


def test_a_job_that_writes_its_events_to_kafka_keeps_that_and_has_the_log_alone(bench: Any) -> None:
    conf = {f"{PREFIX}type": "kafka", f"{PREFIX}topicName": "events"}
    outcome = bench.run(conf=conf)
    assert outcome.error is None
    assert "transport to Kafka stays its only one" in outcome.printed
    assert "Lineage comes from Spark's event log" in outcome.printed
    assert outcome.command["conf"][f"{PREFIX}type"] == "kafka"
    assert "spark.extraListeners" not in outcome.command["conf"]


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


def test_event_log_on_hdfs_is_collected_by_the_client_s_own_configuration(bench: Any, tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    write_site(conf, "core-site", {"fs.defaultFS": "hdfs://lake"})
    nodes = {
        "dfs.nameservices": "lake",
        "dfs.ha.namenodes.lake": "a",
        "dfs.namenode.http-address.lake.a": "127.0.0.1:1",
    }
    write_site(conf, "hdfs-site", nodes)
    bench.connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    bench.env["HADOOP_CONF_DIR"] = str(conf)
    bench.defaults = (
        "spark.eventLog.enabled true\nspark.eventLog.dir hdfs:///logs\nspark.yarn.historyServer.address history:1\n"
    )
    outcome = bench.run(log=[LINE], lineage_dir=None, store={}, lineage_timeout=0.5)
    assert "the event log is collected from where it lies (hdfs:///logs)" in outcome.printed
    launch = outcome.store["spark_lineage_launch"]
    assert launch["webhdfs_urls"] == ["http://127.0.0.1:1"]
    assert launch["history_url"] == "http://history:1"
