"""Queries that a database runs are read in its dialect; what is not certain is counted, and never named."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from spark_lineage.merge.execution import Execution
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.query_tables import with_queries
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.content import read_plan
from spark_lineage.plans.database_query import (
    is_query,
    queries_among,
    read_database_query,
    read_in_dialect,
    statement_of,
)
from spark_lineage.plans.query_dialects import DIALECTS
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.tables import Tables

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
    return read_in_dialect(statement_of(f"({sql}) SPARK_GEN_SUBQ_0"), dialect, columns).reading


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


NAME = "Scan JDBCRelation({}) [numPartitions=1] "
TEXT = """== Physical Plan ==
Execute InsertIntoHadoopFsRelationCommand (2)
+- * {name} (1)


(1) {name} [codegen id : 1]
Output [{size}]: [{output}]
PushedFilters: [*IsNotNull(NAME)]
ReadSchema: struct<ID:int,NAME:string>
{external}

(2) Execute InsertIntoHadoopFsRelationCommand
Input [{size}]: [{output}]
Arguments: file:/out, false, Parquet, [path=out], Append, [{columns}]
"""


def executed(table, output="NAME#2, ID#1", external="", size=None):
    """Return the edges of a plan that writes what it scans, as a query of H2 whose tables the listener names."""
    columns = ", ".join(each.partition("#")[0] for each in output.split(", "))
    size = size or output.count(",") + 1
    text = TEXT.format(name=NAME.format(table), size=size, output=output, columns=columns, external=external)
    content = read_plan(text, Tables(), UNTRACED, {})
    queries = queries_among(content.inputs)
    execution = Execution(
        "", 0, 0, 0.0, inputs=content.inputs, outputs=content.outputs, is_whole=content.is_whole, queries=queries
    )
    tables = {each.dataset.name for query in queries for each in query.reading("h2:").tables}
    listened = tuple(Observed(DatasetName("h2:file:./shop", name)) for name in sorted(tables))
    named = with_queries(execution, listened)
    edges = {f"{to or '*'} < {table.name}:{field}" for output in named.outputs for to, table, field, _ in output.edges}
    return edges, named.is_whole, named.unread


def test_scan_of_a_query_has_the_edges_of_its_sql_and_of_what_spark_pushes_down():
    sql = "(SELECT id, upper(name) AS name FROM customers\n-- a comment\nWHERE vip) SPARK_GEN_SUBQ_0"
    edges = {"ID < customers:ID", "NAME < customers:NAME", "* < customers:VIP", "* < customers:NAME"}
    assert executed(sql) == (edges, True, ())


def test_dbtable_that_is_more_than_a_name_is_read_as_sql():
    edges, is_whole, _ = executed("customers c JOIN orders o ON o.customer_id = c.id", output="ID#1")
    assert edges == {"* < customers:ID", "* < orders:CUSTOMER_ID"}
    assert not is_whole


@pytest.mark.parametrize(
    "table", ["ORDERS", "SALES.ORDERS", '"Order Items"', 'S."a (b), c"', "`a b`.`c`", "[a b].[c]", "a-b.c"]
)
def test_name_of_a_table_is_no_query(table):
    assert not is_query(table)


def test_prepared_statement_is_read_as_spark_prints_it():
    external = (
        'External engine query: WITH t AS (SELECT id, name FROM customers) SELECT "NAME","ID" FROM (SELECT * FROM t) Q'
    )
    edges, is_whole, _ = executed("(SELECT * FROM t) Q", external=external)
    assert {"ID < customers:ID", "NAME < customers:NAME"} <= edges
    assert is_whole


def test_columns_of_the_result_show_how_a_database_folds_names():
    sql = statement_of("(SELECT Id, Name FROM Customers WHERE Vip) q")
    for columns, vip in ((("ID", "NAME"), "VIP"), (("id", "name"), "vip"), (("Id", "Name"), "Vip")):
        reading = read_database_query(sql, columns).reading("h2:mem:x")
        assert (None, vip) in {(to, field) for to, _, field, _ in reading.edges}


def test_query_of_an_unknown_database_is_read_where_all_dialects_agree():
    sql = statement_of("(SELECT c.id FROM customers c WHERE c.vip > 1) q")
    reading = read_database_query(sql, ("id",)).reading("sqlite:x")
    assert (reading.unread, {field for _, _, field, _ in reading.edges}) == ((), {"id", "vip"})
    quoted = read_database_query(statement_of('(SELECT "id" FROM customers) q'), ("id",)).reading("sqlite:x")
    assert quoted.unread
    # Some databases take a name for the alias before it.
    alias = statement_of("(SELECT c.price * 2 AS twice, twice + 1 AS more FROM customers c) q")
    assert read_database_query(alias, ("twice", "more")).reading("redshift://c").unread


def test_without_sqlglot_a_query_is_counted(monkeypatch):
    monkeypatch.setattr("spark_lineage.plans.database_query.find_spec", lambda _: None)
    read_database_query.cache_clear()
    edges, is_whole, unread = executed("(SELECT id FROM customers) q", output="ID#1")
    read_database_query.cache_clear()
    assert (edges, is_whole, unread) == (set(), False, ("a query of a database: sqlglot is not installed",))


def test_too_long_sql_is_counted():
    assert executed(f"(SELECT {'1, ' * 30_000} 1 AS id) q", output="ID#1")[2] == (
        "a query of a database: its SQL, which is too long",
    )


def test_sqlglot_is_imported_with_the_first_query_alone():
    program = "import sys, spark_lineage.plans.event_log, spark_lineage.merge.task; print('sqlglot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_names_with_separators_are_columns_of_the_query():
    sql = '(SELECT i."sku, EUR", i."a AS b", i.ID, i.NAME FROM "Items, old" i) q'
    edges, is_whole, _ = executed(sql, output="sku, EUR#1, a AS b#2, ID#3", size=3)
    assert is_whole
    assert "ID < Items, old:ID" in edges
    assert {each.partition(" < ")[2] for each in edges} >= {"Items, old:sku, EUR", "Items, old:a AS b"}


def test_sql_that_spark_has_redacted_is_counted():
    sql = "(SELECT *********(redacted) FROM customers) q"
    assert executed(sql, output="ID#1") == (set(), False, ("a query of a database: its SQL",))


def test_warnings_of_sqlglot_quote_no_sql_in_the_log(caplog):
    (dialect, *_) = DIALECTS
    assert read_in_dialect("DROP zq7_planted SELECT a FROM t", dialect, ["a"]).reading.unread
    assert "zq7" not in caplog.text


@pytest.mark.parametrize(
    ("scheme", "sql"),
    [
        ("h2", "SELECT o.id FROM orders o, SYSTEM_RANGE(1, 3) f"),
        ("h2", "SELECT o.id FROM orders o, UNNEST(ARRAY[1, 2]) f(x)"),
        ("postgres", "SELECT o.id FROM orders o, generate_series(1, 3) f"),
        ("postgres", "SELECT o.id FROM orders o, pg_catalog.unnest(o.tags) f"),
        ("postgres", "SELECT o.id FROM orders o, jsonb_to_recordset(o.doc) AS f(a int)"),
        ("mysql", "SELECT o.id FROM orders o, JSON_TABLE(o.doc, '$[*]' COLUMNS (a INT PATH '$.a')) AS f"),
        ("oracle", "SELECT o.id FROM orders o, TABLE(sys.odcinumberlist(1, 2)) f"),
        ("oracle", "SELECT o.id FROM orders o, XMLTABLE('/r' PASSING o.doc COLUMNS a NUMBER PATH '@a') f"),
        ("sqlserver", "SELECT o.id FROM orders o, STRING_SPLIT(o.tags, ',') f"),
        ("sqlserver", "SELECT o.id FROM orders o, OPENJSON(o.doc) WITH (a INT '$.a') f"),
    ],
)
def test_table_function_is_no_table_of_a_query(scheme, sql):
    found = read(scheme, sql, ["id", "ID"])
    assert [table.written for table in found.tables] == ["orders"]
    assert "a table function" in found.unread
    assert any(name in sql.casefold() for name in found.functions)
