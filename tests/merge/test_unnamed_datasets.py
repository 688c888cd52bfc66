"""What a plan reads without saying where it is has the name that the listener gives it, or none."""

from __future__ import annotations

import pytest

from spark_lineage.merge.correction import with_names
from spark_lineage.merge.execution import Execution, unnamed
from spark_lineage.merge.lineage import SchemaField, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

COPY = Transformation("DIRECT", "IDENTITY")
T = DatasetName("file", "/t")
ORDERS = Observed(DatasetName("postgres://db:5432", "shop.public.orders"), schema=(SchemaField("id"),))
FILES = Observed(DatasetName("file", "/orders"), schema=(SchemaField("id"), SchemaField("at")))


def reading(name, columns=("id",), others=()):
    """Return an execution that copies a column of what it does not name."""
    nameless = unnamed(name, columns)
    return Execution(
        "app",
        1,
        1,
        0.0,
        inputs=(*others, Observed(nameless, schema=tuple(SchemaField(column) for column in columns))),
        outputs=(Observed(T, edges=frozenset({("id", nameless, "id", COPY)})),),
        is_whole=True,
    )


@pytest.mark.parametrize(
    ("name", "listened", "expected"),
    [
        ("orders", (ORDERS, FILES), ORDERS),
        ("public.orders", (ORDERS,), ORDERS),
        ('"public"."orders"', (ORDERS,), ORDERS),
        # A logical relation prints its columns alone.
        ("", (FILES,), FILES),
    ],
)
def test_what_the_listener_names_has_its_name(name, listened, expected) -> None:
    named = with_names(reading(name), listened)
    assert [one.dataset for one in named.inputs] == [expected.dataset]
    assert named.outputs[0].edges == {("id", expected.dataset, "id", COPY)}
    assert named.is_whole


@pytest.mark.parametrize(
    ("name", "listened"),
    [
        ("orders", ()),
        # A table of a database is no path.
        ("orders", (FILES,)),
        ("rders", (ORDERS,)),
        # Either of them may be meant.
        ("", (FILES, ORDERS)),
        ("orders", (ORDERS, Observed(DatasetName("postgres://other:5432", "shop.public.orders")))),
    ],
)
def test_what_fits_none_of_the_listeners_inputs_or_several_goes(name, listened) -> None:
    named = with_names(reading(name), listened)
    assert (named.inputs, named.outputs[0].edges, named.is_whole) == ((), frozenset(), False)


def test_a_relation_that_prints_no_columns_fits_nothing() -> None:
    assert with_names(reading("", ()), (FILES,)).inputs == ()


def test_what_the_plan_names_is_meant_by_no_other_name() -> None:
    named = with_names(reading("", others=(FILES,)), (FILES, ORDERS))
    assert {one.dataset for one in named.inputs} == {FILES.dataset, ORDERS.dataset}


def test_an_execution_that_names_all_that_it_reads_stays_as_it_is() -> None:
    execution = Execution("app", 1, 1, 0.0, inputs=(FILES,))
    assert with_names(execution, (ORDERS,)) is execution
