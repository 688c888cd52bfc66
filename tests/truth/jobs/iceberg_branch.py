"""Rows go to a branch of a table; another is compacted, a third loses old snapshots: no row of those two changes."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, schema="id INT, amount INT").createOrReplaceTempView("orders")
spark.sql("ALTER TABLE ice.db.blocked CREATE BRANCH audit")
spark.sql("INSERT INTO ice.db.blocked.branch_audit SELECT id, 'late' FROM orders WHERE amount < 0")
spark.sql("CALL ice.system.rewrite_data_files(table => 'db.customers', options => map('rewrite-all', 'true'))")
spark.sql("CALL ice.system.expire_snapshots(table => 'db.accounts', retain_last => 1)")
spark.sql("SELECT cap FROM ice.db.limits VERSION AS OF 'main'").write.parquet("caps")
spark.stop()
