"""A state that was written and read again is the same: folded further and merged, it gives the same bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from recordings import recorded

from spark_lineage.emit.size_limit import merged_event
from spark_lineage.launch.line import LineDecoder
from spark_lineage.merge import state as stored_state
from spark_lineage.merge.state import LineageState, StateFormatError, application_run_id, decode_state, encode_state
from spark_lineage.merge.task import identity_of, kept_lineage
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.plans.event_log import read_event_log

EVENTS = Path(__file__).parents[1] / "fixtures" / "events"


def folded(lines: list[bytes]) -> LineageState:
    decoder, state = LineDecoder(), LineageState()
    for line in lines:
        state.add(*decoder.decode(line))
    return state


def content(state: LineageState) -> bytes:
    lineage = kept_lineage(state)
    return merged_event(lineage, identity_of(lineage, state), 1_000_000).content


@pytest.mark.parametrize("path", sorted(EVENTS.glob("*.ndjson")), ids=lambda path: path.stem)
def test_parts_that_were_stored_merge_to_the_same_event(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    parts = [decode_state(encode_state(folded(lines[number::3]))) for number in range(3)]
    merged = LineageState()
    for part in reversed(parts):
        merged.merge(part)
    assert content(merged) == content(folded(lines))


def test_what_an_event_log_says_is_stored_too() -> None:
    home = recorded("iceberg_caught", "3.5")
    state = LineageState()
    for path in sorted(home.rglob("*.ndjson")):
        state.merge(folded(path.read_bytes().splitlines()))
    for log in sorted(path for path in home.rglob("*") if path.is_file() and "eventlog" in str(path)):
        for execution in read_event_log(log):
            state.add_execution(execution)
    assert state.executions
    assert content(decode_state(encode_state(state))) == content(state)


def test_what_runs_share_is_stored_once() -> None:
    state = folded((EVENTS / "i2_ol1.ndjson").read_bytes().splitlines())
    stored = decode_state(encode_state(state))
    assert len(state.runs) > 200
    assert len({id(run.content) for run in stored.runs.values()}) == len(
        {id(run.content) for run in state.runs.values()}
    )
    assert len(encode_state(state)) < 200 * len(state.runs)


def test_transitions_are_stored() -> None:
    state = LineageState()
    state.transitions.add(
        StatusTransition("DRIVER", "17", None, "SUBMITTED", datetime(2026, 1, 1, tzinfo=UTC), "spark-submit")
    )
    other = LineageState()
    other.merge(decode_state(encode_state(state)))
    assert other.transitions == state.transitions


def test_the_state_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_state, "FORMAT", 99)
    later = encode_state(LineageState())
    monkeypatch.undo()
    with pytest.raises(StateFormatError, match=r"format 99; this version reads format 8"):
        decode_state(later)


@pytest.mark.parametrize("stored", [b"", b"{}", msgspec.msgpack.encode([stored_state.FORMAT, 2, 3]), b"\x91"])
def test_other_bytes_are_refused(stored: bytes) -> None:
    with pytest.raises(StateFormatError, match="no state"):
        decode_state(stored)


def test_the_application_of_an_event() -> None:
    decode = LineDecoder().decode
    lines = (EVENTS / "a_414.ndjson").read_bytes().splitlines()
    applications = {application_run_id(decode(line)[0]) for line in lines}
    assert applications == set(folded(lines).parents)
    alone = b'{"eventTime":"2026-01-01T00:00:00Z","run":{"runId":"r"},"job":{"namespace":"n","name":"j"}}'
    assert application_run_id(decode(alone)[0]) == "r"
