"""Aggregates that Delta and Iceberg answer from metadata name their table and columns, as far as these are certain."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from spark_lineage.merge.execution import hidden_table
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.answers import UNREAD, Answer, Answers
from spark_lineage.plans.event_log import read_event_log
from spark_lineage.plans.plan import parse_plan

RECORDED = Path(__file__).parents[1] / "truth" / "recorded"
SALES, COSTS = (DatasetName("file", f"/{name}") for name in ("sales", "costs"))


def plan(*leaves):
    """Return the plan of a union of local scans, each of which gives out some attributes."""
    unions = "\n".join(
        f"{':' if at + 1 < len(leaves) else '+'}- LocalTableScan ({at + 1})" for at in range(len(leaves))
    )
    blocks = "\n\n".join(
        f"({at + 1}) LocalTableScan\nOutput [{len(leaf)}]: [{', '.join(leaf)}]\nArguments: [{', '.join(leaf)}]"
        for at, leaf in enumerate(leaves)
    )
    return parse_plan(f"== Physical Plan ==\nUnion (9)\n{unions}\n\n\n{blocks}\n\n(9) Union\n")


def found(leaves, asked, read=(), mapped=()):
    """Return what each leaf is the answer of: the columns that it has, and what is unread, None for its own rows."""
    answers = Answers()
    for table, *columns in asked:
        answers.add(1, Answer(Observed(table), frozenset(columns), frozenset(mapped)))
    parsed = plan(*leaves)
    answers.find(parsed, 1, lambda: read)
    known = [answers.of(node) for node in sorted(parsed.root.children, key=lambda node: node.number)]
    return [one and ([{column for _, column, _ in sources} for sources in one.columns], one.unread) for one in known]


class TestDelta:
    @pytest.mark.parametrize(
        ("leaf", "asked", "columns"),
        [
            (["n#1L"], [(SALES,)], [set()]),
            (["min(id)#1L", "max(id)#2L", "count(1)#3L"], [(SALES, "id")], [{"id"}, {"id"}, set()]),
            # The only column.
            (["newest#1L"], [(SALES, "id")], [{"id"}]),
            (["count(1)#1L", "newest#2L"], [(SALES, "id")], [set(), {"id"}]),
            # A count is a bigint, and the ends of this column are not.
            (["lo#1", "hi#2", "n#3L"], [(SALES, "id")], [{"id"}, {"id"}, set()]),
            (["min(id)#1L", "max(at)#2"], [(SALES, "id", "at")], [{"id"}, {"at"}]),
            # Both tables are answered in one plan.
            (["min(id)#1L", "max(at)#2"], [(SALES, "id"), (COSTS, "at")], [{"id"}, {"at"}]),
        ],
    )
    def test_columns_are_those_that_were_looked_up(self, leaf, asked, columns) -> None:
        assert found([leaf], asked) == [(columns, ())]

    @pytest.mark.parametrize(
        ("leaf", "asked"),
        [
            (["lo#1L", "hi#2L", "n#3L"], [(SALES, "id")]),
            (["min(id)#1L", "hi#2L"], [(SALES, "id")]),
            (["lo#1", "hi#2"], [(SALES, "id", "at")]),
            (["min(id)#1"], [(SALES, "id"), (COSTS, "id")]),
        ],
    )
    def test_columns_that_may_be_several_are_unread(self, leaf, asked) -> None:
        ((_, unread),) = found([leaf], asked)
        assert unread == (UNREAD,)

    @pytest.mark.parametrize(
        ("leaf", "columns", "unread"),
        [
            (["max(v)#1L", "min(v)#2L", "count(1)#3L", "max(id)#4L"], [{"v"}, {"v"}, set(), {"id"}], ()),
            (["max(v)#1L", "m#2L"], [set(), set()], (UNREAD,)),
            (["max(v)#1L"], [set()], (UNREAD,)),
            (["m#1L", "n#2L"], [set(), set()], (UNREAD,)),
        ],
    )
    def test_mapped_columns_are_those_that_the_names_of_all_aggregates_have(self, leaf, columns, unread) -> None:
        assert found([leaf], [(SALES,)], mapped=("col-1", "col-2")) == [(columns, unread)]

    def test_an_alias_is_unread_where_the_table_is_scanned_besides(self) -> None:
        assert found([["m#1L"]], [(SALES, "id")], read={SALES}) == [([set()], (UNREAD,))]

    def test_rows_of_the_program_beside_an_answer_are_its_own(self) -> None:
        assert found([["min(id)#1"], ["x#2", "y#3"]], [(SALES, "id")]) == [([{"id"}], ()), ([set(), set()], ())]

    def test_rows_of_the_program_beside_an_alias_may_be_the_answer(self) -> None:
        assert found([["m#1"], ["x#2"]], [(SALES, "id")]) == [([set()], (UNREAD,)), ([set()], (UNREAD,))]

    def test_rows_without_an_answer_are_the_programs_own(self) -> None:
        assert found([["min(id)#1"]], []) == [None]

    def test_what_was_answered_is_known_until_its_query_ends(self) -> None:
        answers = Answers()
        answers.add(1, Answer(Observed(SALES), frozenset()))
        answers.end(1)
        parsed = plan(["n#1L"])
        answers.find(parsed, 1, frozenset)
        assert answers.of(parsed.root.children[0]) is None

    def test_a_plan_that_was_cached_is_known_again(self) -> None:
        answers = Answers()
        answers.add(1, Answer(Observed(SALES), frozenset()))
        for _ in range(2):
            parsed = plan(["n#1L"])
            answers.find(parsed, 1, frozenset)
            answered = answers.of(parsed.root.children[0])
            assert answered is not None
            assert [one.dataset for one in answered.tables] == [SALES]


@pytest.fixture(params=["3.5", "4.1", "4.2"])
def delta(request, tmp_path):
    return inputs_by_output(request.param, "delta_metadata_only", tmp_path)


def inputs_by_output(version, job, directory):
    """Return what is read for each output of a recorded program, by the ends of their paths, and what is unread."""
    with zipfile.ZipFile(RECORDED / version / f"{job}.zip") as recording:
        (log,) = (name for name in recording.namelist() if name.startswith("eventlog/"))
        path = Path(recording.extract(log, directory))
    return {
        output.dataset.name.rpartition("/")[2]: (
            [one.dataset.name.rpartition("/")[2] for one in execution.inputs],
            execution.unread,
        )
        for execution in read_event_log(path)
        for output in execution.outputs
    }


def test_a_table_of_delta_is_an_input_and_local_rows_have_none(delta) -> None:
    assert delta == {
        "counted": (["customers"], ()),
        "named": (["events"], ()),
        "joined": (["limits", "plans"], ()),
        "ranges": (["events"], ()),
        "fresh": (["limits", "plans"], ()),
        "shops": (["sales"], ()),
        "own": ([], ()),
        "values": ([], ()),
        "oslo": (["customers"], ()),
    }


@pytest.mark.parametrize("version", ["3.5", "4.1"])
def test_a_table_of_iceberg_is_one_with_its_columns(version, tmp_path) -> None:
    found = inputs_by_output(version, "iceberg_metadata_only", tmp_path)
    hidden = {name: [hidden_table(columns).name] for name, columns in (("counted", []), ("ends", ["name", "visits"]))}
    assert {name: found[name] for name in ("counted", "ends", "own", "values")} == {
        "counted": (hidden["counted"], ()),
        "ends": (hidden["ends"], ()),
        "own": ([], ()),
        "values": ([], ()),
    }
