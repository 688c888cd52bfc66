"""Makes Delta tables by path: five targets of MERGE and ``feed``, and a Parquet file of ``plain`` rows."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("upserted", "synced", "joined", "kept", "batched", "starred"):
    rows = spark.sql("SELECT * FROM VALUES (1, 'Ann', 3), (2, 'Bob', 4), (3, 'Cid', 5) AS t(id, name, visits)")
    rows.coalesce(1).write.format("delta").save(name)
feed = spark.sql("SELECT * FROM VALUES (2, 'BOB', 1, 'U'), (4, 'DEE', 2, 'I') AS t(key, label, seen, op)")
feed.coalesce(1).write.format("delta").save("feed")
feed.coalesce(1).write.parquet("plain")
spark.sql("SELECT * FROM VALUES (2, 7), (4, 9) AS t(key, bonus)").coalesce(1).write.format("delta").save("bonus")
spark.sql("SELECT 5 AS id, 'Eve' AS name, 1 AS visits, 'x' AS more").write.format("delta").save("arrivals")
spark.stop()
