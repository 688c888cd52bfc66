"""What is counted of the tasks of a real application, against what Spark itself says of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from standalone_cluster import compiled, standalone_cluster

from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import Accumulator, TaskNumbers
from spark_lineage.plans.event_log import read_event_log
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources

PROGRAM = Path(__file__).parent / "programs" / "Numbers.java"
LINES = 90
CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.task.maxFailures": "2",
    "spark.shuffle.spill.numElementsForceSpillThreshold": "5000",
    "spark.ui.port": "0",
    "spark.eventLog.enabled": "true",
}

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.fixture(scope="module")
def printed(processes: Any, spark_env: dict[str, str], history_server: str) -> str:
    """What the program has printed, on executors of a cluster."""
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler is installed (javac is not on the PATH)")
    folder = processes.folder
    jar = compiled(PROGRAM, folder)
    (folder / "orders.txt").write_text("".join(f"order {number}\n" for number in range(LINES)))
    conf = CONF | {"spark.eventLog.dir": str(folder / "events")}
    options = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
    with standalone_cluster(folder, spark_env) as cluster:
        submit = str(shutil.which("spark-submit", path=spark_env["PATH"]))
        command = [submit, "--master", cluster.url, *options, "--class", "Numbers", str(jar)]
        done = subprocess.run(
            [*command, str(folder / "orders.txt"), str(folder / "out")],
            env=spark_env, capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


@pytest.fixture(scope="module")
def said(printed: str, processes: Any, history_server: str) -> tuple[str, Any]:
    """The id of the application, and what the History Server says of its stages and executors."""

    def completed() -> Any:
        found = asked(f"{history_server}/api/v1/applications?status=completed")
        return found and found[0]["id"]

    application_id = processes.wait_for("the application", completed)
    return application_id, {
        what: asked(f"{history_server}/api/v1/applications/{application_id}/{what}")
        for what in ("stages", "allexecutors")
    }


def asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - the loopback
        return json.load(reply)


def logged(processes: Any) -> TaskNumbers:
    told: list[Any] = []
    list(read_event_log(processes.folder / "events", report=told.append))
    (found,) = (one for one in told if isinstance(one, TaskNumbers))
    return found


def test_the_log_says_what_spark_says(printed: str, said: tuple[str, Any], processes: Any) -> None:
    application_id, answers = said
    numbers = logged(processes)

    def of_stages(key: str) -> int:
        return sum(stage[key] for stage in answers["stages"])

    def of_executors(key: str) -> int:
        return sum(executor[key] for executor in answers["allexecutors"])

    assert (numbers.application_id, numbers.attempt_id, numbers.source) == (application_id, "", "event log")
    assert numbers.finished == of_stages("numCompleteTasks") == of_executors("completedTasks")
    assert numbers.failed == of_stages("numFailedTasks")
    assert numbers.killed == of_stages("numKilledTasks")
    assert numbers.bytes_read == of_stages("inputBytes") == of_executors("totalInputBytes")
    assert numbers.bytes_written == of_stages("outputBytes")
    assert numbers.memory_bytes_spilled == of_stages("memoryBytesSpilled")
    assert numbers.disk_bytes_spilled == of_stages("diskBytesSpilled")
    assert numbers.run_millis == of_stages("executorRunTime")
    assert numbers.gc_millis == of_stages("jvmGcTime") == of_executors("totalGCTime")
    # All of it has happened.
    assert numbers.failed >= 4
    assert numbers.killed >= 2
    assert min(numbers.memory_bytes_spilled, numbers.disk_bytes_spilled, numbers.run_millis, numbers.gc_millis) > 0
    assert numbers.bytes_read >= sum(len(f"order {number}\n") for number in range(LINES))
    written = [path.stat().st_size for path in (processes.folder / "out").glob("part-*")]
    assert numbers.bytes_written >= sum(written) > 0
    assert {stage["attemptId"] for stage in answers["stages"]} >= {0, 1}


def test_accumulators_are_those_that_the_program_sees(printed: str, said: tuple[str, Any], processes: Any) -> None:
    found = re.search(r"lines read: (\d+), amount: ([\d.]+)", printed)
    assert found is not None, printed
    assert logged(processes).accumulators == (
        Accumulator("amount", float(found[2])),
        Accumulator("lines read", int(found[1])),
        Accumulator("rows of a batch", 3 * 2 * 5),
    )
    assert float(found[2]) == LINES / 2


def test_the_history_server_says_the_same(said: tuple[str, Any], processes: Any, history_server: str) -> None:
    endpoints = Endpoints("local", "client", {"history_server_url": history_server})
    (numbers,) = Sources(endpoints, Driver(application_id=said[0])).numbers()
    assert numbers == structs.replace(logged(processes), source="History Server")


def test_a_log_that_is_cut_off_says_what_it_has(said: tuple[str, Any], processes: Any, tmp_path: Path) -> None:
    whole = logged(processes)
    copy = tmp_path / "events"
    shutil.copytree(processes.folder / "events", copy)
    (part,) = (path for path in copy.rglob("*") if path.name.startswith("events_"))
    content = part.read_bytes()
    part.write_bytes(content[: len(content) * 2 // 3])
    told: list[Any] = []
    list(read_event_log(copy, report=told.append))
    numbers = next(one for one in told if isinstance(one, TaskNumbers))
    assert 0 < numbers.tasks < whole.tasks
    assert 0 < numbers.run_millis <= whole.run_millis
