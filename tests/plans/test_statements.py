"""What commands of real plans do to the catalog."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import ColumnChange, PartitionChange, SchemaField
from spark_lineage.plans.content import read_plan
from spark_lineage.plans.event_log import read_event_log
from spark_lineage.plans.plan import parse_plan
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.statements import read_statement, with_text
from spark_lineage.plans.tables import Tables

LOG = Path(__file__).parents[1] / "fixtures" / "event_logs" / "ddl.zstd"


ICEBERG, DELTA = "org.apache.iceberg.spark.SparkCatalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"


@pytest.fixture(scope="module")
def statements():
    return {one.execution_id: one.statement for one in read_event_log(LOG)}


T, V, DEL = "spark_catalog.d1.t", "spark_catalog.d1.v", "spark_catalog.d1.del"

CASES = {
    # CREATE DATABASE IF NOT EXISTS d1 COMMENT 'x y' WITH DBPROPERTIES ('a'='b')
    0: CatalogStatement(
        "CREATE", "DATABASE", "spark_catalog.d1", properties=(("a", "b"), ("comment", "x y")), is_conditional=True
    ),
    # ALTER DATABASE d1 SET DBPROPERTIES ('c'='d')
    1: CatalogStatement("ALTER", "DATABASE", "spark_catalog.d1", properties=(("c", "d"),)),
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
    6: CatalogStatement("ALTER", "TABLE", T, unset_properties=("k3",)),
    # COMMENT ON TABLE d1.t IS 'new comment'
    7: CatalogStatement("ALTER", "TABLE", "spark_catalog.d1.t", properties=(("comment", "new comment"),)),
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
    16: CatalogStatement("DROP", "TABLE", "spark_catalog.d1.none", is_conditional=True),
    # TRUNCATE TABLE d1.t
    17: CatalogStatement("TRUNCATE", "TABLE", T),
    # ALTER TABLE d1.t RENAME TO d1.t2
    18: CatalogStatement("RENAME", "TABLE", T, new_name="d1.t2"),
    # CREATE TABLE d1.like1 LIKE d1.t2
    19: CatalogStatement("CREATE", "TABLE", "spark_catalog.d1.like1"),
    # CREATE TABLE d1.del (id INT, v STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode'='name')
    20: CatalogStatement(
        "CREATE",
        "TABLE",
        DEL,
        properties=(("delta.columnMapping.mode", "name"),),
        schema=(SchemaField("id", "integer"), SchemaField("v", "string")),
    ),
    # ALTER TABLE d1.del ADD COLUMN (n STRING), RENAME COLUMN v TO vv, DROP COLUMN n
    22: CatalogStatement("ALTER", "TABLE", DEL, columns=(ColumnChange(None, SchemaField("n", "string")),)),
    23: CatalogStatement("ALTER", "TABLE", DEL, columns=(ColumnChange(SchemaField("v"), SchemaField("vv")),)),
    24: CatalogStatement("ALTER", "TABLE", DEL, columns=(ColumnChange(SchemaField("n"), None),)),
}


@pytest.mark.parametrize("execution", CASES)
def test_the_statement_of(statements, execution) -> None:
    assert statements[execution] == CASES[execution]


def statement_of(name, arguments, **catalogs):
    tables = Tables()
    tables.configure({f"spark.sql.catalog.{catalog}": kind for catalog, kind in catalogs.items()}, "")
    plan = parse_plan(f"== Physical Plan ==\n{name} (1)\n\n\n(1) {name}\nArguments: {arguments}\n\n")
    assert plan is not None
    return read_statement(plan, tables)


def test_a_database_dropped_with_all_that_is_in_it() -> None:
    assert statement_of("DropNamespace", "V2SessionCatalog(spark_catalog), [db1], true, true") == CatalogStatement(
        "DROP", "DATABASE", "spark_catalog.db1", is_conditional=True, is_cascading=True
    )


@pytest.mark.parametrize(
    ("catalogs", "expected"),
    [
        ({}, "db.t"),
        ({"ice": ICEBERG}, "ice.db.t"),
        ({"ice": ICEBERG, "spark_catalog": DELTA}, "ice.db.t"),
    ],
)
def test_a_catalog_has_the_name_under_which_its_class_alone_was_configured(catalogs, expected) -> None:
    dropped = statement_of("DropTable", f"{ICEBERG}@1f, db.t, false, false", **catalogs)
    assert dropped == CatalogStatement("DROP", "TABLE", expected)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ("ALTER COLUMN id TYPE BIGINT", [("id", "id", "bigint")]),
        ("ALTER COLUMN the id COMMENT, ALTER COLUMN b AFTER a, c", [("the id", "the id", None), ("b", "b", None)]),
        ("ALTER COLUMN a SET NOT NULL, ALTER COLUMN b FIRST", [("a", "a", None), ("b", "b", None)]),
        ("ALTER COLUMN a SET DEFAULT 1, 2, ALTER COLUMN b DROP DEFAULT", [("a", "a", None), ("b", "b", None)]),
        ("RENAME COLUMN at.x TO lon", [("at.x", "at.lon", None)]),
        ("ADD COLUMN at.z STRUCT<Zip: INT, b: STRING>", [(None, "at.z", "struct<Zip: INT, b: STRING>")]),
    ],
)
def test_altered_columns_have_their_names_and_types(changes, expected) -> None:
    statement = statement_of("AlterTable", f"x.DeltaCatalog@1f, d.t, [{changes}], f")
    assert statement is not None
    assert statement.columns == tuple(
        ColumnChange(SchemaField(old) if old else None, SchemaField(new, kind)) for old, new, kind in expected
    )


def test_removed_properties_have_their_keys() -> None:
    statement = statement_of("AlterTable", "x.DeltaCatalog@1f, d.t, [REMOVE PROPERTY a b, REMOVE PROPERTY c], f")
    assert statement == CatalogStatement("ALTER", "TABLE", "d.t", unset_properties=("a b", "c"))


def test_column_of_spark_that_is_changed_has_its_name_and_type() -> None:
    field = "StructField(a, b,StructType(StructField(x,IntegerType,true)),true)"
    statement = statement_of("AlterTableChangeColumnCommand", f"`spark_catalog`.`d`.`t`, a, b, {field}")
    changed = SchemaField("a, b", "struct", fields=(SchemaField("x", "integer"),))
    assert statement == CatalogStatement(
        "ALTER", "TABLE", "spark_catalog.d.t", columns=(ColumnChange(SchemaField("a, b"), changed),)
    )


@pytest.mark.parametrize(("new_name", "expected"), [("`S 1`.u", "S 1.u"), ("u", "the db.S 1.u")])
def test_table_that_any_catalog_renames_has_both_names(new_name, expected) -> None:
    catalog = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    statement = statement_of("RenameTable", f"{catalog}@1f, `S 1`.t, {new_name}, f, g", **{"the db": catalog})
    assert statement == CatalogStatement("RENAME", "TABLE", "the db.S 1.t", new_name=expected)


@pytest.mark.parametrize("new", ["total", "where is it", "a, b"])
def test_column_is_renamed_to_a_name_with_blanks(new) -> None:
    statement = statement_of("AlterTable", f"x.DeltaCatalog@1f, d.t, [RENAME COLUMN old one TO {new}], f")
    assert statement is not None
    assert statement.columns == (ColumnChange(SchemaField("old one"), SchemaField(new)),)


@pytest.mark.parametrize(
    ("change", "is_unnamed"), [("RenameColumn", True), ("DeleteColumn", True), ("AddColumn", False)]
)
def test_change_of_which_the_plan_has_the_class_alone_names_no_columns(change, is_unnamed) -> None:
    text = f"[org.apache.spark.sql.connector.catalog.TableChange${change}@d3009845]"
    statement = statement_of("AlterTable", f"{ICEBERG}@1f, db.t, {text}")
    assert statement is not None
    assert (statement.columns, statement.has_unnamed_columns) == ((), is_unnamed)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Project", "[id#1]"),
        ("CreateViewCommand", "`v`, select 1, false, true, LocalTempView, UNSUPPORTED, true"),
        ("CreateViewCommand", "`v`, select 1, false, true, GlobalTempView, UNSUPPORTED, true"),
        ("AlterViewAsCommand", "`tv`, SELECT 2 AS z, true"),
        ("AlterTableRenameCommand", "`tv`, `tv2`, true"),
        ("AlterViewAsCommand", "`global_temp`.`gv`, SELECT 2 AS z, true"),
        ("AlterTableRenameCommand", "`global_temp`.`gv`, `gv3`, true"),
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


MAP = "Map(day -> 1, region -> e, u)"
WIDE = "HashMap(a -> 1, b -> 2, c -> 3, d -> 4, e -> 5)"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (
            "AddPartition",
            f"[({MAP},None), ({WIDE},Some(s3://lake/t (1), b))], true",
            [
                PartitionChange(None, "day=1/region=e, u"),
                PartitionChange(None, "a=1/b=2/c=3/d=4/e=5", "s3://lake/t (1), b"),
            ],
        ),
        (
            "DropPartition",
            f"[{MAP}, {WIDE}], true, false, false",
            [
                PartitionChange("day=1/region=e, u", None),
                PartitionChange("a=1/b=2/c=3/d=4/e=5", None),
            ],
        ),
        (
            "RenamePartition",
            "[day=0, region=eu], [day=9, region=eu]",
            [PartitionChange("day=0/region=eu", "day=9/region=eu")],
        ),
        # PARTITIONED BY (day, `re gion`)
        (
            "AddPartition",
            "[(Map(day -> a, b, re gion -> x),None)], false",
            [PartitionChange(None, "day=a, b/re gion=x")],
        ),
        (
            "DropPartition",
            "[Map(day -> a -> b, re gion -> x/y=z)], false, false, false",
            [PartitionChange("day=a -> b/re gion=x%2Fy%3Dz", None)],
        ),
        (
            "RenamePartition",
            "[day=a, b, re gion=x], [day=c, re gion=y/1]",
            [PartitionChange("day=a, b/re gion=x", "day=c/re gion=y%2F1")],
        ),
        (
            "RenamePartition",
            "[day=2024/01, reg=x=y], [day=50%, reg=[é: 1]]",
            [PartitionChange("day=2024%2F01/reg=x%3Dy", "day=50%25/reg=%5Bé%3A 1%5D")],
        ),
        ("SetLocation", f"{MAP}, /data/t", [PartitionChange("day=1/region=e, u", "day=1/region=e, u", "/data/t")]),
        ("AddPartition", "of another release", []),
    ],
)
def test_partitions_that_a_command_changes_are_named(name, arguments, expected) -> None:
    statement = statement_of(f"AlterTable{name}Command", f"`spark_catalog`.`d`.`t`, {arguments}")
    assert statement == CatalogStatement(
        "ALTER",
        "TABLE",
        "spark_catalog.d.t",
        partitions=tuple(expected),
        # IF [NOT] EXISTS.
        is_conditional="], true" in arguments,
    )


@pytest.mark.parametrize(("flags", "repair"), [("true, false", "ADD"), ("false, true", "DROP"), ("true, true", "SYNC")])
def test_repair_names_what_it_looks_for(flags, repair) -> None:
    statement = statement_of("RepairTableCommand", f"`spark_catalog`.`d`.`t`, {flags}, MSCK REPAIR TABLE")
    assert statement == CatalogStatement("ALTER", "TABLE", "spark_catalog.d.t", repair=repair)


def test_columns_with_parameters_have_their_types() -> None:
    text = "[StructField(price,DecimalType(10,2),true), StructField(note,StringType,true)]"
    statement = statement_of("AlterTableAddColumnsCommand", f"`spark_catalog`.`d`.`t`, {text}")
    assert [each.new.type for each in statement.columns] == ["decimal(10,2)", "string"]


OF_TEXT = CatalogStatement("CREATE", "TABLE", "spark_catalog.shop.orders")


@pytest.mark.parametrize(
    ("sql", "properties", "partitioned_by"),
    [
        (
            """
            -- COMMENT 'no'
            CREATE TABLE IF NOT EXISTS shop.Orders (id INT COMMENT 'the number', day STRING) USING parquet
            PARTITIONED BY (day, `a b`) /* TBLPROPERTIES ('no'='no') */ COMMENT 'one row, an (order)'
            TBLPROPERTIES ('owner.team'='sales', x.y = 1.5, "z" 'w', 'escaped'='it\\'s')
            """,
            (("comment", "one row, an (order)"), ("owner.team", "sales"), ("x.y", "1.5"), ("z", "w")),
            ("day", "a b"),
        ),
        (
            """create external table `spark_catalog`.`shop`.`orders` (id INT) partitioned by (day STRING)
               stored as orc location '/data' tblproperties ('a'='b')""",
            (("a", "b"),),
            ("day",),
        ),
        ("CREATE TABLE orders USING parquet AS SELECT 1 AS COMMENT, 'x' AS y", (), ()),
        ("CREATE TABLE orders COMMENT 'it\\'s' AS SELECT 1", (), ()),
        ("CREATE TABLE other.orders COMMENT 'of another'", (), ()),
        ("CREATE TABLE orders2 COMMENT 'of another'", (), ()),
        ("sql at NativeMethodAccessorImpl.java:0", (), ()),
        ("", (), ()),
    ],
)
def test_create_is_completed_by_its_sql(sql, properties, partitioned_by) -> None:
    expected = CatalogStatement("CREATE", "TABLE", OF_TEXT.name, properties=properties, partitioned_by=partitioned_by)
    assert with_text(OF_TEXT, sql) == expected


@pytest.mark.parametrize("part", ["-", "/*", "'", "'\\", "\"'", "`", "(", "a.", "TBLPROPERTIES "])
@pytest.mark.parametrize("beginning", ["", "CREATE TABLE orders "])
def test_any_text_is_read_in_no_time(beginning, part) -> None:
    started = time.process_time()
    assert with_text(OF_TEXT, beginning + part * 20_001).change == "CREATE"
    assert time.process_time() - started < 2


def test_what_a_plan_says_of_a_table_stays() -> None:
    known = CatalogStatement("CREATE", "TABLE", "ice.db.t", properties=(("a", "b"),), partitioned_by=("days(at)",))
    assert with_text(known, "CREATE TABLE db.t PARTITIONED BY (days(at)) TBLPROPERTIES ('a'='*')") == known


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


COLUMNS = (
    "[ColumnImpl(id,IntegerType,true,null,null,null,null), ColumnImpl(at,TimestampType,true,a, (b),null,null,null)]"
)
# COMMENT 'one row, per ) order' TBLPROPERTIES ('boss'='a=b, c', 'api.token'='s3cr3t', 'x.y'='1')
SET = "Map(boss -> a=b, c, api.token -> *********(redacted), x.y -> 1)"
SPEC = f"TableSpec({SET},Some(iceberg),Map(),None,Some(one row, per ) order),None,false)"
# Of Spark 4.2.
LATER_SPEC = f"TableSpec({SET},Some(delta),Map(),None,Some(one row, per ) order),None,None,false,List())"
PROPERTIES = (
    ("comment", "one row, per ) order"),
    ("boss", "a=b, c"),
    ("api.token", "*********(redacted)"),
    ("x.y", "1"),
)
BARE = "TableSpec(Map(),Some(iceberg),Map(),None,None,None,false)"
LAMBDA = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$$Lambda$4767/0x00007f4769873a50@3083dd9a"


@pytest.mark.parametrize(
    ("name", "arguments", "partitioned_by", "properties"),
    [
        (
            "CreateTable",
            f"{COLUMNS}, [days(at), bucket(4, id), truncate(3, name), identity(k)], {SPEC}, false",
            ("days(at)", "bucket(4, id)", "truncate(3, name)", "k"),
            PROPERTIES,
        ),
        ("CreateTable", f"{COLUMNS}, [identity(name)], {LATER_SPEC}, false", ("name",), PROPERTIES),
        ("CreateTable", f"{COLUMNS}, {BARE}, false", (), ()),
        ("CreateTable", f"[ColumnImpl(id,IntegerType,true,null,null,null,null)], {BARE}, false", (), ()),
        (
            "CreateTable",
            "TableSpec(Map(),Some(delta),Map(a -> b),Some(file:/x),Some(Some(x)),None,None,false,List()), false",
            (),
            (("comment", "Some(x)"),),
        ),
        (
            "AtomicCreateTableAsSelect",
            f"[identity(name)], Project [1 AS id#70, x, y AS name#71], {SPEC}, false",
            ("name",),
            PROPERTIES,
        ),
        ("AtomicCreateTableAsSelect", f"Aggregate [shop#3], [shop#3, sum(amount#2) AS n#35L], {BARE}, false", (), ()),
        (
            "CreateTableAsSelect",
            "[identity(k)], Project [id#93L], TableSpec(Map(p -> 1),Some(iceberg),Map(),None,None,None,false), false",
            ("k",),
            (("p", "1"),),
        ),
    ],
)
def test_create_table_tells_its_partitions_its_comment_and_its_properties(
    name, arguments, partitioned_by, properties
) -> None:
    fields = (SchemaField("id", "integer"), SchemaField("at", "timestamp"))
    assert statement_of(name, f"{ICEBERG}@69457af9, db.t, {arguments}", ice=ICEBERG) == CatalogStatement(
        "CREATE",
        "TABLE",
        "ice.db.t",
        properties=properties,
        partitioned_by=partitioned_by,
        schema=fields[: arguments.count("ColumnImpl(")],
    )


@pytest.mark.parametrize("query", [COLUMNS, "Project [1 AS id#76]"])
def test_replace_table_tells_them_too(query) -> None:
    parts = (COLUMNS, "[identity(id)]") if query == COLUMNS else ("[identity(id)]", query)
    name = "AtomicReplaceTable" if query == COLUMNS else "AtomicReplaceTableAsSelect"
    arguments = f"{ICEBERG}@69457af9, db.t, {parts[0]}, {parts[1]}, {SPEC}, true, {LAMBDA}"
    assert statement_of(name, arguments, ice=ICEBERG) == CatalogStatement(
        "OVERWRITE",
        "TABLE",
        "ice.db.t",
        properties=PROPERTIES,
        is_conditional=True,
        partitioned_by=("id",),
        schema=(SchemaField("id", "integer"), SchemaField("at", "timestamp")) if query == COLUMNS else (),
    )


def test_columns_of_a_created_table_have_their_names_and_types() -> None:
    described = (
        "[ColumnImpl(a b,IntegerType,true,null,null,null,null,null,null), "
        "ColumnImpl(c.d,MapType(StringType,ArrayType(DecimalType(5,2),true),true),false,x, y,null,null,null,null,null)]"
    )
    statement = statement_of("CreateTable", f"x.JDBCTableCatalog@1f, `S 1`.t, {described}, {BARE}, false")
    element = SchemaField("_element", "decimal(5,2)")
    entries = (SchemaField("key", "string"), SchemaField("value", "array", fields=(element,)))
    assert statement is not None
    assert statement.schema == (SchemaField("a b", "integer"), SchemaField("c.d", "map", fields=entries))


@pytest.mark.parametrize("last", ["]", "], x.DataSourceV2Strategy$$Lambda$2893/0x0f@1f"])
@pytest.mark.parametrize("comment", ["a; b, c=[d]", "[a]", "a]b, c", "a [b, (c", "", "a: [b], c"])
def test_comment_with_brackets_is_whole(comment, last) -> None:
    changes = f"[ADD COLUMN z STRING, SET PROPERTY comment = {comment}{last}"
    table = statement_of("AlterTable", f"V2SessionCatalog(spark_catalog), default.lk, {changes}")
    assert table == CatalogStatement(
        "ALTER",
        "TABLE",
        "spark_catalog.default.lk",
        columns=(ColumnChange(None, SchemaField("z", "string")),),
        properties=(("comment", comment),),
    )


def test_table_is_altered_by_properties_of_its_serde() -> None:
    statement = statement_of("AlterTableSerDePropertiesCommand", "`spark_catalog`.`d`.`t`, Map(k -> v, z -> 1)")
    assert statement == CatalogStatement("ALTER", "TABLE", "spark_catalog.d.t")


def test_comments_with_commas_are_whole() -> None:
    database = statement_of("CreateNamespace", f"{DELTA}@1f, [shop], false, [team=core, comment=all of it, with a = b]")
    assert database.properties == (("team", "core"), ("comment", "all of it, with a = b"))
    view = statement_of(
        "CreateViewCommand", "`s`.`d`.`v`, a, b = c, [k=v, w], SELECT id, n FROM t, false, false, PersistedView, true"
    )
    assert view.properties == (("comment", "a, b = c"), ("k", "v, w"))


@pytest.mark.parametrize("query", ["SELECT '(' AS a", "SELECT 1 AS `a, true, false, TempView`", "VALUES ('[', ')')"])
def test_view_over_a_query_with_odd_brackets_is_read(query) -> None:
    view = statement_of("CreateViewCommand", f"`s`.`d`.`v`, it, [k=v], {query}, true, false, PersistedView, true")
    properties = (("comment", "it"), ("k", "v"))
    assert view == CatalogStatement("CREATE", "VIEW", "s.d.v", properties=properties, is_conditional=True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("CreateViewCommand", "`s`.`d`.`v`, one (of two, [k=v], SELECT 1, false, false, PersistedView, true"),
        ("DropTable", f"{ICEBERG}@1f, db.odd(t, false, false"),
        ("AlterTableUnsetPropertiesCommand", "`s`.`d`.`t`, [a]"),
        ("AlterTableRenameCommand", "`db`.`t`"),
        ("CreateHiveTableAsSelectCommand", "[Schema: db, Name: t], [id]"),
    ],
)
def test_command_in_an_unknown_form_is_counted(name, arguments) -> None:
    text = f"== Physical Plan ==\nExecute {name} (1)\n\n\n(1) Execute {name}\nArguments: {arguments}\n\n"
    content = read_plan(text, Tables(), UNTRACED, {})
    assert (content.statement, content.unread) == (None, (f"{name}: what it changes",))


@pytest.mark.parametrize("columns", ["[(i,Some(the i))]", "[(i,Some(a=b, [c])), (j,None)]"])
def test_view_with_named_columns_has_its_comment_and_its_properties(columns) -> None:
    view = statement_of(
        "CreateViewCommand",
        f"`s`.`d`.`v`, {columns}, a view, [k=v], VALUES (1), false, true, PersistedView, true",
    )
    assert view == CatalogStatement("OVERWRITE", "VIEW", "s.d.v", properties=(("comment", "a view"), ("k", "v")))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("Append, [id]", None),
        ("org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe, Append, [id]", None),
        ("Overwrite, [id]", CatalogStatement("OVERWRITE", "TABLE", "s.d.t")),
        ("ErrorIfExists, [id]", CatalogStatement("CREATE", "TABLE", "s.d.t")),
        ("Ignore, [id]", CatalogStatement("CREATE", "TABLE", "s.d.t", is_conditional=True)),
    ],
)
def test_saved_table_is_made_unless_rows_are_appended(arguments, expected) -> None:
    assert statement_of("CreateDataSourceTableAsSelectCommand", f"`s`.`d`.`t`, {arguments}") == expected


@pytest.mark.parametrize("is_conditional", [False, True])
def test_table_of_delta_like_another_is_made(is_conditional) -> None:
    like = "DeltaTableV2(x.SparkSession@1f,file:/t,Some(CatalogTable(\nComment: a, b\nProvider: delta)),None,Map())"
    made = statement_of("CreateTableLike", f"{DELTA}@1f, d.lk, {like}, {str(is_conditional).lower()}", s=DELTA)
    assert made == CatalogStatement("CREATE", "TABLE", "s.d.lk", is_conditional=is_conditional)


@pytest.mark.parametrize("table", ["`d`.`c`", "`spark_catalog`.`d`.`c`"])
def test_clone_is_a_table_of_sparks_own_catalog(table) -> None:
    arguments = f"{table}, ErrorIfExists, CloneTableCommand x.CloneDeltaSource@1f, {table}, file:/c, Create, false"
    assert statement_of("CreateDeltaTableCommand", arguments) == CatalogStatement(
        "CREATE", "TABLE", "spark_catalog.d.c"
    )


@pytest.mark.parametrize("clustering", ["temp_cluster_by(a)", "cluster_by(a, b)"])
def test_columns_that_rows_are_clustered_by_are_no_partitions(clustering) -> None:
    spec = "TableSpec(Map(),Some(delta),Map(),None,None,None,None,false,List()), false"
    assert (
        statement_of("CreateTable", f"{DELTA}@1f, d.t, {COLUMNS}, [{clustering}], {spec}", s=DELTA).partitioned_by == ()
    )


def test_properties_of_a_database_are_unset() -> None:
    plan = parse_plan(
        "== Physical Plan ==\nExecute UnsetNamespacePropertiesCommand (1)\n   +- UnsetNamespacePropertiesCommand (3)\n"
        "      +- ResolvedNamespace (2)\n\n\n(1) Execute UnsetNamespacePropertiesCommand\nOutput: []\n\n"
        "(2) ResolvedNamespace\nArguments: V2SessionCatalog(spark_catalog), [u1]\n\n"
        "(3) UnsetNamespacePropertiesCommand\nArguments: [a, c]\n\n"
    )
    assert plan is not None
    assert read_statement(plan, Tables()) == CatalogStatement(
        "ALTER", "DATABASE", "spark_catalog.u1", unset_properties=("a", "c")
    )


def test_a_table_as_select_may_be_made_only_if_it_is_not_there() -> None:
    made = statement_of("AtomicCreateTableAsSelect", f"{ICEBERG}@1f, db.t, Project [1 AS id#1], {BARE}, true")
    assert made == CatalogStatement("CREATE", "TABLE", "db.t", is_conditional=True)
