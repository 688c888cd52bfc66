"""What the event log lacks of a lineage that it made together with the listener."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from spark_lineage.merge.accounting import OF_PROGRAM
from spark_lineage.merge.event import schema_and_catalog
from spark_lineage.merge.lineage import (
    Catalog,
    CatalogChange,
    DatasetLineage,
    SchemaField,
    Statistics,
    TaskLineage,
    Transformation,
)
from spark_lineage.merge.log_alone import Lent, lacking_in_log
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

AT = datetime(2026, 1, 2, tzinfo=UTC)
READ, WRITTEN = DatasetName("file", "/a"), DatasetName("file", "/b")
EDGE = ("id", READ, "id", Transformation("DIRECT", "IDENTITY"))
LOGGED = {
    "inputs": (Observed(READ, schema=(SchemaField("id"),)),),
    "outputs": (
        Observed(WRITTEN, schema=(SchemaField("id"),), edges=frozenset({EDGE}), statistics=Statistics(1, 10, 1)),
    ),
}


def lacking(program: Any, make_dataset: Any, *, foreign: bool = False, lifecycle: Any = None, **logged: Any) -> str:
    """Return what a log lacks beside a listener that saw all, with the types of columns and one that was not read."""
    written = make_dataset("/b", rows=1, edges={"id": ("/a", "id")}, lifecycle=lifecycle)
    run_id = program.run([make_dataset("/a", columns=("id", "other"))], [written])
    if foreign:
        program.events[-1]["run"]["facets"]["ours"] = {"_producer": "p", "_schemaURL": "s", "is": 1}
    program.log(run_id, command="InsertIntoHadoopFsRelationCommand", has_jobs=True, is_whole=True, **(LOGGED | logged))
    state = program.state()
    return lacking_in_log(state, program.lineage())


def test_log_without_types_and_without_unread_columns_is_enough(program: Any, make_dataset: Any) -> None:
    assert not lacking(program, make_dataset)


def test_log_with_rows_of_which_no_source_has_the_origin_is_enough(program: Any, make_dataset: Any) -> None:
    assert not lacking(program, make_dataset, unnamed=(OF_PROGRAM,))


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "no rows": ({"outputs": (Observed(WRITTEN, schema=(SchemaField("id"),), edges=frozenset({EDGE})),)}, "outputs"),
    "another column": ({"inputs": (Observed(READ, schema=(SchemaField("new"),)),)}, "inputs"),
    "something unread": ({"unread": ("Scan ExistingRDD",)}, "what it counts"),
    "no change of its life": ({"lifecycle": "CREATE"}, "outputs"),
    "a facet of another tool": ({"foreign": True}, "foreign"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_log_that_says_less_is_not(name: str, program: Any, make_dataset: Any) -> None:
    logged, reason = OTHERS[name]
    assert reason in lacking(program, make_dataset, **logged)


HIVE = Catalog("hive", "hive", "default")
ID, TYPED = (SchemaField("id"),), (SchemaField("id", "int"),)


def lineage_of(schema: tuple[SchemaField, ...], catalog: Catalog | None = None) -> TaskLineage:
    """Return a lineage of a table that is read and written, created once and dropped."""
    table = DatasetLineage(WRITTEN, schema=schema, catalog=catalog)
    create, drop = (CatalogChange(each, "TABLE", WRITTEN, "b", AT, schema=schema) for each in ("CREATE", "DROP"))
    return TaskLineage("COMPLETE", (table,), (table,), catalog_changes=(create, structs.replace(drop, schema=())))


def test_a_lineage_lends_types_and_catalogs_to_the_same_of_the_log_alone() -> None:
    known = lineage_of(TYPED, HIVE)
    assert Lent.of(known).to(lineage_of(ID)) == known


def test_the_columns_and_the_catalog_of_an_event_are_those_that_a_lineage_lends() -> None:
    fields = [{"name": "id", "type": "int"}]
    catalog = {"framework": "hive", "type": "hive", "name": "default", "_producer": "x"}
    assert schema_and_catalog({"schema": {"fields": fields}, "catalog": catalog}) == (TYPED, HIVE)
    assert schema_and_catalog({}) == ((), None)


def test_a_lineage_lends_each_change_of_the_catalog_once_and_nothing_to_others() -> None:
    known, alone = lineage_of(TYPED), lineage_of(ID)
    other = DatasetLineage(READ, schema=ID)
    twice = structs.replace(alone, inputs=(other,), catalog_changes=alone.catalog_changes[:1] * 2)
    lineage = Lent.of(known).to(twice)
    assert lineage.inputs == (other,)
    assert [each.schema for each in lineage.catalog_changes] == [TYPED, ID]


@pytest.mark.parametrize(
    ("change", "is_known"),
    [
        ({}, True),
        ({"inputs": (DatasetLineage(READ),)}, False),
        ({"outputs": (DatasetLineage(WRITTEN, schema=(SchemaField("new"),)),)}, False),
        ({"catalog_changes": (CatalogChange("TRUNCATE", "TABLE", WRITTEN, "b", AT),)}, False),
    ],
)
def test_a_lender_knows_a_lineage_without_others(change: dict[str, Any], is_known: bool) -> None:
    assert Lent.of(lineage_of(TYPED)).is_known(structs.replace(lineage_of(ID), **change)) is is_known
