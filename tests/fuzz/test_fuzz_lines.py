"""Junk in lineage files, event logs and plans: it is set aside and counted, and takes nothing of the rest."""

from __future__ import annotations

import io
import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.emit.size_limit import merged_event
from spark_lineage.launch.line import LineDecoder, LineError, LineSplitter, decode_transition
from spark_lineage.merge.task import identity_of, kept_lineage
from spark_lineage.naming.options import naming_from
from spark_lineage.plans.content import read_plan
from spark_lineage.plans.event_log import EventLogReader
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.tables import Tables
from spark_lineage.submission.collector import Collector
from spark_lineage.submission.lineage_files import lines

FIXTURES = Path(__file__).parents[1] / "fixtures"
REAL = (FIXTURES / "events" / "a_414.ndjson").read_bytes().splitlines()[:8]
JUNK_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["", "\x00", "1e999", "2024-13-45T00:00:00Z", "-999999-01-01", "ä" * 50, "[]", "{}", "/",
    "://"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6,
)  # fmt: skip
CUTS = st.tuples(st.floats(0, 1), st.floats(0, 1), st.binary(max_size=6))


def torn(line: bytes, cut: tuple[float, float, bytes]) -> bytes:
    """Return a line with a stretch replaced."""
    start, stop = sorted(int(part * len(line)) for part in cut[:2])
    return line[:start] + cut[2] + line[stop:]


@st.composite
def changed(draw: Any, text: bytes) -> bytes:
    """Give JSON in which some value, somewhere, is another one, or gone, or is there twice."""
    document = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        here = document
        while isinstance(here, (dict, list)) and here:
            key = draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
            if not isinstance(here[key], (dict, list)) or not here[key] or draw(st.integers(0, 3)) == 0:
                here[key] = draw(JUNK_VALUES)
                break
            here = here[key]
    return written(document)


def written(document: Any) -> bytes:
    """Give JSON as Spark writes it: what is passed over is known by its first bytes."""
    return json.dumps(document, separators=(",", ":")).encode()


def lines_like(real: list[bytes]) -> st.SearchStrategy[bytes]:
    one = st.sampled_from(real)
    return (one | one.flatmap(changed) | st.tuples(one, CUTS).map(lambda two: torn(*two)) | st.binary(max_size=20)).map(
        lambda line: line.replace(b"\n", b" ")
    )


@cache
def event_log_lines() -> list[bytes]:
    """Return the shorter lines of real event logs."""
    found: list[bytes] = []
    for name in ("queries", "tables", "ddl"):
        with (FIXTURES / "event_logs" / f"{name}.zstd").open("rb") as stream:
            found += [line for line in lines(stream, f"{name}.zstd") if isinstance(line, bytes) and len(line) < 20_000]
    return found


@cache
def plans() -> list[str]:
    """Return the plans in them."""
    found = {json.loads(line).get("physicalPlanDescription") for line in event_log_lines()}
    return sorted(text for text in found if text)


@fuzzed(150)
@given(st.lists(lines_like(REAL), max_size=6))
def test_a_line_is_an_event_or_set_aside(found: list[bytes]) -> None:
    decoder = LineDecoder()
    for line in found:
        for decode in (decoder.decode, decode_transition):
            try:
                decode(line)
            except LineError as error:
                assert error.reason  # noqa: PT017 - most lines have one


@fuzzed(60)
@given(st.lists(lines_like(REAL), max_size=6))
def test_what_is_read_of_junk_merges_into_an_event(found: list[bytes]) -> None:
    content = b"".join(line + b"\n" for line in found)
    collector = Collector()
    collector.read(io.BytesIO(content), source="events.ndjson")
    counts = collector.counts
    assert counts.read + counts.set_aside_total == len(found)
    if counts.read:
        lineage = kept_lineage(collector.state, None, naming=naming_from({}), has_actions=False)
        try:
            merged_event(lineage, identity_of(lineage, collector.state), 1_000_000)
        except ValueError as error:
            # The one documented refusal: a run id that is no UUID.
            assert "run" in str(error).lower() or "uuid" in str(error).lower(), error  # noqa: PT017


@fuzzed(100)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_a_stream_is_split_alike_however_it_comes(content: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter()
    ends = [0, *sorted(cuts), len(content)]
    found = [line for start, stop in pairwise(ends) for line in splitter.feed(content[start:stop])]
    found += splitter.finish()
    expected = content.split(b"\n")
    assert found == (expected if expected[-1] else expected[:-1])


@fuzzed(100)
@given(st.data())
def test_a_line_of_an_event_log_is_read_or_set_aside(data: st.DataObject) -> None:
    reader = EventLogReader(report=lambda _: None)
    for line in data.draw(st.lists(lines_like(event_log_lines()), max_size=8)):
        list(reader.add(line))
    list(reader.finish())


@fuzzed(60)
@given(st.data())
def test_a_torn_plan_takes_its_own_execution_at_most(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(plans()))
    head, tail, new = data.draw(st.tuples(st.floats(0, 1), st.floats(0, 1), st.text(max_size=10)))
    start, stop = sorted((int(head * len(text)), int(tail * len(text))))
    torn_text = text[:start] + new + text[min(stop, start + 200) :]
    start_event = {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "executionId": 0, "time": 1,
        "description": "", "physicalPlanDescription": torn_text, "modifiedConfigs": {},
    }  # fmt: skip
    end_event = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd", "executionId": 0, "time": 2}
    reader = EventLogReader()
    found = [one for event in (start_event, end_event) for one in reader.add(written(event))]
    assert [one.execution_id for one in found] == [0]


@fuzzed(20)
@given(st.data())
def test_a_whole_plan_is_read(data: st.DataObject) -> None:
    read_plan(data.draw(st.sampled_from(plans())), Tables(), UNTRACED, {})
