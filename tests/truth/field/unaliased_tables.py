"""Tables made of expressions without an alias: CTAS, saveAsTable, writeTo, INSERT with and without columns."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True)
orders.createOrReplaceTempView("orders")
spark.sql("""
    CREATE TABLE daily USING parquet AS
    SELECT to_date(day), sum(CAST(amount AS INT)) FROM orders GROUP BY to_date(day)
""")
orders.groupBy("customer").agg(f.count_distinct(f.col("day").cast("date"))).write.saveAsTable("customer_days")
orders.selectExpr("max(CAST(amount AS INT))", "min(to_date(day))").writeTo("extremes").using("parquet").create()
spark.sql("CREATE TABLE totals (who STRING, total BIGINT) USING parquet")
spark.sql("INSERT INTO totals SELECT customer, sum(CAST(amount AS INT)) FROM orders GROUP BY customer")
spark.sql("""
    INSERT INTO totals (total, who)
    SELECT max(CAST(amount AS BIGINT)), upper(customer) FROM orders GROUP BY upper(customer)
""")
spark.sql("CREATE TABLE months (month STRING, n BIGINT) USING orc")
spark.sql("INSERT OVERWRITE months SELECT date_format(day, 'yyyy-MM'), count(*) FROM orders GROUP BY 1")
spark.sql("CREATE TABLE best USING parquet AS SELECT max(`sum(CAST(amount AS INT))`) FROM daily")
spark.table("daily").where("`to_date(day)` > DATE'2024-01-01'").write.parquet("later")
spark.stop()
