"""Whether a task made the tables that it saves, and which of them go with their database (M11)."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import Symlink, TaskLineage
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName


def changes(lineage: TaskLineage) -> list[tuple[str, str, str]]:
    return [(one.change, one.name, one.dataset.name) for one in lineage.catalog_changes]


def create(program: Any, table: dict[str, Any], name: str, change: Any = "CREATE") -> None:
    run_id = program.run([], [table], node="execute_create_data_source_table_as_select_command")
    program.log(run_id, statement=CatalogStatement(change, "TABLE", f"spark_catalog.{name}"))


@pytest.mark.parametrize(("change", "is_certain"), [("CREATE", True), ("OVERWRITE", False)])
def test_table_that_is_saved_in_mode_overwrite_may_have_been_there(
    program: Any, make_dataset: Any, change: Any, is_certain: bool
) -> None:
    create(program, make_dataset("/wh/t", table="default.t", lifecycle="CREATE", rows=3), "default.t", change)
    (made,) = program.lineage().catalog_changes
    assert (made.change, made.is_certain, made.is_ignored) == ("CREATE", is_certain, False)


def test_second_drop_of_a_table_of_iceberg_found_nothing(program: Any, make_dataset: Any) -> None:
    for lifecycle in ("CREATE", "DROP", "DROP"):
        table = make_dataset("/ice/d/t", table="d.t", table_namespace="file:/ice", lifecycle=lifecycle)
        table["facets"]["catalog"] = {"framework": "iceberg", "type": "hadoop", "name": "ice"}
        run_id = program.run([], [table], node=f"{lifecycle.lower()}_table")
        statement = CatalogStatement(lifecycle, "TABLE", "ice.d.t", is_conditional=lifecycle == "DROP")
        program.log(run_id, statement=statement)
    assert [one.is_ignored for one in program.lineage().catalog_changes] == [False, False, True]


def test_tables_in_the_place_of_a_database_go_with_it_and_others_leave_their_files(
    program: Any, make_dataset: Any
) -> None:
    location = (("location", "file:/else/where"),)
    program.log(statement=CatalogStatement("CREATE", "DATABASE", "spark_catalog.db", properties=location))
    for place in ("/else/where/t", "/other/u"):
        create(program, make_dataset(place, lifecycle="CREATE", rows=1), f"db.{place[-1]}")
    program.log(statement=CatalogStatement("CREATE", "TABLE", "spark_catalog.db.logged"))
    program.log(statement=CatalogStatement("DROP", "DATABASE", "spark_catalog.db", is_cascading=True))
    lineage = program.lineage()
    assert changes(lineage)[-4:] == [
        ("DROP", "db.t", "/else/where/t"),
        ("DROP", "db.u", "/other/u"),
        ("DROP", "db.logged", "db.logged"),
        ("DROP", "db", "db"),
    ]
    assert [one.dataset.name for one in lineage.outputs] == ["/other/u"]


def test_table_of_a_database_is_dropped_once(program: Any, make_dataset: Any) -> None:
    create(program, make_dataset("/wh/db.db/t", table="db.t", lifecycle="CREATE", rows=1), "db.t")
    program.log(statement=CatalogStatement("DROP", "DATABASE", "spark_catalog.db", is_cascading=True))
    assert changes(program.lineage())[1:] == [("DROP", "db.t", "/wh/db.db/t"), ("DROP", "db", "db")]


def test_table_that_a_command_made_and_a_stream_filled_by_its_place_was_not_there(program: Any) -> None:
    source, sink, copy = (DatasetName("file", path) for path in ("/src", "/wh/sink", "/copy"))
    made = CatalogStatement("CREATE", "TABLE", "spark_catalog.default.sink")
    table = Observed(sink, symlinks=frozenset({Symlink("file:/wh", "default.sink", "TABLE")}))
    program.log(command="CreateDataSourceTableCommand", statement=made)
    program.log(has_jobs=True, inputs=(Observed(source),), outputs=(Observed(sink),))
    program.log(command="InsertIntoHadoopFsRelationCommand", has_jobs=True, inputs=(table,), outputs=(Observed(copy),))
    lineage = program.lineage()
    assert [one.dataset for one in lineage.inputs] == [source]
    assert {one.dataset: one.fed_by for one in lineage.outputs} == {sink: (source,), copy: (source,)}
