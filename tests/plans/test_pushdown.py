"""What a source does itself is read from its scan: texts of Spark 3.5 and 4.2 on H2, and of Iceberg 1.12."""

from __future__ import annotations

import pytest

from spark_lineage.merge.execution import hidden_table, unnamed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.content import read_plan
from spark_lineage.plans.plan import parse_plan
from spark_lineage.plans.pushdown import partition_of
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.tables import Tables, scanned

CATALOG = {
    "spark.sql.catalog.shop": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    "spark.sql.catalog.shop.url": "jdbc:h2:file:./shop;MODE=Oracle",
    "spark.sql.catalog.ice.type": "hadoop",
    "spark.sql.catalog.ice.warehouse": "/ice",
}
PLAN = """== Physical Plan ==
Execute InsertIntoHadoopFsRelationCommand (4)
+- WriteFiles (3)
   +- * Project (2)
      +- * {scan} (1)


(1) {scan} [codegen id : 1]
{details}

(2) Project [codegen id : 1]
{project}

(3) WriteFiles
{written}

(4) Execute InsertIntoHadoopFsRelationCommand
Input: []
Arguments: file:/data/out, false, JSON, [path=/data/out], Overwrite, [x]
"""
ORDERS = "Scan JDBC v1 Relation from v2 scan shop.PUBLIC.ORDERS"
ORDERS_35 = "Scan org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCScan$$anon$1@58cfe63a "
GROUPED = """Output [3]: [CUSTOMER#11, SUM(AMOUNT)#12L, COUNT(*)#13L]
PushedAggregates: [SUM(AMOUNT), COUNT(*)]
PushedFilters: [ID IS NOT NULL, ID > 1]
PushedGroupByExpressions: [CUSTOMER]
ReadSchema: struct<CUSTOMER:int,SUM(AMOUNT):bigint,COUNT(*):bigint>
External engine query: SELECT "CUSTOMER",SUM("AMOUNT"),COUNT(*) FROM "PUBLIC"."ORDERS" GROUP BY "CUSTOMER" """
GROUPS = """Output [3]: [CUSTOMER#11, SUM(AMOUNT)#12L AS sum(AMOUNT#4)#6 AS TOTAL#0, COUNT(*)#13L AS count(1)#7L AS N#1]
Input [3]: [CUSTOMER#11, SUM(AMOUNT)#12L, COUNT(*)#13L]"""
WRITTEN = "Input [3]: [CUSTOMER#11, TOTAL#0, N#1]"
OF_GROUPS = ["* <- CUSTOMER GROUP_BY", "* <- ID FILTER", "CUSTOMER <- CUSTOMER IDENTITY", "TOTAL <- AMOUNT AGGREGATION"]


def read(scan, details, project, properties=CATALOG, written="Input [1]: [x#9]"):
    """Return the content of a plan that writes a projection of a scan, and its edges without their dataset."""
    tables = Tables()
    tables.configure(properties, "/data")
    text = PLAN.format(scan=scan, details=details, project=project, written=written)
    content = read_plan(text, tables, UNTRACED, {})
    (output,) = content.outputs
    return content, sorted(f"{column or '*'} <- {field} {how.subtype}" for column, _, field, how in output.edges)


def passing(*columns):
    """Return a projection that passes on columns."""
    return f"Output [{len(columns)}]: [{', '.join(columns)}]\nInput [{len(columns)}]: [{', '.join(columns)}]"


def test_aggregates_of_a_database_come_from_its_columns() -> None:
    content, edges = read(ORDERS, GROUPED, GROUPS, written=WRITTEN)
    assert [one.dataset for one in content.inputs] == [DatasetName("h2:file:./shop", "PUBLIC.ORDERS")]
    assert edges == OF_GROUPS
    assert (content.is_whole, content.unread) == (True, ())


def test_a_scan_of_spark_35_names_no_table_but_its_columns() -> None:
    content, edges = read(ORDERS_35, GROUPED, GROUPS, written=WRITTEN)
    (table,) = content.inputs
    assert table.dataset == hidden_table(["AMOUNT", "CUSTOMER", "ID"])
    assert [field.name for field in table.schema] == ["AMOUNT", "CUSTOMER", "ID"]
    assert edges == OF_GROUPS


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:h2:mem:test", DatasetName("h2:mem:test", "PUBLIC.ORDERS")),
        ("jdbc:postgresql://db/shop?ssl=true", DatasetName("postgres://db:5432", "shop.PUBLIC.ORDERS")),
        # Neither a user nor what a URL does not say.
        ("jdbc:postgresql://me:pw@db/shop", unnamed("PUBLIC.ORDERS")),
        ("jdbc:sqlserver://db;databaseName=shop", unnamed("PUBLIC.ORDERS")),
        ("*********(redacted)", unnamed("PUBLIC.ORDERS")),
    ],
)
def test_a_table_of_a_catalog_has_the_name_of_its_database_where_the_url_has_it(url, expected) -> None:
    content, _ = read(ORDERS, GROUPED, GROUPS, {"spark.sql.catalog.shop.url": url})
    assert [one.dataset for one in content.inputs] == [expected]


def test_filters_and_orders_of_a_database_decide_on_its_rows() -> None:
    details = """Output [2]: [ID#29, AMOUNT#31]
PushedFilters: [DEPOT IS NOT NULL, DEPOT = 'it''s']
PushedTopN: ORDER BY [CUSTOMER DESC NULLS LAST, AMOUNT ASC NULLS FIRST] LIMIT 2
ReadSchema: struct<ID:int,AMOUNT:int>"""
    content, edges = read(ORDERS, details, passing("ID#29", "AMOUNT#31"))
    assert edges == [
        "* <- AMOUNT SORT",
        "* <- CUSTOMER SORT",
        "* <- DEPOT FILTER",
        "AMOUNT <- AMOUNT IDENTITY",
        "ID <- ID IDENTITY",
    ]
    assert content.unread == ()


def test_a_limit_is_no_filter() -> None:
    details = "Output [1]: [ID#163]\nPushedFilters: [ID > 1]\nPushedLimit: LIMIT 3\nPushedOffset: OFFSET 1"
    _, edges = read(ORDERS, details, passing("ID#163"))
    assert edges == ["* <- ID FILTER", "ID <- ID IDENTITY"]


@pytest.mark.parametrize(
    ("details", "unread"),
    [
        ("Output [1]: [SUM(A)#1]\nPushedAggregates: [SUM(A), SUM(B)]", "Scan: aggregates of its source"),
        ("Output [1]: [SUM(A)#1]\nPushedAggregates: [SUM(A B)]", "Scan: aggregates of its source"),
        ("Output [1]: [A#1]\nPushedFilters: [A ? 1]", "Scan: filters of its source"),
        ("Output [1]: [A#1]\nPushedTopN: ORDER BY A", "Scan: filters of its source"),
    ],
)
def test_what_has_no_certain_reading_is_unread(details, unread) -> None:
    content, _ = read(ORDERS, details, passing("SUM(A)#1" if "SUM(A)#1" in details else "A#1"))
    assert (content.is_whole, content.unread) == (False, (unread,))


def test_a_join_of_a_database_has_its_tables_and_is_unread() -> None:
    details = """Output [2]: [ID#183, NAME#187]
PushedFilters: [CUSTOMER = ID_1]
PushedJoins:
[L]: Relation: shop.PUBLIC.ORDERS
     PushedFilters: [AMOUNT IS NOT NULL, AMOUNT > 10, CUSTOMER IS NOT NULL]
[R]: Relation: shop.PUBLIC.CUSTOMERS
     PushedFilters: [ID IS NOT NULL]

ReadSchema: struct<ID:int,NAME:string>
External engine query: SELECT "ID","NAME" FROM (SELECT "ID","NAME" FROM ("""
    content, edges = read(ORDERS, details, passing("ID#183", "NAME#187"))
    assert [one.dataset.name for one in content.inputs] == ["PUBLIC.CUSTOMERS", "PUBLIC.ORDERS"]
    assert (edges, content.unread) == ([], ("Scan: a join of its source",))


def test_filters_of_iceberg_decide_on_its_rows() -> None:
    details = """Output [2]: [id#138, day#141]
IcebergScan(table=ice.db.t, branch=null, filters=day IS NOT NULL, day = 'b', runtimeFilters=, groupedBy=)"""
    content, edges = read("BatchScan ice.db.t", details, passing("id#138"))
    assert [one.dataset.name for one in content.inputs] == ["/ice/db/t"]
    assert edges == ["* <- day FILTER", "id <- id IDENTITY"]


def test_columns_of_icebergs_own_are_no_columns_of_a_table() -> None:
    details = "Output [2]: [id#1, _file#2]\nice.db.t (branch=null) [filters=_file = 'a', groupedBy=]"
    assert read("BatchScan ice.db.t", details, passing("id#1"))[1] == ["id <- id IDENTITY"]


def test_aggregates_of_a_file_source_come_from_its_columns() -> None:
    """Parquet of v2 answers ``max`` from the footers of its files."""
    details = """Output [1]: [max(id)#8]
DataFilters: []
Format: parquet
Location: InMemoryFileIndex(1 paths)[file:/data/t]
PartitionFilters: []
PushedAggregation: [MAX(id)]
PushedFilters: []
PushedGroupBy: []
ReadSchema: struct<max(id):bigint>"""
    _, edges = read("BatchScan parquet file:/data/t", details, "Output [1]: [max(id)#8 AS x#9]\nInput [1]: [max(id)#8]")
    assert edges == ["x <- id AGGREGATION"]


@pytest.mark.parametrize(
    ("conditions", "edges", "unread"),
    [
        ("[day = 'b', value > 100]", ["* <- day FILTER", "* <- value FILTER"], ()),
        ("[`No #12, old` = 'z']", ["* <- No #12, old FILTER"], ()),
        # A literal may hold a bracket.
        ("[day = 'b]']", ["* <- day FILTER"], ()),
        ("[day ? 1]", [], ("DeleteFromTable: its condition",)),
    ],
)
def test_a_delete_of_whole_files_has_edges_from_its_condition(conditions, edges, unread) -> None:
    text = f"""== Physical Plan ==
DeleteFromTable (1)


(1) DeleteFromTable
Output: []
Arguments: ice.db.events, {conditions}, org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$$Lambda$66
"""
    tables = Tables()
    tables.configure(CATALOG, "/data")
    content = read_plan(text, tables, UNTRACED, {})
    (output,) = content.outputs
    assert sorted(f"{column or '*'} <- {field} {how.subtype}" for column, _, field, how in output.edges) == edges
    assert content.unread == unread


@pytest.mark.parametrize(
    ("filters", "partition"),
    [
        ("day IS NOT NULL, day < 3", "day=<3"),
        ("day >= '2026-01-01', day <= '2026-01-31', region = 'eu'", "region=eu/day=<=2026-01-31&>=2026-01-01"),
        ("day IN ('a', 'b')", "day=|a|b"),
        ("day IN ('a,b', 'c')", "day=|a%2Cb|c"),
        ("day IN (1, 2)", "day=|1|2"),
        ("day = 2, day > 1", "day=2"),
        ("NOT (day = 1)", ""),
    ],
)
def test_filters_of_iceberg_are_the_partition_that_is_read(filters, partition) -> None:
    details = f"Output [2]: [id#1, day#2]\nice.db.t (branch=null) [filters={filters}, groupedBy=]"
    content, _ = read("BatchScan ice.db.t", details, "Output [1]: [id#1 AS x#9]\nInput [2]: [id#1, day#2]")
    assert [one.dataset.partition for one in content.inputs] == [partition]


@pytest.mark.parametrize(
    ("filters", "partition"),
    [
        ("[isnotnull(day#2), (day#2 >= 2026-01-02), (day#2 < 2026-02-01)]", "day=<2026-02-01&>=2026-01-02"),
        ("[day#2 IN (1,2)]", "day=|1|1%2C2|2"),
        ("[day#2 IN (a,b)]", "day=|a|a%2Cb|b"),
        ("[isnotnull(day#2), (day#2 = a, b)]", "day=a%2C%20b"),
        ("[((day#2 = 1) OR (day#2 = 3))]", ""),
    ],
)
def test_partition_filters_of_files_are_the_partition_that_is_read(filters, partition) -> None:
    details = f"Output [2]: [id#1, day#2]\nLocation: InMemoryFileIndex [file:/t]\nPartitionFilters: {filters}"
    content, _ = read("Scan parquet ", details, "Output [1]: [id#1 AS x#9]\nInput [2]: [id#1, day#2]")
    assert [one.dataset.partition for one in content.inputs] == [partition]


def test_scan_of_a_hive_table_is_of_the_partition_that_its_filters_name() -> None:
    text = (
        "== Physical Plan ==\nScan hive default.notes (1)\n\n\n(1) Scan hive default.notes\n"
        "Output [1]: [note#59]\nArguments: [note#59], HiveTableRelation [`default`.`notes`, x.LazySimpleSerDe, "
        "Data Cols: [page#58, note#59], Partition Cols: [day#60], Pruned Partitions: [(day=d1)]], "
        "[isnotnull(day#60), (day#60 = d1)]\n\n"
    )
    plan = parse_plan(text)
    assert plan is not None
    assert partition_of(plan.root) == "day=d1"
    tables = Tables()
    tables.configure({"spark.sql.warehouse.dir": "file:/wh", "spark.hadoop.hive.metastore.uris": "thrift://meta"}, "")
    assert [one.partition_keys for one in scanned(plan.root, tables)] == [("day",)]
