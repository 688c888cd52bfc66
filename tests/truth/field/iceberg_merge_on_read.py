"""An Iceberg table with merge-on-read: an UPDATE, a DELETE of what a recall list names, and a MERGE of new states."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("recalled.csv", header=True, schema="device INT, reason STRING").createOrReplaceTempView("recalled")
spark.read.json("states.json", schema="id INT, state STRING, seen DATE").createOrReplaceTempView("states")
spark.sql("""
    UPDATE ice.db.devices SET status = 'lost', note = concat(name, ' is silent') WHERE last_seen < DATE '2023-12-01'
""")
spark.sql("DELETE FROM ice.db.devices WHERE id IN (SELECT device FROM recalled)")
spark.sql("""
    MERGE INTO ice.db.devices d USING states s ON d.id = s.id
    WHEN MATCHED AND s.seen > d.last_seen THEN UPDATE SET d.status = s.state, d.last_seen = s.seen
""")
spark.stop()
