"""CREATE OR REPLACE … AS SELECT of tables that are there and of some that are not, all of which the task reads then."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="id INT, amount INT, shop STRING")
orders.createOrReplaceTempView("orders")
spark.sql("CREATE OR REPLACE TABLE ice.db.known USING iceberg AS SELECT id, amount AS net FROM orders WHERE shop > 'a'")
spark.table("ice.db.known").select("net").write.parquet("of_known")
spark.sql("REPLACE TABLE ice.db.swapped USING iceberg AS SELECT id, amount AS net FROM orders")
spark.table("ice.db.swapped").select("net").write.parquet("of_swapped")
orders.groupBy("shop").count().writeTo("ice.db.frame").using("iceberg").createOrReplace()
spark.table("ice.db.frame").select("shop").write.parquet("of_frame")
orders.select("shop").distinct().writeTo("ice.db.frame_2").using("iceberg").replace()
spark.table("ice.db.frame_2").select("shop").write.parquet("of_frame_2")
spark.sql("""
    CREATE OR REPLACE TABLE ice.db.grown USING iceberg AS
    SELECT id, amount FROM ice.db.grown UNION ALL SELECT id, amount FROM orders
""")
spark.table("ice.db.grown").select("amount").write.parquet("of_grown")

spark.sql("CREATE OR REPLACE TABLE ice.db.fresh USING iceberg AS SELECT id, amount FROM orders")
spark.table("ice.db.fresh").select("amount").write.parquet("of_fresh")
orders.select(col("id")).writeTo("ice.db.fresh_2").using("iceberg").createOrReplace()
spark.sql("INSERT INTO ice.db.fresh_2 SELECT id FROM ice.db.fresh WHERE amount > 10")
spark.stop()
