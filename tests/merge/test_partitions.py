"""What is read of a dataset of which the task has written a part: partitions, branches and versions."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge import state
from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import IDENTITY, Statistics, Symlink, TaskLineage, UnreadPart
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.partitions import (
    are_apart,
    branch,
    column_compared,
    column_value,
    is_whole,
    is_within,
    partition_below,
)
from spark_lineage.naming.identity import DatasetName

SALES = DatasetName("file", "/lake/sales")
SOURCE = DatasetName("file", "/src")
OUT = DatasetName("file", "/out")
TABLE = frozenset({Symlink("file:/wh", "db.t", "TABLE")})


def inputs(lineage: TaskLineage) -> list[str]:
    return [one.dataset.name for one in lineage.inputs]


def sources(lineage: TaskLineage, dataset: DatasetName = OUT) -> set[str]:
    (output,) = (one for one in lineage.outputs if one.dataset == dataset)
    assert output.column_lineage is not None
    return {edge.dataset.name for _, edges in output.column_lineage.fields for edge in edges}


def copied(target: DatasetName, source: DatasetName, **more: Any) -> Observed:
    return Observed(target, edges=frozenset({("v", source, "v", IDENTITY)}), **more)


def part(value: str) -> DatasetName:
    return DatasetName("file", "/lake/sales", f"day={value}")


@pytest.mark.parametrize(
    ("value", "is_apart"), [("1,2", False), ("3", False), ("2,3", True), ("5", True), ("2026-01-01", False)]
)
def test_numbers_in_a_list_may_be_texts_with_commas(value: str, is_apart: bool) -> None:
    listed = column_compared("day", [("|", ["1", "1,2", "3"])])
    assert are_apart(column_value("day", value), listed) is is_apart


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/lake/sales/day=1/region=eu", "day=1/region=eu"),
        ("/lake/sales/2026/01", "2026/01"),
        ("/lake/sales/day=1/part-00000-a.parquet", "day=1"),
        ("/lake/sales/day=*", ""),
        ("/lake/sales", ""),
        ("/lake/sales2/day=1", ""),
    ],
)
def test_partition_below_path_is_what_follows_its_dataset(path: str, expected: str) -> None:
    assert partition_below(SALES, path) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("day=1", "day=2", True),
        ("day=1", "DAY=1", False),
        ("day=1", "region=eu", False),
        ("day=1/region=eu", "region=us", True),
        ("day=a%20b", "day=a b", False),
        ("2026/01", "2026/02", True),
        (column_value("day", "2026/01"), "day=2026%2F01", False),
        (column_value("day", "2026/01"), "day=2026%2F02", True),
        ("", "day=1", False),
        ("day=01", "day=1", False),
        ("day=2026-01-01", "day=20454", False),
        ("day=2026-01-01", "day=2026-01-01 00:00:00", False),
        (column_compared("day", [("<", ["3"])]), "day=4", True),
        (column_compared("day", [("<", ["3"])]), "day=3", True),
        (column_compared("day", [("<=", ["3"]), (">", ["1"])]), "day=3", False),
        (column_compared("day", [("<=", ["3"]), (">", ["1"])]), "day=1", True),
        (column_compared("day", [("|", ["1", "2"])]), "day=2", False),
        (column_compared("day", [("|", ["1", "2"])]), "day=3", True),
        # As text it is less, as a number it is not.
        (column_compared("day", [("<", ["9"])]), "day=10", False),
        (column_compared("day", [(">=", ["2026-01-02"])]), "day=2026-01-01", True),
        (column_compared("day", [("<", ["1"])]), column_compared("day", [(">", ["2"])]), False),
        (branch("fix"), "", True),
        (branch("main"), "", False),
    ],
)
def test_partitions_are_apart_by_a_column_of_two_values(one: str, other: str, *, expected: bool) -> None:
    assert are_apart(one, other) is are_apart(other, one) is expected


def test_partition_is_within_one_that_names_fewer_columns() -> None:
    assert is_within("day=1/region=eu", ["day=2", "day=1"])
    assert not is_within("day=1", ["day=1/region=eu"])
    assert [is_whole(each) for each in ("", branch("fix"), "day=1")] == [True, True, False]


def test_another_partition_than_the_one_written_is_an_input(program: Any, make_dataset: Any) -> None:
    program.run(["/src"], [make_dataset("/lake/sales/day=2", rows=1)])
    program.run(["/lake/sales/day=1"], ["/out"])
    assert inputs(program.lineage()) == ["/lake/sales", "/src"]


def test_partition_that_was_written_is_no_input(program: Any, make_dataset: Any) -> None:
    program.run(["/src"], [make_dataset("/lake/sales/day=2", rows=1)])
    program.run(["/lake/sales/day=2"], ["/out"])
    assert inputs(program.lineage()) == ["/src"]


def test_edges_of_two_partitions_that_are_read_together_are_apart(program: Any) -> None:
    program.log(
        inputs=(Observed(SOURCE),), outputs=(copied(part("2"), SOURCE),), mode="Overwrite", command="InsertInto"
    )
    old, new = DatasetName("file", "/old"), DatasetName("file", "/new")
    both = (Observed(part("1")), Observed(part("2")))
    program.log(inputs=both, outputs=(copied(old, part("1")),), mode="Overwrite", command="InsertInto")
    program.log(inputs=both, outputs=(copied(new, part("2")),), mode="Overwrite", command="InsertInto")
    lineage = program.lineage()
    assert sources(lineage, old) == {"/lake/sales"}
    assert sources(lineage, new) == {"/src"}


def test_partition_that_was_written_comes_from_what_it_was_written_from(program: Any) -> None:
    for source, value in (("/a", "1"), ("/b", "2")):
        name = DatasetName("file", source)
        program.log(inputs=(Observed(name),), outputs=(copied(part(value), name),), command="InsertInto")
    program.log(inputs=(Observed(part("2")),), outputs=(copied(OUT, part("2")),), command="InsertInto")
    assert sources(program.lineage()) == {"/b"}


def test_overwritten_partition_leaves_the_rows_of_others(program: Any) -> None:
    overwrite = frozenset({"OVERWRITE"})
    for source, value in (("/a", "1"), ("/b", "2"), ("/c", "2")):
        name = DatasetName("file", source)
        program.log(
            inputs=(Observed(name),),
            outputs=(copied(SALES, name, lifecycles=overwrite),),
            partition=(f"day={value}",),
            mode="Overwrite",
            is_partial=True,
            command="InsertInto",
        )
    assert sources(program.lineage(), SALES) == {"/a", "/c"}


@pytest.mark.parametrize("static", [(), ("region=eu",)])
def test_partition_that_the_log_alone_names_is_what_the_listener_says_was_written(
    program: Any, static: tuple[str, ...]
) -> None:
    run_id = program.run(["/src"], ["/lake/sales"])
    program.log(run_id, inputs=(Observed(SOURCE),), outputs=(copied(part("2"), SOURCE),), partition=static, command="A")
    run_id = program.run(["/lake/sales"], ["/out"])
    program.log(run_id, inputs=(Observed(part("1")),), outputs=(copied(OUT, part("1")),), command="A")
    lineage = program.lineage()
    assert inputs(lineage) == ["/lake/sales", "/src"]
    assert sources(lineage) == {"/lake/sales"}


@pytest.mark.parametrize(("value", "is_left"), [("2", True), ("1", False)])
def test_failed_overwrite_of_a_partition_destroys_that_alone(program: Any, value: str, *, is_left: bool) -> None:
    overwriting = frozenset({"OVERWRITE"})
    for day, is_failed in (("1", False), (value, True)):
        written = copied(part(day), SOURCE, lifecycles=overwriting)
        program.log(
            command="InsertIntoHadoopFsRelationCommand",
            mode="Overwrite",
            inputs=(Observed(SOURCE),),
            outputs=(written,),
            has_jobs=True,
            is_failed=is_failed,
        )
    lineage = program.lineage()
    assert [one.dataset for one in lineage.outputs] == [SALES] * is_left
    assert [one.dataset for one in lineage.attempted] == [SALES] * (not is_left)


def test_rows_with_one_value_in_a_column_are_not_those_of_another_value(program: Any) -> None:
    write = copied(SALES, SOURCE, symlinks=TABLE)
    program.log(inputs=(Observed(SOURCE),), outputs=(write,), constants=("day=2",), command="AppendData", mode="Append")
    program.log(inputs=(Observed(part("1"), symlinks=TABLE),), outputs=(copied(OUT, part("1")),), command="InsertInto")
    lineage = program.lineage()
    assert inputs(lineage) == ["/lake/sales", "/src"]
    assert sources(lineage) == {"/lake/sales"}


@pytest.mark.parametrize("is_made", [True, False])
def test_table_that_the_task_did_not_make_holds_more_than_its_rows(program: Any, *, is_made: bool) -> None:
    if is_made:
        program.log(command="CreateTable", statement=CatalogStatement("CREATE", "TABLE", "spark_catalog.db.t"))
    table = Observed(SALES, symlinks=TABLE)
    program.log(
        outputs=(copied(SALES, SOURCE, symlinks=TABLE),), inputs=(Observed(SOURCE),), mode="Append", command="A"
    )
    program.log(inputs=(table,), outputs=(copied(OUT, SALES),), command="InsertInto")
    lineage = program.lineage()
    assert inputs(lineage) == (["/src"] if is_made else ["/lake/sales", "/src"])


@pytest.mark.parametrize(
    ("size", "version", "is_input"), [(99, "1", True), (42, "1", False), (None, "1", True), (None, "0", False)]
)
def test_directory_that_holds_more_than_was_written_is_an_input(
    program: Any, size: int | None, version: str, *, is_input: bool
) -> None:
    write = copied(SALES, SOURCE, statistics=Statistics(1, 42, 1))
    program.log(inputs=(Observed(SOURCE),), outputs=(write,), mode="Append", command="A")
    read = Observed(SALES, statistics=Statistics(size=size), versions=frozenset({version}))
    program.log(inputs=(read,), outputs=(copied(OUT, SALES),), command="InsertInto")
    lineage = program.lineage()
    assert inputs(lineage) == (["/lake/sales", "/src"] if is_input else ["/src"])
    assert sources(lineage) == ({"/lake/sales", "/src"} if is_input else {"/src"})


def test_day_of_a_table_of_which_unknown_days_were_replaced_is_an_input(program: Any) -> None:
    write = copied(SALES, SOURCE, lifecycles=frozenset({"OVERWRITE"}))
    program.log(inputs=(Observed(SOURCE),), outputs=(write,), mode="Overwrite", is_partial=True, command="A")
    read = Observed(part("1"), versions=frozenset({"1"}))
    program.log(inputs=(read,), outputs=(copied(OUT, part("1")),), command="InsertInto")
    assert sources(program.lineage()) == {"/lake/sales", "/src"}


def test_branch_is_a_state_of_its_own(program: Any, make_dataset: Any) -> None:
    in_branch = make_dataset("/ice/db/t", rows=1, table="db.t.branch_fix", table_namespace="file:/ice")
    in_branch["facets"]["version"] = {"datasetVersion": "7"}
    program.run(["/src"], [in_branch])
    program.run([make_dataset("/ice/db/t", table="db.t", table_namespace="file:/ice")], ["/main"])
    lineage = program.lineage()
    (table,) = (one for one in lineage.outputs if one.dataset.name == "/ice/db/t")
    assert inputs(lineage) == ["/ice/db/t", "/src"]
    assert [link.name for link in table.symlinks] == ["db.t"]
    assert table.versions == ()


def versioned(dataset: Any, version: str) -> Any:
    dataset["facets"]["version"] = {"datasetVersion": version}
    return dataset


def test_input_has_the_version_of_its_start(program: Any, make_dataset: Any) -> None:
    with program.running([versioned(make_dataset("/t"), "1")], ["/out"]):
        pass
    program.events[-1]["inputs"] = [versioned(make_dataset("/t"), "2")]
    assert [one.versions for one in program.lineage().inputs] == [("1",)]


def test_versions_are_left_out_alike_when_nothing_is_kept(
    program: Any, make_dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_SHARED_MAX", 0)
    program.run([versioned(make_dataset("/t"), "1")], ["/out"])
    assert [one.versions for one in program.lineage().inputs] == [("1",)]


def test_versions_that_are_read_are_all_named_and_those_of_the_log_count(program: Any, make_dataset: Any) -> None:
    first = program.run([versioned(make_dataset("/t"), "9")], ["/out"])
    program.log(first, inputs=(Observed(DatasetName("file", "/t"), versions=frozenset({"1"})),))
    second = program.run([versioned(make_dataset("/t"), "9")], ["/out2"])
    program.log(second, inputs=(Observed(DatasetName("file", "/t"), versions=frozenset({"2"})),))
    assert [one.versions for one in program.lineage().inputs] == [("1", "2")]


@pytest.mark.parametrize(("written", "read"), [("5", "4"), ("123456789012345678", "876543210987654321")])
def test_version_of_before_a_write_has_nothing_of_it(program: Any, written: str, read: str) -> None:
    program.log(
        inputs=(Observed(SOURCE),),
        outputs=(copied(SALES, SOURCE, versions=frozenset({written})),),
        command="InsertInto",
    )
    old = Observed(SALES, versions=frozenset({read}))
    program.log(inputs=(old,), outputs=(copied(OUT, SALES),), command="InsertInto")
    lineage = program.lineage()
    assert inputs(lineage) == ["/lake/sales", "/src"]
    assert sources(lineage) == {"/lake/sales"}


OTHER = DatasetName("file", "/other")


def overwrite(program: Any, source: DatasetName, *, size: int | None = None, versions: str = "", **more: Any) -> None:
    """Log an overwrite of the table by a condition that its plan does not print."""
    write = copied(
        SALES,
        source,
        symlinks=TABLE,
        lifecycles=frozenset({"OVERWRITE"}),
        statistics=Statistics(1, size, 1),
        versions=frozenset({versions} - {""}),
    )
    more = {"mode": "Overwrite", "is_partial": True, "command": "OverwriteByExpression"} | more
    program.log(inputs=(Observed(source),), outputs=(write,), **more)


def read_again(program: Any, version: str, target: DatasetName = OUT, size: int | None = None) -> None:
    read = Observed(SALES, symlinks=TABLE, versions=frozenset(version.split()), statistics=Statistics(size=size))
    program.log(inputs=(read,), outputs=(copied(target, SALES),), command="InsertInto")


def unread(lineage: TaskLineage) -> list[str]:
    return [one.part for one in lineage.unread]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1", {"/lake/sales"}), ("2", {"/src"}), ("3", {"/other"}), ("1 2", {"/lake/sales", "/src"}), ("4", {"/other"})],
)
def test_older_version_has_what_was_written_up_to_it(program: Any, version: str, expected: set[str]) -> None:
    for source, before in ((SOURCE, "1"), (OTHER, "2")):
        overwrite(program, source, is_partial=False, command="InsertInto", target_versions=(before,))
    read_again(program, version)
    assert sources(program.lineage()) == expected


def test_version_that_was_read_before_a_write_has_nothing_of_it(program: Any) -> None:
    read_again(program, "9" * 18, OTHER)
    program.log(inputs=(Observed(SOURCE),), outputs=(copied(SALES, SOURCE, symlinks=TABLE),), command="InsertInto")
    read_again(program, "8" * 18, DatasetName("file", "/now"))
    read_again(program, "9" * 18)
    lineage = program.lineage()
    assert sources(lineage) == {"/lake/sales"}
    assert sources(lineage, DatasetName("file", "/now")) == {"/lake/sales", "/src"}
    assert unread(lineage) == []


def test_batches_that_write_the_same_share_what_their_versions_have(program: Any) -> None:
    for before in ("1", "2", "3"):
        overwrite(program, SOURCE, mode="Append", target_versions=(before,))
    read_again(program, "2")
    assert sources(program.lineage()) == {"/lake/sales", "/src"}


@pytest.mark.parametrize(
    ("size", "expected", "counted"),
    [
        (7, {"/other"}, []),
        (9, {"/src", "/other", "/lake/sales"}, []),
        (None, {"/src", "/other", "/lake/sales"}, ["/lake/sales: what an overwrite left of it"]),
    ],
)
def test_overwrite_by_an_unknown_condition_left_what_a_read_finds(
    program: Any, size: int | None, expected: set[str], counted: list[str]
) -> None:
    overwrite(program, SOURCE, size=5)
    overwrite(program, OTHER, size=7)
    read_again(program, "", size=size)
    lineage = program.lineage()
    (table,) = (one for one in lineage.outputs if one.dataset == SALES)
    assert sources(lineage) == expected
    assert unread(lineage) == counted
    assert table.statistics == (Statistics(1, 7, 1) if size == 7 else None)


@pytest.mark.parametrize(
    ("size", "expected", "counted"),
    [
        (5, {"/src"}, []),
        (None, {"/src", "/lake/sales"}, ["/lake/sales: what an overwrite left of it"]),
        (6, {"/src", "/lake/sales"}, []),
    ],
)
def test_former_version_that_was_overwritten_by_a_condition_has_what_a_read_finds(
    program: Any, size: int | None, expected: set[str], counted: list[str]
) -> None:
    overwrite(program, SOURCE, size=5, versions="1")
    overwrite(program, OTHER, size=7, versions="2")
    read_again(program, "2", DatasetName("file", "/now"), size=7)
    read_again(program, "1", size=size)
    lineage = program.lineage()
    assert sources(lineage) == expected
    assert unread(lineage) == counted


def test_day_that_is_read_after_an_overwrite_by_a_condition_shows_not_what_that_left(program: Any) -> None:
    overwrite(program, SOURCE, size=5)
    read = Observed(part("1"), symlinks=TABLE, statistics=Statistics(size=5))
    program.log(inputs=(read,), outputs=(copied(OUT, part("1")),), command="InsertInto")
    lineage = program.lineage()
    assert sources(lineage) == {"/lake/sales", "/src"}
    assert unread(lineage) == ["/lake/sales: what an overwrite left of it"]


def test_write_of_what_was_read_is_a_later_version(program: Any) -> None:
    table = Observed(SALES, versions=frozenset({"3"}))
    program.log(inputs=(table, Observed(SOURCE)), outputs=(copied(SALES, SOURCE),), command="MergeIntoCommand")
    program.log(inputs=(table,), outputs=(copied(OUT, SALES),), command="InsertInto")
    assert sources(program.lineage()) == {"/lake/sales"}


def test_more_versions_than_the_task_made_are_an_input_and_counted(program: Any) -> None:
    program.log(inputs=(Observed(SOURCE),), outputs=(copied(SALES, SOURCE),), command="InsertInto")
    for version in ("1", "2"):
        read = Observed(SALES, versions=frozenset({version}))
        program.log(inputs=(read,), outputs=(copied(OUT, SALES),), command="InsertInto")
    lineage = program.lineage()
    assert [(one.dataset.name, one.versions) for one in lineage.inputs] == [("/lake/sales", ("1", "2")), ("/src", ())]
    assert [one.part for one in lineage.unread] == ["/lake/sales: which of its versions the task wrote"]


def test_table_of_a_format_with_versions_that_has_none_is_counted(program: Any, make_dataset: Any) -> None:
    read = make_dataset("/t")
    read["facets"]["storage"] = {"storageLayer": "delta", "fileFormat": "parquet"}
    program.log(program.run([read], ["/out"]))
    assert [one.part for one in program.lineage().unread] == ["/t: its version"]


@pytest.mark.parametrize("is_named", [True, False])
def test_table_of_an_unknown_catalog_is_counted_where_the_listener_does_not_name_it(
    program: Any, *, is_named: bool
) -> None:
    run_id = program.run(["/src"], ["/t"]) if is_named else None
    program.log(run_id, command="CreateTable", unread=("CreateTable: its catalog",))
    assert [one.part for one in program.lineage().unread] == ([] if is_named else ["CreateTable: its catalog"])


def test_metadata_of_a_table_is_no_input(program: Any, make_dataset: Any) -> None:
    files = make_dataset("/ice/db/t", table="db.t.files", table_namespace="file:/ice")
    program.run([files], ["/out"])
    assert inputs(program.lineage()) == []


def test_dropped_external_table_leaves_its_files(program: Any) -> None:
    name = "spark_catalog.db.t"
    program.log(command="CreateTable", statement=CatalogStatement("CREATE", "TABLE", name))
    program.log(inputs=(Observed(SOURCE),), outputs=(copied(SALES, SOURCE, symlinks=TABLE),), command="InsertInto")
    program.log(command="DropTable", statement=CatalogStatement("DROP", "TABLE", name))
    assert [one.dataset for one in program.lineage().outputs] == [SALES]


@pytest.mark.parametrize("place", ["/wh/t", "/elsewhere/db.db/t"])
def test_dropped_table_of_the_warehouse_goes_with_its_files(program: Any, place: str) -> None:
    table = DatasetName("file", place)
    program.log(inputs=(Observed(SOURCE),), outputs=(copied(table, SOURCE, symlinks=TABLE),), command="InsertInto")
    program.log(command="DropTable", statement=CatalogStatement("DROP", "TABLE", "spark_catalog.db.t"))
    assert program.lineage().outputs == ()


def test_table_of_a_database_that_is_dropped_is_gone(program: Any) -> None:
    links = frozenset({Symlink("hive://metastore:9083", "db.t", "TABLE")})
    program.log(inputs=(Observed(SOURCE),), outputs=(copied(SALES, SOURCE, symlinks=links),), command="InsertInto")
    program.log(command="DropTable", statement=CatalogStatement("DROP", "TABLE", "spark_catalog.db.t"))
    assert program.lineage().outputs == ()


def test_table_that_gets_another_place_leaves_what_it_had(program: Any) -> None:
    program.log(inputs=(Observed(SOURCE),), outputs=(copied(SALES, SOURCE, symlinks=TABLE),), command="InsertInto")
    moved = CatalogStatement("ALTER", "TABLE", "spark_catalog.db.t", properties=(("location", "/new"),))
    program.log(command="AlterTableSetLocationCommand", statement=moved)
    new = DatasetName("file", "/new")
    program.log(
        inputs=(Observed(SOURCE),), outputs=(copied(new, SOURCE, symlinks=TABLE),), command="InsertInto", mode="Append"
    )
    program.log(inputs=(Observed(new, symlinks=TABLE),), outputs=(copied(OUT, new),), command="InsertInto")
    lineage = program.lineage()
    assert [one.dataset.name for one in lineage.outputs] == ["/lake/sales", "/new", "/out"]
    assert [len(one.symlinks) for one in lineage.outputs] == [0, 1, 0]
    assert inputs(lineage) == ["/src"]


def test_two_tables_of_one_name_in_two_catalogs_stay_two(program: Any, make_dataset: Any) -> None:
    listened = make_dataset("/files/db/t", table="db.t", table_namespace="file:/files")
    run_id = program.run([listened], ["/out"])
    other = Observed(DatasetName("file:/kept", "db.t"), symlinks=frozenset({Symlink("file:/kept", "db.t", "TABLE")}))
    same = Observed(DatasetName("file", "/files/db/t"), symlinks=frozenset({Symlink("file:/files", "db.t", "TABLE")}))
    program.log(run_id, inputs=(same, other))
    assert inputs(program.lineage()) == ["/files/db/t", "db.t"]


def test_replaced_view_that_is_renamed_is_no_dataset(program: Any, make_dataset: Any) -> None:
    renamed = make_dataset("/wh/v2", lifecycle="RENAME", previous="/wh/v", table="db.v2")
    statement = CatalogStatement("RENAME", "VIEW", "spark_catalog.db.v", new_name="db.v2")
    program.log(program.run([], [renamed], node="rename"), statement=statement)
    lineage = program.lineage()
    assert lineage.outputs == ()
    assert [(one.change, one.object_type, one.name) for one in lineage.catalog_changes] == [("RENAME", "VIEW", "db.v2")]


@pytest.mark.parametrize(("version", "expected"), [("0", "CREATE"), ("3", "OVERWRITE")])
def test_first_version_of_a_replaced_table_makes_it(
    program: Any, make_dataset: Any, version: str, expected: str
) -> None:
    made = versioned(make_dataset("/wh/t", rows=1, table="db.t", lifecycle="OVERWRITE"), version)
    statement = CatalogStatement("OVERWRITE", "TABLE", "spark_catalog.db.t")
    program.log(program.run(["/src"], [made]), statement=statement)
    assert [one.change for one in program.lineage().catalog_changes] == [expected]


@pytest.mark.parametrize("is_published", [True, False])
def test_main_in_a_version_that_nothing_explains_is_counted_after_a_write_to_a_branch(
    program: Any, make_dataset: Any, *, is_published: bool
) -> None:
    def main(version: str) -> Any:
        return versioned(make_dataset("/ice/db/t", table="db.t", table_namespace="file:/ice"), version)

    program.run([main("1234567890123")], ["/before"])
    program.run(["/src"], [make_dataset("/ice/db/t", rows=1, table="db.t.branch_fix", table_namespace="file:/ice")])
    program.run([main("9876543210987" if is_published else "1234567890123")], ["/after"])
    part = UnreadPart("/ice/db/t: which of its versions the task wrote", 1)
    assert program.lineage().unread == ((part,) if is_published else ())


def test_version_that_was_read_before_the_writes_has_nothing_of_them(program: Any, make_dataset: Any) -> None:
    table = versioned(make_dataset("/t"), "4")
    program.run([table], ["/before"])
    program.run(["/src"], [make_dataset("/t", rows=1, edges={"id": ("/src", "id")})], node="append_data")
    for version, out in (("4", "/old"), ("5", "/now")):
        read = versioned(make_dataset("/t"), version)
        program.run([read], [make_dataset(out, rows=1, edges={"id": ("/t", "id")})])
    fed_by = {one.dataset.name: [fed.name for fed in one.fed_by] for one in program.lineage().outputs}
    assert (fed_by["/old"], fed_by["/now"]) == (["/t"], ["/src", "/t"])


def replacing(program: Any, make_dataset: Any, inner: str | None, outer: str, **details: Any) -> None:
    """Add a command that replaces an Iceberg table by /src, with the versions of its inner and outer run."""
    table = make_dataset("/wh/t", table="db.t", lifecycle="OVERWRITE")
    written = make_dataset("/wh/t", table="db.t", rows=2, edges={"id": ("/src", "id")})
    statement = CatalogStatement("OVERWRITE", "TABLE", "ice.db.t", **details)
    whole = versioned(table, outer)
    with program.running(["/src"], [whole], node="atomic_replace_table_as_select") as run_id:
        program.run(["/src"], [versioned(written, inner) if inner else written], node="append_data")
    program.log(run_id, statement=statement, command="AtomicReplaceTableAsSelect", mode="Overwrite")


@pytest.mark.parametrize("inner", [None, "101", "202"])
def test_replaced_table_that_is_read_has_nothing_of_before(program: Any, make_dataset: Any, inner: str | None) -> None:
    replacing(program, make_dataset, inner and inner * 6, "202" * 6)
    read = versioned(make_dataset("/wh/t", table="db.t"), "202" * 6)
    program.run([read], [make_dataset("/out", rows=2, edges={"id": ("/wh/t", "id")})])
    lineage = program.lineage()
    assert inputs(lineage) == ["/src"]
    assert sources(lineage) == {"/src"}


def test_table_that_is_read_in_its_version_before_a_replacement_is_an_input(program: Any, make_dataset: Any) -> None:
    replacing(program, make_dataset, "101" * 6, "202" * 6)
    former = versioned(make_dataset("/wh/t", table="db.t"), "101" * 6)
    program.run([former], [make_dataset("/out", rows=2, edges={"id": ("/wh/t", "id")})])
    assert inputs(program.lineage()) == ["/src", "/wh/t"]


@pytest.mark.parametrize(
    ("inner", "before", "is_conditional", "expected"),
    [
        # The run within names the version of before, so that there was one.
        ("101" * 6, None, True, ("OVERWRITE", True)),
        ("202" * 6, None, True, ("OVERWRITE", False)),
        (None, None, True, ("OVERWRITE", False)),
        (None, None, False, ("OVERWRITE", True)),
        (None, "DROP", True, ("CREATE", True)),
        (None, "READ", True, ("OVERWRITE", True)),
    ],
)
def test_replaced_table_is_created_where_it_was_not_there_and_uncertain_where_nothing_shows_it(
    program: Any,
    make_dataset: Any,
    inner: str | None,
    before: str | None,
    is_conditional: bool,
    expected: tuple[str, bool],
) -> None:
    if before == "DROP":
        program.run([], [make_dataset("/wh/t", table="db.t", lifecycle="DROP")])
    elif before:
        program.run([make_dataset("/wh/t", table="db.t")], ["/other"])
    replacing(program, make_dataset, inner, "202" * 6, is_conditional=is_conditional)
    change = program.lineage().catalog_changes[-1]
    assert (change.change, change.is_certain) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [("", ("OVERWRITE", False)), ("DROP", ("CREATE", True)), ("CREATE", ("OVERWRITE", True))],
)
def test_replaced_table_of_which_only_the_log_knows_is_uncertain_unless_the_task_made_or_dropped_it(
    program: Any, before: Any, expected: tuple[str, bool]
) -> None:
    if before:
        program.log(statement=CatalogStatement(before, "TABLE", "ice.db.t"))
    program.log(statement=CatalogStatement("OVERWRITE", "TABLE", "ice.db.t", is_conditional=True))
    change = program.lineage().catalog_changes[-1]
    assert (change.change, change.is_certain, change.is_ignored) == (*expected, False)


@pytest.mark.parametrize(
    ("node", "made", "expected"),
    [
        ("append_data_exec_v1.h2_sales_orders", None, ["/src", "sales.orders"]),
        # A command of the task made it, as the log has it.
        ("append_data_exec_v1.h2_sales_orders", "h2.sales.orders", ["/src"]),
        # The first append makes a table that is not there.
        ("execute_save_into_data_source_command", None, ["/src"]),
    ],
)
def test_table_of_a_database_that_is_appended_to_and_read_is_an_input_if_it_was_there(
    program: Any, make_dataset: Any, node: str, made: str | None, expected: list[str]
) -> None:
    table = make_dataset("sales.orders", rows=1) | {"namespace": "h2:file:./kept"}
    if made:
        program.log(statement=CatalogStatement("CREATE", "TABLE", made))
    program.run(["/src"], [table], node=node)
    program.run([table], ["/out"])
    assert inputs(program.lineage()) == expected


def test_name_of_a_dropped_external_table_is_that_of_another_place_afterwards(program: Any, make_dataset: Any) -> None:
    program.run([make_dataset("/lake/b", table="db.t")], ["/of_b"])
    program.run([], [make_dataset("/lake/b", table="db.t", lifecycle="DROP")])
    program.run(["/src"], [make_dataset("/lake/c", rows=1, lifecycle="OVERWRITE")])
    program.run([make_dataset("/lake/c", table="db.t")], ["/of_c"])
    lineage = program.lineage()
    assert inputs(lineage) == ["/lake/b", "/src"]
    assert [one.dataset.name for one in lineage.outputs] == ["/lake/c", "/of_b", "/of_c"]


@pytest.mark.parametrize(("mode", "expected"), [("ErrorIfExists", ["/src"]), ("Append", ["/lake/sales", "/src"])])
def test_path_that_was_saved_anew_and_then_registered_is_the_tasks_own(
    program: Any, mode: str, expected: list[str]
) -> None:
    program.log(
        command="InsertIntoHadoopFsRelationCommand",
        mode=mode,
        inputs=(Observed(SOURCE),),
        outputs=(copied(SALES, SOURCE),),
        has_jobs=True,
    )
    program.log(inputs=(Observed(SALES, symlinks=TABLE),), outputs=(copied(OUT, SALES),), has_jobs=True)
    assert inputs(program.lineage()) == expected


@pytest.mark.parametrize(("found", "expected"), [((20, 2), ["/lake/sales", "/src"]), ((10, 1), ["/src"])])
def test_table_that_is_made_over_files_has_them(program: Any, make_dataset: Any, found: Any, expected: Any) -> None:
    statement = CatalogStatement("CREATE", "TABLE", "spark_catalog.db.t")
    run_id = program.run([], [make_dataset("/lake/sales", table="db.t", lifecycle="CREATE")], node="create_table")
    program.log(run_id, statement=statement, command="CreateDataSourceTableCommand")
    program.log(
        command="InsertIntoHadoopFsRelationCommand",
        mode="Append",
        inputs=(Observed(SOURCE),),
        outputs=(copied(SALES, SOURCE, symlinks=TABLE, statistics=Statistics(1, 10, 1)),),
        has_jobs=True,
    )
    size, files = found
    read = Observed(SALES, symlinks=TABLE, statistics=Statistics(None, size, files))
    program.log(inputs=(read,), outputs=(copied(OUT, SALES),), has_jobs=True)
    assert inputs(program.lineage()) == expected
