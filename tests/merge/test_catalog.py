"""What the task did to the catalog (M11), on made-up programs and on real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_lineage.collect.collector import Collector
from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import CatalogChange, ColumnChange, SchemaField, TaskLineage
from spark_lineage.merge.task import task_lineage

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
SAVE_AS_TABLE = "execute_create_data_source_table_as_select_command"


def told(lineage: TaskLineage) -> list[tuple[str, str, str]]:
    return [(one.change, one.object_type, one.name) for one in lineage.catalog_changes]


def columns(change: CatalogChange) -> list[tuple[str | None, str | None]]:
    return [(one.old and one.old.name, one.new and one.new.name) for one in change.columns]


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

    def test_a_drop_without_condition_is_certain(self, program: Any, make_dataset: Any) -> None:
        run_id = program.run([], [make_dataset("/wh/t", table="t", lifecycle="DROP")])
        program.log(run_id, statement=CatalogStatement("DROP", "TABLE", "t"))
        assert program.lineage().catalog_changes[0].is_certain
