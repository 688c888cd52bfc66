"""One lineage with everything in it, for what shows, emits, or delivers it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spark_lineage.launch.line import LineCounts
from spark_lineage.merge.lineage import (
    Application,
    Attempt,
    Catalog,
    CatalogChange,
    ColumnChange,
    ColumnLineage,
    DatasetLineage,
    InputField,
    ParentRun,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    TaskLineage,
    Transformation,
    UnknownDatasets,
    UnreadPart,
    Write,
)
from spark_lineage.naming.identity import DatasetName

CUSTOMERS = DatasetName("file", "/data/cust.csv")
ORDERS = DatasetName(
    "s3://me:hunter2@landing-zone-of-the-shop", "orders/year=2024/month=01/day=31/part-of-a-long-name.parquet"
)
SALES = DatasetName("file", "/warehouse/db1.db/sales_by_country")
REPORT = DatasetName("postgres://db:5432", "shop.public.report")

IDENTITY = Transformation("DIRECT", "IDENTITY")
HASHED = Transformation("DIRECT", "TRANSFORMATION", "sha2(mail, password='hunter2')", masking=True)
FILTER = Transformation("INDIRECT", "FILTER")

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
CATALOG_CHANGES = (
    CatalogChange("RENAME", "TABLE", REPORT, "shop.report", NOON, previous_name="shop.tmp"),
    CatalogChange(
        "ALTER",
        "TABLE",
        SALES,
        "db1.sales_by_country",
        NOON,
        columns=(
            ColumnChange(SchemaField("n", "int"), SchemaField("n", "bigint")),
            ColumnChange(None, SchemaField("mail", "string", "the password=hunter2")),
            ColumnChange(SchemaField("old", "int"), None),
        ),
        schema=(SchemaField("n", "bigint"), SchemaField("mail", "string")),
        properties=(("comment", "sales by country"), ("s3.secret-key", "hunter2")),
        catalog="spark_catalog",
        partitioned_by=("country", "days(at)"),
    ),
    CatalogChange(
        "DROP", "DATABASE", DatasetName("file", "/warehouse/old.db"), "old", NOON, is_certain=False, is_ignored=None
    ),
)


@pytest.fixture
def lineage() -> TaskLineage:
    """A task that read two datasets, wrote one, renamed one, and tried one in vain."""
    return TaskLineage(
        state="COMPLETE",
        inputs=(
            DatasetLineage(CUSTOMERS, schema=(SchemaField("id", "int"), SchemaField("country", "string"))),
            DatasetLineage(
                ORDERS,
                schema=(
                    SchemaField("amount", "double", "token=hunter2"),
                    SchemaField("customer", "struct", fields=(SchemaField("id", "int"),)),
                ),
                storage=Storage("iceberg", "parquet"),
                catalog=Catalog(
                    "iceberg", "jdbc", "prod", "spark", "jdbc:postgresql://h/db?user=u&password=hunter2", "s3://wh"
                ),
                versions=("7",),
                statistics=Statistics(row_count=0, size=1_234_567),
            ),
        ),
        outputs=(
            DatasetLineage(
                REPORT, lifecycle="RENAME", previous_name=DatasetName("postgres://db:5432", "shop.public.tmp")
            ),
            DatasetLineage(
                SALES,
                schema=(SchemaField("country", "string"), SchemaField("mail", "string"), SchemaField("one", "int")),
                symlinks=(Symlink("hive://metastore:9083", "db1.sales_by_country", "TABLE"),),
                statistics=Statistics(row_count=1_000, size=2_048, file_count=2),
                column_lineage=ColumnLineage(
                    fields=(
                        ("country", (InputField(CUSTOMERS, "country", (IDENTITY,)),)),
                        ("mail", (InputField(ORDERS, "mail", (HASHED,)), InputField(CUSTOMERS, "id"))),
                        ("one", ()),
                    ),
                    dataset=(InputField(ORDERS, "amount", (FILTER,)),),
                ),
                lifecycle="OVERWRITE",
                fed_by=(CUSTOMERS, ORDERS),
                writes=(Write("INSERT", output_mode="append"), Write("OVERWRITE", "overwrite", is_partial=True)),
            ),
        ),
        attempted=(Attempt(DatasetName("file", "/out/broken"), "failed"),),
        unconfirmed=(REPORT,),
        catalog_changes=CATALOG_CHANGES,
        unknown=(UnknownDatasets("execute_update_command", 2),),
        unread=(UnreadPart("CoolVendorJoinIndex", 1),),
        applications=(
            Application("0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e", "spark", "unknown"),
            Application(
                "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5f",
                "spark",
                "sales",
                application_id="local-1700000000000",
                spark_version="4.0.1",
                adapter_version="1.53.0",
                master="spark://me:hunter2@master:7077",
                deploy_mode="client",
                ui_url="http://driver:4040/?token=hunter2",
                is_ended=True,
            ),
        ),
        parent=ParentRun("0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d60", "airflow", "dag.task"),
        started_at=datetime(2024, 1, 31, 12, 0, 0, tzinfo=UTC),
        ended_at=datetime(2024, 1, 31, 12, 1, 23, 456_789, tzinfo=UTC),
        run_count=7,
        evidence=("listener", "event_log"),
    )


@pytest.fixture
def counts() -> LineCounts:
    return LineCounts(read=1_042, set_aside={"no JSON": 2, "too long": 1})
