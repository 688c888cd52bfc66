"""Makes the table dim.customers of Hive with three versions of two customers."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE dim")
spark.sql("""
    CREATE TABLE dim.customers (id INT, city STRING, valid_from DATE, valid_to DATE, is_current STRING)
    STORED AS PARQUET
""")
spark.sql("""
    INSERT INTO dim.customers VALUES
        (1, 'Oslo', DATE '2023-01-01', DATE '2023-06-01', 'N'), (1, 'Moss', DATE '2023-06-01', DATE '9999-12-31', 'Y'),
        (2, 'Voss', DATE '2023-01-01', DATE '9999-12-31', 'Y')
""")
spark.stop()
