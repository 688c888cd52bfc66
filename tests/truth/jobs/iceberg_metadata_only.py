"""Iceberg answers count, min and max from its metadata, and applies conditions itself; local data is alike."""

import sys

from pyspark.sql import SparkSession

work = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.sql("SELECT count(*) AS n FROM ice.db.customers").write.json("counted")
ends = "SELECT min(visits) AS least, max(visits) AS most, count(name) AS named FROM ice.db.customers"
spark.sql(ends).write.json("ends")
newer = f"SELECT id, plan FROM parquet.`{work}/plans` WHERE id > (SELECT max(id) FROM ice.db.limits)"
spark.sql(newer).write.json("fresh")
spark.sql("""
    SELECT a.id, a.balance, b.last FROM ice.db.accounts a CROSS JOIN (SELECT max(account) AS last FROM ice.db.blocked) b
""").write.json("joined")
spark.sql("SELECT shop, amount FROM ice.db.sales WHERE at >= TIMESTAMP '2024-01-02 00:00:00'").write.json("late")
spark.sql("UPDATE ice.db.accounts SET status = 'rich' WHERE balance > 20")
# Rows of the program's own, whose columns are called alike.
spark.createDataFrame([(1, 2)], "`max(visits)` INT, `count(*)` INT").write.json("own")
spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(`max(id)`, name)").write.json("values")
spark.stop()
