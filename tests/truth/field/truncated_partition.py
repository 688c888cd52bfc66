"""One partition of tables is truncated or dropped, and what is left is read."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
raw = spark.read.csv("raw.csv", header=True, schema="id INT, day STRING")
raw.createOrReplaceTempView("raw")
raw.write.partitionBy("day").saveAsTable("a")
spark.sql("TRUNCATE TABLE a PARTITION (day = 'd2')")
spark.table("a").select("id").write.json("of_a")
raw.write.partitionBy("day").saveAsTable("b")
spark.sql("ALTER TABLE b DROP PARTITION (day = 'd1')")
spark.table("b").select("id").write.json("of_b")
spark.sql("INSERT INTO old SELECT id, day FROM raw")
spark.sql("TRUNCATE TABLE old PARTITION (day = 'd0')")
spark.table("old").select("id").write.json("of_old")
spark.stop()
