"""Two bucketed tables are joined; the report is analyzed, gets a column and a comment, and is added to by name."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, inferSchema=True)
orders.write.bucketBy(2, "customer_id").sortBy("customer_id").saveAsTable("orders_bucketed")
customers = spark.read.csv("customers.csv", header=True, inferSchema=True)
customers.write.format("orc").bucketBy(2, "id").sortBy("id").mode("overwrite").saveAsTable("customers_bucketed")
spark.sql("""
    CREATE TABLE report USING parquet COMMENT 'sums of customers' AS
    SELECT c.name, SUM(o.amount) AS total
    FROM orders_bucketed o JOIN customers_bucketed c ON o.customer_id = c.id
    GROUP BY c.name
""")
spark.sql("ANALYZE TABLE report COMPUTE STATISTICS FOR ALL COLUMNS")
spark.sql("ALTER TABLE report ADD COLUMNS (note STRING)")
spark.sql("ALTER TABLE report SET TBLPROPERTIES ('owner.team' = 'sales')")
spark.read.csv("guests.csv", header=True).createOrReplaceTempView("guests")
spark.sql("INSERT INTO report SELECT guest, CAST(paid AS BIGINT), CONCAT('guest of ', host) FROM guests")
spark.sql("DESCRIBE EXTENDED report").show()
spark.stop()
