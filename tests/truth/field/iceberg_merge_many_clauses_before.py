"""Makes the Iceberg table subscriptions."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    CREATE TABLE ice.db.subscriptions USING iceberg AS
    SELECT * FROM VALUES (1, 'solo', 1, 'active', 'eu'), (2, 'team', 12, 'active', 'eu'),
                         (3, 'solo', 1, 'active', 'eu'), (4, 'solo', NULL, 'active', 'us'),
                         (5, 'team', 20, 'active', 'eu')
    AS t(id, plan, seats, status, region)
""")
spark.stop()
