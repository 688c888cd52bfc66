"""A Delta and an Iceberg table of one name: one is merged into from the other, then the other gets rows as well."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    MERGE INTO ice.default.orders t USING spark_catalog.default.orders s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET amount = s.amount
    WHEN NOT MATCHED THEN INSERT (id, amount, shop) VALUES (s.id, s.amount, s.shop)
""")
spark.sql("INSERT INTO orders SELECT id, cents, 'late' FROM ice.default.late WHERE cents > 0")
first = spark.sql("SELECT o.id, o.shop, l.cents FROM orders VERSION AS OF 1 o JOIN ice.default.late l ON l.id = o.id")
first.write.json("late_again")
spark.stop()
