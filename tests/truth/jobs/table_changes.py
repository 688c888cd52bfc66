"""insertInto, TRUNCATE, and ALTER TABLE that adds a column; a table made LIKE another."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
old, new, noted = (spark.read.csv(f"{name}.csv", header=True, inferSchema=True) for name in ("old", "new", "noted"))
old.write.saveAsTable("items")
spark.sql("TRUNCATE TABLE items")
new.write.insertInto("items")
spark.sql("ALTER TABLE items ADD COLUMNS (note STRING)")
noted.write.insertInto("items")
spark.sql("CREATE TABLE blank LIKE items")
spark.sql("CREATE TABLE IF NOT EXISTS items (id INT) USING parquet")
spark.stop()
