"""What tells of a job: the listener, the event log, or both; and what happens where one of them cannot be had."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from real_spark import RealSpark

FIXTURES = Path(__file__).parents[1] / "fixtures"
EVENTS = FIXTURES / "events" / "a_414.ndjson"
# A directory of one file whose schema is inferred, another source, a join, and a second SparkContext after the first.
PROGRAM = """
import sys
from pyspark.sql import SparkSession
home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv(home + "/orders", header=True, inferSchema=True)
shops = spark.read.json(home + "/shops.json")
orders.join(shops, "shop").selectExpr("id", "amount * 2 AS twice", "city").write.parquet(home + "/joined")
spark.stop()
spark = SparkSession.builder.getOrCreate()
spark.read.parquet(home + "/joined").groupBy("city").count().write.orc(home + "/cities")
spark.stop()
"""
NOBODY = "http://127.0.0.1:1"


def files(home: Path) -> Path:
    home.mkdir()
    (home / "orders").mkdir()
    (home / "orders" / "today.csv").write_text("id,shop,amount\n1,a,10\n2,b,20\n3,a,30\n")
    (home / "shops.json").write_text('{"shop": "a", "city": "Ulm"}\n{"shop": "b", "city": "Bonn"}\n')
    program = home / "program.py"
    program.write_text(PROGRAM)
    return program


def without_jar(spark: RealSpark) -> dict[str, str]:
    return {
        "XDG_CACHE_HOME": str(spark.bench.root / "no-jars"),
        "DEFAULT_ARTIFACT_REPOSITORY": NOBODY,
    }


def graph(outcome: Any, home: Path) -> dict[str, Any]:
    """Return what is the same whatever tells of the job, without where its files are."""
    told: dict[str, Any] = {"inputs": sorted(name.removeprefix(str(home)) for name in outcome.names("inputs"))}
    for output in outcome.lineage["outputs"]:
        columns = output["facets"]["columnLineage"]["fields"]
        sources = {
            column: sorted((one["name"].removeprefix(str(home)), one["field"]) for one in found["inputFields"])
            for column, found in columns.items()
        }
        told[output["name"].removeprefix(str(home))] = (sources, output["outputFacets"]["outputStatistics"]["rowCount"])
    return told


@pytest.mark.spark
@pytest.mark.truth
def test_the_event_log_alone_tells_the_same_where_there_is_no_jar(real_spark: RealSpark, tmp_path: Path) -> None:
    graphs = []
    for evidence in ("auto", "both"):
        home = tmp_path / evidence
        real_spark.bench.env = without_jar(real_spark) if evidence == "auto" else {}
        outcome = real_spark.run(files(home), home, evidence=evidence, lineage_required=True)
        assert outcome.error is None, outcome.printed
        told = outcome.lineage["run_facets"]["sparkLineage_collection"]["evidence"]
        assert told == (["event_log"] if evidence == "auto" else ["listener", "event_log"])
        graphs.append(graph(outcome, home))
        assert not list(real_spark.bench.lineage_dir.rglob("event-log")), "it is ours, and was read"
    assert graphs[0] == graphs[1]
    assert graphs[0]["inputs"] == ["/orders", "/shops.json"]
    assert graphs[0]["/cities"][1] == 2


@pytest.mark.spark
@pytest.mark.truth
def test_in_a_directory_of_many_logs_those_of_the_job_are_found(real_spark: RealSpark, tmp_path: Path) -> None:
    home, logs = tmp_path / "home", tmp_path / "history"
    logs.mkdir()
    for other in ("stream", "jdbc", "written.zstd"):
        # Copied just now, as those of jobs that run at the same time.
        shutil.copyfile(FIXTURES / "event_logs" / other, logs / f"local-{other}")
    (logs / "local-7.lz4").write_bytes(b"not read here")
    (logs / "local-8").write_bytes(b"")
    before = {file.name for file in logs.iterdir()}
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{logs}"}
    outcome = real_spark.run(files(home), home, evidence="event_log", conf=conf, lineage_required=True)
    assert outcome.error is None, outcome.printed
    assert graph(outcome, home)["inputs"] == ["/orders", "/shops.json"]
    assert sorted(name.removeprefix(str(home)) for name in outcome.names("outputs")) == ["/cities", "/joined"]
    assert before < {file.name for file in logs.iterdir()}, "they are the user's own, and stay"
    applications = outcome.lineage["run_facets"]["sparkLineage_application"]["applications"]
    assert len({one["applicationId"] for one in applications}) == 2


STREAM = """
import sys, time, pathlib
from pyspark.sql import SparkSession
home = pathlib.Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id INT, shop STRING, amount INT").csv(str(home / "in"))
big = orders.where("amount > 10").selectExpr("id", "shop")
query = big.writeStream.option("checkpointLocation", str(home / "state")).start(str(home / "big"), "parquet")
events = home / "events.ndjson"
# Until an event of ours names what the stream has written.
end = time.time() + 60
while time.time() < end and not (events.exists() and str(home / "big") in events.read_text()):
    time.sleep(0.5)
query.stop()
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.truth
def test_a_stream_is_told_of_while_it_runs_by_its_event_log_alone(real_spark: RealSpark, tmp_path: Path) -> None:
    program, events = tmp_path / "stream.py", tmp_path / "events.ndjson"
    program.write_text(STREAM)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "orders.csv").write_text("1,a,10\n2,b,20\n3,a,30\n")
    backend = {"conn_type": "openlineage", "host": str(events), "extra": {"kind": "file"}}
    # The courier of another test may still send by a connection of this name.
    outbox = {"AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(tmp_path / "outbox")}
    real_spark.bench.env = {"AIRFLOW_CONN_OUT": json.dumps(backend), **outbox}
    outcome = real_spark.run(program, tmp_path, evidence="event_log", lineage_conn_id="out", poll_interval_seconds=0.5)
    assert outcome.error is None, outcome.printed
    assert events.exists(), outcome.printed
    *_, running, end = [json.loads(line) for line in events.read_text().splitlines()]
    assert (running["eventType"], end["eventType"]) == ("RUNNING", "COMPLETE")
    for event in (running, end):
        assert [one["name"] for one in event["inputs"]] == [str(tmp_path / "in")]
        (output,) = event["outputs"]
        assert (output["name"], set(output["facets"]["columnLineage"]["fields"])) == (
            str(tmp_path / "big"),
            {"id", "shop"},
        )
        assert event["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
        assert event["run"]["facets"]["sparkLineage_collection"]["evidence"] == ["event_log"]


TROUBLE = {
    "no such jar": ({"openlineage_jar": "/nowhere/openlineage-spark.jar"}, "warning"),
    "a transport of the job to Kafka": ({"conf": {"spark.openlineage.transport.type": "kafka"}}, "warning"),
    "not in the cache": ({"openlineage_jar": None}, "debug"),
    "not to be downloaded": ({"openlineage_jar": None, "evidence": "both"}, "warning"),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_where_the_listener_cannot_be_had_the_event_log_is_enough(bench: Any, name: str) -> None:
    arguments, level = TROUBLE[name]
    bench.env |= {
        "XDG_CACHE_HOME": str(bench.root / "cache"),
        "DEFAULT_ARTIFACT_REPOSITORY": NOBODY,
    }
    outcome = bench.run(lineage_required=False, **arguments)
    assert outcome.error is None
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without OpenLineage's listener" in line]
    assert f"[{level}" in line
    assert "Lineage comes from Spark's event log" in outcome.printed
    conf = outcome.command["conf"]
    assert conf["spark.eventLog.dir"].startswith(f"file://{bench.lineage_dir}")
    assert "spark.extraListeners" not in conf
    assert conf["spark.openlineage.applicationRunId"] in conf["spark.eventLog.dir"]
    assert conf.get("spark.openlineage.transport.type") == arguments.get("conf", {}).get(
        "spark.openlineage.transport.type"
    )
    assert "No lineage came from the driver: no event log of it in" in outcome.printed


def test_where_the_event_log_is_wanted_alone_nothing_else_is_looked_for(bench: Any) -> None:
    outcome = bench.run(evidence="event_log", openlineage_jar="/nowhere.jar")
    assert "/nowhere.jar" not in outcome.printed
    assert "without OpenLineage's listener" not in outcome.printed
    assert not {"--jars", "--driver-class-path"} & {*outcome.command["argv"]}


def test_where_there_is_neither_the_log_says_why(bench: Any) -> None:
    arguments = {"openlineage_jar": "/nowhere.jar", "conf": {"spark.eventLog.enabled": "false"}}
    outcome = bench.run(**arguments)
    assert outcome.error is None
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without lineage" in line]
    assert "/nowhere.jar" in line
    assert "spark.eventLog.enabled is false" in line
    assert bench.run(**arguments, lineage_required=True).error.startswith("LineageRequiredError")


UNREAD = {
    "spark.eventLog.dir is not an absolute path on this machine": {"spark.eventLog.dir": "hdfs://nn/logs"},
    # As Spark 4 compresses by itself.
    "spark.eventLog.compression.codec is lz4, and only zstd is read": {"spark.eventLog.compression.codec": "lz4"},
}


@pytest.mark.parametrize("reason", UNREAD)
def test_where_no_event_log_can_be_read_the_jar_is_worth_a_download(bench: Any, reason: str) -> None:
    bench.env |= {
        "XDG_CACHE_HOME": str(bench.root / "jars"),
        "DEFAULT_ARTIFACT_REPOSITORY": NOBODY,
    }
    outcome = bench.run(openlineage_jar=None, conf={"spark.eventLog.enabled": "true", **UNREAD[reason]})
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without lineage" in line]
    assert "Cannot download the OpenLineage listener jar" in line
    assert reason in line
    assert "without OpenLineage's listener" not in outcome.printed


def test_the_listener_alone_has_no_event_log(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], evidence="listener")
    assert not [key for key in outcome.command["conf"] if key.startswith("spark.eventLog.")]
    assert outcome.lineage["run_facets"]["sparkLineage_collection"]["evidence"] == ["listener"]


@pytest.mark.parametrize("evidence", ["auto", "event_log"])
def test_a_program_that_names_the_settings_may_leave_nothing_but_the_jar(bench: Any, evidence: str) -> None:
    """It gets no event log of ours, for it may have one of its own: then nothing else would tell of the job."""
    bench.env |= {
        "XDG_CACHE_HOME": str(bench.root / "jars"),
        "DEFAULT_ARTIFACT_REPOSITORY": NOBODY,
    }
    program = bench.root / "names_it.py"
    program.write_text("# looks at eventLog\n")
    outcome = bench.run(openlineage_jar=None, evidence=evidence, application=str(program))
    assert "The program names settings of event logs, so no event log is added" in outcome.printed
    assert ("Cannot download the OpenLineage listener jar" in outcome.printed) is (evidence == "auto")


def test_after_a_driver_that_died_of_memory_the_next_try_has_no_listener(bench: Any) -> None:
    program = str(bench.file("job.py", b""))
    oom = ["java.lang.OutOfMemoryError: Java heap space"]
    first, second = (
        bench.run(application=program, evidence="auto", lineage=[EVENTS], log=oom, exit_code=52) for _ in range(2)
    )
    assert "spark.extraListeners" in first.command["conf"]
    assert "spark.extraListeners" not in second.command["conf"]
    assert "Spark's event log (the driver ran out of memory with OpenLineage's listener on 20" in second.printed
    assert "spark.extraListeners" in bench.run(application=program, evidence="both").command["conf"]
