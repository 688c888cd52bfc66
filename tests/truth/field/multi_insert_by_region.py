"""One joined read goes into three tables: a filtered copy, sums by region, and the newest orders by customer."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, inferSchema=True).createOrReplaceTempView("orders")
spark.read.csv("customers.csv", header=True, inferSchema=True).createOrReplaceTempView("customers")
spark.sql("CREATE DATABASE mart")
spark.sql("CREATE TABLE mart.north (order_id INT, name STRING, amount INT) USING parquet")
spark.sql("CREATE TABLE mart.regions (region STRING, total BIGINT, customers BIGINT) USING orc")
spark.sql("CREATE TABLE mart.newest (name STRING, order_id INT) USING json")
spark.sql("""
    FROM (
        SELECT o.order_id, o.day, o.amount, c.name, c.region FROM orders o JOIN customers c ON o.customer = c.id
        WHERE o.state <> 'void'
    ) j
    INSERT OVERWRITE TABLE mart.north SELECT order_id, name, amount WHERE region = 'north'
    INSERT INTO TABLE mart.regions SELECT region, SUM(amount), COUNT(DISTINCT name) GROUP BY region
    INSERT INTO TABLE mart.newest SELECT name, MAX(order_id) GROUP BY name HAVING MAX(day) > 1
""")
spark.sql("INSERT INTO mart.newest VALUES ('nobody', 0)")
spark.stop()
