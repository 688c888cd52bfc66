"""What scans print of their source's filters and aggregates is read in each of its spellings, or not at all."""

from __future__ import annotations

import pytest

from spark_lineage.plans.names import plain
from spark_lineage.plans.predicates import (
    UnreadableError,
    V2Expressions,
    columns_of_filter,
    columns_of_iceberg,
    filters_of,
    first_part,
    not_null,
)


class TestV2:
    """Texts of Spark 3.5 and 4.2 on H2."""

    @pytest.mark.parametrize(
        ("text", "columns"),
        [
            ("[SUM(AMOUNT), COUNT(*)]", ["AMOUNT"]),
            (
                "[SUM(AMOUNT * 2), COUNT(DISTINCT CUSTOMER), VAR_POP(CAST(AMOUNT AS double))]",
                ["AMOUNT", "CUSTOMER", "AMOUNT"],
            ),
            ("[SUM(`Amount, EUR`), MIN(`a``b`), MAX(`p.q`)]", ["Amount, EUR", "a`b", "p.q"]),
            ("[COUNT(`it's`), SUM(`sum(v)`)]", ["it's", "sum(v)"]),
            ("[`No #12, old` IS NOT NULL, NOT (`x AS y` = 'q')]", ["No #12, old", "x AS y"]),
            ("[DEPOT = 'it''s', -COST < 3]", ["DEPOT", "COST"]),
            (
                r"[(DEPOT IN ('a', 'a, b')) OR ((COST > 10) AND (DEPOT LIKE 'x%' ESCAPE '\'))]",
                ["DEPOT", "COST", "DEPOT"],
            ),
            ("[ID % 2, UPPER(DEPOT)]", ["ID", "DEPOT"]),
            ("[SUM(AMOUNT) DESC NULLS LAST, ID ASC NULLS FIRST]", ["AMOUNT", "ID"]),
            ("[CAST(A AS decimal(10,2)) = 1.5, CURRENT_DATE() = B, 1E5 < C]", ["A", "B", "C"]),
            ("[EXTRACT(YEAR FROM D) = 2024, TRIM(BOTH 'x' FROM N) = 'a']", ["D", "N"]),
            # A field of a struct.
            ("[p.q = 1]", ["p"]),
            ("[]", []),
        ],
    )
    def test_expressions_have_the_columns_that_they_name(self, text, columns) -> None:
        assert V2Expressions(text).columns == columns

    def test_expressions_are_printed_as_catalyst_does(self) -> None:
        text = "[SUM(CASE WHEN ID > 1 THEN AMOUNT ELSE 0 END), COUNT(DISTINCT `a b`)]"
        assert list(map(plain, V2Expressions(text).texts)) == [
            "sum( CASE WHEN ID#0 > 1 THEN AMOUNT#1 ELSE 0 END )",
            "count( DISTINCT a b#2 )",
        ]

    def test_columns_may_be_called_like_words_of_sql(self) -> None:
        text = "[END > 1, year = 2, CASE IS NOT NULL, NOT = 1, FROM < DESC]"
        assert V2Expressions(text).columns == ["END", "year", "CASE", "NOT", "FROM", "DESC"]

    @pytest.mark.parametrize(
        "text",
        [
            "[a b]",
            "[a = ]",
            "[a = , b]",
            "[(a = 1]",
            "[a = 1)]",
            "[f(a]",
            "[a = 'x]",
            "[a ? b]",
            "a = 1",
            "[CAST(a AS]",
            "[CASE WHEN a]",
        ],
    )
    def test_other_texts_are_unreadable(self, text) -> None:
        with pytest.raises(UnreadableError):
            V2Expressions(text)

    def test_a_name_that_is_no_name_is_unreadable(self) -> None:
        with pytest.raises(UnreadableError):
            first_part("")


class TestV1:
    @pytest.mark.parametrize(
        ("text", "columns"),
        [
            (
                "[*IsNotNull(CUSTOMER), *EqualTo(CUSTOMER,1), *StringStartsWith(DEPOT,a)]",
                [{"CUSTOMER"}, {"CUSTOMER"}, {"DEPOT"}],
            ),
            ("[*In(kind, [a,b]), *Not(EqualTo(`a.b`,1))]", [{"kind"}, {"a.b"}]),
            ("[*And(Or(EqualTo(a,1),EqualTo(b,2)),IsNull(c))]", [{"a", "b", "c"}]),
            # Spark 3.5 and 4.2 on H2: names are not quoted.
            (
                "[*IsNotNull(x AS y), *IsNotNull(a`b), *StringStartsWith(x AS y,z(), *EqualTo(a`b,3)]",
                [{"x AS y"}, {"a`b"}, {"x AS y"}, {"a`b"}],
            ),
            ("[*IsNotNull(city), *EqualTo(city,Oslo, Norway)]", [{"city"}, {"city"}]),
            ("[*AlwaysTrue()]", [set()]),
            ("[]", []),
            ("", []),
        ],
    )
    def test_filters_have_the_columns_that_they_name(self, text, columns) -> None:
        filters = filters_of(text)
        assert [columns_of_filter(each.removeprefix("*"), not_null(filters)) for each in filters] == columns

    @pytest.mark.parametrize(
        "text",
        [
            "Or(EqualTo(No #12, old,1),EqualTo(x AS y,a,b)))",
            "EqualTo(city,Oslo, Norway)",
            "EqualTo(Amount, EUR,1)",
            "EqualTo(a)",
            "Within(a,1)",
            "And(IsNull(a))",
            "EqualTo(a,x), EqualTo(b,1)",
            "",
        ],
    )
    def test_filters_that_allow_several_readings_are_unreadable(self, text) -> None:
        with pytest.raises(UnreadableError):
            columns_of_filter(text, ())

    def test_a_text_that_begins_like_two_known_columns_is_unreadable(self) -> None:
        with pytest.raises(UnreadableError):
            columns_of_filter("EqualTo(a,b,1)", {"a", "a,b"})


class TestIceberg:
    """Texts of Iceberg 1.11 and 1.12."""

    @pytest.mark.parametrize(
        ("text", "known", "columns"),
        [
            ("balance IS NOT NULL, balance < 0.0", {"balance"}, {"balance"}),
            ("reason IS NOT NULL, NOT (reason = 'none')", {"account", "reason"}, {"reason"}),
            ("day IN ('a', 'b'), value > 3, kind LIKE 'x%'", {"day", "value", "kind"}, {"day", "value", "kind"}),
            (
                "(id < 3 OR value IS NULL), not_nan(v), n NOT IN (1, 2)",
                {"id", "value", "v", "n"},
                {"id", "value", "v", "n"},
            ),
            ("kind IS NOT NULL, kind = 'it's, b = 1'", {"id", "kind"}, {"kind"}),
            ("No #12, old IS NOT NULL, No #12, old = 'z'", {"Amount, EUR", "No #12, old"}, {"No #12, old"}),
            (
                "x = 1, y > 3, p.q = 1, No #12, old IN ('z', 'y, a = 1')",
                {"x = 1, y", "p", "No #12, old"},
                {"x = 1, y", "p", "No #12, old"},
            ),
            ("last_seen < 19692", {"last_seen"}, {"last_seen"}),
            ("x = 'a', b = 'c'", {"x", "b"}, {"x", "b"}),
            ("true", {"id"}, set()),
        ],
    )
    def test_filters_have_the_columns_that_they_name(self, text, known, columns) -> None:
        assert columns_of_iceberg(text, known) == columns

    @pytest.mark.parametrize(
        ("text", "known"),
        [
            # No column of what the scan gives out.
            ("day = 'a'", {"id"}),
            # Either of both.
            ("a = 1, b > 2", {"a", "b", "a = 1, b"}),
            ("a ~ 1", {"a"}),
            ("(" * 20 + "a", {"a"}),
        ],
    )
    def test_filters_that_allow_several_readings_or_none_are_unreadable(self, text, known) -> None:
        with pytest.raises(UnreadableError):
            columns_of_iceberg(text, known)

    def test_filters_that_take_too_long_are_unreadable(self) -> None:
        with pytest.raises(UnreadableError):
            columns_of_iceberg(", ".join(["a = 'x' OR b = 'it's'"] * 50), {"a", "b"})
