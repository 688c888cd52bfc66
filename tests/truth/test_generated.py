"""Programs that were made at random: the merge says of each what the generator knows of it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.inject.properties import JarNotFoundError

pytestmark = pytest.mark.long

sys.path.insert(0, str(Path(__file__).parent))
generated = importlib.import_module("generated")
programs = importlib.import_module("generator.programs")
rendering = importlib.import_module("generator.rendering")
running = importlib.import_module("generator.running")
shrinking = importlib.import_module("generator.shrinking")
model = importlib.import_module("generator.model")
names = importlib.import_module("generator.names")
rows = importlib.import_module("generator.rows")
groups = importlib.import_module("generator.groups")
joins = importlib.import_module("generator.joins")
nested = importlib.import_module("generator.nested")
subqueries = importlib.import_module("generator.subqueries")
windows = importlib.import_module("generator.windows")
writes = importlib.import_module("generator.writes")
sources = importlib.import_module("generator.sources")
expressions = importlib.import_module("generator.expressions")

Expression = expressions.Expression
# The share of programs, nearly all of which have names that no certain reading of a plan can tell from what is around.
MOST_COUNTED = 0.1
MOST_BROKEN = 0.02


@pytest.mark.truth
@pytest.mark.spark
@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.nightly)])
def test_the_lineage_of_programs_made_at_random_is_the_truth(
    tmp_path: Path, fast_spark: Any, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setenv("SPARK_LINEAGE_TRUTH_LISTENER_OPTS", fast_spark.env["SPARK_SUBMIT_OPTS"])
    monkeypatch.setenv("SPARK_LINEAGE_TRUTH_PLAIN_OPTS", fast_spark.plain_env["SPARK_SUBMIT_OPTS"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(fast_spark.caches))
    try:
        outcomes = running.run([programs.generate(seed) for seed in range(1, count + 1)], tmp_path / "home")
    except JarNotFoundError as error:
        pytest.skip(str(error))
    # Spark's own optimizer breaks some of many programs.
    errors = [f"{each.program.name}: {each.error}" for each in outcomes if each.error]
    assert len(errors) <= count * MOST_BROKEN, errors
    assert not any(each.is_fault for each in outcomes), "\n".join(
        generated.report(each) for each in outcomes if each.is_fault
    )
    assert sum(each.is_wrong for each in outcomes) <= count * MOST_COUNTED


def test_a_seed_makes_the_same_program_again() -> None:
    assert all(
        rendering.text(programs.generate(seed)) == rendering.text(programs.generate(seed)) for seed in range(1, 100)
    )


def test_every_operation_is_used_and_every_program_is_python() -> None:
    used: set[str] = set()
    for seed in range(1, 400):
        program = programs.generate(seed)
        compile(rendering.text(program), program.name, "exec")
        used.update(program.kinds)
    assert {each.kind for each in programs.OPERATIONS} <= used


def test_odd_names_and_texts_reach_every_operation() -> None:
    odd: set[str] = set()
    for seed in range(1, 600):
        for step in programs.generate(seed).steps:
            text = repr(sorted(step.arguments.items(), key=lambda pair: pair[0]))
            if any(repr(names.quoted(name))[1:-2] in text for name in names.NAMES):
                odd.add(step.operation.kind)
    assert {each.kind for each in programs.OPERATIONS} - odd <= {"cache", "limit"}


def test_the_model_knows_nothing_of_the_merge() -> None:
    folder = Path(__file__).parent / "generator"
    assert not [
        path for path in folder.glob("*.py") if "spark_lineage" in path.read_text().replace("SPARK_LINEAGE", "")
    ]


def table(name: str) -> Any:
    return sources.table(name)


def told(frame: Any) -> dict[str, tuple[set[str], set[str], set[str]]]:
    """Direct, indirect and optional edges of each column and of the rows, of what writing the frame leaves."""
    output = model.Output.of(frame, "parquet")
    edges = {name: each.edges for name, each in output.columns.items()} | {"*": output.rows}
    return {name: (set(each.direct), set(each.indirect), set(each.may)) for name, each in edges.items()}


def expression(text: str, direct: tuple[str, ...], condition: tuple[str, ...] = ()) -> Any:
    return Expression(text, "string", direct, condition)


def test_an_expression_passes_on_and_is_decided() -> None:
    case = expression("CASE WHEN amount > 1 THEN status ELSE 'x' END", ("status",), ("amount",))
    frame = rows.Select().trace({"items": [(case, "a")]}, table("orders"))
    assert told(frame) == {"a": ({"orders.status"}, {"orders.amount"}, set()), "*": (set(), set(), set())}


def test_what_decides_about_a_column_decides_about_the_rows_that_are_chosen_by_it() -> None:
    case = expression("CASE WHEN amount > 1 THEN status ELSE 'x' END", ("status",), ("amount",))
    frame = rows.Select().trace({"items": [(case, "a")]}, table("orders"))
    frame = rows.Filter().trace({"condition": expression("a > 'b'", ("a",))}, frame)
    assert told(frame)["*"] == (set(), {"orders.status", "orders.amount"}, set())


def test_a_sort_counts_unless_something_above_makes_it_superfluous() -> None:
    by_day = {"by": [("day", "ASC")], "form": "sort"}
    frame = rows.Sort().trace(by_day, table("orders").only(["day", "amount"]))
    assert told(frame)["*"] == (set(), {"orders.day"}, set())
    total = groups.Aggregate(Expression("sum(amount)", "double", ("amount",)), is_indifferent=False)
    summed = groups.GroupBy().trace({"keys": [], "items": [(total, "total")], "form": "", "having": None}, frame)
    assert told(summed)["*"] == (set(), set(), {"orders.day"})
    limited = rows.Sort().trace({**by_day, "form": "limit"}, table("orders").only(["day", "amount"]))
    summed = groups.GroupBy().trace({"keys": [], "items": [(total, "total")], "form": "", "having": None}, limited)
    assert told(summed)["*"] == (set(), {"orders.day"}, set())


def left_join() -> Any:
    arguments = {"kind": "left", "keys": ("customer_id", "cid"), "mine": ["status"], "theirs": [("name", "n")]}
    return joins.Join().trace({**arguments, "also": None, "hint": ""}, table("orders"), table("customers"))


def test_an_outer_join_is_optional_only_below_a_distinct_that_does_not_use_the_other_side() -> None:
    keys = {"orders.customer_id", "customers.cid"}
    assert told(left_join())["*"] == (set(), keys, set())
    assert told(left_join().only(["status"]))["*"] == (set(), keys, set())
    distinct = rows.Distinct().trace({"by": []}, left_join().only(["status"]))
    assert told(distinct)["*"] == (set(), {"orders.status"}, keys)
    output = model.Output.of(distinct, "parquet")
    assert (output.feeds, output.may_feed) == ({"orders"}, {"customers"})
    distinct = rows.Distinct().trace({"by": []}, left_join())
    assert told(distinct)["*"] == (set(), {*keys, "orders.status", "customers.name"}, set())


def test_a_full_join_using_takes_its_key_from_both() -> None:
    arguments = {"kind": "full", "keys": ("day", "since"), "theirs": [("name", "n")]}
    frame = joins.JoinUsing().trace(arguments, table("orders").only(["day"]), table("customers"))
    both = {"orders.day", "customers.since"}
    assert told(frame) == {
        "day": (both, both, set()),
        "n": ({"customers.name"}, set(), set()),
        "*": (set(), both, set()),
    }


def test_a_window_is_decided_by_what_it_partitions_and_orders_by() -> None:
    call = Expression("sum(amount) OVER (PARTITION BY status ORDER BY day)", "double", ("amount",), ("status", "day"))
    frame = windows.Window().trace({"call": call, "name": "s"}, table("orders")).only(["s"])
    assert told(frame)["s"] == ({"orders.amount"}, {"orders.status", "orders.day"}, set())


def test_a_union_has_the_sources_of_both_and_an_intersection_those_of_the_first() -> None:
    pairs = {"pairs": [("status", "name")], "alone": []}
    one, other = table("orders"), table("customers")
    union = joins.SetOperation().trace({"form": "union", **pairs}, one, other)
    assert told(union) == {"status": ({"orders.status", "customers.name"}, set(), set()), "*": (set(), set(), set())}
    both = joins.SetOperation().trace({"form": "intersect", **pairs}, one, other)
    assert told(both)["status"] == ({"orders.status"}, set(), set())
    assert told(both)["*"] == (set(), {"orders.status", "customers.name"}, set())


def test_a_subquery_decides_about_the_rows_and_is_a_feed() -> None:
    arguments = {"form": "in", "keys": ("status", "name"), "instead": None}
    condition = Expression("country > 'b'", "boolean", ("country",))
    frame = subqueries.Exists().trace({**arguments, "condition": condition}, table("orders"), table("customers"))
    assert told(frame)["*"][1] == {"orders.status", "customers.name", "customers.country"}
    assert frame.feeds == {"orders", "customers"}


def test_a_field_of_a_struct_has_its_own_source_and_perhaps_those_of_the_whole() -> None:
    made = Expression("named_struct('f', amount, 'g', status)", "struct", ("amount", "status"), (), (),
                      (("f", "amount"), ("g", "status")))  # fmt: skip
    frame = rows.Select().trace({"items": [(made, "s")]}, table("orders"))
    fields = nested.TakeApart().trace({"name": "s", "kept": []}, frame)
    assert told(fields)["f"] == ({"orders.amount"}, set(), {"orders.status"})


def test_what_is_read_back_has_the_sources_of_all_that_was_added() -> None:
    outputs: dict[str, Any] = {}
    first = {"place": "out/p/a", "columns": [], "format": "parquet", "mode": "new", "partition": None}
    writes.WRITE_PATH.leave(first, table("orders").only(["status"]), outputs)
    added = {**first, "columns": [("name", "status")], "mode": "append"}
    writes.WRITE_PATH.leave(added, table("customers"), outputs)
    assert told(outputs["out/p/a"].read())["status"] == ({"orders.status", "customers.name"}, set(), set())
    writes.WRITE_PATH.leave({**added, "mode": "overwrite"}, table("customers"), outputs)
    assert told(outputs["out/p/a"].read())["status"] == ({"customers.name"}, set(), set())


def test_an_optional_edge_is_neither_missing_nor_too_much() -> None:
    column = model.Column("string", model.Edges(frozenset({"orders.a"}), may=frozenset({"orders.b"})))
    output = model.Output({"x": column}, model.Edges(), frozenset({"orders"}), frozenset(), "parquet")
    right = {("direct", "o"): {"o.x < orders.a"}, ("feeds", "o"): {"orders"}}
    assert running.compared("o", output, right) == ([], [])
    more = {**right, ("indirect", "o"): {"o.x < orders.b"}}
    assert running.compared("o", output, more) == ([], [])
    other = {("direct", "o"): {"o.x < orders.c"}, ("feeds", "o"): {"orders"}}
    assert running.compared("o", output, other) == (["direct o.x < orders.a"], ["direct o.x < orders.c"])


def test_the_smallest_program_that_fails_is_found() -> None:
    """As if every program that sorts failed."""

    def is_fit(seed: int) -> bool:
        kinds = set(programs.generate(seed).kinds)
        return {"sort", "join"} <= kinds <= {"sort", "join", "filter", "limit", "drop", "source", "write path"}

    seed = next(filter(is_fit, range(1, 5000)))

    def run(tried: Any) -> Any:
        return [running.Outcome(each, too_much=("direct a.x < b.y",) if "sort" in each.kinds else ()) for each in tried]

    (found,) = shrinking.shrink(run([programs.generate(seed)]), run, 12)
    assert found.is_fault
    assert [kind for kind in found.program.kinds if not kind.startswith("write")] == ["sort", "source"]


@pytest.mark.parametrize("name", [*names.NAMES, "plain_1", "order_id"])
def test_a_name_is_quoted_and_bare_again(name: str) -> None:
    quoted = names.quoted(name)
    assert names.bare(quoted) == name
    assert names.parts(quoted) == [quoted]
    assert names.parts(f"{quoted}.city") == [quoted, "city"]


def test_what_a_python_function_makes_of_rows_comes_from_all_of_them() -> None:
    frames = importlib.import_module("generator.frames")
    arguments = {"names": ["status", "amount"], "by": "status", "types": ["string", "double"]}
    both = {"orders.status", "orders.amount"}
    assert told(frames.PythonRows().trace(arguments, table("orders"))) == {
        "status": (both, set(), set()),
        "amount": (both, set(), set()),
        "*": (set(), {"orders.status"}, set()),
    }


def test_groups_by_an_expression_are_decided_by_its_columns() -> None:
    unaliased = importlib.import_module("generator.unaliased")
    total = groups.Aggregate(Expression("sum(amount)", "double", ("amount",)), is_indifferent=False)
    key = Expression("year(day)", "int", ("day",))
    arguments = {"key": key, "name": "y", "items": [(total, "`sum(v)`")], "form": ""}
    frame = unaliased.GroupByExpression().trace(arguments, table("orders"))
    assert told(frame) == {
        "y": ({"orders.day"}, set(), set()),
        "`sum(v)`": ({"orders.amount"}, set(), set()),
        "*": (set(), {"orders.day"}, set()),
    }
