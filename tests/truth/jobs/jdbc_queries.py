"""A database runs SQL for Spark: joins, subqueries, unions, quoted names; as ``query``, and as ``dbtable``."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

SALES = {"url": "jdbc:h2:file:./sales", "user": "sa", "password": "pw-of-sales", "driver": "org.h2.Driver"}
spark = SparkSession.builder.getOrCreate()


def query(sql: str) -> DataFrame:
    """Read the result of a query."""
    return spark.read.format("jdbc").options(**SALES, query=sql).load()


def table(sql: str) -> DataFrame:
    """Read the result of a subquery that stands in place of a table."""
    return spark.read.format("jdbc").options(**SALES, dbtable=sql).load()


joined = query("""
    WITH paid AS (SELECT o.id, o.customer_id AS who FROM orders o WHERE o.state = 'paid' -- and o.hidden = 1
    )
    SELECT c.name AS customer, COALESCE(c.nick, c.name) AS called,
           SUM(i.price * i.amount) AS total, 'FROM secrets JOIN x' AS note
    FROM paid p
    JOIN crm.customers c ON c.id = p.who
    JOIN "Order Items" i ON i.order_id = p.id
    GROUP BY c.name, COALESCE(c.nick, c.name)
    HAVING COUNT(i."sku EUR") > 0
""")
joined.write.parquet("joined")

names = table("""(
    SELECT ID, UPPER(NAME) AS NAME, CITY FROM CRM.CUSTOMERS WHERE VIP

    UNION ALL
    SELECT ID, NAME, NULL FROM CRM.FORMER WHERE LEFT_AT > DATE '2019-01-01'
) AS EVERYBODY""")
names.where("NAME <> 'x'").select(f.col("NAME").alias("name"), "CITY").write.parquet("names")

rows = table('(SELECT * FROM "Order Items" WHERE AMOUNT < 9) Q')
rows.select(f.col("sku EUR").alias("sku"), "PRICE").write.parquet("rows")

newest = query("""
    SELECT s.id, s.state FROM (
        SELECT o.id, o.state, ROW_NUMBER() OVER (PARTITION BY o.customer_id ORDER BY o.placed DESC) AS n FROM orders o
    ) s
    WHERE s.n = 1 AND EXISTS (SELECT 1 FROM crm.customers c WHERE c.city = 'Oslo')
    ORDER BY s.id
    FETCH FIRST 10 ROWS ONLY
""")
newest.join(spark.read.parquet("rows"), f.col("PRICE") == newest.ID, "left").select(
    newest.ID.alias("id"), newest.STATE.alias("state"), "sku"
).write.parquet("newest")

joined.groupBy(f.col("CUSTOMER").alias("NAME")).agg(f.sum("TOTAL").cast("bigint").alias("TOTAL")).write.jdbc(
    SALES["url"], "TOTALS", mode="append", properties={key: SALES[key] for key in ("user", "password", "driver")}
)
spark.stop()
