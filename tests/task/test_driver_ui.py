"""A real job whose event log comes at its end alone: meanwhile its RUNNING events rest on the driver's UI."""

from __future__ import annotations

import io
import json
import threading
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from http_server import Handler, serving

from spark_lineage.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from real_spark import RealSpark

# argv: where to write, and what to wait for in between.
PROGRAM = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
out, released = sys.argv[1], Path(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv(f"{out}/orders.csv", header=True)
orders.groupBy("customer").count().write.parquet(f"{out}/a")
while not released.exists():
    time.sleep(0.1)
spark.read.parquet(f"{out}/a").write.parquet(f"{out}/b")
spark.stop()
"""
SECONDS = 120
ENVIRONMENT = '{"Event":"SparkListenerEnvironmentUpdate"'


@contextmanager
def history(logs: Path) -> Iterator[str]:
    """A History Server that gives a log when it has its end."""

    class Files(Handler):
        def do_GET(self) -> None:
            whole = [path for path in logs.iterdir() if path.suffix != ".inprogress"]
            known = [{"id": path.name, "attempts": [{"completed": True}]} for path in whole]
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w") as archive:
                for path in whole:
                    archive.write(path, path.name)
            answer: Any = known[0] if whole else None
            if self.path.startswith("/api/v1/applications?"):
                answer = known
            elif self.path.endswith("/environment"):
                lines = whole[0].read_text().splitlines()
                (environment,) = (line for line in lines if line.startswith(ENVIRONMENT))
                answer = {"sparkProperties": list(json.loads(environment)["Spark Properties"].items())}
            body = stream.getvalue() if self.path.endswith("/logs") else json.dumps(answer).encode()
            self.answer(body)

    with serving(Files) as url:
        yield url


def columns(event: Any, side: str) -> dict[str, list[str]]:
    """Return the columns of the inputs or outputs of an event, by the last parts of their names."""
    return {
        Path(one["name"]).name: [field["name"] for field in one["facets"]["schema"]["fields"]] for one in event[side]
    }


@pytest.mark.truth
@pytest.mark.spark
@pytest.mark.parametrize(
    "has_history", [pytest.param(True, marks=pytest.mark.nightly), False], ids=["history", "no log"]
)
def test_a_job_that_runs_has_the_inputs_of_what_it_has_done(
    real_spark: RealSpark, openlineage_backend: Any, *, has_history: bool
) -> None:
    bench = real_spark.bench
    logs, released, program = bench.root / "logs", bench.root / "released", bench.root / "job.py"
    logs.mkdir()
    (bench.root / "orders.csv").write_text("id,customer\n1,me\n")
    program.write_text(PROGRAM)
    backend = {"conn_type": "openlineage", "host": openlineage_backend.url}
    bench.env["AIRFLOW_CONN_SHOP"] = json.dumps(backend)
    # Each test has the same run, and no event of it comes after its end.
    bench.env["AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR"] = str(bench.root / "outbox")

    def running() -> list[Any]:
        """Return the RUNNING events that know more than that the schema was looked for."""
        told = [event for event in openlineage_backend.events if event["eventType"] == "RUNNING"]
        return [event for event in told if "schema" in event["inputs"][0]["facets"]]

    def release() -> None:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and not running():
            time.sleep(0.1)
        released.touch()

    waiting = threading.Thread(target=release)
    waiting.start()
    with history(logs) as url:
        bench.connection["extra"] = {"history_server_url": url} if has_history else {}
        enabled = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
        outcome = real_spark.run(
            program,
            bench.root,
            released,
            conf={
                **(enabled if has_history else {"spark.eventLog.enabled": "false"}),
                "spark.eventLog.dir": logs.as_uri(),
                "spark.eventLog.rolling.enabled": "false",
                "spark.ui.enabled": "true",
                "spark.ui.port": "0",
            },
            evidence="event_log" if has_history else "auto",
            collect="history",
            openlineage_jar="/no/such.jar",
            openlineage_conn_id="shop",
            poll_interval_seconds=0.5,
            tracking_interval_seconds=1,
        )
    waiting.join()
    assert outcome.error is None, outcome.printed
    assert running(), outcome.printed
    first = running()[0]
    collection = first["run"]["facets"]["sparkLineage_collection"]
    assert (collection["evidence"], collection["collectedFrom"]) == (["driver_ui"], ["driver_ui"])
    assert columns(first, "inputs") == {"orders.csv": ["customer"]}
    end = openlineage_backend.events[-1]
    assert end["eventType"] == "COMPLETE"
    collection = end["run"]["facets"]["sparkLineage_collection"]
    if not has_history:
        assert (collection["evidence"], collection["collectedFrom"]) == (["driver_ui"], ["driver_ui"])
        assert columns(end, "inputs") == {"orders.csv": ["customer"]}
        assert "a" in columns(end, "outputs")
        return
    assert (collection["evidence"], collection["collectedFrom"]) == (["event_log"], ["history"])
    (log,) = logs.iterdir()
    merged = bench.root / "merged.json"
    assert main(["merge", "--exit-code", "0", "--event-log", str(log), "--output", str(merged)]) == 0
    alone = json.loads(merged.read_text())
    assert (end["inputs"], end["outputs"]) == (alone["inputs"], alone["outputs"])
