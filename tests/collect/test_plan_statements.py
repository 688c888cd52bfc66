"""What commands of real plans do to the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_lineage.collect.event_log import read_event_log
from spark_lineage.collect.plan import parse_plan
from spark_lineage.collect.plan_content import read_plan
from spark_lineage.collect.plan_edges import UNTRACED
from spark_lineage.collect.plan_statements import read_statement
from spark_lineage.collect.plan_tables import Tables
from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import ColumnChange, SchemaField

LOG = Path(__file__).parents[1] / "fixtures" / "event_logs" / "ddl.zstd"


@pytest.fixture(scope="module")
def statements():
    return {one.execution_id: one.statement for one in read_event_log(LOG)}


T, V, DEL = "spark_catalog.d1.t", "spark_catalog.d1.v", "d1.del"

# The class of a catalog, which is all that a plan tells of one, is not its name.
CASES = {
    # CREATE DATABASE IF NOT EXISTS d1 COMMENT 'x y' WITH DBPROPERTIES ('a'='b')
    0: CatalogStatement("CREATE", "DATABASE", "d1", properties=(("a", "b"), ("comment", "x y")), is_conditional=True),
    # ALTER DATABASE d1 SET DBPROPERTIES ('c'='d')
    1: CatalogStatement("ALTER", "DATABASE", "d1", properties=(("c", "d"),)),
    # CREATE TABLE d1.t (id INT, v STRING) USING parquet
    2: CatalogStatement("CREATE", "TABLE", T),
    # ALTER TABLE d1.t ADD COLUMNS (w STRING COMMENT 'cw', z INT)
    3: CatalogStatement(
        "ALTER",
        "TABLE",
        T,
        columns=(ColumnChange(None, SchemaField("w", "string")), ColumnChange(None, SchemaField("z", "integer"))),
    ),
    # ALTER TABLE d1.t SET TBLPROPERTIES ('k'='v2','k3'='v3')
    5: CatalogStatement("ALTER", "TABLE", T, properties=(("k", "v2"), ("k3", "v3"))),
    # ALTER TABLE d1.t UNSET TBLPROPERTIES ('k3')
    6: CatalogStatement("ALTER", "TABLE", T),
    # COMMENT ON TABLE d1.t IS 'new comment'
    7: CatalogStatement("ALTER", "TABLE", "d1.t", properties=(("comment", "new comment"),)),
    # CREATE VIEW d1.v COMMENT 'vc' TBLPROPERTIES ('p'='q') AS SELECT id FROM d1.t
    8: CatalogStatement("CREATE", "VIEW", V, properties=(("comment", "vc"), ("p", "q"))),
    # CREATE OR REPLACE VIEW d1.v AS SELECT id, v FROM d1.t
    9: CatalogStatement("OVERWRITE", "VIEW", V),
    # CREATE VIEW IF NOT EXISTS d1.v AS SELECT id FROM d1.t
    10: CatalogStatement("CREATE", "VIEW", V, is_conditional=True),
    # ALTER VIEW d1.v AS SELECT v FROM d1.t
    11: CatalogStatement("ALTER", "VIEW", V),
    # ALTER VIEW d1.v RENAME TO d1.v2
    12: CatalogStatement("RENAME", "VIEW", V, new_name="d1.v2"),
    # ALTER VIEW d1.v2 SET TBLPROPERTIES ('a'='1')
    13: CatalogStatement("ALTER", "VIEW", "spark_catalog.d1.v2", properties=(("a", "1"),)),
    # DROP VIEW IF EXISTS d1.v2
    14: CatalogStatement("DROP", "VIEW", "spark_catalog.d1.v2", is_conditional=True),
    # DROP TABLE IF EXISTS d1.none
    16: CatalogStatement("DROP", "TABLE", "d1.none", is_conditional=True),
    # TRUNCATE TABLE d1.t
    17: CatalogStatement("TRUNCATE", "TABLE", T),
    # ALTER TABLE d1.t RENAME TO d1.t2
    18: CatalogStatement("RENAME", "TABLE", T, new_name="d1.t2"),
    # CREATE TABLE d1.like1 LIKE d1.t2
    19: CatalogStatement("CREATE", "TABLE", "spark_catalog.d1.like1"),
    # CREATE TABLE d1.del (id INT, v STRING) USING delta
    20: CatalogStatement("CREATE", "TABLE", DEL),
    # ALTER TABLE d1.del ADD COLUMN (n STRING), RENAME COLUMN v TO vv, DROP COLUMN n
    22: CatalogStatement("ALTER", "TABLE", DEL, columns=(ColumnChange(None, SchemaField("n", "string")),)),
    23: CatalogStatement("ALTER", "TABLE", DEL, columns=(ColumnChange(SchemaField("v"), SchemaField("vv")),)),
    24: CatalogStatement("ALTER", "TABLE", DEL, columns=(ColumnChange(SchemaField("n"), None),)),
}


@pytest.mark.parametrize("execution", CASES)
def test_the_statement_of(statements, execution) -> None:
    assert statements[execution] == CASES[execution]


def statement_of(name, arguments):
    plan = parse_plan(f"== Physical Plan ==\n{name} (1)\n\n\n(1) {name}\nArguments: {arguments}\n\n")
    assert plan is not None
    return read_statement(plan)


def test_a_database_dropped_with_all_that_is_in_it() -> None:
    assert statement_of("DropNamespace", "V2SessionCatalog(spark_catalog), [db1], true, true") == CatalogStatement(
        "DROP", "DATABASE", "spark_catalog.db1", is_conditional=True, is_cascading=True
    )


def test_a_table_of_another_catalog_has_no_catalog_in_its_name() -> None:
    assert statement_of("DropTable", "org.apache.iceberg.spark.SparkCatalog@1f, db.t, false, false") == (
        CatalogStatement("DROP", "TABLE", "db.t")
    )


def test_a_column_of_another_type() -> None:
    statement = statement_of("AlterTable", "x.DeltaCatalog@1f, d.t, [ALTER COLUMN id TYPE BIGINT], f")
    assert statement is not None
    assert statement.columns == (ColumnChange(SchemaField("id"), SchemaField("id", "bigint")),)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Project", "[id#1]"),
        ("AlterTableRenameCommand", "`db`.`t`"),
        ("CreateViewCommand", "`v`, select 1, false, true, LocalTempView, UNSUPPORTED, true"),
        ("CreateViewCommand", "`v`, select 1, false, true, GlobalTempView, UNSUPPORTED, true"),
        ("Execute SetCommand", "x"),
    ],
)
def test_what_changes_nothing_that_stays_is_no_statement(name, arguments) -> None:
    assert statement_of(name, arguments) is None


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("CreateDataSourceTableCommand", "`spark_catalog`.`d`.`t`, true", "d.t"),
        ("CreateTableCommand", "`spark_catalog`.`d`.`t`, x.ParquetHiveSerDe, true", "d.t"),
        ("CreateTableLikeCommand", "`spark_catalog`.`d`.`t`, `spark_catalog`.`d`.`of`, Storage(), true", "d.t"),
        ("CreateHoodieTableCommand", "`spark_catalog`.`d`.`t`, true", "d.t"),
        ("CreateTable", "V2SessionCatalog(spark_catalog), d.t, [id, v], TableSpecBase(), true", "d.t"),
    ],
)
def test_a_table_that_is_made_only_if_it_is_not_there_is_conditional(name, arguments, expected) -> None:
    assert statement_of(name, arguments) == CatalogStatement(
        "CREATE", "TABLE", f"spark_catalog.{expected}", is_conditional=True
    )


def test_truncate_of_a_v2_table_is_one_of_the_table() -> None:
    assert statement_of("TruncateTable", "ice.db.t, x.DataSourceV2Strategy$$Lambda@1f") == (
        CatalogStatement("TRUNCATE", "TABLE", "ice.db.t")
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("AddPartitionField", "hours(at), None"),
        ("DropPartitionField", "hours(at)"),
        ("ReplacePartitionField", "identity(at_day), hours(at)"),
        ("SetIdentifierFields", "[id]"),
        ("DropIdentifierFields", "[id]"),
        ("SetWriteDistributionAndOrdering", "none, [id ASC NULLS FIRST]"),
    ],
)
def test_what_iceberg_alters_is_a_statement_of_the_plan(name, arguments) -> None:
    text = f"== Physical Plan ==\n{name} (1)\n\n\n(1) {name}\nArguments: x.SparkCatalog@1f, db.t, {arguments}\n\n"
    assert read_plan(text, Tables(), UNTRACED, {}).statement == CatalogStatement("ALTER", "TABLE", "db.t")
