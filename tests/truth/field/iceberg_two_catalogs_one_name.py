"""Tables of one name in two Iceberg catalogs: joined, copied from one to the other, and told apart by USE alone."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    CREATE TABLE north.db.joined USING iceberg AS
    SELECT n.id, n.amount AS north, s.amount AS south FROM north.db.sales n JOIN south.db.sales s ON s.id = n.id
""")
spark.sql("USE south.db")
spark.sql("INSERT INTO sales SELECT id, amount FROM north.db.sales WHERE amount > 15")
spark.sql("USE north.db")
spark.sql("CREATE TABLE doubled USING iceberg AS SELECT id, amount * 2 AS amount FROM sales")
spark.sql("SELECT max(north) - max(south) AS gap FROM joined").write.json("gap")
spark.stop()
