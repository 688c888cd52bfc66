"""A Delta and an Iceberg table of one name: the one is merged into from the other, which then gets rows of the one."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    MERGE INTO orders t USING ice.default.orders s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET amount = s.amount
    WHEN NOT MATCHED THEN INSERT (id, amount, shop) VALUES (s.id, s.amount, s.shop)
""")
spark.sql("""
    INSERT INTO ice.default.orders
    SELECT o.id, o.amount, 'late' FROM orders VERSION AS OF 1 o JOIN ice.default.late l ON l.id = o.id
""")
spark.sql("SELECT max(cents + 1) AS most FROM ice.default.late").write.json("most")
spark.stop()
