"""The fold is a commutative, idempotent monoid: order, repetition and shards change not one byte."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from recordings import recorded

from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.launch.line import LineDecoder
from spark_lineage.merge import state as fold
from spark_lineage.merge.accounting import PlanPart
from spark_lineage.merge.execution import CatalogStatement, Execution, join_executions
from spark_lineage.merge.lineage import ColumnChange, SchemaField, Transformation
from spark_lineage.merge.observed import Observed, by_name
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.event_log import read_event_log

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.ndjson"))
# Volume is what the large one tests; its shuffles are few, because each takes long.
SMALL = [name for name in NAMES if name != "i2_ol1"]
# Real applications with the event log beside the events.
LOGGED = ["iceberg_caught", "iceberg_tables", "iceberg_update_delete"]
MODES = ["", "Append", "Overwrite", "Ignore"]
PARTITIONS = [(), ("day=1",), ("day=1", "hour=2"), ("day=2",)]
STATEMENTS = [
    None,
    CatalogStatement("CREATE", "DATABASE", "spark_catalog.db1", is_conditional=True),
    CatalogStatement("DROP", "DATABASE", "db1", is_cascading=True),
    CatalogStatement("OVERWRITE", "VIEW", "db1.v"),
    CatalogStatement("DROP", "TABLE", "db1.t_agg"),
    CatalogStatement("TRUNCATE", "TABLE", "db1.t_src"),
    CatalogStatement("ALTER", "TABLE", "db1.t_src", columns=(ColumnChange(None, SchemaField("z", "int")),)),
    CatalogStatement("RENAME", "TABLE", "db1.t_src", new_name="db1.u"),
]

UNNAMED = [
    (),
    (PlanPart("Scan csv", "input", ("file:/data/a.csv",)),),
    (PlanPart("AppendData", "output"), PlanPart("BatchScan t", "input")),
]


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


@pytest.mark.parametrize("task_state", ["RUNNING", "COMPLETE", "FAIL", "ABORT"])
@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_no_dataset_is_output_and_attempted(name: str, task_state: str, data: st.DataObject) -> None:
    # Whatever of the events came, and whichever runs failed.
    some = data.draw(st.lists(st.sampled_from(lines(name)), unique=True), label="some")
    failed = data.draw(st.lists(st.booleans(), min_size=len(some), max_size=len(some)), label="failed")
    ended = [
        line.replace(b'"COMPLETE"', b'"FAIL"') if fails else line for line, fails in zip(some, failed, strict=True)
    ]
    lineage = task_lineage(folded(ended), task_state)  # type: ignore[arg-type]
    assert {each.dataset for each in lineage.outputs}.isdisjoint(each.dataset for each in lineage.attempted)


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


def test_merging_a_state_with_itself_changes_nothing() -> None:
    state = folded(list(lines("a_414")))
    state.merge(state)
    assert canonical(state) == expected("a_414", "COMPLETE")


def test_contents_that_are_no_longer_shared_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "_SHARED_MAX", 2)
    state = folded(list(lines("b_414")))
    assert len(state._shared) <= 2
    assert canonical(state) == expected("b_414", "COMPLETE")


# One line of events, or one execution: what is folded.
Part = bytes | Execution


def folded_parts(parts: list[Part]) -> LineageState:
    decoder, state = LineDecoder(), LineageState()
    for part in parts:
        if isinstance(part, Execution):
            state.add_execution(part)
        else:
            state.add(*decoder.decode(part))
    return state


def whole(state: LineageState, task_state: str) -> bytes:
    """Everything that the merge gives: column lineage, catalog changes and single actions with it."""
    return msgspec.json.encode(task_lineage(state, task_state, has_actions=True))  # type: ignore[arg-type]


def opened(execution: Execution) -> Execution:
    """What a log tells of an execution that has not ended yet."""
    return structs.replace(execution, ended=None, is_failed=None, has_jobs=False)


def shuffled(parts: list[Part], data: st.DataObject) -> LineageState:
    """Fold parts in any order, some twice, some executions while they ran as well, in shards."""
    again = data.draw(st.lists(st.sampled_from(parts), max_size=len(parts)), label="repeated")
    parts = parts + [opened(part) if isinstance(part, Execution) else part for part in again] + again
    parts = data.draw(st.permutations(parts), label="order")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(parts)), max_size=3), label="cuts"))
    shards = [folded_parts(parts[start:end]) for start, end in itertools.pairwise([0, *cuts, len(parts)])]
    state = LineageState()
    for shard in data.draw(st.permutations(shards), label="shards"):
        state.merge(shard)
    return state


@cache
def logged(name: str) -> tuple[Part, ...]:
    directory = recorded(name, "3.5")
    events = (directory / "lineage" / "openlineage-events.ndjson").read_bytes().splitlines()
    return (*events, *read_event_log(directory / "eventlog"))


def drawn_executions(name: str, data: st.DataObject) -> list[Part]:
    """Made-up executions at the moments of the runs of a program: some are of one moment, some of no run."""
    state = folded(list(lines(name)))
    application_id = next(one.application_id for one in state.applications.values() if one.application_id)
    executions: list[Part] = []
    for number, run in enumerate(run for run in state.runs.values() if run.content.job_type == "SQL_JOB"):
        draw = data.draw(st.randoms(use_true_random=False), label=f"execution {number}")
        places = [one.dataset for one in (*run.content.inputs, *run.content.outputs)] or [DatasetName("file", "/new")]
        edge = ("x", draw.choice(places), "y", Transformation("DIRECT", "IDENTITY"))
        told: dict[str, Any] = {
            "root_execution_id": draw.randint(0, number),
            "started": run.first + draw.choice([0, 0, 0, 0.5]),
            "ended": draw.choice([run.last, run.last, None]),
            "is_failed": draw.choice([False, False, True]),
            "has_jobs": draw.choice([False, True]),
            "mode": draw.choice(MODES),
            "partition": draw.choice(PARTITIONS),
            "is_partial": draw.choice([False, True]),
            "partitioned_by": draw.choice([(), ("day",)]),
            "output_mode": draw.choice(["", "append"]),
            "query_id": draw.choice(["", "q"]),
            "inputs": by_name(Observed(draw.choice(places)) for _ in range(draw.randint(0, 2))),
            "outputs": by_name(
                Observed(draw.choice(places), edges=frozenset({edge})) for _ in range(draw.randint(0, 2))
            ),
            "statement": draw.choice(STATEMENTS),
            "unnamed": draw.choice(UNNAMED),
        }
        executions.append(Execution(application_id, number, **told))
    return executions


class TestEvidence:
    """What event logs say is folded, and laid over the runs, in any order alike."""

    @pytest.mark.parametrize("name", LOGGED)
    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(data=st.data())
    def test_a_real_log_beside_its_events(self, name: str, data: st.DataObject) -> None:
        parts = list(logged(name))
        assert whole(shuffled(parts, data), "COMPLETE") == whole(folded_parts(parts), "COMPLETE")

    @pytest.mark.parametrize("name", LOGGED)
    def test_a_real_log_is_no_repetition_of_the_events(self, name: str) -> None:
        events: list[Part] = [part for part in logged(name) if isinstance(part, bytes)]
        assert whole(folded_parts(events), "COMPLETE") != whole(folded_parts(list(logged(name))), "COMPLETE")

    @pytest.mark.parametrize("name", ["b_414", "e_414"])
    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(data=st.data())
    def test_whatever_executions_there_are(self, name: str, data: st.DataObject) -> None:
        parts = [*lines(name), *drawn_executions(name, data)]
        task_state = data.draw(st.sampled_from(["COMPLETE", "FAIL"]), label="task")
        assert whole(shuffled(parts, data), task_state) == whole(folded_parts(parts), task_state)

    @settings(max_examples=50, deadline=None)
    @given(data=st.data())
    def test_tellings_that_contradict_each_other_are_joined_alike(self, data: st.DataObject) -> None:
        first, *others = (
            structs.replace(part, execution_id=0)
            for part in (*drawn_executions("a_414", data), *drawn_executions("h_414", data))
            if isinstance(part, Execution)
        )
        one, two, three = data.draw(st.lists(st.sampled_from([first, *others]), min_size=3, max_size=3))
        one, two, three = (structs.replace(each, application_id="app") for each in (one, two, three))
        assert join_executions(one, two) == join_executions(two, one)
        assert join_executions(one, join_executions(two, three)) == join_executions(join_executions(one, two), three)
        assert join_executions(one, one) == one


def test_the_state_grows_with_runs_and_not_with_events() -> None:
    state = folded(list(lines("i2_ol1")))
    assert len(state.runs) == 201
    contents = {id(run.content) for run in state.runs.values()}
    assert len(contents) <= 3
