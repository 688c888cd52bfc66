"""UPDATE and DELETE of Iceberg tables: with a subquery over another table, by a constant, and of a whole partition."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    UPDATE ice.db.accounts SET status = 'blocked', balance = round(balance, 1)
    WHERE id IN (SELECT account FROM ice.db.blocked WHERE reason <> 'none')
""")
spark.sql("DELETE FROM ice.db.accounts WHERE balance < 0")
spark.sql("UPDATE ice.db.limits SET cap = 100")
spark.sql("DELETE FROM ice.db.sales WHERE at < TIMESTAMP '2024-01-02 00:00:00'")
spark.stop()
