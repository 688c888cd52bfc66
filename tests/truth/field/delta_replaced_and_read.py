"""CREATE OR REPLACE … AS SELECT of tables that are there and of some that are not, all of which the task reads then."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, shop STRING")
orders.createOrReplaceTempView("orders")
spark.sql("CREATE OR REPLACE TABLE known USING delta AS SELECT id, amount AS net FROM orders WHERE shop > 'a'")
spark.table("known").select("net").write.parquet("of_known")
spark.sql("REPLACE TABLE swapped USING delta AS SELECT id, amount AS net FROM orders")
spark.table("swapped").select("net").write.parquet("of_swapped")
orders.groupBy("shop").count().writeTo("frame").using("delta").createOrReplace()
spark.table("frame").select("shop").write.parquet("of_frame")
orders.select("shop").distinct().writeTo("frame_2").using("delta").replace()
spark.table("frame_2").select("shop").write.parquet("of_frame_2")
spark.sql("""
    CREATE OR REPLACE TABLE grown USING delta AS
    SELECT id, amount FROM grown UNION ALL SELECT id, amount FROM orders
""")
spark.table("grown").select("amount").write.parquet("of_grown")
spark.sql("CREATE OR REPLACE TABLE bare (id INT, amount INT) USING delta")
spark.sql("INSERT INTO bare SELECT id, amount FROM orders")
spark.table("bare").select("amount").write.parquet("of_bare")

spark.sql("CREATE OR REPLACE TABLE fresh USING delta AS SELECT id, amount FROM orders")
spark.table("fresh").select("amount").write.parquet("of_fresh")
orders.select(col("id")).writeTo("fresh_2").using("delta").createOrReplace()
spark.sql("INSERT INTO fresh_2 SELECT id FROM fresh WHERE amount > 10")
spark.stop()
