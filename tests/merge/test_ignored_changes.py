"""Which changes of the catalog were passed over because of IF [NOT] EXISTS (M11): yes, no, or nobody can know."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from spark_lineage.merge.catalog import CatalogJournal, is_ignored
from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.naming.identity import DatasetName

TABLE = {"table": "db1.t"}


def told(lineage: TaskLineage) -> list[tuple[str, str, bool | None]]:
    return [(one.change, one.name, one.is_ignored) for one in lineage.catalog_changes]


def create(program: Any, one: dict[str, Any], *, is_conditional: bool | None = True) -> None:
    run_id = program.run([], [one], node="execute_create_data_source_table_command")
    if is_conditional is not None:
        statement = CatalogStatement("CREATE", "TABLE", "spark_catalog.db1.t", is_conditional=is_conditional)
        program.log(run_id, statement=statement)


def drop(program: Any, one: dict[str, Any], *, is_conditional: bool | None = True) -> None:
    run_id = program.run([], [one], node="drop_table")
    if is_conditional is not None:
        statement = CatalogStatement("DROP", "TABLE", "spark_catalog.db1.t", is_conditional=is_conditional)
        program.log(run_id, statement=statement)


def drop_silently(program: Any, name: str = "spark_catalog.db1.t") -> None:
    """Drop a table if it is there, in a command that the event log alone tells."""
    program.log(statement=CatalogStatement("DROP", "TABLE", name, is_conditional=True))


@pytest.fixture
def created(make_dataset: Any) -> Any:
    return make_dataset("/wh/db1.db/t", lifecycle="CREATE", **TABLE)


@pytest.fixture
def dropped(make_dataset: Any) -> Any:
    # The path of a DROP is wrong outside of the default database.
    return make_dataset(
        "/wh/db1.db/db1.db/t", table="db1.t", table_namespace="file:/wh/db1.db", lifecycle="DROP", columns=()
    )


@pytest.mark.parametrize(
    ("change", "is_there", "is_conditional", "expected"),
    [
        ("CREATE", True, True, True),
        ("CREATE", False, True, False),
        ("CREATE", None, True, None),
        ("CREATE", None, None, None),
        ("CREATE", None, False, False),
        # ADD IF NOT EXISTS PARTITION.
        ("ALTER", None, True, None),
        ("ALTER", None, False, False),
        ("DROP", True, True, False),
        ("DROP", False, True, True),
        ("DROP", False, None, True),
        ("DROP", None, True, None),
        ("DROP", None, False, False),
        ("ALTER", True, None, False),
    ],
)
def test_the_rule(
    change: Literal["CREATE", "DROP", "ALTER"],
    is_there: bool | None,
    is_conditional: bool | None,
    expected: bool | None,
) -> None:
    assert is_ignored(change, is_there=is_there, is_conditional=is_conditional) is expected


def test_what_a_catalog_names_is_known_in_any_case_and_paths_are_not() -> None:
    journal = CatalogJournal()
    for kind in ("VIEW", "TABLE"):
        journal._learn(kind, [DatasetName("ns", "A")], is_there=True)  # type: ignore[arg-type]
    journal._learn("TABLE", [DatasetName("spark_catalog", "db1.T")], is_there=True)
    assert journal.presence("VIEW", DatasetName("ns", "a")) is True
    assert journal.presence("TABLE", DatasetName("spark_catalog", "DB1.t")) is True
    assert journal.presence("TABLE", DatasetName("ns", "A")) is True
    assert journal.presence("TABLE", DatasetName("ns", "a")) is None
    assert journal.presence("DATABASE", DatasetName("ns", "a")) is None


class TestCreatedTables:
    def test_what_the_task_read_was_there(self, program: Any, make_dataset: Any, created: Any) -> None:
        program.run([make_dataset("/wh/db1.db/t", **TABLE)], [])
        create(program, created)
        lineage = program.lineage()
        assert told(lineage) == [("CREATE", "db1.t", True)]
        assert lineage.catalog_changes[0].is_certain is False
        assert lineage.outputs == ()

    def test_what_the_task_made_was_there(self, program: Any, created: Any) -> None:
        create(program, created, is_conditional=False)
        create(program, created)
        assert told(program.lineage()) == [("CREATE", "db1.t", False), ("CREATE", "db1.t", True)]

    def test_what_the_task_dropped_was_not_there(self, program: Any, created: Any, dropped: Any) -> None:
        drop(program, dropped)
        create(program, created)
        assert told(program.lineage()) == [("DROP", "db1.t", None), ("CREATE", "db1.t", False)]

    def test_what_the_task_read_and_then_dropped_was_not_there(
        self, program: Any, make_dataset: Any, created: Any, dropped: Any
    ) -> None:
        program.run([make_dataset("/wh/db1.db/t", **TABLE)], [])
        drop(program, dropped)
        create(program, created)
        assert told(program.lineage()) == [("DROP", "db1.t", False), ("CREATE", "db1.t", False)]

    def test_of_what_the_task_never_saw_nobody_can_know(self, program: Any, created: Any) -> None:
        create(program, created)
        assert told(program.lineage()) == [("CREATE", "db1.t", None)]

    def test_without_a_condition_it_was_made(self, program: Any, created: Any) -> None:
        create(program, created, is_conditional=False)
        assert told(program.lineage()) == [("CREATE", "db1.t", False)]

    def test_without_a_log_nobody_can_know_whether_it_had_a_condition(self, program: Any, created: Any) -> None:
        create(program, created, is_conditional=None)
        assert told(program.lineage()) == [("CREATE", "db1.t", None)]

    def test_what_was_filled_was_made(self, program: Any, make_dataset: Any) -> None:
        made = make_dataset("/wh/db1.db/t", table="db1.t", rows=3, lifecycle="CREATE")
        program.run(["/in"], [made], node="execute_create_hive_table_as_select_command")
        assert told(program.lineage()) == [("CREATE", "db1.t", False)]

    def test_over_files_that_were_read_there_may_have_been_a_table(self, program: Any, created: Any) -> None:
        program.run(["/wh/db1.db/t"], [])
        create(program, created)
        assert told(program.lineage()) == [("CREATE", "db1.t", None)]

    def test_a_table_without_symlinks_is_known_by_its_name(self, program: Any, make_dataset: Any) -> None:
        table = make_dataset("db1.t") | {"namespace": "bigquery"}
        program.run([table], [])
        create(program, make_dataset("db1.t", lifecycle="CREATE") | {"namespace": "bigquery"})
        assert told(program.lineage()) == [("CREATE", "db1.t", True)]

    def test_the_outer_run_of_a_command_does_not_find_what_its_inner_run_made(self, program: Any, created: Any) -> None:
        with program.running([], [created], node="create_table") as outer:
            program.run([], [created], node="execute_create_data_source_table_command")
        program.log(outer, statement=CatalogStatement("CREATE", "TABLE", "db1.t", is_conditional=True))
        assert told(program.lineage()) == [("CREATE", "db1.t", None)]

    def test_mode_ignore_passed_over_a_table_that_was_there(self, program: Any, make_dataset: Any) -> None:
        made = make_dataset("/wh/db1.db/t", lifecycle="CREATE", **TABLE)
        run_id = program.run([], [made], node="execute_create_data_source_table_as_select_command")
        statement = CatalogStatement("CREATE", "TABLE", "db1.t", is_conditional=True)
        program.log(run_id, statement=statement, mode="Ignore")
        lineage = program.lineage()
        assert told(lineage) == [("CREATE", "db1.t", True)]
        assert [one.reason for one in lineage.attempted] == ["not written"]

    def test_a_write_that_its_mode_kept_from_a_table_is_no_change_without_a_command(
        self, program: Any, make_dataset: Any
    ) -> None:
        made = make_dataset("/wh/db1.db/t", lifecycle="CREATE", **TABLE)
        program.log(program.run([], [made]), mode="Ignore")
        assert told(program.lineage()) == []


class TestDroppedTables:
    def test_what_the_task_saw_was_dropped(self, program: Any, created: Any, dropped: Any) -> None:
        create(program, created)
        drop(program, dropped)
        assert told(program.lineage()) == [("CREATE", "db1.t", None), ("DROP", "db1.t", False)]

    @pytest.mark.parametrize("is_conditional", [True, None])
    def test_what_the_task_had_dropped_was_not_there(
        self, program: Any, created: Any, dropped: Any, is_conditional: bool | None
    ) -> None:
        create(program, created)
        drop(program, dropped)
        drop(program, dropped, is_conditional=is_conditional)
        lineage = program.lineage()
        assert told(lineage)[1:] == [("DROP", "db1.t", False), ("DROP", "db1.t", True)]
        assert lineage.catalog_changes[2].is_certain is False

    def test_what_was_renamed_away_was_not_there(self, program: Any, make_dataset: Any, created: Any) -> None:
        create(program, created)
        renamed = make_dataset("/wh/db1.db/u", table="db1.u", lifecycle="RENAME", previous="/wh/db1.db/t")
        program.run([], [renamed], node="alter_table_rename")
        drop(program, make_dataset("/wh/db1.db/t", table="db1.t", table_namespace="file:/wh/db1.db", lifecycle="DROP"))
        assert told(program.lineage())[1:] == [("RENAME", "db1.u", False), ("DROP", "db1.t", True)]

    def test_of_what_was_only_tried_nobody_can_know(self, program: Any, created: Any, dropped: Any) -> None:
        program.run([], [created], types=("START", "FAIL"))
        drop(program, dropped)
        assert told(program.lineage()) == [("DROP", "db1.t", None)]

    def test_a_table_of_that_name_in_another_place_is_another_one(self, program: Any, dropped: Any) -> None:
        drop(program, dropped)
        elsewhere = dropped["facets"]["symlinks"]["identifiers"][0] | {"namespace": "s3://other/db1.db"}
        drop(program, dropped | {"facets": {**dropped["facets"], "symlinks": {"identifiers": [elsewhere]}}})
        assert [ignored for _, _, ignored in told(program.lineage())] == [None, None]

    @pytest.mark.parametrize("is_told", [True, False])
    @pytest.mark.parametrize("named", ["spark_catalog.db1.t", "DB1.T"])
    def test_what_was_dropped_is_known_to_a_command_that_the_listener_does_not_tell(
        self, program: Any, created: Any, dropped: Any, named: str, *, is_told: bool
    ) -> None:
        create(program, created)
        if is_told:
            drop(program, dropped)
        else:
            drop_silently(program)
        drop_silently(program, named)
        lineage = program.lineage()
        assert told(lineage)[1:] == [("DROP", "db1.t", False), ("DROP", named.removeprefix("spark_catalog."), True)]
        assert lineage.catalog_changes[2].is_certain is False

    def test_what_the_listener_says_was_dropped_but_the_task_never_saw_is_dropped_once(
        self, program: Any, dropped: Any
    ) -> None:
        drop(program, dropped)
        drop_silently(program)
        assert [ignored for _, _, ignored in told(program.lineage())] == [None, True]

    @pytest.mark.parametrize("is_told", [True, False])
    def test_a_table_that_was_made_again_in_a_place_of_its_own_was_there(
        self, program: Any, make_dataset: Any, dropped: Any, *, is_told: bool
    ) -> None:
        drop(program, dropped)
        create(program, make_dataset("/data/t", lifecycle="CREATE"), is_conditional=False)
        if is_told:
            drop(program, dropped)
        else:
            drop_silently(program)
        assert told(program.lineage()) == [
            ("DROP", "db1.t", None),
            ("CREATE", "db1.t", False),
            ("DROP", "db1.t", False),
        ]

    def test_a_table_of_that_name_in_another_catalog_is_another_one(
        self, program: Any, make_dataset: Any, created: Any
    ) -> None:
        create(program, created, is_conditional=False)
        # The plan of its command tells the class of its catalog, and not its name.
        gone = make_dataset("/ice/db1/t", table="db1.t", table_namespace="file:/ice", lifecycle="DROP")
        statement = CatalogStatement("DROP", "TABLE", "db1.t", is_conditional=True)
        program.log(program.run([], [gone], node="drop_table"), statement=statement)
        assert told(program.lineage()) == [("CREATE", "db1.t", False), ("DROP", "db1.t", None)]

    def test_a_table_that_was_found_again_in_a_place_of_its_own_was_there(
        self, program: Any, make_dataset: Any, dropped: Any
    ) -> None:
        drop(program, dropped)
        program.run(["/data/t"], [])
        create(program, make_dataset("/data/t", lifecycle="CREATE"))
        drop_silently(program)
        assert [ignored for _, _, ignored in told(program.lineage())] == [None, None, False]

    def test_a_command_knows_what_was_renamed_under_both_names(
        self, program: Any, make_dataset: Any, created: Any
    ) -> None:
        create(program, created)
        renamed = make_dataset("/wh/db1.db/u", lifecycle="RENAME", previous="/wh/db1.db/t", table="db1.u")
        statement = CatalogStatement("RENAME", "TABLE", "spark_catalog.db1.t", new_name="u")
        program.log(program.run([], [renamed], node="rename"), statement=statement)
        for name in ("t", "u", "u"):
            drop_silently(program, f"db1.{name}")
        assert told(program.lineage())[2:] == [
            ("DROP", "db1.t", True),
            ("DROP", "db1.u", False),
            ("DROP", "db1.u", True),
        ]

    def test_tables_that_went_with_their_database_are_not_dropped_again(self, program: Any, created: Any) -> None:
        create(program, created)
        program.log(statement=CatalogStatement("DROP", "DATABASE", "spark_catalog.db1", is_cascading=True))
        drop_silently(program)
        assert told(program.lineage())[1:] == [
            ("DROP", "db1.t", False),
            ("DROP", "db1", False),
            ("DROP", "db1.t", True),
        ]


class TestViewsAndDatabases:
    @pytest.mark.parametrize("kind", ["VIEW", "DATABASE"])
    @pytest.mark.parametrize("catalog", ["", "spark_catalog."])
    def test_their_life(self, program: Any, kind: Any, catalog: str) -> None:
        name = "db1.v" if kind == "VIEW" else "db1"
        for change in ("CREATE", "CREATE", "DROP", "DROP", "CREATE"):
            program.log(statement=CatalogStatement(change, kind, catalog + name, is_conditional=True))
            catalog, name = "", name.upper()
        assert [ignored for _, _, ignored in told(program.lineage())] == [None, True, False, True, False]

    def test_another_catalog_is_another_place(self, program: Any) -> None:
        for catalog in ("one", "two"):
            program.log(statement=CatalogStatement("CREATE", "DATABASE", f"{catalog}.db1", is_conditional=True))
        assert [ignored for _, _, ignored in told(program.lineage())] == [None, None]

    def test_a_database_is_there_if_a_table_of_it_is(self, program: Any, make_dataset: Any) -> None:
        program.run([make_dataset("/wh/db1.db/t", **TABLE)], [])
        for name in ("db1", "db2"):
            program.log(statement=CatalogStatement("CREATE", "DATABASE", name, is_conditional=True))
        assert told(program.lineage()) == [("CREATE", "db1", True), ("CREATE", "db2", None)]

    def test_what_replaces_is_never_ignored(self, program: Any) -> None:
        for _ in range(2):
            program.log(statement=CatalogStatement("OVERWRITE", "VIEW", "db1.v"))
        assert told(program.lineage()) == [("CREATE", "db1.v", False), ("OVERWRITE", "db1.v", False)]

    def test_a_renamed_view_has_left_its_name(self, program: Any) -> None:
        program.log(statement=CatalogStatement("CREATE", "VIEW", "db1.v"))
        program.log(statement=CatalogStatement("RENAME", "VIEW", "db1.v", new_name="db1.w"))
        for name in ("db1.v", "db1.w"):
            program.log(statement=CatalogStatement("CREATE", "VIEW", name, is_conditional=True))
        assert [ignored for _, _, ignored in told(program.lineage())] == [False, False, False, True]

    def test_a_view_is_dropped_once(self, program: Any, make_dataset: Any) -> None:
        program.log(statement=CatalogStatement("CREATE", "VIEW", "spark_catalog.db1.v"))
        gone = make_dataset("/wh/db1.db/v", table="db1.v", lifecycle="DROP")
        for _ in range(2):
            run_id = program.run([], [gone])
            program.log(run_id, statement=CatalogStatement("DROP", "VIEW", "db1.v", is_conditional=True))
        program.run([], [gone])
        assert [ignored for _, _, ignored in told(program.lineage())] == [False, False, True, True]
