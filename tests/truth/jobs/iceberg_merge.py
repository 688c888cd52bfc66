"""Changes from a file are merged into an Iceberg table; what the source does not know and nobody visited is deleted."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("changes.csv", header=True, schema="id INT, name STRING, town STRING").createOrReplaceTempView("changes")
spark.sql("""
    MERGE INTO ice.db.customers t USING (SELECT id, name, upper(town) AS town FROM changes) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET city = s.town, visits = t.visits + 1
    WHEN NOT MATCHED THEN INSERT (id, name, city, visits) VALUES (s.id, s.name, s.town, 1)
    WHEN NOT MATCHED BY SOURCE AND t.visits = 0 THEN DELETE
""")
spark.stop()
