"""A life of Iceberg tables: create, insert, overwrite a day, CTAS, replace, alter, truncate, drop."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
orders = spark.read.csv("orders.csv", header=True, schema="id INT, at TIMESTAMP, amount INT, shop STRING")
orders.createOrReplaceTempView("orders")
spark.sql("""
    CREATE TABLE ice.db.orders (id INT, at TIMESTAMP, amount INT) USING iceberg PARTITIONED BY (days(at), bucket(2, id))
""")
spark.sql("INSERT INTO ice.db.orders SELECT id, at, amount FROM orders WHERE shop = 'north'")
spark.sql("INSERT OVERWRITE ice.db.sales SELECT at, id, amount * 2 FROM orders WHERE id > 2")
spark.sql("CREATE TABLE ice.db.days USING iceberg AS SELECT shop, sum(amount) AS total FROM orders GROUP BY shop")
spark.sql("""
    CREATE OR REPLACE TABLE ice.db.days USING iceberg AS SELECT at, max(amount) AS most FROM ice.db.orders GROUP BY at
""")
spark.sql("ALTER TABLE ice.db.orders ADD COLUMN note STRING")
spark.sql("ALTER TABLE ice.db.orders RENAME COLUMN amount TO price")
spark.sql("ALTER TABLE ice.db.orders DROP COLUMN note")
spark.sql("CREATE TABLE ice.db.scratch USING iceberg AS SELECT id FROM orders")
spark.sql("TRUNCATE TABLE ice.db.scratch")
spark.sql("DROP TABLE ice.db.scratch PURGE")
spark.stop()
