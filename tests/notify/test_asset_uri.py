"""Datasets of OpenLineage as URIs of Airflow assets, and back by way of those who translate the other way."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from airflow.providers.common.io.assets.file import convert_asset_to_openlineage
from airflow.sdk import Asset

from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.assets import asset_uri
from spark_lineage.submission.declared import declared_events

URIS = [
    ("file", "/wh/orders", "file:///wh/orders"),
    ("file", "/", "file:///"),
    ("file://host", "/wh/orders", "file://host/wh/orders"),
    ("s3://lake", "gold/orders", "s3://lake/gold/orders"),
    ("s3a://lake", "gold/orders", "s3://lake/gold/orders"),
    ("s3://lake", "/", "s3://lake/"),
    ("s3://lake", "orders/day=2024-01-31", "s3://lake/orders/day=2024-01-31"),
    ("gs://lake", "gold/orders", "gs://lake/gold/orders"),
    ("hdfs://name:8020", "/gold/orders", "hdfs://name:8020/gold/orders"),
    ("hdfs", "/gold/orders", "hdfs:///gold/orders"),
    ("abfss://c@a.dfs.core.windows.net", "gold/orders", "abfss://c@a.dfs.core.windows.net/gold/orders"),
    ("wasbs://c@a.blob.core.windows.net", "gold/orders", "wasbs://c@a.blob.core.windows.net/gold/orders"),
    ("kafka://b:9092", "orders", "kafka://b:9092/orders"),
    ("kafka://b:9092,a:9092", "orders.v1", "kafka://a:9092,b:9092/orders.v1"),
    ("postgres://h:5432", "shop.public.orders", "postgres://h:5432/shop/public/orders"),
    ("mysql://h:3306", "shop.orders", "mysql://h:3306/shop/orders"),
    ("trino://h:443", "hive.shop.orders", "trino://h:443/hive/shop/orders"),
    ("hive://h:9083", "shop.orders", "hive://h:9083/shop/orders"),
    ("snowflake://org-account", "DB.PUBLIC.ORDERS", "snowflake://org-account/DB/PUBLIC/ORDERS"),
    ("sqlserver://h/SALES", "db.dbo.orders", "sqlserver://h/SALES/db/dbo/orders"),
    ("bigquery", "project.shop.orders", "bigquery://project/shop/orders"),
    ("s3://lake", "größe/訂單 1", "s3://lake/gr%C3%B6%C3%9Fe/%E8%A8%82%E5%96%AE 1"),
    ("file", "/wh/a\n\x7f%20?#", "file:///wh/a%0A%7F%2520%3F%23"),
]
DECLARED = ("file:///", "s3:", "gs:", "hdfs://name", "abfss:", "kafka:", "postgres:", "mysql:")


@pytest.mark.parametrize(("namespace", "name", "uri"), URIS)
def test_a_dataset_has_a_uri(namespace: str, name: str, uri: str) -> None:
    assert asset_uri(DatasetName(namespace, name)) == uri


# Without a name service, which is the default one, Airflow writes `hdfs:/path` for an asset of either spelling.
@pytest.mark.parametrize("uri", [uri for _, _, uri in URIS if not uri.startswith("hdfs:///")])
def test_airflow_takes_it_as_it_is(uri: str) -> None:
    assert Asset(uri=uri).uri == uri


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("spark_catalog", "db.view"),
        ("unknown://h", "t"),
        ("arn:aws:glue:eu-west-1:1234", "table/shop/orders"),
        ("file:/warehouse", "shop.orders"),
        ("file", "relative/orders"),
        ("hdfs", "relative"),
        ("s3", "no-bucket"),
        ("s3://lake", ""),
        ("hdfs://größe", "/orders"),
    ],
)
def test_what_has_no_form_has_none(namespace: str, name: str) -> None:
    assert asset_uri(DatasetName(namespace, name)) is None


@pytest.mark.parametrize("name", ["/wh/50%", "/wh/what?", "/wh/#1", "/wh/with space", "/wh/größe"])
def test_no_part_of_a_path_is_lost(name: str) -> None:
    uri = asset_uri(DatasetName("file", name))
    assert uri is not None
    assert Asset(uri=uri).uri == uri
    assert len(Asset(uri=uri).uri) >= len(f"file://{name}")


@pytest.mark.parametrize(("namespace", "name"), [("file", "/wh/orders"), ("file://host", "/wh/orders")])
def test_airflow_translates_it_back(namespace: str, name: str) -> None:
    uri = asset_uri(DatasetName(namespace, name))
    assert uri is not None
    translated = convert_asset_to_openlineage(Asset(uri=uri), None)
    assert (translated.namespace, translated.name) == (namespace, name)


@pytest.mark.parametrize("uri", [uri for _, _, uri in URIS if uri.startswith(DECLARED)])
def test_an_outlet_of_that_uri_is_the_same_dataset(uri: str) -> None:
    """What a DAG declares by its URI is the dataset that the URI was made of."""
    moment = datetime(2024, 1, 31, tzinfo=UTC)
    _, (_, _, (written,), _) = declared_events(
        [], [Asset(uri=uri)], run_id="r", job_namespace="n", job_name="j", started=moment, ended=moment
    )
    assert Asset(uri=str(asset_uri(written.dataset))) == Asset(uri=uri)
