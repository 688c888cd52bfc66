"""SQL of databases, changed at random: it is read or counted, raises nothing, and names nothing that is not in it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fuzzing import fuzzed
from hypothesis import example, given
from hypothesis import strategies as st

from spark_lineage.plans.database_query import read_in_dialect, statement_of
from spark_lineage.plans.query_dialects import DIALECTS

QUERIES = [
    query
    for path in sorted((Path(__file__).parents[1] / "plans" / "database_queries").glob("*.toml"))
    for query in tomllib.loads(path.read_text())["query"]
]
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
PIECES = st.sampled_from([
    "(", ")", ",", ".", "'", '"', "`", "[", "]", "*", "--", "/*", "*/", ";", "::", "@", "#", "$$", "\\", "\x00", "\x1f",
    "SELECT", "FROM", "WHERE", "JOIN", "LATERAL", "WITH", "UNION", "AS", "ON", "USING", "GROUP BY", "ORDER BY",
    "LIMIT", "OVER", "CASE", "END", "IN", "EXISTS", "PIVOT", "VALUES", "NATURAL", "(SELECT 1)", "t", "o", "id", "1",
    "'x'", "é", "\ud800", "\n",
]) | st.text(max_size=3)  # fmt: skip


@st.composite
def changed(draw: Any, sql: str) -> str:
    """Return a query with tokens that are gone, doubled, replaced or elsewhere."""
    tokens = TOKEN.findall(sql)
    for _ in range(draw(st.integers(1, 6))):
        place, other = (draw(st.integers(0, len(tokens) - 1)) for _ in range(2))
        match draw(st.integers(0, 3)):
            case 0:
                tokens[place] = ""
            case 1:
                tokens[place] += f" {tokens[other]} "
            case 2:
                tokens[place] = draw(PIECES)
            case _:
                tokens[place], tokens[other] = tokens[other], tokens[place]
    return "".join(tokens)


@fuzzed(150)
@given(st.data(), st.sampled_from(QUERIES), st.sampled_from(DIALECTS))
def test_a_changed_query_raises_nothing_and_names_nothing_that_it_has_not(data, query, dialect):
    sql = data.draw(changed(query["sql"]))
    check(f"({sql}) SPARK_GEN_SUBQ_0", query["columns"], dialect)


@fuzzed(100)
@given(st.text(max_size=60), st.sampled_from(DIALECTS))
@example("(" * 2000 + "SELECT 1" + ")" * 2000, DIALECTS[0])
@example("(SELECT " + "a + " * 3000 + "a FROM t) x", DIALECTS[0])
@example("(SELECT a FROM t" + " UNION ALL SELECT a FROM t" * 1500 + ") x", DIALECTS[1])
def test_any_text_in_place_of_a_query_raises_nothing(text, dialect):
    check(text, ["a"], dialect)


def check(table, columns, dialect):
    reading = read_in_dialect(statement_of(table), dialect, columns).reading
    text = unquoted(table)
    for each in reading.tables:
        assert all(unquoted(part) in text for part in each.written.split("."))
    for column, source, field, _ in reading.edges:
        assert column is None or column in columns
        assert source in {each.dataset for each in reading.tables}
        assert unquoted(field) in text or field in columns


def unquoted(text):
    return re.sub(r'["`\]]', "", text.casefold())
