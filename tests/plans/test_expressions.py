"""Expressions of a plan's text are read for the attributes that they use, and its lists are cut into elements."""

from __future__ import annotations

import pytest

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.plans.expressions import CONDITIONAL, TRANSFORMATION, WINDOW, is_expression, references
from spark_lineage.plans.lists import UNKNOWN_NAME, Defined, arguments, defined, elements, outputs
from spark_lineage.plans.names import Attribute, Names, hidden, plain, shown

MASKED = Transformation("DIRECT", "TRANSFORMATION", masking=True)
NAMES = Names()
for identity, name in ((1, "a"), (2, "b"), (3, "sum(v)"), (4, "Amount, EUR"), (5, "THEN ("), (6, "x#7"), (8, "q)")):
    NAMES.add(Attribute(identity, name))


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
        ("Subquery subquery#9, [id=#1]", {(9, TRANSFORMATION)}),
        ("concat(x, (#1, b#2)", {(2, TRANSFORMATION)}),
        # Names hold what separates, and literals brackets and key words.
        ("(Amount, EUR#4 + x#7#6L)", {(4, TRANSFORMATION), (6, TRANSFORMATION)}),
        ("CASE WHEN a#1 THEN (b#2 * 2) ELSE 0 END", {(1, CONDITIONAL), (2, TRANSFORMATION)}),
        ("CASE WHEN a#1 LIKE (% THEN b#2 ELSE ( END", {(1, CONDITIONAL), (2, TRANSFORMATION)}),
        (
            "CASE WHEN (a#1 = )) THEN b#2 WHEN THEN (#5 THEN q)#8 END",
            {
                (1, CONDITIONAL),
                (5, CONDITIONAL),
                (2, TRANSFORMATION),
                (8, TRANSFORMATION),
            },
        ),
        ("if ((a#1 = ))) b#2 else q)#8", {(1, CONDITIONAL), (2, TRANSFORMATION), (8, TRANSFORMATION)}),
        ("concat(a#1, md5(, b#2)", {(1, TRANSFORMATION), (2, TRANSFORMATION)}),
        ("concat(a#1, md5(b#2), ))", {(1, TRANSFORMATION), (2, MASKED)}),
        ("sum(a#1) FILTER (WHERE (b#2 = ())", {(1, TRANSFORMATION), (2, CONDITIONAL)}),
        (
            "coalesce(a#1, coalesce(, b#2)",
            {
                (1, TRANSFORMATION),
                (1, CONDITIONAL),
                (2, TRANSFORMATION),
                (2, CONDITIONAL),
            },
        ),
        ("(A#1 = 2)", {(1, TRANSFORMATION)}),
        ("1", set()),
        ("", set()),
    ],
)
def test_references(expression, expected) -> None:
    assert set(references(NAMES.marked(expression))) == expected


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


def test_defined_attribute_or_alias_returns_its_parts() -> None:
    assert defined("a#1L") == (1, "a", None)
    assert defined("(a#1 + 1) AS we ird#2") == (2, "we ird", "(a#1 + 1)")
    assert defined("1") is None


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("a#1 AS Amount, EUR#4", (4, "Amount, EUR", "a#1")),
        # Of an alias that no list of attributes has, all behind the expression is its name.
        ("a#1 AS cost AS planned#9", (9, "cost AS planned", "a#1")),
        ("cast(a#1 as int) AS CAST(a AS INT)#9", (9, "CAST(a AS INT)", "cast(a#1 as int)")),
        (
            "CASE WHEN a#1 THEN 1 END AS CASE WHEN a THEN 1 AS x#9",
            (9, "CASE WHEN a THEN 1 AS x", "CASE WHEN a#1 THEN 1 END"),
        ),
        ("lit AS y#9", (9, "y", "lit")),
        # Literal and name may be cut at either: what it is made from is known, and not its name.
        ("a#1 LIKE x AS y AS z#9", (9, UNKNOWN_NAME, "a#1 LIKE x")),
        ("lit AS y AS z#9", (9, UNKNOWN_NAME, "lit")),
    ],
)
def test_defined_alias_of_unknown_name_is_read_where_it_is_certain(element, expected) -> None:
    found = defined(NAMES.marked(element))
    assert (found and Defined(found.id, found.name, plain(found.expression or ""))) == expected


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("[a#1, concat(a#1, , , b#2) AS c#9]", 2, ["a", "c"]),
        ("[concat((, a#1) AS c#9, ( AS d#10, b#2]", 3, ["c", "d", "b"]),
        ("[), ( AS d#10, b#2]", 2, ["d", "b"]),
        ("[]", 0, []),
        # One element more than there is.
        ("[a#1, b#2]", 3, None),
        # An alias in an expression is text of a literal, and so may be its attributes.
        ("[a#1, b#2 AS a#1 AS sum(v)#3]", 2, None),
        ("[concat(a#1, b#2 AS z#9) AS sum(v)#3]", 1, None),
    ],
)
def test_outputs_of_stated_size_are_cut_into_so_many(text, size, expected) -> None:
    found = outputs(NAMES.marked(text), size)
    assert (found and [one.name for one in found]) == (expected or found)
    assert (found is None) == (expected is None)


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("[concat_ws((, collect_list(a#1)), max(b#2)]", 2, ["concat_ws((, collect_list(a#1))", "max(b#2)"]),
        ("[max(concat(a#1, ))), count(1)]", 2, ["max(concat(a#1, )))", "count(1)"]),
        ("[a#1, x, y, b#2]", 3, ["a#1", "x, y", "b#2"]),
        # The comma may be of either literal.
        ("[a#1, x, y, z]", 3, []),
    ],
)
def test_elements_of_stated_size_are_cut_in_the_only_way(text, size, expected) -> None:
    assert [plain(one) for one in elements(NAMES.marked(text), size)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a#1)", True), ("f(a#1", False), ("a#1)", False), ("f(a#1), b#2", False), ("concat(a#1, ()", True),
        ("concat(a#1, ))", True), ("", True),
    ],
)  # fmt: skip
def test_is_expression_with_brackets_of_literals(text, expected) -> None:
    assert is_expression(NAMES.marked(text)) is expected


def test_references_of_deep_nesting_are_all_found() -> None:
    deep = "coalesce(" * 3000 + "a#1" + ", 0)" * 3000
    assert set(references(NAMES.marked(deep))) == {(1, TRANSFORMATION), (1, CONDITIONAL)}


def test_references_of_many_odd_brackets_are_found_in_time() -> None:
    odd = f"concat({', (' * 400}, a#1{', )' * 399}, CASE WHEN b#2 THEN (, {'( ' * 200})"
    assert {identity for identity, _ in references(NAMES.marked(odd))} == {1, 2}


class TestNames:
    @pytest.mark.parametrize("name", ["", "a", "名前, é", "x#1, y", "\ud800", "\n\n(1) Scan"])
    def test_hidden_name_is_shown_again(self, name) -> None:
        assert shown(hidden(name)) == name
        assert plain(f"f({hidden(name)}#1)") == f"f({name}#1)"

    @pytest.mark.parametrize(
        ("listed", "size", "schema", "expected"),
        [
            ("[Amount, EUR#1, b#2L]", 2, "", {1: "Amount, EUR", 2: "b"}),
            ("[No #12, old#71L]", 1, "", {71: "No #12, old"}),
            ("[No #12, old#71L, qty#72L]", 2, "struct<No #12, old:bigint,qty:bigint>", {71: "No #12, old", 72: "qty"}),
            # Without a witness either cut may be right.
            ("[No #12, old#71L, qty#72L]", 2, "", None),
            ("[a#3, No #2, old#4]", None, "", None),
        ],
    )
    def test_learn_attributes_with_odd_names(self, listed, size, schema, expected) -> None:
        names = Names()
        assert names.learn(listed, size, schema) == (expected is not None)
        for identity, name in (expected or {}).items():
            assert names.marked(f"{name}#{identity}") == f"{hidden(name)}#{identity}"

    def test_learn_uses_the_names_that_are_known(self) -> None:
        names = Names()
        assert not names.learn("[No #12, old#71L, qty#72L]", 2)
        assert names.learn("[No #12, old#71L]", 1)
        assert names.learn("[No #12, old#71L, qty#72L]", 2)
        assert names.marked("f(qty#72L)") == f"f({hidden('qty')}#72L)"

    def test_marked_takes_the_name_that_holds_others(self) -> None:
        names = Names()
        names.learn("[a#1]", 1)
        names.add(Attribute(9, "coalesce(f(a#1, x))"))
        assert names.marked("coalesce(f(a#1, x))#9") == f"{hidden('coalesce(f(a#1, x))')}#9"
        assert names.marked("ba#1 + A#1") == f"ba#1 + {hidden('A')}#1"

    def test_marked_merged_subquery_has_the_longest_field_that_fits(self) -> None:
        fields = {5: ["max(a)", "max(a) B"]}
        text = "(Subquery scalar-subquery#5, [id=#7].max(a) B > 1)"
        assert plain(Names().marked(text, fields)) == "(max(a) B#5 > 1)"
