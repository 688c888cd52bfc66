"""A dimension with history in Hive: changed customers are closed and opened in a helper table, which replaces it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.read.csv("customers.csv", header=True, schema="id INT, city STRING, as_of DATE").createOrReplaceTempView("stage")
spark.sql("""
    CREATE OR REPLACE TEMP VIEW changed AS
    SELECT s.id, s.city, s.as_of
    FROM stage s LEFT JOIN dim.customers d ON s.id = d.id AND d.is_current = 'Y'
    WHERE d.id IS NULL OR d.city <> s.city
""")
spark.sql("""
    CREATE TABLE dim.customers_new STORED AS PARQUET AS
    SELECT d.id, d.city, d.valid_from,
           CASE WHEN c.id IS NOT NULL AND d.is_current = 'Y' THEN c.as_of ELSE d.valid_to END AS valid_to,
           CASE WHEN c.id IS NOT NULL THEN 'N' ELSE d.is_current END AS is_current
    FROM dim.customers d LEFT JOIN changed c ON d.id = c.id
    UNION ALL
    SELECT id, city, as_of, DATE '9999-12-31', 'Y' FROM changed
""")
spark.sql(
    "INSERT OVERWRITE TABLE dim.customers SELECT id, city, valid_from, valid_to, is_current FROM dim.customers_new"
)
spark.sql("DROP TABLE dim.customers_new")
spark.stop()
