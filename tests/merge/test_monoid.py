"""The fold is a commutative, idempotent monoid: order, repetition and shards change not one byte."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_lineage.collect.line import LineDecoder
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.ndjson"))
# Volume is what the large one tests; its shuffles are few, because each takes long.
SMALL = [name for name in NAMES if name != "i2_ol1"]


@cache
def lines(name: str) -> tuple[bytes, ...]:
    return tuple((FIXTURES / f"{name}.ndjson").read_bytes().splitlines())


def folded(some: list[bytes]) -> LineageState:
    decoder, state = LineDecoder(), LineageState()
    for line in some:
        state.add(*decoder.decode(line))
    return state


def canonical(state: LineageState, task_state: str = "COMPLETE") -> bytes:
    event = run_event(
        task_lineage(state, task_state),  # type: ignore[arg-type]
        None,
        job_namespace="ns",
        job_name="job",
        run_id="00000000-0000-7000-8000-000000000000",
    )
    return to_json(event)


@cache
def expected(name: str, task_state: str) -> bytes:
    return canonical(folded(list(lines(name))), task_state)


@pytest.mark.parametrize("task_state", ["COMPLETE", "FAIL"])
@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_order_any_repetition_any_shards(name: str, task_state: str, data: st.DataObject) -> None:
    some = list(lines(name))
    some += data.draw(st.lists(st.sampled_from(some), max_size=len(some)), label="repeated")
    some = data.draw(st.permutations(some), label="order")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(some)), max_size=4), label="cuts"))
    shards = [folded(some[start:end]) for start, end in itertools.pairwise([0, *cuts, len(some)])]
    shards = data.draw(st.permutations(shards), label="shards")
    state = LineageState()
    for shard in shards:
        state.merge(shard)
    assert canonical(state, task_state) == expected(name, task_state)


@pytest.mark.parametrize("name", NAMES)
def test_backwards_and_twice(name: str) -> None:
    some = list(lines(name))
    assert canonical(folded(some[::-1])) == expected(name, "COMPLETE")
    assert canonical(folded(some + some)) == expected(name, "COMPLETE")


@pytest.mark.parametrize("name", SMALL)
def test_grouping_does_not_matter(name: str) -> None:
    third = len(lines(name)) // 3
    parts = [list(lines(name)[:third]), list(lines(name)[third : 2 * third]), list(lines(name)[2 * third :])]
    left, right = folded(parts[0]), folded(parts[1])
    left.merge(folded(parts[1]))
    left.merge(folded(parts[2]))
    right.merge(folded(parts[2]))
    outer = folded(parts[0])
    outer.merge(right)
    assert canonical(left) == canonical(outer) == expected(name, "COMPLETE")


def test_the_empty_state_is_neutral() -> None:
    state = folded(list(lines("a_414")))
    state.merge(LineageState())
    assert canonical(state) == expected("a_414", "COMPLETE")


def test_merging_leaves_the_other_state_as_it_was() -> None:
    first, second = folded(list(lines("a_414")[:10])), folded(list(lines("a_414")[10:]))
    before = canonical(second)
    first.merge(second)
    first.add(*LineDecoder().decode(lines("a_414")[-1].replace(b'"COMPLETE"', b'"FAIL"')))
    assert canonical(second) == before


def test_the_state_grows_with_runs_and_not_with_events() -> None:
    state = folded(list(lines("i2_ol1")))
    assert len(state.runs) == 201
    contents = {id(run.content) for run in state.runs.values()}
    assert len(contents) <= 3
