"""What only an event log saw: commands without a place, tables without a database, and what RDDs save."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.execution import CatalogStatement, unnamed
from spark_lineage.merge.lineage import SchemaField, Statistics, Symlink, Transformation
from spark_lineage.merge.observed import LINES, Observed
from spark_lineage.naming.identity import DatasetName

DAG = {"kind": "DECLARED", "types": ("START", "RUNNING")}
DATABASE = "postgres://db:5432"
ORDERS = {"namespace": DATABASE, "name": "shop.public.orders"}
TOTALS = {"namespace": DATABASE, "name": "shop.public.totals"}
OTHERS = {"namespace": "postgres://other:5432", "name": "shop.public.orders"}
COPY = Transformation("DIRECT", "IDENTITY")
NAME, LINK = "spark_catalog.db.t", Symlink("file:/wh", "db.t")


def log_jdbc(program: Any) -> None:
    edge = ("id", unnamed("orders"), "id", COPY)
    program.log(
        command="SaveIntoDataSourceCommand",
        has_jobs=True,
        inputs=(Observed(unnamed("orders")),),
        outputs=(Observed(unnamed("totals"), edges=frozenset({edge})),),
        is_whole=True,
    )


def test_tables_of_a_database_have_the_names_that_are_declared(program: Any) -> None:
    program.run([ORDERS], [TOTALS], node="declare", **DAG)
    log_jdbc(program)
    lineage = program.lineage()
    (written,) = lineage.outputs
    assert [one.dataset for one in lineage.inputs] == [DatasetName(*ORDERS.values())]
    assert written.dataset == DatasetName(*TOTALS.values())
    assert written.column_lineage is not None
    assert [column for column, _ in written.column_lineage.fields] == ["id"]
    assert (lineage.unknown, lineage.unread) == ((), ())


@pytest.mark.parametrize("declared", [[], [ORDERS, OTHERS]])
def test_a_table_that_no_declared_name_or_several_fit_is_unknown(program: Any, declared: list[Any]) -> None:
    if declared:
        program.run(declared, [], node="declare", **DAG)
    log_jdbc(program)
    lineage = program.lineage()
    assert lineage.outputs == ()
    assert [one.command for one in lineage.unknown] == ["execute_save_into_data_source_command"]
    assert [one.part for one in lineage.unread] == ["orders: its database"]


def test_a_command_whose_inputs_have_no_name_is_not_read_in_full(program: Any) -> None:
    relation = Observed(unnamed("", ["id"]))
    table = Observed(DatasetName("file", "/t"))
    program.log(command="SaveIntoDataSourceCommand", inputs=(relation,), outputs=(table,))
    # An execution inside of this one says what it reads.
    program.log(
        command="SaveIntoDataSourceCommand", inputs=(relation, Observed(DatasetName("file", "/a"))), outputs=(table,)
    )
    assert [one.part for one in program.lineage().unread] == ["SaveIntoDataSourceCommand: its inputs"]


@pytest.mark.parametrize(("is_failed", "unknown"), [(False, ["execute_save_as_text_file"]), (True, [])])
def test_what_an_rdd_saves_is_unknown(program: Any, is_failed: bool, unknown: list[str]) -> None:
    program.log(execution_id=-1, command="saveAsTextFile", has_jobs=True, is_failed=is_failed)
    lineage = program.lineage()
    assert [one.command for one in lineage.unknown] == unknown


@pytest.mark.parametrize(("outputs", "unknown"), [([], ["execute_load_data_command"]), (["/wh/t"], [])])
def test_what_only_the_listener_could_name_is_unknown(program: Any, outputs: list[str], unknown: list[str]) -> None:
    run_id = program.run([], outputs, node="execute_load_data_command") if outputs else None
    program.log(run_id, command="LoadDataCommand")
    assert [one.command for one in program.lineage().unknown] == unknown


def test_a_table_that_files_were_loaded_into_has_no_count(program: Any) -> None:
    written = Observed(DatasetName("file", "/wh/t"), statistics=Statistics(row_count=1))
    csv = Observed(DatasetName("file", "/in/x.csv"))
    program.log(command="LoadDataCommand", mode="Append", inputs=(csv,), outputs=(Observed(written.dataset),))
    program.log(command="InsertIntoHiveTable", mode="Append", outputs=(written,))
    (output,) = program.lineage().outputs
    assert (output.statistics, output.fed_by) == (None, (csv.dataset,))


def test_a_table_is_where_a_later_read_or_write_of_it_is(program: Any) -> None:
    create = CatalogStatement("CREATE", "TABLE", NAME)
    drop = CatalogStatement("DROP", "TABLE", NAME)
    program.log(command="CreateTableCommand", statement=create)
    program.log(command="DropTableCommand", statement=drop)
    program.log(command="CreateTableCommand", statement=create)
    program.log(inputs=(Observed(DatasetName("file", "/elsewhere/t"), frozenset({LINK})),))
    changes = program.lineage().catalog_changes
    unplaced = DatasetName("spark_catalog", "db.t")
    assert [(one.change, one.dataset) for one in changes] == [
        ("CREATE", unplaced),
        ("DROP", unplaced),
        ("CREATE", DatasetName("file", "/elsewhere/t")),
    ]


def test_a_write_that_its_command_failed_after_is_attempted(program: Any) -> None:
    """CREATE TABLE AS SELECT writes the files by an execution inside of it, before the catalog may refuse the name."""
    table = Observed(DatasetName("file", "/wh/t"), edges=frozenset({("id", DatasetName("file", "/a"), "id", COPY)}))
    command = "CreateDataSourceTableAsSelectCommand"
    program.log(
        execution_id=1, command=command, started=1.0, ended=9.0, is_failed=True, has_jobs=True, outputs=(table,)
    )
    program.log(
        execution_id=2, root_execution_id=1, command="InsertIntoHadoopFsRelationCommand", mode="Overwrite",
        started=2.0, ended=3.0, is_failed=False, has_jobs=True, outputs=(table,),
    )  # fmt: skip
    lineage = program.lineage()
    assert lineage.outputs == ()
    assert [one.dataset.name for one in lineage.attempted] == ["/wh/t"]


DIRECTORY, FILE = DatasetName("file", "/data"), DatasetName("file", "/data/a.csv")


def test_a_directory_whose_schema_one_of_its_files_told_is_what_was_read(program: Any) -> None:
    written = Observed(DatasetName("file", "/out"), edges=frozenset({("id", DIRECTORY, "id", COPY)}))
    program.log(inputs=(Observed(FILE, schema=LINES),))
    command = "InsertIntoHadoopFsRelationCommand"
    program.log(command=command, has_jobs=True, inputs=(Observed(DIRECTORY),), outputs=(written,))
    lineage = program.lineage()
    assert [one.dataset for one in lineage.inputs] == [DIRECTORY]
    assert [one.fed_by for one in lineage.outputs] == [(DIRECTORY,)]


def test_a_file_whose_schema_alone_a_log_names_was_read(program: Any) -> None:
    program.log(inputs=(Observed(FILE, schema=LINES),))
    assert [(one.dataset, one.schema) for one in program.lineage().inputs] == [(FILE, ())]


@pytest.mark.parametrize(
    ("files", "read"),
    [
        (["/in/part-00000-930d6a4e-c000.csv"], ["/in"]),
        (["/in/f131.csv", "/in/f266.csv"], ["/in"]),
        (["/in/a.csv", "/other/b.csv"], ["/in/a.csv", "/other/b.csv"]),
    ],
)
def test_files_whose_schema_alone_a_log_names_are_of_the_directory_that_was_named(
    program: Any, files: list[str], read: list[str]
) -> None:
    program.log(inputs=tuple(Observed(DatasetName("file", name), schema=LINES) for name in files))
    assert [one.dataset.name for one in program.lineage().inputs] == read


def test_files_whose_schema_is_inferred_are_those_that_another_plan_reads(program: Any) -> None:
    names = [DatasetName("file", f"/in/{name}.csv") for name in ("a", "b")]
    program.log(inputs=tuple(Observed(name, schema=LINES) for name in names))
    program.log(inputs=tuple(map(Observed, names)))
    assert [one.dataset for one in program.lineage().inputs] == names


def test_a_file_and_the_directory_around_it_were_both_read(program: Any) -> None:
    program.log(inputs=(Observed(FILE),))
    program.log(inputs=(Observed(DIRECTORY),))
    assert [one.dataset for one in program.lineage().inputs] == [DIRECTORY, FILE]


@pytest.mark.parametrize(("mode", "is_there", "kind", "changes"), [
    ("Append", False, ("INSERT", "append"), [("CREATE", True)]),
    ("Append", True, ("INSERT", "append"), []),
    ("Ignore", False, ("INSERT", "ignore"), [("CREATE", True)]),
])  # fmt: skip
def test_a_saved_table_is_new_where_the_write_inside_of_the_command_overwrites(
    program: Any, mode: str, is_there: bool, kind: tuple[str, str], changes: list[tuple[str, bool]]
) -> None:
    place = DatasetName("file", "/wh/t")
    lifecycles: frozenset[str] = frozenset() if is_there else frozenset({"OVERWRITE"})
    written = Observed(place, lifecycles=lifecycles, statistics=Statistics(row_count=2))
    edges = frozenset({("id", FILE, "id", COPY)})
    table = Observed(place, frozenset({LINK}), lifecycles=frozenset({"CREATE"}), edges=edges)
    statement = CatalogStatement("CREATE", "TABLE", NAME, is_conditional=True) if mode == "Ignore" else None
    inner = "InsertIntoHadoopFsRelationCommand"
    program.log(command=inner, mode="Append" if is_there else "Overwrite", has_jobs=True, outputs=(written,))
    command = "CreateDataSourceTableAsSelectCommand"
    started = program.executions[0].started - 1
    program.log(command=command, mode=mode, has_jobs=True, outputs=(table,), statement=statement, started=started)
    lineage = program.lineage()
    assert [[(one.operation, one.mode) for one in output.writes] for output in lineage.outputs] == [[kind]]
    assert [(one.change, one.is_certain) for one in lineage.catalog_changes] == changes
    assert lineage.attempted == ()


@pytest.mark.parametrize("is_first", [True, False])
def test_rows_that_a_delete_of_whole_files_leaves_are_copies(program: Any, *, is_first: bool) -> None:
    table, source = (DatasetName("file", path) for path in ("/ice/db/t", "/src"))

    def delete() -> None:
        program.log(command="DeleteFromTable", inputs=(Observed(table, frozenset({LINK})),), outputs=(Observed(table),))

    if is_first:
        delete()
    edge = ("id", source, "n", COPY)
    written = Observed(table, schema=(SchemaField("id"),), edges=frozenset({edge}))
    program.log(command="AppendData", mode="Append", inputs=(Observed(source),), outputs=(written,))
    if not is_first:
        delete()
    lineage = program.lineage()
    (output,) = lineage.outputs
    assert output.column_lineage is not None
    ((column, edges),) = output.column_lineage.fields
    assert [(column, one.dataset.name, one.field) for one in edges] == [("id", "/ice/db/t", "id"), ("id", "/src", "n")]
    assert lineage.unread == ()
