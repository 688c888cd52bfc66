"""What datasets are in Atlas: type, qualified name, and what the type demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from spark_lineage.atlas.datasets import Datasets, Thing
from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.options import naming_from

CLUSTERS = {
    "hostnamePattern.Prod_East": "[^.]+\\.east\\.example\\.com\n10\\.1\\.\\d+\\.\\d+\n(nn|kafka)\\d+-e",
    "hostnamePattern.staging": "[^.]+\\.staging\\.example\\.com\n192\\.168\\.0\\.\\d+",
}


def dataset(namespace: str, name: str, *links: tuple[str, str], **facets: Any) -> dict[str, Any]:
    if links:
        facets["symlinks"] = {"identifiers": [{"namespace": n, "name": t, "type": "TABLE"} for n, t in links]}
    return {"namespace": namespace, "name": name, "facets": facets}


def named(given: Mapping[str, Any], **options: Any) -> tuple[str, str]:
    return Datasets(naming_from(CLUSTERS), "corp", **options).thing(given).key


def everything(thing: Thing) -> Iterator[Thing]:
    for above in thing.within.values():
        yield from everything(above)
    yield thing


def keys(thing: Thing) -> list[tuple[str, str]]:
    return [each.key for each in everything(thing)]


@pytest.mark.parametrize(
    ("given", "kind", "qualified_name"),
    [
        (("file", "/data/in.csv"), "fs_path", "/data/in.csv@corp"),
        (("hdfs://nn:8020", "/lake/a"), "hdfs_path", "hdfs://nn:8020/lake/a@corp"),
        (("s3://lake", "raw/orders"), "aws_s3_v2_directory", "s3a://lake/raw/orders/@corp"),
        (("s3://lake", "raw/orders.csv"), "aws_s3_v2_object", "s3a://lake/raw/orders.csv@corp"),
        (("abfss://c@a.dfs.core.windows.net", "x/y"), "adls_gen2_directory", "abfss://c@a/x/y@corp"),
        (("abfss://c@a.dfs.core.windows.net", "x/y.csv"), "adls_gen2_directory", "abfss://c@a/x/y.csv@corp"),
        (("kafka://b:9092", "Orders.V1"), "kafka_topic", "orders.v1@corp"),
        (("hive://ms:9083", "Sales.Orders"), "hive_table", "sales.orders@corp"),
        (("hive://ms:9083", "orders"), "hive_table", "default.orders@corp"),
        (("hbase://zk1,zk2", "ns:t"), "hbase_table", "ns:t@corp"),
        (("hbase://zk1", "t"), "hbase_table", "default:t@corp"),
        (("hive2://hs2:10000", "Sales.Orders"), "hive_table", "sales.orders@corp"),
        (("jdbc:hive2://hs2:10000/sales;ssl=true", "orders"), "hive_table", "sales.orders@corp"),
        (("jdbc:hive2://hs2:10000/sales", "web.orders"), "hive_table", "web.orders@corp"),
        (("jdbc:hive2://h:10000/sales?hive.x=y", "t"), "hive_table", "sales.t@corp"),
        (("jdbc:hive2://h:10000", "`sales`.`t`"), "hive_table", "sales.t@corp"),
        (("postgres://db:5432", "shop.public.t"), "rdbms_table", "postgres://db:5432/shop.public.t@corp"),
        (("bigquery", "p.d.t"), "spark_dataset", "bigquery/p.d.t@corp"),
        (("gs://b", "x/y"), "spark_dataset", "gs://b/x/y@corp"),
        (("file:/wh", "db.t"), "spark_dataset", "file:/wh/db.t@corp"),
    ],
)
def test_type_and_qualified_name(given: tuple[str, str], kind: str, qualified_name: str) -> None:
    assert named(dataset(*given)) == (kind, qualified_name)


@pytest.mark.parametrize(
    ("host", "namespace"),
    [
        ("nn1.east.example.com:8020", "Prod_East"),
        ("10.1.2.3", "Prod_East"),
        ("NN2-E", "Prod_East"),
        ("nn.staging.example.com:8020", "staging"),
        ("192.168.0.17:8020", "staging"),
        ("192.168.1.17:8020", "corp"),
        ("staging", "staging"),
    ],
)
def test_the_namespace_is_the_cluster_of_the_host(host: str, namespace: str) -> None:
    _, qualified_name = named(dataset(f"hdfs://{host}", "/a"))
    assert qualified_name == f"hdfs://{host}/a@{namespace}"
    assert named(dataset(f"kafka://{host}", "t")) == ("kafka_topic", f"t@{namespace}")


def test_a_default_namespace_comes_before_the_connections() -> None:
    naming = naming_from({**CLUSTERS, "hostnameDefault": "rest"})
    assert Datasets(naming, "corp").thing(dataset("kafka://x:9092", "t")).qualified_name == "t@rest"
    assert Datasets(naming, "corp").thing(dataset("file", "/x")).qualified_name == "/x@corp"


def test_a_table_of_hive_is_one_by_its_name_its_path_and_a_symlink() -> None:
    path, table = ("hdfs://nn:8020", "/warehouse/sales.db/orders"), ("hive://ms:9083", "sales.orders")
    expected = ("hive_table", "sales.orders@corp")
    assert named(dataset(*table)) == named(dataset(*path, table)) == named(dataset(*table, path)) == expected
    assert named(dataset(*path)) == ("hdfs_path", "hdfs://nn:8020/warehouse/sales.db/orders@corp")
    warehouses = ["hdfs://nn:8020/warehouse/"]
    assert named(dataset(*path), warehouses=warehouses) == expected
    assert named(dataset("hdfs://nn:8020", "/warehouse/t"), warehouses=warehouses) == ("hive_table", "default.t@corp")
    deeper = dataset("hdfs://nn:8020", "/warehouse/sales.db/orders/extra")
    assert named(deeper, warehouses=warehouses)[0] == "hdfs_path"
    for name in ("sales.db", ".hive-staging_1", "_tmp", "sales.db/.hive-staging_1", "sales.db/_tmp"):
        assert named(dataset("hdfs://nn:8020", f"/warehouse/{name}"), warehouses=warehouses)[0] == "hdfs_path"


def test_a_local_file_is_that_of_its_host() -> None:
    things = Datasets(naming_from(CLUSTERS), "corp", ["file:/wh"]).on("kafka1-e")
    assert things.thing(dataset("file", "/x")).key == ("fs_path", "/x@kafka1-e")
    assert things.thing(dataset("file://nas", "/x")).key == ("fs_path", "/x@nas")
    assert things.thing(dataset("file", "/x", storage={"storageLayer": "delta"})).qualified_name == "file/x@kafka1-e"
    assert things.thing(dataset("file", "/wh/sales.db/orders")).key == ("hive_table", "sales.orders@corp")
    assert things.thing(dataset("kafka://b:9092", "t")).key == ("kafka_topic", "t@corp")


@pytest.mark.parametrize("host", ["nn1-e:8020", "Prod_East"])
def test_a_warehouse_and_a_cluster_go_together(host: str) -> None:
    """Whether the clusters are those of the connection alone, or were those of the event, too."""
    things = Datasets(naming_from(CLUSTERS), "corp", ["hdfs://nn1-e:8020/warehouse"])
    table = things.thing(dataset(f"hdfs://{host}", "/warehouse/sales.db/orders"))
    assert table.key == ("hive_table", "sales.orders@Prod_East")
    path = things.thing(dataset(f"hdfs://{host}", "/in/orders"))
    assert path.key == ("hdfs_path", "hdfs://nn1-e:8020/in/orders@Prod_East")
    assert path.attributes["path"] == "hdfs://nn1-e:8020/in/orders"


def test_entities_above_have_what_hooks_write() -> None:
    thing = Datasets(naming_from({})).thing
    assert thing(dataset("hbase://zk1", "NS:T")).within["namespace"].key == ("hbase_namespace", "ns@primary")
    for given, located in (
        ("postgres://db:5432", {"hostname": "db", "port": 5432}),
        ("snowflake://org-account", {"hostname": "org-account"}),
    ):
        instance = thing(dataset(given, "shop.public.t")).within["db"].within["instance"]
        assert {key: instance.attributes.get(key) for key in located} == located
        assert ("port" in instance.attributes) == ("port" in located)


@pytest.mark.parametrize("layer", ["iceberg", "delta"])
def test_a_table_format_is_hives_where_a_hive_catalog_holds_it(layer: str) -> None:
    storage = {"storage": {"storageLayer": layer, "fileFormat": "parquet"}}
    path = ("s3://lake", "wh/db/t")
    assert named(dataset(*path, ("hive://ms:9083", "db.t"), **storage)) == ("hive_table", "db.t@corp")
    thing = Datasets(naming_from({})).thing(dataset(*path, ("s3://lake/wh", "db.t"), **storage))
    assert thing.key == ("spark_dataset", "s3://lake/wh/db/t@primary")
    assert thing.attributes["format"] == layer


def test_what_a_type_demands_is_there() -> None:
    thing = Datasets(naming_from({})).thing
    assert keys(thing(dataset("s3://lake", "a/b"))) == [
        ("aws_s3_v2_bucket", "s3a://lake@primary"),
        ("aws_s3_v2_directory", "s3a://lake/a/@primary"),
        ("aws_s3_v2_directory", "s3a://lake/a/b/@primary"),
    ]
    assert keys(thing(dataset("abfss://c@a.dfs.core.windows.net", "x"))) == [
        ("adls_gen2_account", "abfss://a@primary"),
        ("adls_gen2_container", "abfss://c@a@primary"),
        ("adls_gen2_directory", "abfss://c@a/x@primary"),
    ]
    assert keys(thing(dataset("postgres://db:5432", "shop.public.t"))) == [
        ("rdbms_instance", "postgres://db:5432@primary"),
        ("rdbms_db", "postgres://db:5432/shop.public@primary"),
        ("rdbms_table", "postgres://db:5432/shop.public.t@primary"),
    ]
    hive = thing(dataset("hive://ms:9083", "db.t"))
    assert keys(hive) == [("hive_db", "db@primary"), ("hive_table", "db.t@primary")]
    assert hive.within["db"].attributes["clusterName"] == "primary"


def test_columns_are_of_the_type_that_their_table_has() -> None:
    thing = Datasets(naming_from({})).thing
    column = thing(dataset("hive://ms:9083", "db.t")).column("Amount", "struct<a:integer,b:array<long>>")
    assert column.key == ("hive_column", "db.t.amount@primary")
    assert column.attributes["type"] == "struct<a:int,b:array<bigint>>"
    assert list(column.within) == ["table"]
    column = thing(dataset("postgres://db:5432", "s.t")).column("Amount", "long")
    assert (column.type, column.attributes["data_type"]) == ("rdbms_column", "long")
    column = thing(dataset("file", "/x")).column("Amount", "")
    assert column.key == ("spark_dataset_column", "/x.Amount@primary")
    assert list(column.within) == ["dataset"]
    assert "type" not in column.attributes, "what nobody knows does not take the place of what Atlas has"


class Ledger:
    """A resolver that knows what its datasets are in Atlas."""

    def resolve(self, name: DatasetName) -> DatasetName:
        return name

    def atlas_entity(self, name: DatasetName, namespace: str) -> Mapping[str, Any] | None:
        if name.namespace != "ledger":
            return None
        return {"typeName": "ledger_book", "attributes": {"qualifiedName": f"{name.name}@{namespace}", "pages": 3}}


def test_an_analyzer_is_asked_first() -> None:
    naming = naming_from({"resolvers": f"{__name__}:Ledger"})
    thing = Datasets(naming, "corp").thing(dataset("ledger", "book", ("hive://ms:9083", "db.t")))
    assert thing.key == ("ledger_book", "book@corp")
    assert thing.attributes == {"qualifiedName": "book@corp", "name": "book", "pages": 3}
    assert Datasets(naming, "corp").thing(dataset("file", "/x")).type == "fs_path"
