"""A task whose job changes its status tens of thousands of times: its bad listeners harm nobody."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import FIXTURES

EVENTS = FIXTURES / "a_414.ndjson"
APPLICATION = "local-1795215390665"
TIMEOUT_SECONDS = 8
RECORDING = "spark_lineage.listeners.ndjson_listener.NdjsonListener"
BAD = ["bad_listeners.Sleeping", "bad_listeners.Raising", "bad_listeners.Flooded"]


def event_log(jobs: int) -> Iterator[dict[str, Any]]:
    """What Spark logs of jobs that have no partitions."""
    yield {"Event": "SparkListenerApplicationStart", "App Name": "x", "App ID": APPLICATION, "Timestamp": 1, "User": ""}
    for job in range(jobs):
        times = {"Submission Time": 2 + job, "Stage Infos": [], "Stage IDs": [], "Properties": {}}
        yield {"Event": "SparkListenerJobStart", "Job ID": job, **times}
        result = {"Completion Time": 2 + job, "Job Result": {"Result": "JobSucceeded"}}
        yield {"Event": "SparkListenerJobEnd", "Job ID": job, **result}
    yield {"Event": "SparkListenerApplicationEnd", "Timestamp": 2 + jobs}


def told(bench: Any, listeners: list[str]) -> tuple[Any, list[dict[str, Any]]]:
    """Return what came of the task, and what the listener that records was told."""
    path: Path = bench.root / "told.ndjson"
    path.unlink(missing_ok=True)
    bench.connection["extra"] = {"ndjson_listener_path": str(path)}
    outcome = bench.run(
        lineage=[EVENTS],
        conf={"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(bench.root / "logs")},
        lineage_listeners=listeners,
        lineage_timeout=12 * TIMEOUT_SECONDS,
    )
    assert outcome.error is None, outcome.printed[-3000:]
    return outcome, [json.loads(line) for line in path.read_text().splitlines()]


def normalized(event: dict[str, Any]) -> tuple[Any, ...]:
    """What happened to what, without what is another one each time; the second run knows what the first one was."""
    subject_id = None if event.get("subject") == "DRIVER" else event.get("subject_id")
    return (
        *(event.get(name) for name in ("event", "subject", "old_status", "new_status", "source", "is_end")),
        subject_id,
    )


@pytest.mark.truth
@pytest.mark.parametrize("jobs", [5_000, pytest.param(50_000, marks=pytest.mark.nightly)])
def test_a_flood_and_bad_listeners_harm_neither_the_task_nor_the_others(bench: Any, jobs: int) -> None:
    logs = bench.root / "logs"
    logs.mkdir()
    lines = [json.dumps(event, separators=(",", ":")) + "\n" for event in event_log(jobs)]
    (logs / APPLICATION).write_text("".join(lines))
    alone, expected = told(bench, [RECORDING])
    assert len(expected) > 2 * jobs
    beside, events = told(bench, [*BAD, RECORDING])
    assert list(map(normalized, events)) == list(map(normalized, expected))
    assert beside.lineage["outputs"] == alone.lineage["outputs"]
    lost = {name: int(count) for name, count in re.findall(r"bad_listeners\.(\w+) has .* lost (\d+): ", beside.printed)}
    assert lost["Sleeping"] == lost["Raising"] == len(events)
    assert 0 < lost["Flooded"] < len(events)
    assert re.findall(r"Flooded was told of a (\w+)", beside.printed) == ["JobCreatedEvent", "JobExecutionStatusEvent"]
    assert "NdjsonListener has taken" not in beside.printed.replace("has taken all", "")
    assert "its queue had no room for 0," in beside.printed
