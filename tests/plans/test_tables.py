"""Tables and paths of plans have the names that the listener gives them."""

from __future__ import annotations

import pytest

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.content import read_plan
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.tables import Tables, path_name, table_parts

PROPERTIES = {
    "spark.sql.warehouse.dir": "/wh",
    "spark.sql.catalog.ice.type": "hadoop",
    "spark.sql.catalog.ice.warehouse": "s3a://bucket/ice",
}


def tables(properties=PROPERTIES, working_directory="/data/u"):
    known = Tables()
    known.configure(properties, working_directory)
    return known


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("file:/data/t", "file", "/data/t"),
        ("file:///data/t/", "file", "/data/t"),
        ("/data/t", "file", "/data/t"),
        ("file:/data/a b#c?d", "file", "/data/a b#c?d"),
        ("hdfs://nn:8020/data/t", "hdfs://nn:8020", "/data/t"),
        ("s3a://bucket/a/b", "s3://bucket", "a/b"),
        ("gs://bucket/a", "gs://bucket", "a"),
        ("abfss://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net", "a"),
    ],
)
def test_a_location(location, namespace, name) -> None:
    dataset = path_name(location)
    assert (dataset.namespace, dataset.name) == (namespace, name)


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("`spark_catalog`.`db`.`t`", ("spark_catalog", "db", "t")),
        ("spark_catalog.db.t", ("spark_catalog", "db", "t")),
        ("`db`.`a.b``c`", ("db", "a.b`c")),
        ("spark_catalog.delta.`/data/t`", ("spark_catalog", "delta", "/data/t")),
    ],
)
def test_an_identifier(identifier, parts) -> None:
    assert table_parts(identifier) == parts


@pytest.mark.parametrize(
    ("identifier", "namespace", "name", "symlink"),
    [
        ("`spark_catalog`.`default`.`t`", "file", "/wh/t", ("file:/wh", "default.t")),
        ("spark_catalog.db.t", "file:/wh", "db.t", ("file:/wh", "db.t")),
        ("t", "file", "/wh/t", ("file:/wh", "default.t")),
        ("ice.db.t", "s3://bucket", "ice/db/t", ("s3a://bucket/ice", "db.t")),
    ],
)
def test_a_table_is_in_its_warehouse(identifier, namespace, name, symlink) -> None:
    observed = tables().named(identifier)
    assert observed is not None
    assert (observed.dataset.namespace, observed.dataset.name) == (namespace, name)
    assert [(link.namespace, link.name) for link in observed.symlinks] == [symlink]


def test_a_table_is_where_a_plan_said_that_it_is() -> None:
    known = tables()
    known.at("hdfs://nn/external/t", "`db`.`t`")
    observed = known.named("spark_catalog.db.t")
    assert observed is not None
    assert (observed.dataset.namespace, observed.dataset.name) == ("hdfs://nn", "/external/t")


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        (
            CatalogStatement("CREATE", "DATABASE", "spark_catalog.db", properties=(("location", "file:/lake/"),)),
            "/lake/t",
        ),
        (CatalogStatement("CREATE", "DATABASE", "db", properties=(("location", "/lake"),)), "/lake/t"),
        (CatalogStatement("CREATE", "DATABASE", "other.db", properties=(("location", "/lake"),)), "db.t"),
        (CatalogStatement("CREATE", "DATABASE", "db", is_conditional=True), "db.t"),
        (CatalogStatement("DROP", "DATABASE", "db"), "db.t"),
        (CatalogStatement("CREATE", "DATABASE", "spark_catalog.db"), "/wh/db.db/t"),
        (CatalogStatement("ALTER", "TABLE", "db.t", properties=(("location", "/lake/t2"),)), "/lake/t2"),
    ],
)
def test_table_is_where_a_command_puts_it_or_its_database(statement, place) -> None:
    known = tables({"spark.sql.warehouse.dir": "/wh"})
    known.learn(statement)
    table = known.named("`spark_catalog`.`db`.`t`")
    assert table is not None
    assert table.dataset.name == place


@pytest.mark.parametrize(("location", "place"), [("file:/wh/db.db/other", "/wh/db.db/t"), ("/lake/other", "db.t")])
def test_database_is_where_spark_puts_it_if_a_table_of_it_is_there(location, place) -> None:
    known = tables({"spark.sql.warehouse.dir": "/wh"})
    known.at(location, "`spark_catalog`.`db`.`other`")
    table = known.named("`spark_catalog`.`db`.`t`")
    assert table is not None
    assert table.dataset.name == place


def test_a_table_named_by_its_path() -> None:
    observed = tables().named("spark_catalog.delta.`/data/t`")
    assert observed is not None
    assert (observed.dataset.name, observed.symlinks) == ("/data/t", frozenset())


def test_table_in_a_warehouse_that_spark_hides_has_no_place() -> None:
    known = tables(dict.fromkeys((*PROPERTIES, "spark.hadoop.hive.metastore.uris"), "*********(redacted)"))

    assert known.named("t") is None
    assert known.named("`ice`.`db`.`t`") is None


def test_without_a_warehouse_setting_it_is_where_the_driver_ran() -> None:
    observed = tables({}).named("t")
    assert observed is not None
    assert observed.dataset.name == "/data/u/spark-warehouse/t"


def test_a_table_that_nothing_tells_the_place_of_is_none() -> None:
    assert tables().named("other.db.t") is None
    assert Tables().named("db.t") is None
    assert tables({}).foreign("db.t") is None


def test_tables_of_a_metastore_are_linked_to_it() -> None:
    known = tables({**PROPERTIES, "spark.hadoop.hive.metastore.uris": "thrift://meta:9083,thrift://meta2:9083"})
    observed = known.named("db.t")
    assert observed is not None
    assert [(link.namespace, link.name) for link in observed.symlinks] == [("hive://meta:9083", "db.t")]


def test_a_table_whose_place_only_its_catalog_knows_has_the_name_that_this_gives_it() -> None:
    known = tables({**PROPERTIES, "spark.sql.catalog.rest.warehouse": "s3://lake/rest"})
    (observed, external) = (known.named("rest.db.t"), known.named("db.t", is_own=False))
    assert observed is not None
    assert external is not None
    assert observed.dataset == DatasetName("s3://lake/rest", "db.t")
    assert external.dataset == DatasetName("file:/wh", "db.t")


SCAN = """== Physical Plan ==
Execute InsertIntoHadoopFsRelationCommand (2)
+- Scan csv  (1)


(1) Scan csv\x20
Output [1]: [id#0]
Location: InMemoryFileIndex [file:/a, ... 2 entries]
ReadSchema: struct<id:int>

(2) Execute InsertIntoHadoopFsRelationCommand
Input [1]: [id#0]
Arguments: file:/t, false, Parquet, [path=/t], ErrorIfExists, [id]
"""


@pytest.mark.parametrize("location", ["[file:/a/x[12]]", "(1 paths)[file:/a/x[12]]", "[file:/a/x[12]] "])
def test_a_bracket_of_a_path_does_not_end_it(location) -> None:
    content = read_plan(SCAN.replace("[file:/a, ... 2 entries]", location), tables(), UNTRACED, {})
    assert [one.dataset.name for one in content.inputs] == ["/a/x[12]"]


@pytest.mark.parametrize(
    ("located", "paths", "is_whole"),
    [
        ([], ["/a"], False),
        (["InMemoryFileIndex(3 paths)[file:/a, file:/b, file:/c]"], ["/a", "/b", "/c"], True),
        # spark.sql.maxMetadataStringLength ends the list, never a path.
        (["InMemoryFileIndex(3 paths)[file:/a, file:/b, ...]"], ["/a", "/b"], False),
        # Of another scan, or of one of two that begin alike.
        (["InMemoryFileIndex(2 paths)[file:/a, file:/b]"], ["/a"], False),
        ([f"InMemoryFileIndex(3 paths)[file:/a, file:/{last}, ...]" for last in "bc"], ["/a"], False),
        # A path that holds what stands between two: nobody knows where one ends.
        (["InMemoryFileIndex(3 paths)[file:/a, b, file:/c]"], [], False),
    ],
)
def test_a_scan_of_several_paths_reads_those_that_the_log_names(located, paths, is_whole) -> None:
    content = read_plan(SCAN, tables(), UNTRACED, {}, located)
    assert [one.dataset.name for one in content.inputs] == paths
    assert {edge[1].name for edge in content.outputs[0].edges} == set(paths)
    assert content.is_whole is is_whole


def test_scan_of_a_changelog_reads_the_table() -> None:
    plan = """== Physical Plan ==
* Project (2)
+- BatchScan ice.db.t.changes (1)


(1) BatchScan ice.db.t.changes
Output [2]: [id#1, _change_type#2]
ice.db.t [fromSnapshotId=null, toSnapshotId=12, filters=]

(2) Project [codegen id : 1]
Output [2]: [id#1, _change_type#2]
Input [2]: [id#1, _change_type#2]
"""
    content = read_plan(plan, tables(), UNTRACED, {})
    assert [one.dataset for one in content.inputs] == [DatasetName("s3://bucket", "ice/db/t")]
    assert content.feeds == {DatasetName("s3://bucket", "ice/db/t")}


def test_micro_batch_of_iceberg_reads_and_writes_the_tables_that_it_names() -> None:
    plan = """== Physical Plan ==
WriteToDataSourceV2 (2)
+- MicroBatchScan (1)


(1) MicroBatchScan
Output [1]: [id#1]
ice.db.t (branch=null) [filters=, groupedBy=]

(2) WriteToDataSourceV2
Input [1]: [id#1]
Arguments: MicroBatchWrite[epoch: 0, writer: IcebergStreamingWrite(table=ice.db.copy, format=PARQUET)], Lambda@1f
"""
    content = read_plan(plan, tables(), UNTRACED, {})
    read, written = (DatasetName("s3://bucket", f"ice/db/{name}") for name in ("t", "copy"))
    assert [one.dataset for one in content.inputs] == [read]
    (output,) = content.outputs
    assert (output.dataset, {edge[:3] for edge in output.edges}) == (written, {("id", read, "id")})
    others = read_plan(plan.replace("IcebergStreamingWrite(table=ice.db.copy", "Other("), tables(), UNTRACED, {})
    assert others.outputs == ()
