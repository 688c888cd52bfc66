"""Rows are appended to an Iceberg table; then older snapshots of it are read: by id, by tag, by time."""

from pyspark.sql import SparkSession

TABLE = "ice.db.stock"
spark = SparkSession.builder.getOrCreate()
snapshots = spark.sql(f"SELECT snapshot_id, committed_at FROM {TABLE}.snapshots ORDER BY committed_at").collect()
fresh = spark.read.csv("fresh.csv", header=True, schema="code STRING, pieces INT")
fresh.selectExpr("code AS sku", "pieces AS qty").writeTo(TABLE).append()

spark.sql(f"SELECT sku, qty FROM {TABLE} VERSION AS OF {snapshots[2].snapshot_id}").write.parquet("before")
spark.sql(f"SELECT sku FROM {TABLE} VERSION AS OF 'opening' WHERE qty > 0").write.json("opening")
spark.sql(f"SELECT max(qty + 1) AS most FROM {TABLE} TIMESTAMP AS OF '{snapshots[1].committed_at}'").write.json("most")
spark.stop()
