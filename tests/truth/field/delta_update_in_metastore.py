"""Copies inserts of a feed, changes the table, and copies what the change has left; a metastore has the table."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
inserts = spark.sql("SELECT id, amount FROM table_changes('src', 1) WHERE _change_type = 'insert'")
inserts.write.parquet("a")
spark.sql("UPDATE src SET amount = amount + 1 WHERE id = 9")
feed = spark.read.option("readChangeFeed", "true").option("startingVersion", 2).table("src")
feed.where("_change_type = 'update_postimage'").select("id").write.parquet("b")
spark.stop()
