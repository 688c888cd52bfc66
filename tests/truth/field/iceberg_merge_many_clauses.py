"""Merges a day's subscription changes into an Iceberg table: two updates, two deletes, and a conditional insert."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
changes = spark.read.csv("changes.csv", header=True, schema="id INT, plan STRING, seats INT, op STRING, day DATE")
changes.where("day = DATE '2024-01-02'").createOrReplaceTempView("changes")
spark.sql("""
    MERGE INTO ice.db.subscriptions t
    USING (SELECT id, plan AS new_plan, seats, op FROM changes) s
    ON t.id = s.id AND t.region = 'eu'
    WHEN MATCHED AND s.op = 'cancel' AND t.status <> 'cancelled' THEN UPDATE SET status = 'cancelled'
    WHEN MATCHED AND s.op IN ('up', 'down') AND NOT (s.seats <=> t.seats) THEN
        UPDATE SET seats = s.seats, plan = CASE WHEN s.seats > 10 THEN 'team' ELSE s.new_plan END
    WHEN MATCHED AND s.op = 'erase' THEN DELETE
    WHEN NOT MATCHED AND s.op = 'new' THEN
        INSERT (id, plan, seats, status, region) VALUES (s.id, lower(s.new_plan), coalesce(s.seats, 1), 'active', 'eu')
    WHEN NOT MATCHED BY SOURCE AND t.seats IS NULL THEN DELETE
""")
spark.stop()
