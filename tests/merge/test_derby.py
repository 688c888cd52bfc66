"""Tables of Derby, which the listener gives one namespace whatever their database, and tables of one name in two."""

from __future__ import annotations

from typing import Any

from spark_lineage.merge.lineage import Transformation, UnreadPart
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

DATABASES = "file:/w/metastore_db"
ITEMS = {"namespace": DATABASES, "name": "ITEMS"}


def test_tables_of_derby_are_counted_and_neither_inputs_nor_outputs(program: Any, make_dataset: Any) -> None:
    edge = {"namespace": DATABASES, "name": "ITEMS", "field": "ID"}
    out = make_dataset("/out", rows=1, edges={"id": ("/in", "id")})
    out["facets"]["columnLineage"]["fields"]["ID"] = {"inputFields": [edge]}
    program.run([ITEMS, "/in"], [out])
    program.run(["/in"], [{"namespace": DATABASES, "name": "TOTALS"}], node="execute_save_into_data_source_command")
    lineage = program.lineage()
    assert [one.dataset for one in lineage.inputs] == [DatasetName("file", "/in")]
    (output,) = lineage.outputs
    assert output.dataset == DatasetName("file", "/out")
    assert output.column_lineage is not None
    assert [column for column, _ in output.column_lineage.fields] == ["id"]
    assert lineage.unread == (UnreadPart("ITEMS: its database", 1), UnreadPart("TOTALS: its database", 1))


def test_files_in_a_directory_of_the_same_name_stay(program: Any) -> None:
    program.run(["/w/metastore_db"], ["/out"])
    lineage = program.lineage()
    assert [one.dataset.name for one in lineage.inputs] == ["/w/metastore_db"]
    assert lineage.unread == ()


def _mixed(make_dataset: Any) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of a run that reads tables of one name; the listener mixes the columns that both have."""

    def table(database: str, *columns: str) -> dict[str, Any]:
        return {
            "namespace": f"postgres://{database}:5432",
            "name": "shop.orders",
            "facets": {"schema": {"fields": [{"name": column, "type": "int"} for column in columns]}},
        }

    def source(database: str, column: str) -> dict[str, str]:
        return {"namespace": f"postgres://{database}:5432", "name": "shop.orders", "field": column}

    out = make_dataset("/out", rows=1, edges={"id": ("/in", "id")})
    out["facets"]["columnLineage"]["fields"] |= {
        "amount": {"inputFields": [source("one", "amount"), source("two", "amount")]},
        "tax": {"inputFields": [source("two", "tax")]},
    }
    return [table("one", "amount"), table("two", "amount", "tax"), "/in"], [out]


def test_column_of_tables_of_one_name_in_two_databases_is_counted_and_no_edge(program: Any, make_dataset: Any) -> None:
    program.run(*_mixed(make_dataset))
    lineage = program.lineage()
    (output,) = lineage.outputs
    assert output.column_lineage is not None
    assert [column for column, _ in output.column_lineage.fields] == ["id", "tax"]
    assert len(lineage.inputs) == 3
    assert lineage.unread == (UnreadPart("shop.orders: its database", 1),)


def test_column_of_tables_of_one_name_that_the_plan_tells_apart_is_not_counted(program: Any, make_dataset: Any) -> None:
    inputs, outputs = _mixed(make_dataset)
    orders = DatasetName("postgres://one:5432", "shop.orders")
    edges = frozenset({("amount", orders, "amount", Transformation("DIRECT", "IDENTITY"))})
    written = Observed(DatasetName("file", "/out"), edges=edges)
    program.log(program.run(inputs, outputs), has_jobs=True, outputs=(written,), is_whole=True)
    lineage = program.lineage()
    (output,) = lineage.outputs
    assert output.column_lineage is not None
    sources = {column: [(one.dataset, one.field) for one in inputs] for column, inputs in output.column_lineage.fields}
    assert sources["amount"] == [(orders, "amount")]
    assert lineage.unread == ()


def test_tables_of_one_name_in_two_databases_without_a_column_of_both_keep_their_edges(
    program: Any, make_dataset: Any
) -> None:
    tables = [{"namespace": f"postgres://{each}:5432", "name": "shop.orders"} for each in ("one", "two")]
    program.run(tables, [make_dataset("/out", rows=1)])
    lineage = program.lineage()
    assert len(lineage.inputs) == 2
    assert lineage.unread == ()
