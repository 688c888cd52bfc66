"""The event log of a real driver in a real HDFS, read over WebHDFS while it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from lineage_backends.processes import HOST

if TYPE_CHECKING:
    from lineage_backends.hadoop import Hadoop

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
pytestmark = [pytest.mark.spark, pytest.mark.shares("hadoop"), pytest.mark.truth]


@pytest.mark.parametrize("is_rolling", [True, False])
def test_a_task_tells_of_what_its_driver_writes_while_the_log_is_open(
    real_spark: Any, hadoop: Hadoop, tmp_path: Path, is_rolling: bool
) -> None:
    url, webhdfs = hadoop.hdfs, hadoop.webhdfs_url
    asked = {"op": "MKDIRS", "user.name": hadoop.user}
    requests.put(f"{webhdfs}/webhdfs/v1/logs", params=asked, timeout=20).raise_for_status()
    program, events = tmp_path / "program.py", tmp_path / "events.ndjson"
    program.write_text(PROGRAM)
    (tmp_path / "orders.csv").write_text("id,shop,amount\n1,a,10\n2,b,20\n3,a,30\n")
    backend = {"conn_type": "openlineage", "host": str(events), "extra": {"kind": "file"}}
    # The courier of another test may still send by a connection of this name.
    outbox = {"AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(tmp_path / "outbox")}
    real_spark.bench.env = {"AIRFLOW_CONN_OUT": json.dumps(backend), **outbox}
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
        lineage_conn_id="out",
        poll_interval_seconds=0.5,
        # The end of another one has been sent already.
        task={"try_number": 1 + is_rolling},
    )
    assert outcome.error is None, outcome.printed
    assert f"the event log is collected from where it lies ({url}/logs)" in outcome.printed
    first, *_, last = [event for event in map(json.loads, events.read_text().splitlines()) if event["inputs"]]
    assert (first["eventType"], last["eventType"]) == ("RUNNING", "COMPLETE")
    assert {one["name"] for one in last["outputs"]} == {str(tmp_path / "shops"), str(tmp_path / "counts")}
    for event in (first, last):
        assert [one["name"] for one in event["inputs"]] == [str(tmp_path / "orders.csv")]
        assert event["run"]["facets"]["sparkLineage_collection"]["collectedFrom"] == ["event_log"]
    assert last["run"]["facets"]["sparkLineage_collection"]["setAside"] == {}
