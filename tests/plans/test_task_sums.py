"""What the tasks of an application did, by the lines of its event log."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zstandard

from spark_lineage.merge.transition import MAX_ACCUMULATORS, Accumulator, TaskNumbers
from spark_lineage.plans.event_log import EventLogReader, read_event_log

LOG = Path(__file__).parents[1] / "fixtures" / "task_ends.zstd"
METRICS = {
    "Executor Run Time": 100,
    "JVM GC Time": 10,
    "Memory Bytes Spilled": 7,
    "Disk Bytes Spilled": 3,
    "Input Metrics": {"Bytes Read": 1000, "Records Read": 5},
    "Output Metrics": {"Bytes Written": 500, "Records Written": 5},
    "Updated Blocks": [],
}
INTERNAL = {"ID": 1, "Name": "internal.metrics.executorRunTime", "Update": 100, "Value": 100, "Internal": True}
SQL = {"ID": 2, "Name": "number of output rows", "Update": "5", "Value": "5", "Internal": True, "Metadata": "sql"}


def accumulator(identity: int, name: str | None, value: Any, update: Any = "1") -> dict[str, Any]:
    return {"ID": identity, "Name": name, "Update": update, "Value": value, "Internal": False}


def task(*accumulables: dict[str, Any], reason: str = "Success", metrics: Any = METRICS) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": 0,
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Task ID": 3, "Accumulables": [INTERNAL, SQL, *accumulables]},
        "Task Metrics": metrics,
    }


def numbers(*events: dict[str, Any], is_whole: bool = True) -> TaskNumbers:
    told: list[Any] = []
    reader = EventLogReader(report=told.append)
    start = {"Event": "SparkListenerApplicationStart", "App Name": "a", "App ID": "app-1", "App Attempt ID": "2"}
    for event in (start | {"Timestamp": 1}, *events):
        list(reader.add(json.dumps(event, separators=(",", ":")).encode()))
    assert reader.counts.set_aside == ({} if is_whole else {"not an event": 1})
    # None of its lines counts as one that lineage was read of.
    assert reader.counts.read == 1
    reader.report_numbers()
    found: TaskNumbers = told[-1]
    return found


def test_sums_of_tasks() -> None:
    done = numbers(task(), task(), task(reason="ExceptionFailure"), task(reason="TaskKilled"))
    assert done == TaskNumbers("app-1", "2", "event log", 2, 1, 1, 4000, 2000, 28, 12, 400, 40)
    assert (done.key, done.tasks, done.gc_share) == (("app-1", "2"), 4, 0.1)


@pytest.mark.parametrize(
    ("reason", "counts"),
    [
        ("Success", (1, 0, 0)),
        ("TaskKilled", (0, 0, 1)),
        ("TaskCommitDenied", (0, 0, 1)),
        ("FetchFailed", (0, 1, 0)),
        ("ExecutorLostFailure", (0, 1, 0)),
        ("Resubmitted", (0, 1, 0)),
        ("TaskResultLost", (0, 1, 0)),
    ],
)
def test_how_tasks_end(reason: str, counts: tuple[int, int, int]) -> None:
    # A task that is resubmitted was counted when it had ended, and has no metrics then.
    done = numbers(task(reason=reason, metrics=None))
    assert (done.finished, done.failed, done.killed) == counts
    assert (done.run_millis, done.gc_share) == (0, None)


def test_an_accumulator_has_its_latest_value() -> None:
    done = numbers(
        task(accumulator(9, "orders", "3"), accumulator(10, "amount", "0.5")),
        task(accumulator(9, "orders", "8", "5"), accumulator(10, "amount", "1.25", "0.75")),
        # Set back by the driver.
        task(accumulator(10, "amount", "0.25", "0.25")),
    )
    assert done.accumulators == (Accumulator("amount", 0.25), Accumulator("orders", 8))
    assert [type(one.value) for one in done.accumulators] == [float, int]


def test_accumulators_of_one_name_are_added_up() -> None:
    done = numbers(
        task(accumulator(9, "rows", "3", "3")),
        task(accumulator(11, "rows", "1", "1")),
        # The first one goes on, and so does the second.
        task(accumulator(9, "rows", "5", "2")),
        task(accumulator(11, "rows", "11", "10")),
        task(accumulator(12, "rows", "100", "100")),
    )
    assert done.accumulators == (Accumulator("rows", 116),)


@pytest.mark.parametrize("value", ["[1, 2]", "NaN", "Infinity", "", "9" * 400, 5, None, True, [1], {"a": 1}])
def test_what_is_no_number_is_left_out(value: Any) -> None:
    assert numbers(task(accumulator(9, "seen", value), accumulator(10, None, "1"))).accumulators == ()


def test_names_without_end_are_not_kept() -> None:
    tasks = (task(accumulator(number, f"batch {number} " + "x" * 500, "1")) for number in range(1000))
    done = numbers(*tasks, task(accumulator(0, "batch 0 " + "x" * 500, "7")))
    assert len(done.accumulators) == MAX_ACCUMULATORS
    assert {len(one.label) for one in done.accumulators} == {200}
    assert done.accumulators[0].value == 7
    assert done.finished == 1001


@pytest.mark.parametrize("accumulables", ['"Internal":false', {"Internal": False}, [{"ID": -1, "Internal": False}]])
def test_accumulators_of_another_shape_do_not_lose_the_task(accumulables: Any) -> None:
    done = numbers(task() | {"Task Info": {"Accumulables": accumulables}})
    assert (done.finished, done.accumulators) == (1, ())


@pytest.mark.parametrize("run_time", [-1, 1.5, "x", 2**63])
def test_a_task_that_cannot_be_read_is_set_aside(run_time: Any) -> None:
    done = numbers(task(metrics=METRICS | {"Executor Run Time": run_time}), task(), is_whole=False)
    assert (done.finished, done.run_millis) == (1, 100)


def test_an_application_without_tasks_says_nothing() -> None:
    told: list[Any] = []
    EventLogReader(report=told.append).report_numbers()
    assert told == []


def test_a_real_log_comes_to_what_spark_says_of_its_stages() -> None:
    told: list[Any] = []
    list(read_event_log(LOG, report=told.append))
    (done,) = (one for one in told if isinstance(one, TaskNumbers))
    spark: Counter[str] = Counter()
    with LOG.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        events = [json.loads(line) for line in io.TextIOWrapper(stream)]
    for stage in (event["Stage Info"] for event in events if event["Event"] == "SparkListenerStageCompleted"):
        spark["tasks"] += stage["Number of Tasks"]
        spark.update({
            each["Name"]: each["Value"] for each in stage["Accumulables"] if isinstance(each["Value"], int)
        })  # fmt: skip
    assert done.finished == done.tasks == spark["tasks"] == 32
    assert done.run_millis == spark["internal.metrics.executorRunTime"] > 0
    assert done.gc_millis == spark["internal.metrics.jvmGCTime"] > 0
    assert done.bytes_read == spark["internal.metrics.input.bytesRead"] > 0
    assert done.bytes_written == spark["internal.metrics.output.bytesWritten"] > 0
    # Its sorts had memory enough.
    assert done.memory_bytes_spilled == spark["internal.metrics.memoryBytesSpilled"] == 0
    assert done.disk_bytes_spilled == spark["internal.metrics.diskBytesSpilled"] == 0
