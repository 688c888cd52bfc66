"""A partitioned table is filled with a static and a dynamic partition, by name, and into one named partition."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for name in ("this_year", "daily", "archive"):
    spark.read.csv(f"{name}.csv", header=True, inferSchema=True).createOrReplaceTempView(name)
spark.sql("""
    CREATE TABLE sales (id INT, amount DOUBLE, note STRING, year INT, month INT) USING parquet
    PARTITIONED BY (year, month)
""")
spark.sql("""
    INSERT OVERWRITE TABLE sales PARTITION (year = 2024, month)
    SELECT id, CAST(amount AS DOUBLE), note, month FROM this_year
""")
spark.sql("""
    INSERT INTO sales BY NAME
    SELECT year(day) AS year, month(day) AS month, upper(text) AS note, order_id AS id,
           CAST(price * pieces AS DOUBLE) AS amount
    FROM daily
""")
spark.sql("""
    INSERT INTO sales PARTITION (year = 2022, month = 12) (amount, id)
    SELECT CAST(amount AS DOUBLE), id FROM archive WHERE kind = 'sale'
""")
spark.stop()
