"""What a dataset physically is: all spellings of one are one, and what is not the same stays apart."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.naming.identity import (
    STORAGE_TYPES,
    DatasetName,
    Spelling,
    StorageIdentifier,
    dataset_name,
    dataset_type,
    storage_identifier,
)

AZURE = "lake@account.dfs.core.windows.net"

# The one name, then how else it is spelled.
SPELLINGS = [
    [("file", "/x/y"), ("file:///", "/x/y"), ("file://", "/x/y"), ("file:", "/x/y"), ("file:/", "/x/y/")],
    [("file", "/x"), ("file", "file:/x"), ("file", "file:///x"), ("", "file:/x"), ("FILE", "/x"), ("file", "/x/./")],
    [("file", "/x/y"), ("file", "/x//y"), ("file", "//x/y"), ("file", "/x/./y")],
    [("file", "/x/y"), ("file", "/z/../x/y"), ("file", "/../x/y")],
    [("file", "/x"), ("file://localhost", "/x"), ("file", "file://localhost/x")],
    [("file://nas", "/x"), ("file://NAS/", "/x/"), ("", "file://nas/x")],
    [("file", "/"), ("file", "file:///"), ("", "file:/")],
    [("file:/wh", "db.t"), ("file:///wh/", "db.t"), ("file:/wh", "db.t/"), ("file://localhost/wh", "db.t")],
    [("s3://b", "k/x"), ("s3a://b", "k/x"), ("s3n://b/", "/k/x/"), ("s3", "s3a://b/k/x"), ("", "s3://b/k//x")],
    [("s3://b", "/"), ("s3a://b", "/"), ("", "s3a://b"), ("", "s3://b/")],
    [("s3://b", "k"), ("s3a://AKIA:secret@b", "k")],
    [("s3://b/wh", "db.t"), ("s3a://b/wh/", "db.t")],
    [("gs://b", "k"), ("gs://b/", "/k/"), ("gs", "gs://b/k")],
    [(f"abfss://{AZURE}", "t"), (f"abfs://{AZURE}", "/t/"), ("abfss://LAKE@account.DFS.core.windows.net", "t")],
    [("wasbs://c@a.blob.core.windows.net", "t"), ("wasb://c@a.blob.core.windows.net", "t")],
    [("hdfs://nn:8020", "/x"), ("hdfs://NN:8020/", "/x/"), ("hdfs", "hdfs://nn:8020/x"), ("hdfs://me@nn:8020", "/x")],
    [("hdfs", "/x"), ("hdfs:///", "/x")],
    [("hdfs://nn:8020/wh", "db.t"), ("hdfs://nn:8020/wh/", "db.t")],
    [("dbfs", "/mnt/t"), ("", "dbfs:/mnt/t")],
    [("kafka://a:9092,b:9092", "t"), ("kafka://b:9092,A:9092", "t"), ("kafka://a:9092,b:9092,a:9092/", "t")],
    [("postgres://db:5432", "shop.public.t"), ("postgres://DB", "shop.public.t"), ("postgresql://db", "shop.public.t")],
    [("postgres://db:5432", "shop.public.t"), ("postgres://db/shop", "public.t")],
    [("postgres://db:5432", "shop.public.t"), ("postgres://db/shop", "shop.public.t")],
    [("postgres://db:5432", "shop.public.t"), ("jdbc:postgresql://u:pw@db:5432/shop?password=pw", "public.t")],
    [("postgres://a:5432,b:5433", "s.p.t"), ("postgres://b:5433,a", "s.p.t")],
    [("postgres://[::1]:5432", "s.p.t"), ("postgres://[::1]", "s.p.t")],
    [("mysql://db:3306", "shop.t"), ("mysql://db", "shop.t"), ("mysql://db/shop", "t")],
    [("mysql://db:3306", "shop.t"), ("mysql://db:3306/shop", "shop.t")],
    [("mysql://db:3307", "shop.t"), ("mysql://(host=db,port=3307)/shop", "t")],
    [("mysql://a:3306,b:3307", "shop.t"), ("mysql://[(host=b,port=3307),(host=a)]/shop", "t")],
    [("mysql://a:3306,b:3306", "shop.t"), ("mysql:replication://address=(host=a)(type=master),b/shop", "t")],
    [("mysql://db:3306", "shop.t"), ("mysql://db:3306", "`shop`.`t`"), ("mysql://db:3306/shop", "`t`")],
    [("postgres://db:5432", "shop.Sales.Deals"), ("postgres://db:5432", 'shop."Sales"."Deals"')],
    [("mariadb://db:3306", "shop.t"), ("mariadb://db", "shop.t")],
    [("sqlserver://db:1433", "s.dbo.t"), ("mssql://db:1433", "s.dbo.t"), ("sqlserver://DB", "s.dbo.t")],
    [("sqlserver://db/Main", "s.dbo.t"), ("mssql://db/Main", "s.dbo.t")],
    [("oracle://db:1521", "sid.HR.EMP"), ("oracle://db", "sid.HR.EMP"), ("oracle://db:1521/sid", "HR.EMP")],
    [("redshift://c.eu-west-1:5439", "d.s.t"), ("redshift://c.a1b2.eu-west-1.redshift.amazonaws.com", "d.s.t")],
    [("snowflake://org-acc", "D.S.T"), ("snowflake://ORG-ACC.snowflakecomputing.com:443", "D.S.T")],
    [("snowflake://acc.eu-west-1", "D.S.T"), ("snowflake://acc.eu-west-1.privatelink.snowflakecomputing.com", "D.S.T")],
    [("trino://t:443", "c.s.t"), ("trino://t/c", "s.t"), ("trino://t/c/s", "t")],
    [("cassandra://c:9042", "k.t"), ("cassandra://c", "k.t")],
    [("clickhouse://c:8123", "d.t"), ("ch://c", "d.t")],
    [("hive://m:9083", "db.t"), ("thrift://M:9083", "db.t")],
    [("arn:aws:glue:eu-west-1:123456789012", "table/db/t")],
    [("bigquery", "project.dataset.table")],
    [("awsathena://athena.eu-west-1.amazonaws.com", "awsdatacatalog.db.t")],
    [("unity-catalog", "c.s.t")],
    [("sqlite:/data/c.db", "src")],
    [("h2:mem:x;DB_CLOSE_DELAY=-1", "DST")],
    [("hbase://zk1:2181,zk2:2181", "shop:orders"), ("hbase://ZK2:2181,zk1:2181", "shop:orders")],
    [("paimon://s3://lake/warehouse", "shop.orders")],
]  # fmt: skip
SAME = [(names[0], other) for names in SPELLINGS for other in names]

APART = [
    [("file", "/Data"), ("file", "/data"), ("file", "/data "), ("hdfs", "/data")],
    [("s3://b", "k"), ("s3://B", "k"), ("s3://b", "K"), ("gs://b", "k"), ("s3://b/k", "t"), ("s3://b", "k/t")],
    [("hdfs://nn", "/x"), ("hdfs://nn:8020", "/x"), ("hdfs://nn:9000", "/x"), ("viewfs://nn", "/x")],
    [("kafka://a", "t"), ("kafka://a:9092", "t"), ("kafka://a:9093", "t"), ("kafka://a", "T")],
    [("postgres://db", "Shop.public.t"), ("postgres://db", "shop.public.t"), ("postgres://db:5433", "shop.public.t")],
    [("postgres://db", "s.p.t"), ("redshift://db", "s.p.t"), ("mysql://db", "s.t"), ("mariadb://db", "s.t")],
    [("sqlserver://db/One", "s.dbo.t"), ("sqlserver://db/Two", "s.dbo.t"), ("sqlserver://db", "s.dbo.t")],
]

# What has no form that we know is left alone.
UNKNOWN = [
    ("", "t"),
    ("", "s3:/k"),
    ("file", ""),
    ("s3://b", ""),
    ("file:relative", "x"),
    ("file:/wh?x", "t"),
    ("kafka://", "t"),
    ("kafka", "t"),
    ("kafka://a:9092/x", "t"),
    ("kafka://a:b:c", "t"),
    ("postgres:db", "s.p.t"),
    ("sqlserver://db:1433;databaseName=s", "dbo.t"),
    ("cosmos", "t"),
    ("123", "t"),
    ("my warehouse", "t"),
    ("h3:mem:x", "t"),
]

SCHEMES = [scheme for row in STORAGE_TYPES for scheme in (row.scheme, *row.aliases)]
AUTHORITIES = st.text(alphabet="aB1.:@,[]", max_size=8)
NAMESPACES = st.one_of(
    st.text(alphabet="file:/s3ab@?; ", max_size=12),
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from([*SCHEMES, "", "jdbc:mysql", "FILE"]),
        st.sampled_from(["", ":", ":/", "://", ":///"]),
        AUTHORITIES,
        st.sampled_from(["", "/", "/wh", "//x/../y/", "?a=b", ";a", "\n"]),
    ),
)
NAMES = st.one_of(
    st.text(alphabet="ab/.=*_:T2014-{},[]?", max_size=24),
    st.builds("{}:{}{}".format, st.sampled_from(SCHEMES), st.sampled_from(["", "/", "//", "///"]), AUTHORITIES),
    st.text(max_size=8),
)


@pytest.mark.parametrize(("canonical", "other"), SAME, ids=str)
def test_one_dataset_has_one_name(canonical: tuple[str, str], other: tuple[str, str]) -> None:
    assert Spelling().resolve(DatasetName(*other)) == DatasetName(*canonical)
    assert storage_identifier(DatasetName(*other)) == storage_identifier(DatasetName(*canonical)) is not None


@pytest.mark.parametrize(("one", "other"), [pair for names in APART for pair in combinations(names, 2)], ids=str)
def test_two_datasets_have_two_names(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert storage_identifier(DatasetName(*one)) != storage_identifier(DatasetName(*other))
    assert Spelling().resolve(DatasetName(*one)) != Spelling().resolve(DatasetName(*other))


@pytest.mark.parametrize(("namespace", "name"), UNKNOWN)
def test_what_has_no_known_form_keeps_its_spelling(namespace: str, name: str) -> None:
    assert storage_identifier(DatasetName(namespace, name)) is None
    assert Spelling().resolve(DatasetName(namespace, name)) == DatasetName(namespace, name)


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("file", "db.t"),
        ("file", "a//b"),
        ("file", "a:/b"),
        ("file", "hdfs://nn/x"),
        ("file", "file:"),
        ("s3://b", "s3:/k"),
        ("s3://b", "a.b/c=d/e..f"),
        ("kafka://a:9092", "kafka://a/t"),
    ],
)
def test_names_that_only_look_like_something_stay(namespace: str, name: str) -> None:
    assert Spelling().resolve(DatasetName(namespace, name)) == DatasetName(namespace, name)


def test_a_password_in_a_namespace_does_not_get_through() -> None:
    for namespace in ("postgres://me:hunter2@db", "s3a://AKIA:hunter2@bucket", "jdbc:mysql://db?password=hunter2"):
        assert "hunter2" not in repr(storage_identifier(DatasetName(namespace, "t")))


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (("s3a://b", "/k"), StorageIdentifier("path", (("path", "k"), ("store", "s3://b")))),
        (
            ("kafka://b,a", "t"),
            StorageIdentifier("topic", (("brokers", "a,b"), ("system", "kafka"), ("topic", "t"))),
        ),
        (
            ("postgresql://db", "s.p.t"),
            StorageIdentifier("table", (("hosts", "db:5432"), ("system", "postgres"), ("table", "s.p.t"))),
        ),
        (("file:///wh", "db.t"), StorageIdentifier("table", (("catalog", "file:/wh"), ("table", "db.t")))),
    ],
)
def test_an_identifier_says_what_it_is_by_sorted_properties(
    dataset: tuple[str, str], expected: StorageIdentifier
) -> None:
    assert storage_identifier(DatasetName(*dataset)) == expected


@given(NAMESPACES, NAMES)
def test_the_name_of_an_identifier_has_that_identifier(namespace: str, name: str) -> None:
    identifier = storage_identifier(DatasetName(namespace, name))
    if identifier is not None:
        assert storage_identifier(dataset_name(identifier)) == identifier


@pytest.mark.parametrize(
    ("dataset", "hints", "expected"),
    [
        (("file", "/x"), (), "local"),
        (("hdfs://nn:8020", "/x"), (), "hdfs"),
        (("s3://b", "k"), (), "s3"),
        (("gs://b", "k"), (), "gcs"),
        ((f"abfss://{AZURE}", "k"), (), "abfs"),
        (("kafka://a:9092", "t"), (), "kafka"),
        (("hive://m:9083", "db.t"), (), "hive"),
        (("postgres://db:5432", "s.p.t"), (), "postgres"),
        (("mysql://db:3306", "s.t"), (), "mysql"),
        (("sqlserver://db:1433", "s.dbo.t"), (), "sqlserver"),
        (("oracle://db:1521", "s.h.t"), (), "oracle"),
        (("arn:aws:glue:eu-west-1:1", "table/db/t"), (), "glue"),
        (("file:/wh", "db.t"), (), "table"),
        (("s3://b/wh", "db.t"), (), "table"),
        (("s3://b", "k"), ("iceberg", "parquet"), "iceberg"),
        (("file", "/x"), ("Delta", "parquet"), "delta"),
        (("file", "/x"), (None, "iceberg"), "iceberg"),
        (("file", "/wh/t"), ("hive",), "hive"),
        (("file", "/x"), ("unity", "parquet"), "local"),
        (("elsewhere", "t"), (), None),
    ],
)
def test_what_kind_of_dataset_it_is(
    dataset: tuple[str, str], hints: tuple[str | None, ...], expected: str | None
) -> None:
    assert dataset_type(DatasetName(*dataset), *hints) == expected


def test_no_two_rows_of_the_table_claim_one_scheme() -> None:
    assert len(SCHEMES) == len(set(SCHEMES))
