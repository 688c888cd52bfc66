"""Topics of Kafka, and tables of which a plan has columns alone, get their names from the listener, or are counted."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.correction import with_names
from spark_lineage.merge.evidence import without_pushed
from spark_lineage.merge.execution import PUSHED_JOIN, Execution, hidden_table, kafka_topic, stream_source
from spark_lineage.merge.lineage import SchemaField, Transformation, UnreadPart
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

COPY = Transformation("DIRECT", "IDENTITY")
BROKERS = "kafka://broker:9092"
T = DatasetName("file", "/t")
COSTS = Observed(
    DatasetName("postgres://db:5432", "shop.public.costs"), schema=(SchemaField("id"), SchemaField("cost"))
)
STAFF = Observed(
    DatasetName("postgres://db:5432", "shop.public.staff"), schema=(SchemaField("id"), SchemaField("name"))
)


def reading(name: DatasetName, columns: tuple[str, ...] = (), others: tuple[Observed, ...] = ()) -> Execution:
    schema = tuple(map(SchemaField, columns))
    edges = frozenset((column, name, column, COPY) for column in columns)
    output = Observed(T, edges=edges)
    return Execution(
        "app", 1, 1, 0.0, inputs=(*others, Observed(name, schema=schema)), outputs=(output,), is_whole=True
    )


def test_a_topic_has_the_brokers_that_the_listener_names() -> None:
    topic = Observed(DatasetName(BROKERS, "orders"))
    # A table of that name is no topic.
    table = Observed(DatasetName("postgres://db:5432", "shop.orders"))
    named = with_names(reading(kafka_topic("orders"), ("value",)), (table, topic))
    assert [one.dataset for one in named.inputs] == [topic.dataset]
    assert named.outputs[0].edges == {("value", topic.dataset, "value", COPY)}
    assert (named.is_whole, named.unread) == (True, ())


@pytest.mark.parametrize(
    ("name", "part"),
    [
        (kafka_topic("orders"), "orders: its brokers"),
        (stream_source(1), "a stream: its topics"),
        (hidden_table(["id"]), "a scan: its table"),
    ],
)
def test_what_the_listener_does_not_name_is_counted(name, part) -> None:
    named = with_names(reading(name, ("id",)), ())
    assert (named.inputs, named.outputs[0].edges, named.is_whole) == ((), frozenset(), False)
    assert named.unread == (part,)


class TestHiddenTables:
    def test_a_table_is_the_only_input_with_its_columns(self) -> None:
        named = with_names(reading(hidden_table(["cost"]), ("cost",)), (COSTS, STAFF))
        assert [one.dataset for one in named.inputs] == [COSTS.dataset]
        assert named.unread == ()

    def test_of_several_inputs_with_its_columns_it_is_none(self) -> None:
        named = with_names(reading(hidden_table(["id"]), ("id",)), (COSTS, STAFF))
        assert (named.inputs, named.unread) == ((), ("a scan: its table",))

    def test_a_table_that_the_plan_names_for_another_scan_is_not_it(self) -> None:
        execution = reading(hidden_table(["id"]), ("id",), others=(COSTS,))
        assert with_names(execution, (COSTS,)).unread == ("a scan: its table",)
        assert with_names(execution, (COSTS, STAFF)).unread == ()

    def test_a_count_needs_no_name_where_the_listener_has_an_input(self) -> None:
        named = with_names(reading(hidden_table([])), (COSTS,))
        assert (named.inputs, named.is_whole, named.unread) == ((), True, ())

    def test_a_count_is_counted_where_nothing_names_an_input(self) -> None:
        assert with_names(reading(hidden_table([])), ()).unread == ("a scan: its table",)


class TestPrograms:
    def test_declared_topics_are_those_of_a_log_alone(self, program: Any) -> None:
        program.run(
            [{"namespace": BROKERS, "name": "orders"}], [], node="declare", kind="DECLARED", types=("START", "RUNNING")
        )
        program.log(inputs=(Observed(kafka_topic("orders")),), outputs=(Observed(T),), is_whole=True)
        lineage = program.lineage()
        assert [one.dataset for one in lineage.inputs] == [DatasetName(BROKERS, "orders")]
        assert lineage.unread == ()

    def test_topics_without_brokers_are_counted(self, program: Any) -> None:
        program.log(inputs=(Observed(kafka_topic("orders")),), outputs=(Observed(T),), is_whole=True)
        assert [one.part for one in program.lineage().unread] == ["orders: its brokers"]

    def test_several_topics_of_one_name_are_several_inputs(self, program: Any) -> None:
        program.run([{"namespace": BROKERS, "name": "orders,refunds"}], ["/out"])
        assert [one.dataset.name for one in program.lineage().inputs] == ["orders", "refunds"]

    def test_edges_of_the_listener_are_none_where_the_source_joins(self, program: Any, make_dataset: Any) -> None:
        """It gives all columns to the first table of the join."""
        orders = {"namespace": "postgres://db:5432", "name": "shop.public.orders"}
        edge = {**orders, "field": "name", "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]}
        out = make_dataset("/out", rows=1, columns=("name", "day"), edges={"day": ("/days", "day")})
        out["facets"]["columnLineage"]["fields"]["name"] = {"inputFields": [edge]}
        run_id = program.run([orders, make_dataset("/days", columns=("day",))], [out])
        program.log(run_id, outputs=(Observed(DatasetName("file", "/out")),), unread=(PUSHED_JOIN,))
        (output,) = program.lineage().outputs
        assert output.column_lineage is not None
        assert [column for column, _ in output.column_lineage.fields] == ["day"]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("SUM(cost)", ("cost", "AGGREGATION")),
        ("COUNT(DISTINCT cost)", ("cost", "AGGREGATION")),
        ('MAX("cost")', ("cost", "AGGREGATION")),
        ("UPPER(cost)", ("cost", "TRANSFORMATION")),
        ("cost", ("cost", "IDENTITY")),
        ("max(x)", ("max(x)", "IDENTITY")),
        ("COUNT(*)", None),
        ("SUM(cost * 2)", None),
    ],
)
def test_an_aggregate_of_a_source_is_no_column(field, expected) -> None:
    read = Observed(COSTS.dataset, schema=(SchemaField("cost"), SchemaField("max(x)")))
    written = without_pushed(Observed(T, edges=frozenset({("c", read.dataset, field, COPY)})), (read, STAFF))
    assert [(name, how.subtype) for _, _, name, how in written.edges] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("field", "counted"),
    [
        ("SUM(cost + tax)", (UnreadPart("Scan: aggregates of its source", 1),)),
        ("SUM(cost)", ()),
        ("COUNT(*)", ()),
        ("SUM(1)", ()),
    ],
)
def test_aggregate_of_a_source_without_a_column_is_counted(
    field: str, counted: object, program: Any, make_dataset: Any
) -> None:
    orders = make_dataset("/orders")
    orders["facets"]["schema"] = {"fields": [{"name": name, "type": "int"} for name in ("cost", "tax")]}
    program.run([orders], [make_dataset("/out", edges={"total": ("/orders", field)})])
    assert program.lineage().unread == counted


def test_columns_of_an_input_without_a_schema_stay() -> None:
    output = Observed(T, edges=frozenset({("c", COSTS.dataset, "SUM(cost)", COPY)}))
    assert without_pushed(output, (Observed(COSTS.dataset),)) is output
