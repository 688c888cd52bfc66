"""Queries that a database runs are read in its dialect; what is not certain is counted, and never named."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from spark_lineage.plans.database_query import read_in_dialect, statement_of
from spark_lineage.plans.query_dialects import DIALECTS

QUERIES = Path(__file__).parent / "database_queries"
LEAST_WHOLE = 24
DIRECT = ("identity", "transformation", "aggregation")


def queries():
    for path in sorted(QUERIES.glob("*.toml")):
        told = tomllib.loads(path.read_text())
        for query in told["query"]:
            yield pytest.param(told["vendor"], query, id=f"{path.stem}-{query['about'][:50]}")


def read(scheme, sql, columns):
    (dialect,) = (each for each in DIALECTS if scheme in each.schemes)
    return read_in_dialect(statement_of(f"({sql}) SPARK_GEN_SUBQ_0"), dialect, columns)


def facts(reading):
    direct = {
        f"{to} < {table.name}:{field} {how.subtype}" for to, table, field, how in reading.edges if how.type == "DIRECT"
    }
    indirect = {
        f"{to or '*'} < {table.name}:{field}" for to, table, field, how in reading.edges if how.type == "INDIRECT"
    }
    return {each.written for each in reading.tables}, direct, indirect


def truth(query):
    direct = {
        f"{to} < {source} {kind.upper()}"
        for kind in DIRECT
        for to, sources in query.get(kind, {}).items()
        for source in sources
    }
    indirect = {f"{to} < {source}" for to, sources in query.get("indirect", {}).items() for source in sources}
    return set(query["tables"]), direct, indirect


@pytest.mark.parametrize(("scheme", "query"), [*queries()])
def test_query_of_a_database_names_nothing_false_and_all_or_a_count(scheme, query):
    reading = read(scheme, query["sql"], query["columns"])
    found, true = facts(reading), truth(query)
    if reading.unread:
        assert query.get("counted"), reading.unread
        assert all(ours <= theirs for ours, theirs in zip(found, true, strict=True))
    else:
        assert not query.get("counted")
        assert found == true


def test_queries_of_four_dialects_are_mostly_read_whole():
    all_queries = [each.values for each in queries()]
    whole = [query for scheme, query in all_queries if not read(scheme, query["sql"], query["columns"]).unread]
    assert len({scheme for scheme, _ in all_queries}) == 4
    assert len(all_queries) == 30
    assert len(whole) >= LEAST_WHOLE
