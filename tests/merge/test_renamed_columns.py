"""Columns that are renamed or dropped after the task has written or read them: in schemas, edges and inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import structs

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import IDENTITY, ColumnChange, DatasetLineage, SchemaField, Symlink, TaskLineage
from spark_lineage.merge.observed import Observed, lacks, with_changes
from spark_lineage.naming.identity import DatasetName

SOURCE, TABLE, COPY = (DatasetName("file", path) for path in ("/in", "/wh/t", "/out"))
LINK = frozenset({Symlink("file:/wh", "db.t", "TABLE")})
NAME = "spark_catalog.db.t"


def renaming(old: str, new: str) -> ColumnChange:
    return ColumnChange(SchemaField(old), SchemaField(new))


def write(program: Any, target: DatasetName, source: DatasetName, columns: dict[str, str], **told: Any) -> None:
    """Log a write whose columns are copies."""
    edges = frozenset((column, source, field, IDENTITY) for column, field in columns.items())
    links = LINK if target == TABLE else frozenset()
    read = Observed(source, LINK if source == TABLE else frozenset(), tuple(map(SchemaField, columns.values())))
    schema = tuple(map(SchemaField, columns))
    program.log(inputs=(read,), outputs=(Observed(target, links, schema, edges=edges),), has_jobs=True, **told)


def alter(program: Any, changes: Iterable[ColumnChange], name: str = NAME, run_id: str | None = None) -> None:
    statement = CatalogStatement("ALTER", "TABLE", name, columns=tuple(changes))
    program.log(run_id, command="AlterTable", statement=statement)


def output(lineage: TaskLineage, dataset: DatasetName) -> DatasetLineage:
    return next(one for one in lineage.outputs if one.dataset == dataset)


def columns(lineage: TaskLineage, dataset: DatasetName) -> tuple[list[str], dict[str, list[str]]]:
    """Return the columns of an output by its schema, and by its edges with the columns that they come from."""
    written = output(lineage, dataset)
    fields = written.column_lineage.fields if written.column_lineage is not None else ()
    return [field.name for field in written.schema], {name: [one.field for one in found] for name, found in fields}


@pytest.mark.parametrize(("old", "name"), [("b", NAME), ("B", "db.t"), ("b", "spark_catalog.delta./wh/t")])
def test_rename_column_after_a_write_renames_in_its_schema_and_edges(program: Any, old: str, name: str) -> None:
    write(program, TABLE, SOURCE, {"a": "x", "b": "y"})
    alter(program, [renaming(old, "where is it")], name)
    expected = ["a", "where is it"], {"a": ["x"], "where is it": ["y"]}
    assert columns(program.lineage(), TABLE) == expected


def test_table_of_another_path_is_not_altered(program: Any) -> None:
    write(program, TABLE, SOURCE, {"a": "x"})
    alter(program, [renaming("a", "b")], "spark_catalog.delta./wh/tt")
    assert columns(program.lineage(), TABLE) == (["a"], {"a": ["x"]})


def test_columns_that_swap_their_names_keep_their_sources(program: Any) -> None:
    write(program, TABLE, SOURCE, {"a": "x", "b": "y"})
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        alter(program, [renaming(old, new)])
    assert columns(program.lineage(), TABLE) == (["b", "a"], {"a": ["y"], "b": ["x"]})


def test_dropped_column_is_neither_in_the_schema_nor_in_the_edges(program: Any) -> None:
    write(program, TABLE, SOURCE, {"a": "x", "b": "y"})
    alter(program, [ColumnChange(SchemaField("A"), None)])
    assert columns(program.lineage(), TABLE) == (["b"], {"b": ["y"]})


def test_listener_that_has_the_columns_of_before_does_not_hide_the_rename(program: Any, make_dataset: Any) -> None:
    program.run(["/in"], [make_dataset("/wh/t", columns=("a", "b"), table="t", rows=1)])
    run_id = program.run(
        [], [make_dataset("/wh/t", columns=("a", "b"), table="t", lifecycle="ALTER")], node="alter_table"
    )
    alter(program, [renaming("b", "c")], "t", run_id)
    lineage = program.lineage()
    assert [field.name for field in output(lineage, TABLE).schema] == ["a", "c"]
    assert [field.name for field in lineage.catalog_changes[-1].schema] == ["a", "c"]


def test_input_has_the_column_names_of_its_first_read(program: Any) -> None:
    write(program, COPY, TABLE, {"early": "value"})
    alter(program, [renaming("value", "price")])
    alter(program, [renaming("price", "cost")])
    later = DatasetName("file", "/later")
    write(program, later, TABLE, {"late": "cost"})
    lineage = program.lineage()
    assert [[field.name for field in one.schema] for one in lineage.inputs] == [["value"]]
    assert columns(lineage, COPY)[1] == {"early": ["value"]}
    assert columns(lineage, later)[1] == {"late": ["value"]}


@pytest.mark.parametrize(
    ("change", "expected", "is_before"),
    [
        (renaming("a", "c"), ["c", "b"], True),
        (renaming("c", "a"), ["a", "b"], False),
        (ColumnChange(SchemaField("B"), None), ["a"], True),
        (ColumnChange(None, SchemaField("c", "int")), ["a", "b", "c"], True),
        (ColumnChange(SchemaField("a"), SchemaField("a", "bigint")), ["a", "b"], False),
        # A field of a struct.
        (renaming("a.x", "a.y"), ["a", "b"], False),
        (ColumnChange(None, SchemaField("a.z", "int")), ["a", "b"], False),
    ],
)
def test_columns_after_a_change_of(change: ColumnChange, expected: list[str], is_before: bool) -> None:
    schema = (SchemaField("a", "int"), SchemaField("b", "string"))
    assert [field.name for field in with_changes(schema, [change])] == expected
    assert lacks(schema, [change]) is is_before


def test_renamed_column_keeps_its_type_and_a_retyped_one_its_name() -> None:
    schema = (SchemaField("a", "int"),)
    assert with_changes(schema, [renaming("a", "b")]) == (SchemaField("b", "int"),)
    retyped = ColumnChange(SchemaField("a"), SchemaField("a", "bigint"))
    assert with_changes(schema, [retyped]) == (SchemaField("a", "bigint"),)


def test_rename_that_a_plan_does_not_name_is_counted(program: Any) -> None:
    write(program, TABLE, SOURCE, {"a": "x"})
    statement = CatalogStatement("ALTER", "TABLE", NAME, has_unnamed_columns=True)
    program.log(command="AlterTable", statement=statement)
    assert [one.part for one in program.lineage().unread] == ["AlterTable: a column that it renames or drops"]


@pytest.mark.parametrize(("is_written", "is_failed", "unread"), [(False, False, 1), (True, False, 0), (False, True, 0)])
def test_rows_that_a_delete_leaves_are_counted_where_no_plan_has_their_columns(
    program: Any, is_written: bool, is_failed: bool, unread: int
) -> None:
    if is_written:
        write(program, TABLE, SOURCE, {"a": "x"})
    program.log(command="DeleteFromTable", outputs=(Observed(TABLE, LINK),), has_jobs=True, is_failed=is_failed)
    assert [one.part for one in program.lineage().unread] == ["DeleteFromTable: the columns that it leaves"] * unread


def test_a_column_that_the_task_adds_is_none_of_the_input(program: Any) -> None:
    write(program, COPY, TABLE, {"a": "a"})
    alter(program, [ColumnChange(None, SchemaField("new")), renaming("new", "newer")])
    write(program, SOURCE, TABLE, {"b": "a", "c": "newer"})
    lineage = program.lineage()
    (read,) = lineage.inputs
    assert [field.name for field in read.schema] == ["a"]
    assert columns(lineage, SOURCE) == (["b", "c"], {"b": ["a"]})


@pytest.mark.parametrize(("is_partial", "expected"), [(False, ["c"]), (True, ["a", "b", "c"])])
def test_an_overwrite_leaves_its_own_columns(program: Any, is_partial: bool, expected: list[str]) -> None:
    for names, partial in (("ab", False), ("c", is_partial)):
        made = Observed(COPY, schema=tuple(map(SchemaField, names)), lifecycles=frozenset({"OVERWRITE"}))
        edges = frozenset((name, SOURCE, name, IDENTITY) for name in names)
        written = structs.replace(made, edges=edges)
        program.log(mode="Overwrite", is_partial=partial, inputs=(Observed(SOURCE),), outputs=(written,), has_jobs=True)
    assert [field.name for field in output(program.lineage(), COPY).schema] == expected


def test_column_that_is_renamed_before_it_is_read_has_the_name_that_the_listener_saw_before(
    program: Any, make_dataset: Any
) -> None:
    after = make_dataset("/wh/t", columns=("name",), table="db.t")
    altered = [make_dataset("/wh/t", columns=(name,), table="db.t", lifecycle="ALTER") for name in ("nm", "name")]
    program.run([], altered[:1], node="alter_table")
    program.events[-1]["outputs"] = altered[1:]
    program.run([after], [make_dataset("/out", columns=("name",), rows=1, edges={"name": ("/wh/t", "name")})])
    lineage = program.lineage()
    assert [[field.name for field in one.schema] for one in lineage.inputs] == [["nm"]]
    assert columns(lineage, COPY)[1] == {"name": ["nm"]}
    assert [change.columns for change in lineage.catalog_changes] == [
        (ColumnChange(SchemaField("nm", "int"), SchemaField("name", "int")),)
    ]


def test_column_that_was_renamed_before_the_table_was_seen_has_its_former_name_in_the_input(program: Any) -> None:
    alter(program, [renaming("price", "cents")])
    write(program, COPY, TABLE, {"cents": "cents"})
    lineage = program.lineage()
    (read,) = lineage.inputs
    assert [field.name for field in read.schema] == ["price"]
    assert columns(lineage, COPY)[1] == {"cents": ["price"]}


def test_column_renamed_to_the_name_of_one_that_was_added_and_dropped_keeps_its_source(program: Any) -> None:
    write(program, COPY, TABLE, {"price": "price"})
    alter(program, [ColumnChange(None, SchemaField("cents"))])
    alter(program, [ColumnChange(SchemaField("cents"), None)])
    alter(program, [renaming("price", "cents")])
    write(program, DatasetName("file", "/again"), TABLE, {"cents": "cents"})
    assert columns(program.lineage(), DatasetName("file", "/again"))[1] == {"cents": ["price"]}
