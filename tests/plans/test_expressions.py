"""Expressions of a plan's text are read for the attributes that they use."""

from __future__ import annotations

import pytest

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.plans.plan import arguments, elements
from spark_lineage.plans.scope import CONDITIONAL, TRANSFORMATION, WINDOW, defined, references

MASKED = Transformation("DIRECT", "TRANSFORMATION", masking=True)
NAMES = {1: "a", 2: "b", 3: "sum(v)"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a#1", {(1, IDENTITY)}),
        ("a#1L", {(1, IDENTITY)}),
        ("(a#1)", {(1, IDENTITY)}),
        ("sum(v)#3L", {(3, IDENTITY)}),
        ("NOT a#1", {(1, TRANSFORMATION)}),
        ("(a#1 + b#2L)", {(1, TRANSFORMATION), (2, TRANSFORMATION)}),
        ("cast(a#1 as string)", {(1, TRANSFORMATION)}),
        ("a#1.field[0]", {(1, TRANSFORMATION)}),
        ("if ((a#1 > 2)) b#2 else 0", {(1, CONDITIONAL), (2, TRANSFORMATION)}),
        (
            "CASE WHEN (a#1 > 2) THEN b#2 ELSE sum(v)#3L END",
            {(1, CONDITIONAL), (2, TRANSFORMATION), (3, TRANSFORMATION)},
        ),
        (
            "CASE WHEN (a#1 > 2) THEN CASE WHEN b#2 THEN 1 END ELSE a#1 END",
            {(1, CONDITIONAL), (2, CONDITIONAL), (1, TRANSFORMATION)},
        ),
        ("coalesce(a#1, 0)", {(1, TRANSFORMATION), (1, CONDITIONAL)}),
        ("concat(md5(cast(a#1 as binary)), b#2)", {(1, MASKED), (2, TRANSFORMATION)}),
        (
            "sum(a#1) windowspecdefinition(b#2, specifiedwindowframe(RowFrame, unboundedpreceding$(), currentrow$()))",
            {(1, TRANSFORMATION), (2, WINDOW)},
        ),
        (
            "transform(a#1, lambdafunction((lambda x_0#99 + b#2), lambda x_0#99, false))",
            {(1, TRANSFORMATION), (2, TRANSFORMATION)},
        ),
        ("(a#1 = foo#77 )) END (", {(1, TRANSFORMATION)}),
        # Plans print literals without quotes, and ids of plans.
        ("Subquery subquery#9, [id=#1]", set()),
        ("concat(x, (#1, b#2)", {(2, TRANSFORMATION)}),
        ("(A#1 = 2)", {(1, TRANSFORMATION)}),
        ("1", set()),
        ("", set()),
    ],
)
def test_references(expression, expected) -> None:
    assert set(references(expression, NAMES)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a#1, f(b#2, c#3) AS d#4]", ["a#1", "f(b#2, c#3) AS d#4"]),
        ("[]", []),
        ("", []),
        ("Range (0, 10)", []),
        ("[[a#1, b#2], [c#3]]", ["[a#1, b#2]", "[c#3]"]),
    ],
)
def test_elements(text, expected) -> None:
    assert elements(text) == expected


def test_a_comma_in_back_quotes_separates_nothing() -> None:
    assert arguments("`db`.`a,b`, (x, y), true") == ["`db`.`a,b`", "(x, y)", "true"]


def test_defined() -> None:
    assert defined("a#1L") == (1, "a", None)
    assert defined("(a#1 + 1) AS we ird#2") == (2, "we ird", "(a#1 + 1)")
    assert defined("1") is None
