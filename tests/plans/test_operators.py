"""Each operator and command of Spark, Delta and Iceberg has a row in ``handbook/plans.md`` that agrees with the code.

The lists of ``tests/fixtures/operators`` are those of ``list_operators.py``. A new list makes these tests fail
until its names have rows, and so until it was decided how they are read.
"""

from __future__ import annotations

import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from spark_lineage.plans import commands as plan_commands
from spark_lineage.plans import functions as plan_functions
from spark_lineage.plans import operators as plan_operators
from spark_lineage.plans import statements as plan_statements
from spark_lineage.plans.accounting_rules import COMMANDS

TESTS = Path(__file__).parents[1]
ROW = re.compile(r"\| `(?P<name>\w+)`(?: as `(?P<in_plans>[^`]+)`)? \| (?P<where>.*?) \| (?P<how>.*?) \|")
REPORTED = {COMMANDS["AlterTableSetLocationDeltaCommand"], COMMANDS["SaveAsV1TableCommand"]}
# Leaves that are no dataset, and the nodes that stand for any command.
OTHERS = {
    **dict.fromkeys(("EmptyRelation", "OneRowRelation", "Range"), "rows of its own"),
    "LocalTableScan": "rows of its own, or of a source",
    **dict.fromkeys(("ExternalRDDScan", "RDDScan"), "rows of a program"),
    **dict.fromkeys(("ReusedExchange", "ReusedSubquery"), "repeats another"),
    **dict.fromkeys(("DataWritingCommand", "ExecutedCommand"), "as the command in it"),
}


@cache
def lists():
    """Return by release the lines of its list in full."""
    return runpy.run_path(str(Path(__file__).with_name("list_operators.py")))["read_lists"]()


@cache
def places():
    """Return by name and library the releases that have it."""
    found = {}
    for name, lines in lists().items():
        for line in lines:
            operator, _, library = line.split(" ")
            found.setdefault(operator, {}).setdefault(library, []).append(name)
    return found


def kinds(name):
    return {line.split(" ")[1] for lines in lists().values() for line in lines if line.startswith(f"{name} ")}


def where(name):
    """``Spark 3.5 to 4.0, Iceberg from 4.1``: without releases it is in all."""
    return ", ".join(
        " ".join(filter(None, (library.capitalize(), since(releases))))
        for library, releases in sorted(places()[name].items(), key=lambda one: "dips".index(one[0][0]))
    )


def since(releases):
    every = list(lists())
    first, last = releases[0], releases[-1]
    assert releases == every[every.index(first) : every.index(last) + 1], "gone and back again"
    if last == every[-1]:
        return "" if first == every[0] else f"from {first}"
    return f"to {last}" if first == every[0] else f"{first} to {last}"


@cache
def rows():
    text = (TESTS.parent / "docs" / "handbook" / "plans.md").read_text(encoding="utf-8")
    return [match.groupdict() for match in ROW.finditer(text)]


def has_rule(name):
    known = (plan_operators._PASSING, plan_operators._LEAVES, plan_operators.RULES)
    return any(plan_operators.kind_of(name) in each for each in known)


def operator_is_read(name, in_plans):
    kind = plan_operators.kind_of(in_plans)
    if not has_rule(in_plans):
        return "moves no data" if plan_statements.is_read(name) else "not read: counted"
    if name in OTHERS:
        return OTHERS[name]
    if kind in plan_operators._LEAVES and name != "InMemoryTableScan":
        return "reads a dataset"
    if kind in plan_operators._PASSING:
        return "passes its rows on"
    if kind in plan_functions.FUNCTIONS:
        return "function over rows"
    return "columns traced"


def command_is_read(name):
    if name in plan_commands._TARGETS or plan_commands._V2_WRITES.fullmatch(name):
        return "write target"
    if name in plan_statements._READERS:
        return "catalog change"
    if plan_statements.is_read(name):
        is_reported = COMMANDS.get(name) in REPORTED or name in plan_statements._REPORTED_BY_LISTENER
        return "from the listener alone" if is_reported else "moves no data"
    return "passes its rows on" if has_rule(name) else "not read: counted"


def test_every_name_has_one_row_in_the_order_of_the_alphabet() -> None:
    assert [row["name"] for row in rows()] == sorted(places())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["name"])
def test_the_row_agrees_with_the_code(row) -> None:
    name = row["name"]
    is_command = kinds(name) == {"command"}
    found = command_is_read(name) if is_command else operator_is_read(name, row["in_plans"] or name)
    assert (row["where"], row["how"]) == (where(name), found)


def test_what_prints_another_name_than_that_of_its_class_has_it_in_its_row() -> None:
    # These add to their own name: `SortMergeJoin(skew=true)`, `BatchScan ice.db.t`, `Scan OneRowRelation`.
    same = {"BatchScan", "BroadcastHashJoin", "ShuffledHashJoin", "SortMergeJoin", "WholeStageCodegen"}
    renamed = {name for name in places() if "renamed" in kinds(name)}
    assert {row["name"] for row in rows() if row["in_plans"]} == renamed - same


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("Scan parquet db.t", True),
        ("SortMergeJoin(skew=true) Inner", True),
        ("MergingSessions", True),
        ("Odd x", False),
    ],
)
def test_an_operator_is_known_by_the_first_word_of_its_name(name, is_read) -> None:
    assert has_rule(name) is is_read
