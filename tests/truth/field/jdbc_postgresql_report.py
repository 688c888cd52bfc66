"""A report out of PostgreSQL, by SQL of that database: in ``query``, in ``dbtable``, and one table by its name."""

from postgresql_server import USER, postgresql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

TABLES = (
    "CREATE SCHEMA crm",
    'CREATE TABLE crm."Customers" ("Id" int, "Full Name" text, country text, data jsonb)',
    """INSERT INTO crm."Customers" VALUES (1, 'Ann', 'NO', '{"tier": "gold"}'), (2, 'Bob', 'SE', '{}')""",
    "CREATE TABLE orders (id int, customer_id int, placed_at timestamp, amount numeric(10,2), state text)",
    "INSERT INTO orders VALUES (1, 1, '2024-01-01', 10, 'paid'), (2, 1, '2024-01-02', 20, 'open')",
    "INSERT INTO orders VALUES (3, 2, '2024-01-03', 30, 'paid')",
    "CREATE TABLE refunds (order_id int, amount numeric(10,2), reason text)",
    "INSERT INTO refunds VALUES (1, 2, 'late')",
    "CREATE TABLE countries (code text, vat numeric(4,2))",
    "INSERT INTO countries VALUES ('NO', 25), ('SE', 20)",
)
REVENUE = """
WITH paid AS (
    SELECT o.id, o.customer_id, o.amount FROM public.orders o WHERE o.state = 'paid' /* not: o.hidden */
),
net (customer_id, net) AS (
    SELECT p.customer_id, p.amount - COALESCE(r.amount, 0)
    FROM paid p LEFT JOIN refunds r ON r.order_id = p.id
)
SELECT c."Full Name" AS customer, (c.data ->> 'tier')::text AS tier,
       SUM(n.net) AS net, COUNT(*) FILTER (WHERE n.net > 10) AS large, $$it's FROM nowhere$$ AS note
FROM net n JOIN crm."Customers" AS c ON c."Id" = n.customer_id
GROUP BY 1, 2
"""
LAST = """(
    SELECT DISTINCT ON (O.Customer_Id) O.Customer_Id AS "Customer", O.Placed_At::date AS Day
    FROM Orders O
    ORDER BY O.Customer_Id, O.Placed_At DESC
) AS last_orders"""
TAXED = """
SELECT c."Id" AS id, t.taxed
FROM crm."Customers" c
CROSS JOIN LATERAL (
    SELECT o.amount * (1 + k.vat / 100) AS taxed
    FROM orders o, countries k
    WHERE o.customer_id = c."Id" AND k.code = c.country
    ORDER BY o.placed_at DESC LIMIT 1
) t
"""


def report(url: str) -> None:
    """Write the report as Parquet files."""
    spark = SparkSession.builder.getOrCreate()
    options = {"url": url, "user": USER, "driver": "org.postgresql.Driver"}
    properties = spark._jvm.java.util.Properties()
    properties.setProperty("user", USER)
    connection = spark._jvm.org.postgresql.Driver().connect(url, properties)
    for sql in TABLES:
        connection.createStatement().execute(sql)
    connection.close()

    def read(**what: str) -> DataFrame:
        return spark.read.format("jdbc").options(**options, **what).load()

    read(query=REVENUE).write.parquet("revenue")
    read(dbtable=LAST).withColumnRenamed("Customer", "customer").write.parquet("last")
    taxed, countries = read(query=TAXED), read(dbtable="public.countries")
    taxed.crossJoin(countries.agg(f.max("vat").alias("highest"))).where("taxed > 5").write.parquet("taxed")
    read(dbtable="(SELECT * FROM orders WHERE state <> 'lost') o").select("id", "amount").write.parquet("amounts")
    spark.stop()


with postgresql() as shop:
    report(shop)
