"""Write, audit, publish: new prices go to a branch of an Iceberg table, are checked, and become the main branch."""

import sys

from pyspark.sql import SparkSession

TABLE = "ice.db.prices"
spark = SparkSession.builder.getOrCreate()
spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
spark.sql(f"ALTER TABLE {TABLE} CREATE BRANCH IF NOT EXISTS audit")
feed = spark.read.csv("feed.csv", header=True, schema="item STRING, cents INT, since DATE, currency STRING")
feed.createOrReplaceTempView("feed")

spark.conf.set("spark.wap.branch", "audit")
spark.sql(f"INSERT INTO {TABLE} SELECT item, cents / 100D, since FROM feed WHERE currency = 'EUR'")
checks = {
    "no price": spark.table(TABLE).where("price IS NULL OR price <= 0").count(),
    "twice": spark.table(TABLE).groupBy("sku", "since").count().where("count > 1").count(),
}
spark.conf.unset("spark.wap.branch")

failed = {check: rows for check, rows in checks.items() if rows}
if failed:
    print(failed)
    sys.exit(2)
spark.sql("CALL ice.system.fast_forward(table => 'db.prices', branch => 'main', to => 'audit')").show()
print(spark.table(TABLE).count(), "prices are published")
spark.stop()
