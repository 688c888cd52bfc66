"""The event log of a real driver in a real HDFS, read over WebHDFS while it is written."""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lineage_backends.maven import jars, java
from lineage_backends.processes import HOST, Server, free_ports, run

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "3.4.2"
# With those of YARN, so that one folder of the cache serves both.
SERVERS = ("resourcemanager", "nodemanager", "timelineservice")
MODULES = ("common", "hdfs", "hdfs-client", *(f"yarn-server-{name}" for name in SERVERS))
OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "lang.reflect")]
JVM = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *OPENED]
NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
LOG = """log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.SimpleLayout
"""
# It goes on until an event of the task names what it has read.
PROGRAM = """
import sys, time, pathlib
from pyspark.sql import SparkSession
home = pathlib.Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
orders = spark.read.option("header", True).csv(str(home / "orders.csv"))
orders.select("id", "shop").write.json(str(home / "shops"))
events, end = home / "events.ndjson", time.time() + 60
while time.time() < end and "orders.csv" not in (events.read_text() if events.exists() else ""):
    time.sleep(0.2)
orders.groupBy("shop").count().write.parquet(str(home / "counts"))
spark.stop()
"""
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of a NameNode that has one DataNode: ``hdfs://…`` and of WebHDFS."""
    if shutil.which(java()) is None:
        pytest.skip("Java 17 is not installed")
    home = tmp_path_factory.mktemp("hdfs")
    rpc, web = free_ports(2)
    _site(home, "core-site", {"fs.defaultFS": f"hdfs://{HOST}:{rpc}", "hadoop.tmp.dir": home / "data"})
    own = {f"dfs.datanode.{name}": f"{HOST}:0" for name in ("address", "http.address", "ipc.address")}
    own |= {"dfs.datanode.hostname": HOST, "dfs.namenode.http-address": f"{HOST}:{web}"}
    _site(home, "hdfs-site", {**own, "dfs.replication": 1, "dfs.permissions.enabled": "false"})
    (home / "log4j.properties").write_text(LOG)
    for name in ("hdfs", "datanode"):
        # Pages that the jars do not have.
        page = home / "webapps" / name / "WEB-INF" / "web.xml"
        page.parent.mkdir(parents=True)
        page.write_text("<web-app/>")
    classes = jars("hadoop", [f"org.apache.hadoop:hadoop-{name}:{VERSION}" for name in MODULES])
    command = [java(), *JVM, "-cp", os.pathsep.join([str(home), f"{classes}/*"])]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HADOOP", "SPARK"))}
    run("the format of HDFS", [*command, NAMENODE, "-format", "-nonInteractive"], env=env)
    servers = [
        Server.start(name.rpartition(".")[2], [*command, name], home / f"{name}.log", env=env)
        for name in (NAMENODE, DATANODE)
    ]
    state = f"http://{HOST}:{web}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"

    def is_ready() -> bool:
        with suppress(OSError, ValueError, LookupError), urllib.request.urlopen(state, timeout=5) as reply:
            return bool(json.load(reply)["beans"][0]["NumLiveDataNodes"])
        return False

    try:
        servers[1].wait_until(is_ready, 60)
        _make_directory(f"http://{HOST}:{web}", "/logs")
        yield f"hdfs://{HOST}:{rpc}", f"http://{HOST}:{web}"
    finally:
        for server in reversed(servers):
            server.stop()


def _site(folder: Path, name: str, properties: dict[str, object]) -> None:
    lines = "".join(f"<property><name>{key}</name><value>{one}</value></property>" for key, one in properties.items())
    (folder / f"{name}.xml").write_text(f"<configuration>{lines}</configuration>")


def _make_directory(webhdfs: str, path: str) -> None:
    asked = urllib.request.Request(f"{webhdfs}/webhdfs/v1{path}?op=MKDIRS", method="PUT")  # noqa: S310 - the loopback
    end = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(asked, timeout=10).close()  # noqa: S310 - the loopback
        except OSError:
            # Safe mode.
            assert time.monotonic() < end
            time.sleep(0.3)
        else:
            return


@pytest.mark.parametrize("is_rolling", [True, pytest.param(False, marks=pytest.mark.truth)])
def test_a_task_tells_of_what_its_driver_writes_while_the_log_is_open(
    real_spark: Any, hdfs: tuple[str, str], tmp_path: Path, is_rolling: bool
) -> None:
    url, webhdfs = hdfs
    program, events = tmp_path / "program.py", tmp_path / "events.ndjson"
    program.write_text(PROGRAM)
    (tmp_path / "orders.csv").write_text("id,shop,amount\n1,a,10\n2,b,20\n3,a,30\n")
    backend = {"kind": "file", "log_file_path": str(events)}
    real_spark.bench.env = {"AIRFLOW_CONN_OUT": json.dumps({"conn_type": "openlineage", "extra": backend})}
    # The first does not answer, as a NameNode that is down.
    real_spark.bench.connection["extra"] = {"webhdfs_url": f"http://{HOST}:1,{webhdfs}"}
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"{url}/logs",
        "spark.eventLog.rolling.enabled": str(is_rolling).lower(),
    }
    outcome = real_spark.run(
        program,
        tmp_path,
        evidence="event_log",
        conf=conf,
        lineage_required=True,
        openlineage_conn_id="out",
        poll_interval_seconds=0.5,
        # The end of another one has been sent already.
        task={"try_number": 1 + is_rolling},
    )
    assert outcome.error is None, outcome.printed
    assert f"The event log is collected from where it lies ({url}/logs)" in outcome.printed
    first, *_, last = [event for event in map(json.loads, events.read_text().splitlines()) if event["inputs"]]
    assert (first["eventType"], last["eventType"]) == ("RUNNING", "COMPLETE")
    assert {one["name"] for one in last["outputs"]} == {str(tmp_path / "shops"), str(tmp_path / "counts")}
    for event in (first, last):
        assert [one["name"] for one in event["inputs"]] == [str(tmp_path / "orders.csv")]
        assert event["run"]["facets"]["sparkLineage_collection"]["collectedFrom"] == ["event_log"]
    assert last["run"]["facets"]["sparkLineage_collection"]["setAside"] == {}
