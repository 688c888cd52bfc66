"""Which datasets are Iceberg's metadata tables, and what is left where they are read."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.evidence import metadata_tables
from spark_lineage.merge.lineage import Symlink, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

OUT = DatasetName("file", "/out")


def table(name: str) -> Observed:
    place = DatasetName("file", f"/ice/{name.replace('.', '/')}")
    return Observed(place, symlinks=frozenset({Symlink("file:/ice", name, "TABLE")}))


@pytest.mark.parametrize(
    ("others", "name", "is_real", "is_metadata"),
    [
        (("db.t",), "db.t.snapshots", False, True),
        (("db.t",), "db.t.FILES", True, True),
        # Nothing is known of what is above.
        ((), "db.t.refs", False, True),
        ((), "db.t.refs", True, False),
        # Another table is beside it: what is above is a namespace.
        (("prod.web.visits",), "prod.web.history", False, False),
        (("db.t",), "db.t.changes", False, False),
        (("db.orders",), "db.files", False, False),
        (("db.orders",), "files", False, False),
    ],
)
def test_what_is_a_metadata_table(others: tuple[str, ...], name: str, is_real: bool, is_metadata: bool) -> None:
    read = table(name)
    found = metadata_tables([*map(table, others), read], {read.dataset} if is_real else set())
    assert found == ({read.dataset} if is_metadata else set())


def test_a_path_and_a_table_without_a_place_above_it_stay() -> None:
    nowhere = Observed(DatasetName("ice", "db.t.refs"), symlinks=table("db.t.refs").symlinks)
    assert (
        metadata_tables([table("db.t"), Observed(DatasetName("file", "/ice/db/t/refs")), nowhere], {nowhere.dataset})
        == set()
    )


def test_neither_inputs_nor_columns_come_from_them(program: Any, make_dataset: Any) -> None:
    stock, refs = table("db.stock"), table("db.stock.refs")
    copy = Transformation("DIRECT", "IDENTITY")
    edges = frozenset({("a", stock.dataset, "a", copy), ("b", refs.dataset, "b", copy)})
    run_id = program.run([make_dataset("/ice/db/stock", table="db.stock")], ["/out"])
    program.log(run_id, inputs=(stock, refs), outputs=(Observed(OUT, edges=edges),))
    program.log(inputs=(refs,))
    lineage = program.lineage()
    assert [one.dataset.name for one in lineage.inputs] == ["/ice/db/stock"]
    (output,) = lineage.outputs
    assert output.column_lineage is not None
    assert [column for column, _ in output.column_lineage.fields] == ["a"]


def test_a_change_feed_has_columns_that_its_table_has_not(program: Any, make_dataset: Any) -> None:
    copy, columns = Transformation("DIRECT", "IDENTITY"), ["id", "_change_type", "_commit_version"]
    feed, saved = DatasetName("file", "/t"), DatasetName("file", "/saved")
    edges = frozenset((field, name, field, copy) for name in (feed, saved) for field in columns)
    read = [make_dataset(name.name, columns=tuple(columns)) for name in (feed, saved)]
    run_id = program.run(read, ["/out"])
    program.log(run_id, inputs=(Observed(feed),), outputs=(Observed(OUT, edges=edges),), feeds=frozenset({feed}))
    lineage = program.lineage()
    assert {one.dataset: [field.name for field in one.schema] for one in lineage.inputs} == {
        saved: columns,
        feed: ["id"],
    }
    (output,) = lineage.outputs
    assert output.column_lineage is not None
    assert {field: [one.dataset for one in made_from] for field, made_from in output.column_lineage.fields} == {
        "_change_type": [saved],
        "_commit_version": [saved],
        "id": [saved, feed],
    }
    assert output.fed_by == (saved, feed)


def test_changelog_of_an_iceberg_table_is_the_table(program: Any, make_dataset: Any) -> None:
    columns = ("id", "_change_type", "_change_ordinal", "_commit_snapshot_id")
    edges = {column: ("/ice/db/t/changes", column) for column in columns[:2]}
    read = make_dataset("/ice/db/t/changes", columns=columns, table="db.t.changes")
    other = make_dataset("/data/changes", columns=("id", "_change_type"), table="db.changes")
    program.run([read, other], [make_dataset("/out", columns=columns[:2], edges=edges, rows=1)])
    lineage = program.lineage()
    assert {one.dataset.name: [field.name for field in one.schema] for one in lineage.inputs} == {
        "/data/changes": ["id", "_change_type"],
        "/ice/db/t": ["id"],
    }
    assert [link.name for one in lineage.inputs for link in one.symlinks] == ["db.changes"]
    (output,) = lineage.outputs
    assert output.column_lineage is not None
    assert [(column, made[0].dataset.name) for column, made in output.column_lineage.fields] == [("id", "/ice/db/t")]
