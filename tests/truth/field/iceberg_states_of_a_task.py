"""Iceberg tables that a task overwrites twice: older snapshots, whole partitions deleted, ranges of days."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("first.csv", header=True, schema="item STRING, pieces INT, day INT").createOrReplaceTempView("first")
spark.read.csv("second.csv", header=True, schema="code STRING, amount INT, day INT").createOrReplaceTempView("second")

spark.sql("INSERT OVERWRITE ice.db.stock SELECT item, pieces FROM first")
spark.sql("INSERT OVERWRITE ice.db.stock SELECT code, amount FROM second")
ids = [row[0] for row in spark.sql("SELECT snapshot_id FROM ice.db.stock.snapshots ORDER BY committed_at").collect()]
spark.sql(f"SELECT qty FROM ice.db.stock VERSION AS OF {ids[0]}").write.parquet("oldest")
spark.sql(f"SELECT qty FROM ice.db.stock VERSION AS OF {ids[1]}").write.parquet("former")
spark.sql("SELECT qty FROM ice.db.stock").write.parquet("latest")

spark.sql("DELETE FROM ice.db.visits WHERE day = 1")

spark.sql("INSERT OVERWRITE ice.db.sales PARTITION (day = 1) SELECT item, pieces FROM first")
spark.sql("INSERT OVERWRITE ice.db.sales PARTITION (day = 4) SELECT code, amount FROM second")
spark.sql("SELECT qty FROM ice.db.sales WHERE day < 3").write.parquet("early")
spark.sql("SELECT qty FROM ice.db.sales WHERE day >= 4").write.parquet("late")
spark.sql("SELECT qty FROM ice.db.sales WHERE day IN (2, 3)").write.parquet("between")
spark.stop()
