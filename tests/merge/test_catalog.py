"""What the task did to the catalog (M11), on made-up programs and on real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import CatalogChange, ColumnChange, SchemaField, TaskLineage
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.submission.collector import Collector

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
SAVE_AS_TABLE = "execute_create_data_source_table_as_select_command"


def told(lineage: TaskLineage) -> list[tuple[str, str, str]]:
    return [(one.change, one.object_type, one.name) for one in lineage.catalog_changes]


def columns(change: CatalogChange) -> list[tuple[str | None, str | None]]:
    return [(one.old and one.old.name, one.new and one.new.name) for one in change.columns]


def rename(program: Any, old: str, new: str, **said: Any) -> None:
    """Rename a table that has gone when the listener looks it up: its event names nothing."""
    run_id = program.run([], [], node="rename", types=("COMPLETE",))
    program.log(run_id, statement=CatalogStatement("RENAME", "TABLE", old, new_name=new), **said)


class TestTables:
    def test_a_real_life_of_tables(self) -> None:
        collector = Collector()
        with (FIXTURES / "b_414.ndjson").open("rb") as stream:
            collector.read(stream, source="b_414")
        lineage = task_lineage(collector.state, "COMPLETE")
        assert told(lineage) == [
            ("DROP", "TABLE", "db1.t_src"),
            ("DROP", "TABLE", "db1.t_agg"),
            ("DROP", "TABLE", "db1.t_agg2"),
            ("CREATE", "TABLE", "db1.t_src"),
            ("CREATE", "TABLE", "db1.t_agg"),
            ("OVERWRITE", "TABLE", "db1.t_agg"),
            ("ALTER", "TABLE", "db1.t_agg"),
            ("RENAME", "TABLE", "db1.t_agg2"),
            ("TRUNCATE", "TABLE", "db1.t_agg2"),
            ("DROP", "TABLE", "db1.t_agg2"),
        ]
        assert [one.is_certain for one in lineage.catalog_changes] == [False] * 3 + [True] * 7
        altered, renamed = lineage.catalog_changes[6:8]
        assert columns(altered) == [(None, "note")]
        assert (renamed.previous_name, renamed.dataset.name) == ("db1.t_agg", "/data/lab/wh/b_414/db1.db/t_agg2")
        times = [one.time for one in lineage.catalog_changes]
        assert times == sorted(times)

    def test_files_are_in_no_catalog(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/out", rows=1, lifecycle="OVERWRITE")])
        assert told(program.lineage()) == []

    def test_a_failed_statement_changed_nothing(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/t", table="t", lifecycle="CREATE")], types=("START", "FAIL"))
        program.run([], [make_dataset("/wh/t", table="t", lifecycle="DROP")], types=("START", "FAIL"))
        assert told(program.lineage()) == []

    def test_what_was_there_was_not_created(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("/wh/t", table="t")], [])
        program.run([], [make_dataset("/wh/t", table="t", lifecycle="CREATE")])
        assert told(program.lineage()) == []

    def test_a_new_table_is_created_once(self, program: Any, make_dataset: Any) -> None:
        with program.running([], [make_dataset("/wh/t", table="t", rows=1, lifecycle="CREATE")], node=SAVE_AS_TABLE):
            program.run(["/a"], [make_dataset("/wh/t", table="t", rows=1, lifecycle="OVERWRITE")])
        assert told(program.lineage()) == [("CREATE", "TABLE", "t")]

    def test_a_table_that_is_saved_anew_is_overwritten_once(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/wh/t", table="t", rows=1)])
        with program.running([], [make_dataset("/wh/t", table="t", rows=1, lifecycle="CREATE")], node=SAVE_AS_TABLE):
            program.run(["/a"], [make_dataset("/wh/t", rows=1, lifecycle="OVERWRITE")])
        assert told(program.lineage()) == [("OVERWRITE", "TABLE", "t")]

    def test_a_table_that_is_saved_into_is_not_created(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("/wh/t", table="t")], [])
        with program.running([], [make_dataset("/wh/t", table="t", rows=1, lifecycle="CREATE")], node=SAVE_AS_TABLE):
            program.run(["/a"], [make_dataset("/wh/t", rows=1)])
        assert told(program.lineage()) == []

    def test_a_jdbc_table_is_in_a_catalog_of_its_own(self, program: Any, make_dataset: Any) -> None:
        table = make_dataset("db.public.t", rows=1, lifecycle="OVERWRITE") | {"namespace": "postgres://h:5432"}
        program.run(["/a"], [table], node="execute_save_into_data_source_command")
        assert told(program.lineage()) == [("OVERWRITE", "TABLE", "db.public.t")]

    def test_a_jdbc_write_that_appends_creates_nothing_though_the_listener_says_so(
        self, program: Any, make_dataset: Any
    ) -> None:
        table = make_dataset("db.public.t", rows=2, lifecycle="CREATE") | {"namespace": "postgres://h:5432"}
        for _ in range(2):
            program.run(["/a"], [table], node="execute_save_into_data_source_command")
        lineage = program.lineage()
        assert told(lineage) == [("CREATE", "TABLE", "db.public.t")]
        assert lineage.outputs[0].statistics is not None
        assert lineage.outputs[0].statistics.row_count == 4


class TestCreated:
    """What is told of a table besides its name."""

    def created(self, program: Any, one: dict[str, Any], **said: Any) -> CatalogChange:
        run_id = program.run([], [one], node="execute_create_data_source_table_command")
        if said:
            program.log(run_id, **said)
        return program.lineage().catalog_changes[-1]

    def test_partitions_comment_and_properties_are_those_of_the_command(self, program: Any, make_dataset: Any) -> None:
        statement = CatalogStatement(
            "CREATE", "TABLE", "ice.db.t", properties=(("comment", "c"),), partitioned_by=("days(at)", "k")
        )
        table = make_dataset("/wh/db/t", table="db.t", lifecycle="CREATE")
        change = self.created(program, table, statement=statement)
        assert (change.properties, change.partitioned_by) == ((("comment", "c"),), ("days(at)", "k"))
        assert (change.catalog, change.database, change.name) == ("ice", "db", "db.t")

    def test_partitions_of_create_table_as_select_are_those_of_its_write(self, program: Any, make_dataset: Any) -> None:
        statement = CatalogStatement("CREATE", "TABLE", "spark_catalog.db.t")
        table = make_dataset("/wh/t", table="db.t", rows=1, lifecycle="CREATE")
        change = self.created(program, table, statement=statement, partitioned_by=("day",))
        assert (change.partitioned_by, change.catalog) == (("day",), "spark_catalog")

    def test_partitions_of_a_created_table_are_those_of_a_later_write_into_it(
        self, program: Any, make_dataset: Any
    ) -> None:
        for name, columns in (("a", ("day",)), ("b", ("day",)), ("a", ("hour",))):
            program.run([], [make_dataset(f"/wh/{name}", table=f"db.{name}", lifecycle="DROP")])
            program.run([], [make_dataset(f"/wh/{name}", table=f"db.{name}", lifecycle="CREATE")], node="create_table")
            for _ in range(2):
                run_id = program.run(["/in"], [make_dataset(f"/wh/{name}", table=f"db.{name}", rows=1)])
                program.log(run_id, partitioned_by=columns)
        created = [one for one in program.lineage().catalog_changes if one.change == "CREATE"]
        assert [one.partitioned_by for one in created] == [("day",), ("day",), ("hour",)]

    def test_a_create_that_was_passed_over_has_no_partitions_of_a_later_write(
        self, program: Any, make_dataset: Any
    ) -> None:
        table = make_dataset("/wh/t", table="db.t", lifecycle="CREATE")
        for _ in range(2):
            statement = CatalogStatement("CREATE", "TABLE", "spark_catalog.db.t", is_conditional=True)
            program.log(program.run([], [table], node="create_table"), statement=statement)
        program.log(program.run(["/in"], [make_dataset("/wh/t", table="db.t", rows=1)]), partitioned_by=("day",))
        made, passed_over = program.lineage().catalog_changes
        assert (made.partitioned_by, passed_over.is_ignored, passed_over.partitioned_by) == (("day",), True, ())

    def test_a_table_that_is_saved_anew_does_not_tell_how_the_one_before_was_partitioned(
        self, program: Any, make_dataset: Any
    ) -> None:
        statement = CatalogStatement("CREATE", "TABLE", "spark_catalog.db.t")
        for columns in ((), ("day",)):
            table = make_dataset("/wh/t", table="db.t", rows=1, lifecycle="OVERWRITE" if columns else "CREATE")
            program.log(program.run(["/in"], [table]), statement=statement, partitioned_by=columns)
        assert [one.partitioned_by for one in program.lineage().catalog_changes] == [(), ("day",)]

    def test_a_write_of_files_does_not_tell_how_the_table_over_them_is_partitioned(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run([], [make_dataset("/wh/t", table="db.t", lifecycle="CREATE")], node="create_table")
        program.log(program.run(["/in"], [make_dataset("/wh/t", rows=1)]), partitioned_by=("day",))
        assert program.lineage().catalog_changes[0].partitioned_by == ()

    @pytest.mark.parametrize(
        ("framework", "name", "expected"),
        [("iceberg", "ice", "ice"), ("hive", "default", "spark_catalog"), (None, "", "")],
    )
    def test_without_an_event_log_the_listener_may_name_the_catalog(
        self, program: Any, make_dataset: Any, framework: str | None, name: str, expected: str
    ) -> None:
        table = make_dataset("/wh/db/t", table="db.t", lifecycle="CREATE")
        if framework is not None:
            table["facets"]["catalog"] = {"framework": framework, "type": "hadoop", "name": name}
        assert self.created(program, table).catalog == expected

    def test_a_catalog_that_was_named_once_is_that_of_the_table(self, program: Any, make_dataset: Any) -> None:
        statement = CatalogStatement("CREATE", "TABLE", "spark_catalog.db.t")
        self.created(program, make_dataset("/wh/t", table="db.t", lifecycle="CREATE"), statement=statement)
        program.run(["/in"], [make_dataset("/wh/t", table="db.t", rows=1, lifecycle="OVERWRITE")])
        changes = program.lineage().catalog_changes
        assert [(one.change, one.catalog) for one in changes] == [
            ("CREATE", "spark_catalog"),
            ("OVERWRITE", "spark_catalog"),
        ]

    @pytest.mark.parametrize(
        ("statement", "expected"),
        [
            (CatalogStatement("CREATE", "DATABASE", "ice.db"), ("ice", "db", "db")),
            (CatalogStatement("CREATE", "DATABASE", "db"), ("", "db", "db")),
            (CatalogStatement("CREATE", "VIEW", "spark_catalog.db.v"), ("spark_catalog", "db", "db.v")),
            (CatalogStatement("CREATE", "VIEW", "v"), ("", "", "v")),
            (CatalogStatement("CREATE", "TABLE", "ice.a.b.t"), ("ice", "a.b", "a.b.t")),
        ],
    )
    def test_catalog_and_database(
        self, program: Any, statement: CatalogStatement, expected: tuple[str, str, str]
    ) -> None:
        program.log(program.run([], [], node="command"), statement=statement)
        (change,) = program.lineage().catalog_changes
        assert (change.catalog, change.database, change.name) == expected


class TestAlter:
    def altered(self, program: Any, make_dataset: Any, before: tuple[str, ...], after: tuple[str, ...]) -> list[Any]:
        program.run([make_dataset("/wh/t", columns=before, table="t")], ["/x"])
        program.run([], [make_dataset("/wh/t", columns=after, table="t", lifecycle="ALTER")], node="alter_table")
        return columns(program.lineage().catalog_changes[0])

    def test_added_and_dropped(self, program: Any, make_dataset: Any) -> None:
        assert self.altered(program, make_dataset, ("a", "b"), ("b", "c", "d")) == [
            ("a", None),
            (None, "c"),
            (None, "d"),
        ]

    def test_a_column_that_lost_only_its_name_was_renamed(self, program: Any, make_dataset: Any) -> None:
        assert self.altered(program, make_dataset, ("a", "b"), ("a", "c")) == [("b", "c")]

    def test_what_was_before_may_be_unknown(self, program: Any, make_dataset: Any) -> None:
        program.run([], [make_dataset("/wh/t", table="t", lifecycle="ALTER")], node="alter_table")
        (change,) = program.lineage().catalog_changes
        assert (change.columns, change.schema) == ((), (SchemaField("id", "int"),))

    def test_a_column_that_made_room_for_one_of_another_type_was_dropped(self, program: Any, make_dataset: Any) -> None:
        after = make_dataset("/wh/t", columns=("a", "c"), table="t", lifecycle="ALTER")
        after["facets"]["schema"]["fields"][1]["type"] = "string"
        program.run([make_dataset("/wh/t", columns=("a", "b"), table="t")], [])
        program.run([], [after], node="alter_table")
        assert columns(program.lineage().catalog_changes[0]) == [("b", None), (None, "c")]

    def test_what_a_column_was_made_from_goes_along_with_its_name_and_goes_with_it(
        self, program: Any, make_dataset: Any
    ) -> None:
        edges = {column: ("/in", column.upper()) for column in ("a", "b", "c")}
        program.run(["/in"], [make_dataset("/wh/t", columns=("a", "b", "c"), table="t", rows=1, edges=edges)])
        for after in (("a", "x", "c"), ("x", "c"), ("x", "c", "new")):
            program.run([], [make_dataset("/wh/t", columns=after, table="t", lifecycle="ALTER")], node="alter_table")
        program.run([make_dataset("/wh/t", table="t")], [make_dataset("/out", rows=1, edges={"y": ("/wh/t", "x")})])
        made_from = {
            one.dataset.name: {column: sources[0].field for column, sources in one.column_lineage.fields}
            for one in program.lineage().outputs
            if one.column_lineage is not None
        }
        assert made_from == {"/wh/t": {"x": "B", "c": "C"}, "/out": {"y": "B"}}

    def test_the_start_of_an_alter_shows_the_table_before_it(self, program: Any, make_dataset: Any) -> None:
        edges = {"old": ("/in", "a")}
        program.run(["/in"], [make_dataset("/wh/t", columns=("old",), table="t", rows=1, edges=edges)])
        for types, column in (("START",), "old"), (("COMPLETE",), "new"):
            altered = [make_dataset("/wh/t", columns=(column,), table="t", lifecycle="ALTER"), make_dataset("/u")]
            program.run([], altered, node="alter_table", types=types)
        # Both are events of one run.
        program.events[-1]["run"] = program.events[-2]["run"]
        lineage = program.lineage()
        (output,) = (one for one in lineage.outputs if one.dataset.name == "/wh/t")
        assert output.column_lineage is not None
        assert [column for column, _ in output.column_lineage.fields] == ["new"]
        assert columns(lineage.catalog_changes[0]) == [("old", "new")]

    def test_an_alter_that_the_listener_names_no_table_of(self, program: Any, make_dataset: Any) -> None:
        edges = {"old": ("/in", "a")}
        program.run(["/in"], [make_dataset("/wh/db.t", columns=("old",), table="db.t", rows=1, edges=edges)])
        renamed = ColumnChange(SchemaField("old"), SchemaField("new"))
        for run_id in (program.run([], [], node="replace_partition_field"), None):
            changed = () if run_id else (renamed,)
            program.log(run_id, statement=CatalogStatement("ALTER", "TABLE", "db.t", columns=changed))
        lineage = program.lineage()
        assert [(one.change, one.dataset.name) for one in lineage.catalog_changes] == [("ALTER", "/wh/db.t")] * 2
        (output,) = lineage.outputs
        assert output.column_lineage is not None
        assert [column for column, _ in output.column_lineage.fields] == ["new"]

    def test_retyped(self, program: Any, make_dataset: Any) -> None:
        wider = make_dataset("/wh/t", columns=("a",), table="t", lifecycle="ALTER")
        wider["facets"]["schema"]["fields"][0]["type"] = "long"
        program.run([make_dataset("/wh/t", columns=("a",), table="t")], [])
        program.run([], [wider], node="alter_table")
        assert program.lineage().catalog_changes[0].columns == (
            ColumnChange(SchemaField("a", "int"), SchemaField("a", "long")),
        )

    def test_the_command_itself_knows_best(self, program: Any, make_dataset: Any) -> None:
        added = ColumnChange(None, SchemaField("b", "int"))
        run_id = program.run([], [make_dataset("/wh/t", table="t", lifecycle="ALTER")], node="alter_table")
        statement = CatalogStatement("ALTER", "TABLE", "t", columns=(added,), properties=(("comment", "new"),))
        program.log(run_id, statement=statement)
        (change,) = program.lineage().catalog_changes
        assert (change.columns, change.properties) == ((added,), (("comment", "new"),))


class TestCommands:
    """What only the event log tells."""

    def test_views_and_databases(self, program: Any, make_dataset: Any) -> None:
        program.log(statement=CatalogStatement("CREATE", "DATABASE", "spark_catalog.db1", is_conditional=True))
        program.log(statement=CatalogStatement("CREATE", "VIEW", "spark_catalog.db1.v"))
        program.log(statement=CatalogStatement("RENAME", "VIEW", "db1.v", new_name="db1.w"))
        dropped = program.run([], [make_dataset("/wh/db1.db/w", table="db1.w", lifecycle="DROP")])
        program.log(dropped, statement=CatalogStatement("DROP", "VIEW", "db1.w"))
        lineage = program.lineage()
        assert told(lineage) == [
            ("CREATE", "DATABASE", "db1"),
            ("CREATE", "VIEW", "db1.v"),
            ("RENAME", "VIEW", "db1.w"),
            ("DROP", "VIEW", "db1.w"),
        ]
        assert [one.is_certain for one in lineage.catalog_changes] == [False, True, True, True]
        assert lineage.catalog_changes[2].previous_name == "db1.v"
        assert lineage.catalog_changes[1].dataset.namespace == "spark_catalog"
        assert lineage.outputs == ()

    def test_a_view_that_the_task_made_is_known_when_it_is_dropped(self, program: Any, make_dataset: Any) -> None:
        program.log(statement=CatalogStatement("CREATE", "VIEW", "db1.v"))
        program.run([], [make_dataset("/wh/db1.db/v", table="db1.v", lifecycle="DROP")])
        change = program.lineage().catalog_changes[1]
        assert (change.change, change.object_type, change.is_certain) == ("DROP", "VIEW", True)

    def test_a_database_takes_its_views_along(self, program: Any) -> None:
        for name in ("db1.v", "DB1.w", "db2.v", "other.db1.v", "db1.gone"):
            program.log(statement=CatalogStatement("CREATE", "VIEW", name))
        program.log(statement=CatalogStatement("DROP", "VIEW", "db1.gone"))
        program.log(statement=CatalogStatement("DROP", "DATABASE", "spark_catalog.db1", is_cascading=True))
        assert told(program.lineage())[6:] == [
            ("DROP", "VIEW", "db1.v"),
            ("DROP", "VIEW", "DB1.w"),
            ("DROP", "DATABASE", "db1"),
        ]

    def test_a_drop_has_the_last_known_columns(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/wh/db1.db/t", columns=("id", "v"), table="db1.t", rows=1)])
        program.run([], [make_dataset("/wh/db1.db/t", table="db1.t", lifecycle="DROP")])
        (change,) = program.lineage().catalog_changes
        assert (change.change, [field.name for field in change.schema]) == ("DROP", ["id", "v"])

    def test_a_database_takes_its_tables_along(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/wh/db1.db/t", table="db1.t", rows=1, lifecycle="CREATE")])
        program.run(["/a"], [make_dataset("/wh/db2.db/t", table="db2.t", rows=1, lifecycle="CREATE")])
        program.log(statement=CatalogStatement("DROP", "DATABASE", "spark_catalog.db1", is_cascading=True))
        lineage = program.lineage()
        assert [one.dataset.name for one in lineage.outputs] == ["/wh/db2.db/t"]
        assert told(lineage)[2:] == [("DROP", "TABLE", "db1.t"), ("DROP", "DATABASE", "db1")]

    def test_a_failed_command_did_nothing(self, program: Any) -> None:
        program.log(statement=CatalogStatement("CREATE", "VIEW", "v"), is_failed=True)
        assert told(program.lineage()) == []

    def test_a_rename_is_of_the_table_that_the_command_names(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/wh/t", table="default.t", rows=1, lifecycle="CREATE")])
        renamed = make_dataset("/wh/u", table="default.u", lifecycle="RENAME", previous="/wh/u")
        program.log(
            program.run([], [renamed], node="rename"), statement=CatalogStatement("RENAME", "TABLE", "T", new_name="u")
        )
        lineage = program.lineage()
        assert [one.dataset.name for one in lineage.outputs] == ["/wh/u"]
        assert lineage.catalog_changes[1].previous_name == "default.t"

    @pytest.mark.parametrize("new_name", ["db1.u", "spark_catalog.DB1.U", "u"])
    def test_a_rename_that_only_the_command_tells_is_one(self, program: Any, make_dataset: Any, new_name: str) -> None:
        edges = {"id": ("/a", "x")}
        program.run(["/a"], [make_dataset("/wh/db1.db/t", table="db1.t", rows=5, lifecycle="CREATE", edges=edges)])
        rename(program, "spark_catalog.db1.t", new_name)
        program.run(["/wh/db1.db/u"], ["/out"])
        lineage = program.lineage(has_actions=True)
        assert [(one.dataset.name, one.lifecycle) for one in lineage.outputs] == [
            ("/out", None),
            ("/wh/db1.db/u", "CREATE"),
        ]
        assert [one.dataset.name for one in lineage.inputs] == ["/a"]
        renamed = lineage.outputs[1]
        assert [link.name for link in renamed.symlinks] == ["db1.u"]
        assert renamed.statistics is not None
        assert (renamed.statistics.row_count, renamed.column_lineage is not None) == (5, True)
        change = lineage.catalog_changes[1]
        assert (change.change, change.name, change.previous_name) == ("RENAME", "db1.u", "db1.t")
        assert (change.dataset, [field.name for field in change.schema]) == (renamed.dataset, ["id"])
        action = lineage.actions[1]
        assert (action.job_name, [one.name for one in action.outputs]) == ("app.rename", ["/wh/db1.db/u"])

    def test_a_table_that_was_renamed_and_dropped_before_the_listener_looked_is_no_output(
        self, program: Any, make_dataset: Any
    ) -> None:
        # Its event of the rename names nothing, and of the drop it sends none.
        program.run([], [make_dataset("/wh/shop.db/orders", table="shop.orders", lifecycle="CREATE")], node="create")
        program.run(["/a"], [make_dataset("/wh/shop.db/orders", table="shop.orders", rows=20)])
        rename(program, "spark_catalog.shop.orders", "shop.all_orders")
        program.log(statement=CatalogStatement("DROP", "TABLE", "spark_catalog.shop.all_orders"))
        lineage = program.lineage()
        assert lineage.outputs == ()
        assert [(one.change, one.name, one.dataset.name) for one in lineage.catalog_changes] == [
            ("CREATE", "shop.orders", "/wh/shop.db/orders"),
            ("RENAME", "shop.all_orders", "/wh/shop.db/all_orders"),
            ("DROP", "shop.all_orders", "/wh/shop.db/all_orders"),
        ]
        assert [one.is_certain for one in lineage.catalog_changes] == [True] * 3
        assert [one.is_ignored for one in lineage.catalog_changes[1:]] == [False, False]

    def test_a_swap_whose_first_rename_only_the_command_tells(self, program: Any, make_dataset: Any) -> None:
        for name, rows in (("t", 3), ("new", 7)):
            program.run(["/a"], [make_dataset(f"/wh/{name}", table=f"default.{name}", rows=rows)])
        rename(program, "default.t", "default.old")
        renamed = make_dataset("/wh/t", table="default.t", lifecycle="RENAME", previous="/wh/new")
        run_id = program.run([], [renamed], node="rename")
        program.log(run_id, statement=CatalogStatement("RENAME", "TABLE", "default.new", new_name="default.t"))
        program.run([], [make_dataset("/wh/old", table="default.old", lifecycle="DROP")], node="drop_table")
        lineage = program.lineage()
        (output,) = lineage.outputs
        assert output.statistics is not None
        assert (output.dataset.name, output.statistics.row_count) == ("/wh/t", 7)

    def test_a_table_that_was_there_and_is_renamed_by_the_command_alone_tells_its_former_name(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run([make_dataset("/wh/t", table="default.t")], [make_dataset("/wh/t", table="default.t", rows=1)])
        rename(program, "default.t", "default.u")
        lineage = program.lineage()
        assert [one.dataset.name for one in lineage.inputs] == ["/wh/t"]
        (output,) = lineage.outputs
        assert output.previous_name is not None
        assert (output.lifecycle, output.dataset.name, output.previous_name.name) == ("RENAME", "/wh/u", "/wh/t")

    @pytest.mark.parametrize(
        ("table", "before", "after"),
        [
            ("default.t", "/wh/t", "/wh/u"),
            ("db1.t", "/elsewhere/db1.db/t", "/elsewhere/db1.db/u"),
            # Of an external table the catalog's name changes alone.
            ("db1.t", "/data/t", "/data/t"),
            ("db1.t", "/wh/db1.db/x", "/wh/db1.db/x"),
        ],
    )
    def test_a_folder_is_renamed_with_its_table_where_spark_made_it(
        self, program: Any, make_dataset: Any, table: str, before: str, after: str
    ) -> None:
        program.run(["/a"], [make_dataset(before, table=table, rows=1)])
        rename(program, table, table.replace(".t", ".u"))
        (output,) = program.lineage().outputs
        assert (output.dataset.name, [link.name for link in output.symlinks]) == (after, [table.replace(".t", ".u")])

    def test_a_rename_that_failed_or_is_of_another_table_renames_nothing(self, program: Any, make_dataset: Any) -> None:
        program.run(["/a"], [make_dataset("/wh/t", table="default.t", rows=1)])
        rename(program, "default.t", "default.u", is_failed=True)
        rename(program, "default.x", "default.y")
        lineage = program.lineage()
        assert [one.dataset.name for one in lineage.outputs] == ["/wh/t"]
        assert told(lineage) == [("RENAME", "TABLE", "default.y")]

    def test_a_table_over_files_that_were_read_is_created_and_no_output(self, program: Any, make_dataset: Any) -> None:
        program.run(["/data"], [])
        created = program.run([], [make_dataset("/data", table="default.t", lifecycle="CREATE")], node="create")
        program.log(created, statement=CatalogStatement("CREATE", "TABLE", "spark_catalog.default.t"))
        lineage = program.lineage()
        assert told(lineage) == [("CREATE", "TABLE", "default.t")]
        assert lineage.outputs == ()

    def test_a_table_that_its_event_gives_no_name_has_that_of_its_command(
        self, program: Any, make_dataset: Any
    ) -> None:
        created = program.run([], [make_dataset("/wh/u", lifecycle="CREATE")], node="execute_create_table_like")
        program.log(created, statement=CatalogStatement("CREATE", "TABLE", "spark_catalog.default.u"))
        assert told(program.lineage()) == [("CREATE", "TABLE", "default.u")]

    @pytest.mark.parametrize(("named", "is_left"), [("DB1.T", False), ("spark_catalog.db1.t", False), ("db1.x", True)])
    def test_a_drop_that_only_the_command_tells(
        self, program: Any, make_dataset: Any, named: str, is_left: bool
    ) -> None:
        program.run(["/a"], [make_dataset("/wh/db1.db/t", table="db1.t", rows=1)])
        program.log(statement=CatalogStatement("DROP", "TABLE", named))
        lineage = program.lineage()
        assert bool(lineage.outputs) == is_left
        (change,) = lineage.catalog_changes
        assert (change.change, change.dataset.name == "/wh/db1.db/t", change.is_certain) == ("DROP", not is_left, True)

    def test_a_truncate_that_only_the_command_tells_empties_the_table(self, program: Any, make_dataset: Any) -> None:
        table = make_dataset("/wh/db1.db/t", table="db1.t", rows=5, edges={"x": ("/a", "x")})
        program.run(["/a"], [table])
        program.log(statement=CatalogStatement("TRUNCATE", "TABLE", "db1.t"))
        lineage = program.lineage()
        (emptied,) = lineage.outputs
        assert (emptied.fed_by, emptied.column_lineage, emptied.statistics) == ((), None, None)
        assert [write.operation for write in emptied.writes] == ["TRUNCATE"]
        (change,) = lineage.catalog_changes
        assert (change.change, change.name, change.dataset.name) == ("TRUNCATE", "db1.t", "/wh/db1.db/t")
        assert [field.name for field in change.schema] == ["id"]

    def test_a_table_that_was_read_and_emptied_is_input_and_output(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("/wh/t", table="t")], ["/out"])
        program.log(statement=CatalogStatement("TRUNCATE", "TABLE", "t"))
        lineage = program.lineage()
        assert [one.dataset.name for one in lineage.inputs] == ["/wh/t"]
        assert [one.dataset.name for one in lineage.outputs] == ["/out", "/wh/t"]

    def test_or_replace_makes_a_view_that_the_task_never_saw_and_overwrites_one_that_it_made(
        self, program: Any
    ) -> None:
        for name in ("db1.v", "spark_catalog.db1.v", "db1.w", "db1.v"):
            program.log(statement=CatalogStatement("OVERWRITE", "VIEW", name))
        assert told(program.lineage()) == [
            ("CREATE", "VIEW", "db1.v"),
            ("OVERWRITE", "VIEW", "db1.v"),
            ("CREATE", "VIEW", "db1.w"),
            ("OVERWRITE", "VIEW", "db1.v"),
        ]

    def test_a_table_that_was_never_seen_and_may_have_been_missing_has_no_path(
        self, program: Any, make_dataset: Any
    ) -> None:
        wrong = make_dataset("/wh/db1.db/db1.db/t", table="db1.t", table_namespace="file:/wh/db1.db", lifecycle="DROP")
        program.run([], [wrong])
        metastore = make_dataset("/x/t", table="db1.u", table_namespace="hive://meta:9083", lifecycle="DROP")
        program.run([], [metastore])
        program.run([], [make_dataset("ns.t", lifecycle="DROP") | {"namespace": "postgres://h:5432"}])
        iceberg = make_dataset("/ice/db1/v", table="db1.v", lifecycle="DROP")
        iceberg["facets"]["catalog"] = {"framework": "iceberg", "type": "hadoop", "name": "ice"}
        program.run([], [iceberg])
        assert [one.dataset for one in program.lineage().catalog_changes] == [
            DatasetName("spark_catalog", "db1.t"),
            DatasetName("spark_catalog", "db1.u"),
            DatasetName("postgres://h:5432", "ns.t"),
            DatasetName("ice", "db1.v"),
        ]

    def test_drop_of_table_that_was_never_seen_is_named_by_its_catalog(self, program: Any, make_dataset: Any) -> None:
        wrong = make_dataset("/wh/db1.db/db1.db/t", table="db1.t", table_namespace="file:/wh/db1.db", lifecycle="DROP")
        program.log(program.run([], [wrong]), statement=CatalogStatement("DROP", "TABLE", "db1.t"))
        metastore = make_dataset("/x/t", table="db1.u", table_namespace="hive://meta:9083", lifecycle="DROP")
        program.log(program.run([], [metastore]), statement=CatalogStatement("DROP", "TABLE", "db1.u"))
        assert [one.dataset.name for one in program.lineage().catalog_changes] == ["db1.t", "db1.u"]

    @pytest.mark.parametrize(("former", "new"), [("/a", "/z"), ("/z", "/a")])
    def test_a_table_that_is_given_another_place_is_altered_once(
        self, program: Any, make_dataset: Any, former: str, new: str
    ) -> None:
        places = [make_dataset(place, table="db.t", lifecycle="ALTER") for place in (former, new)]
        statement = CatalogStatement("ALTER", "TABLE", "spark_catalog.db.t", properties=(("location", new),))
        program.log(program.run([], places, node="alter_table"), statement=statement)
        (change,) = program.lineage().catalog_changes
        assert (change.change, change.dataset.name, change.properties) == ("ALTER", new, (("location", new),))

    @pytest.mark.parametrize(("made_at", "left"), [("/wh/t", ["/kept"]), ("/apart/t", ["/kept", "/new"])])
    def test_dropped_table_was_where_it_was_moved_to(
        self, program: Any, make_dataset: Any, made_at: str, left: list[str]
    ) -> None:
        def table(place: str, lifecycle: str) -> dict[str, Any]:
            return make_dataset(place, table="db.t", table_namespace="file:/wh", lifecycle=lifecycle)

        program.run(["/in"], [make_dataset("/kept", rows=1)])
        run_id = program.run([], [table(made_at, "CREATE")], node="execute_create_data_source_table_command")
        program.log(run_id, statement=CatalogStatement("CREATE", "TABLE", "spark_catalog.db.t"))
        statement = CatalogStatement("ALTER", "TABLE", "spark_catalog.db.t", properties=(("location", "/new"),))
        altered = [table(made_at, "ALTER"), make_dataset("/new", lifecycle="ALTER")]
        program.log(program.run([], altered, node="execute_alter_table_set_location_command"), statement=statement)
        program.run(["/in"], [make_dataset("/new", rows=1)], node="execute_insert_into_hadoop_fs_relation_command")
        run_id = program.run([], [table("/wh/t", "DROP")], node="drop_table")
        program.log(run_id, statement=CatalogStatement("DROP", "TABLE", "spark_catalog.db.t"))
        lineage = program.lineage()
        assert [(one.change, one.dataset.name) for one in lineage.catalog_changes] == [
            ("CREATE", made_at),
            ("ALTER", "/new"),
            ("DROP", "/new"),
        ]
        # A DROP of a table that the catalog manages takes away what is in it.
        assert [one.dataset.name for one in lineage.outputs] == left

    def test_table_of_iceberg_that_is_given_another_place_is_the_same_dataset(
        self, program: Any, make_dataset: Any
    ) -> None:
        table = make_dataset("/ice/db/t", table="db.t", rows=1)
        program.run(["/in"], [table])
        statement = CatalogStatement("ALTER", "TABLE", "ice.db.t", properties=(("location", "/new"),))
        altered = make_dataset("/ice/db/t", table="db.t", lifecycle="ALTER")
        program.log(program.run([], [altered], node="alter_table"), statement=statement)
        program.run([table], ["/out"])
        assert [one.dataset.name for one in program.lineage().inputs] == ["/in"]

    def test_table_of_a_database_is_renamed_by_a_command_that_the_listener_leaves_out(
        self, program: Any, make_dataset: Any
    ) -> None:
        table = make_dataset("shop.S.made", rows=1, lifecycle="CREATE") | {"namespace": "postgres://h:5432"}
        run_id = program.run(["/in"], [table], node="create_table_as_select")
        program.log(run_id, statement=CatalogStatement("CREATE", "TABLE", "pg.S.made"))
        program.log(statement=CatalogStatement("RENAME", "TABLE", "pg.S.made", new_name="S.Named"))
        lineage = program.lineage()
        assert [(one.change, one.name, one.previous_name) for one in lineage.catalog_changes][1:] == [
            ("RENAME", "S.Named", "S.made")
        ]
        assert [one.dataset for one in lineage.outputs] == [DatasetName("postgres://h:5432", "shop.S.Named")]

    def test_column_with_a_dot_in_its_name_is_no_field_where_the_table_is_known(self, program: Any) -> None:
        schema = (SchemaField("c.d", "string"), SchemaField("at", "struct"))
        program.log(statement=CatalogStatement("CREATE", "TABLE", "jd.S.t", schema=schema))
        renamed = (("c.d", "c.e"), ("at.x", "at.lon"))
        columns = tuple(ColumnChange(SchemaField(old), SchemaField(new)) for old, new in renamed)
        program.log(statement=CatalogStatement("ALTER", "TABLE", "jd.S.t", columns=columns))
        created, altered = program.lineage().catalog_changes
        assert created.schema == schema
        assert [one.new.name for one in altered.columns if one.new] == ["e", "at.lon"]

    def test_drop_of_a_database_drops_no_table_that_failed_or_is_in_another_catalog(
        self, program: Any, make_dataset: Any
    ) -> None:
        for catalog, types in (
            ("ice", ("START", "COMPLETE")),
            ("de", ("START", "COMPLETE")),
            ("ice", ("START", "FAIL")),
        ):
            name = f"{catalog}{len(types[1])}"
            table = make_dataset(f"/{catalog}/db/{name}", table=f"db.{name}", lifecycle="CREATE")
            table["facets"]["catalog"] = {"framework": "iceberg", "type": "hadoop", "name": catalog}
            run_id = program.run([], [table], types=types, node="create_table")
            program.log(run_id, statement=CatalogStatement("CREATE", "TABLE", f"{catalog}.db.{name}"))
        program.log(statement=CatalogStatement("DROP", "DATABASE", "ice.db", is_cascading=True))
        assert told(program.lineage())[2:] == [("DROP", "TABLE", "db.ice8"), ("DROP", "DATABASE", "db")]

    def test_drop_of_a_database_drops_a_table_that_commands_alone_name(self, program: Any) -> None:
        program.log(statement=CatalogStatement("CREATE", "TABLE", "spark_catalog.db.t"))
        program.log(statement=CatalogStatement("DROP", "DATABASE", "db", is_cascading=True))
        assert told(program.lineage())[1:] == [("DROP", "TABLE", "db.t"), ("DROP", "DATABASE", "db")]

    def test_what_gives_out_the_result_of_a_command_changes_nothing_again(
        self, program: Any, make_dataset: Any
    ) -> None:
        for node in ("drop_table", "command_result"):
            program.run([], [make_dataset("/wh/t", table="t", lifecycle="DROP")], node=node)
        assert [one.change for one in program.lineage().catalog_changes] == ["DROP"]

    def test_a_drop_without_condition_is_certain(self, program: Any, make_dataset: Any) -> None:
        run_id = program.run([], [make_dataset("/wh/t", table="t", lifecycle="DROP")])
        program.log(run_id, statement=CatalogStatement("DROP", "TABLE", "t"))
        assert program.lineage().catalog_changes[0].is_certain
