"""A foreign number or time that cannot be one costs its line, which is counted as set aside, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.launch.line import LineCounts, LineDecoder, LineError
from spark_lineage.merge.state import LineageState, encode_state
from spark_lineage.merge.task import task_lineage
from spark_lineage.merge.transition import StatusLedger, StatusReport
from spark_lineage.plans.event_log import EventLogReader, read_event_log

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOGS = FIXTURES / "event_logs"
EVENTS = FIXTURES / "events"
# JSON that the text of a number or a time may be replaced by.
FOREIGN = [
    *("-1", "253402300800000", "-99999999999999999", "1e400", "1.5", "NaN", "true", "null", "[]", "{}", '""'),
    *("9" * 20, "9" * 400, "9" * 5000, '"abc"', '"12a"', '"-7"', f'"{"9" * 30}"', '"\\u0661"'),
    *('"0001-01-01T00:00:00+23:59"', '"9999-12-31T23:59:59-23:59"', '"2026-01-01T00:00:00"', '"0000-00-00T00:00:00Z"'),
]


@cache
def logged(name: str) -> tuple[bytes, ...]:
    return tuple((LOGS / name).read_bytes().splitlines())


@cache
def places(line: bytes) -> list[list[Any]]:
    """The paths to all numbers, and to all texts that are a number or a time."""

    def found(value: Any, path: list[Any]) -> Iterator[list[Any]]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from found(inner, [*path, key])
        elif isinstance(value, list):
            for place, inner in enumerate(value[:3]):
                yield from found(inner, [*path, place])
        elif isinstance(value, int | float) or (isinstance(value, str) and value[:4].isdigit()) or value == "0":
            yield path

    return list(found(json.loads(line), []))


def changed(line: bytes, path: list[Any], foreign: str) -> bytes:
    event = json.loads(line)
    inner = event
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = "@@"
    return json.dumps(event, separators=(",", ":")).replace('"@@"', foreign).encode()


def read(lines: list[bytes]) -> tuple[LineageState, LineCounts]:
    """Read a log as ``spark-lineage merge`` and a task do, and make of it what they do."""
    counts, state, ledger = LineCounts(), LineageState(), StatusLedger()
    reports: list[StatusReport] = []
    reader = EventLogReader(counts, reports.append)
    for line in lines:
        for execution in reader.add(line):
            state.add_execution(execution)
    for execution in reader.finish():
        state.add_execution(execution)
    for report in reports:
        ledger.add(report)
    encode_state(state)
    merged(state)
    return state, counts


def merged(state: LineageState) -> bytes:
    run_id = "00000000-0000-7000-8000-000000000000"
    return to_json(run_event(task_lineage(state, "COMPLETE"), None, job_namespace="ns", job_name="job", run_id=run_id))


@pytest.mark.truth
@pytest.mark.parametrize("name", ["jdbc", "spark_359", "stream", "rdds"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_one_foreign_number_in_an_event_log_costs_its_line_at_most(name: str, data: st.DataObject) -> None:
    lines = list(logged(name))
    place = data.draw(st.sampled_from([place for place, line in enumerate(lines) if places(line)]))
    path = data.draw(st.sampled_from(places(lines[place])))
    foreign = data.draw(st.sampled_from(FOREIGN))
    before, counted = read(lines)
    lines[place] = changed(lines[place], path, foreign)
    after, counts = read(lines)
    assert counts.set_aside_total - counted.set_aside_total <= 1
    key = path[-1]
    if key == "Timestamp" and foreign == "NaN":
        # Not even JSON: nothing tells which application the log is of.
        return
    if key in {"executionId", "rootExecutionId", "id", "Job ID", "runId"}:
        # It is another execution now, or of another.
        assert len(before.executions.keys() - after.executions.keys()) <= 1
    else:
        is_lost = counts.set_aside_total > counted.set_aside_total
        assert len(before.executions.keys() - after.executions.keys()) <= is_lost


@pytest.mark.parametrize("name", sorted(path.stem for path in EVENTS.glob("*.ndjson") if path.stat().st_size < 100_000))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_one_foreign_number_in_a_lineage_file_costs_its_line_at_most(name: str, data: st.DataObject) -> None:
    lines = (EVENTS / f"{name}.ndjson").read_bytes().splitlines()
    place = data.draw(st.sampled_from([place for place, line in enumerate(lines) if _is_event(line) and places(line)]))
    path = data.draw(st.sampled_from(places(lines[place])))
    lines[place] = changed(lines[place], path, data.draw(st.sampled_from(FOREIGN)))
    decoder, state = LineDecoder(), LineageState()
    for line in lines:
        try:
            state.add(*decoder.decode(line))
        except LineError:
            continue
    encode_state(state)
    merged(state)


def _is_event(line: bytes) -> bool:
    try:
        LineDecoder().decode(line)
    except LineError:
        return False
    return True


def job(execution_id: str) -> bytes:
    properties = {"spark.sql.execution.id": execution_id}
    event = {"Event": "SparkListenerJobStart", "Job ID": 7, "Submission Time": 1767268800000, "Properties": properties}
    return json.dumps(event, separators=(",", ":")).encode()


@pytest.mark.parametrize("execution_id", ["abc", "1.0", "-1", "9" * 5000, "1\n"])
def test_a_job_of_an_execution_that_is_no_number_is_set_aside(execution_id: str) -> None:
    lines = list(logged("jdbc"))
    before, _ = read(lines)
    after, counts = read([*lines[:5], job(execution_id), *lines[5:]])
    assert counts.set_aside == {"not an event": 1}
    assert after.executions == before.executions


@pytest.mark.parametrize("foreign", ["253402300800000", "-1", "9" * 30, "null", '"soon"', "1.5", "[]"])
def test_the_executions_of_an_application_stay_whenever_it_says_that_it_started(foreign: str) -> None:
    lines = list(logged("jdbc"))
    (place,) = [number for number, line in enumerate(lines) if b'"SparkListenerApplicationStart"' in line]
    before, _ = read(lines)
    lines[place] = changed(lines[place], ["Timestamp"], foreign)
    reports: list[StatusReport] = []
    reader = EventLogReader(report=reports.append)
    for line in lines:
        list(reader.add(line))
    assert read(lines)[0].executions == before.executions
    assert all(1970 <= report.time.year <= 2026 for report in reports)


@pytest.mark.parametrize("foreign", ["253402300800000", "-1", "9" * 30])
def test_a_log_is_read_on_after_an_end_beyond_all_years(tmp_path: Path, foreign: str) -> None:
    lines = list(logged("jdbc"))
    place = next(number for number, line in enumerate(lines) if b"SQLExecutionEnd" in line)
    lines[place] = changed(lines[place], ["time"], foreign)
    (tmp_path / "log").write_bytes(b"\n".join(lines))
    counts = LineCounts()
    executions = list(read_event_log(tmp_path / "log", counts, report=lambda _: None))
    assert len(executions) == len(list(read_event_log(LOGS / "jdbc")))
    assert counts.set_aside == {"not an event": 1}
