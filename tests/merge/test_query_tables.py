"""The tables of a query that a database runs have the names of the listener, or are counted."""

from __future__ import annotations

import pytest

from spark_lineage.merge.correction import with_declared_names
from spark_lineage.merge.execution import (
    DECIDES,
    DatabaseQuery,
    Execution,
    QueryReading,
    QueryTable,
    join_executions,
    query_dataset,
    query_of,
)
from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.query_tables import with_queries, without_functions
from spark_lineage.merge.state import COMPLETED, RunContent, RunState
from spark_lineage.naming.identity import DatasetName

SQL = "SELECT * FROM (SELECT o.id, c.name FROM orders o JOIN crm.customers c ON c.id = o.customer) q"
QUERY = query_dataset(SQL, ["id", "name"])
OUT = DatasetName("file", "/out")
SHOP = "postgres://db:5432"
JOINED, FILTERED = Transformation("INDIRECT", "JOIN"), Transformation("INDIRECT", "FILTER")
ORDERS, CUSTOMERS = QueryTable("orders", "orders"), QueryTable("crm.customers", "crm.customers")


def reading(schemes=("postgres",), unread=(), tables=(CUSTOMERS, ORDERS), field="id"):
    edges = {("id", ORDERS.dataset, field, IDENTITY), ("name", CUSTOMERS.dataset, "name", IDENTITY)}
    edges |= {(None, ORDERS.dataset, "customer", JOINED), (None, CUSTOMERS.dataset, "id", JOINED)}
    return QueryReading(schemes, tables, frozenset(edges), unread)


def execution(*readings):
    edges = {("id", QUERY, "id", IDENTITY), ("id", OUT, "id", IDENTITY), ("upper", QUERY, "name", FILTERED)}
    edges |= {(None, QUERY, "", DECIDES), (None, QUERY, "id", FILTERED)}
    return Execution(
        "app",
        1,
        1,
        0.0,
        inputs=(Observed(QUERY), Observed(OUT)),
        outputs=(Observed(OUT, edges=frozenset(edges)),),
        is_whole=True,
        queries=(DatabaseQuery(QUERY, (*readings, reading(()))),),
    )


def named(*names, namespace=SHOP):
    return tuple(Observed(DatasetName(namespace, name)) for name in names)


def test_query_dataset_gives_its_text_and_columns_back():
    assert query_of(QUERY) == (SQL, ("id", "name"))
    assert query_of(query_dataset("SELECT 1", [])) is None or query_of(query_dataset("SELECT 1", []))[0] == "SELECT 1"
    assert query_of(DatasetName("", "orders")) is query_of(DatasetName(SHOP, "a\x1fb")) is None


def test_edges_of_a_query_lead_to_the_columns_of_its_tables():
    found = with_queries(execution(reading()), named("shop.orders", "shop.crm.customers"))
    orders, customers = (DatasetName(SHOP, name) for name in ("shop.orders", "shop.crm.customers"))
    assert {read.dataset for read in found.inputs} == {OUT, orders, customers}
    assert found.outputs[0].edges == {
        ("id", orders, "id", IDENTITY),
        ("id", OUT, "id", IDENTITY),
        ("upper", customers, "name", FILTERED),
        (None, orders, "customer", JOINED),
        (None, customers, "id", JOINED),
        (None, orders, "id", FILTERED),
    }
    assert (found.is_whole, found.unread, found.queries) == (True, (), ())


def test_reading_is_that_of_the_database():
    oracle = reading(("oracle",), tables=(QueryTable("crm.customers", "CRM.CUSTOMERS"), QueryTable("orders", "ORDERS")))
    both = execution(reading(field="wrong"), oracle)
    found = with_queries(both, named("XE.CRM.CUSTOMERS", "XE.ORDERS", namespace="oracle://db:1521"))
    assert ("id", DatasetName("oracle://db:1521", "XE.ORDERS"), "id", IDENTITY) in found.outputs[0].edges
    other = with_queries(both, named("crm.customers", "orders", namespace="snowflake://org-acc"))
    assert ("id", DatasetName("snowflake://org-acc", "orders"), "id", IDENTITY) in other.outputs[0].edges


def test_table_that_the_listener_overlooks_is_in_the_database_of_the_others():
    tables = (QueryTable("orders", "orders"), QueryTable("customers", "customers"))
    found = with_queries(execution(reading(tables=tables)), named("shop.orders"))
    assert {read.dataset.name for read in found.inputs} == {"/out", "shop.orders", "shop.customers"}
    assert found.is_whole


@pytest.mark.parametrize(
    "listened",
    [
        (),
        named("shop.orders"),
        named("shop.orders", "other.orders", "shop.crm.customers"),
        # Either of two databases may be meant.
        (*named("orders", "crm.customers"), *named("orders", "crm.customers", namespace="mysql://db:3306")),
        # A directory is no table.
        named("/shop/orders", "/crm.customers", namespace="file"),
    ],
)
def test_tables_without_a_certain_name_are_counted_and_go(listened):
    found = with_queries(execution(reading()), listened)
    assert {read.dataset for read in found.inputs} == {OUT}
    assert found.outputs[0].edges == {("id", OUT, "id", IDENTITY)}
    assert (found.is_whole, found.unread) == (False, ("crm.customers: its database", "orders: its database"))


def test_longer_name_has_the_first_choice():
    tables = (QueryTable("orders", "orders"), QueryTable("old.orders", "old.orders"))
    found = with_queries(execution(reading(tables=tables)), named("shop.orders", "shop.old.orders"))
    assert ("id", DatasetName(SHOP, "shop.orders"), "id", IDENTITY) in found.outputs[0].edges


def test_uncertain_part_of_a_query_is_counted_and_the_rest_is_named():
    found = with_queries(execution(reading(unread=("its column x",))), named("shop.orders", "shop.crm.customers"))
    assert (found.is_whole, found.unread) == (False, ("a query of a database: its column x",))
    assert len(found.inputs) == 3


def test_declared_names_are_those_of_a_query_in_a_log_alone():
    found = with_declared_names(execution(reading()), named("shop.orders", "shop.crm.customers"))
    assert {read.dataset.name for read in found.inputs} == {"/out", "shop.orders", "shop.crm.customers"}
    assert with_declared_names(execution(reading()), ()).unread == (
        "crm.customers: its database",
        "orders: its database",
    )


def test_execution_without_queries_stays_as_it_is():
    one = Execution("app", 1, 1, 0.0, inputs=named("orders"))
    assert with_queries(one, named("orders")) is one


def test_two_observations_of_an_execution_have_the_queries_of_both():
    one, other = execution(reading()), Execution("app", 1, 1, 0.0, ended=1.0)
    assert join_executions(one, other).queries == join_executions(other, one).queries == one.queries


def test_function_that_stands_as_a_table_is_no_input():
    inputs = (*named("shop.orders", "public.generate_series", "SYSTEM_RANGE"), Observed(DatasetName("file", "/orders")))
    run = RunState(
        0.0, 1.0, COMPLETED, RunContent("", "SQL_JOB", "ns", "job", is_streaming=False, inputs=inputs, outputs=())
    )
    names = frozenset({"generate_series", "system_range", "orders"})
    query = DatabaseQuery(QUERY, (QueryReading(("postgres",), (ORDERS,), functions=names),))
    assert without_functions(run, [query]).content.inputs == (inputs[0], inputs[3])
    assert without_functions(run, []) is run
