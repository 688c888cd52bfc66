"""Streams an Iceberg table to files and to another Iceberg table, which is read afterwards."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
stream = spark.readStream.format("iceberg").load("ice.db.t")

to_files = stream.where("amount > 0").writeStream.format("parquet").option("checkpointLocation", "state")
to_files.trigger(availableNow=True).start("out").awaitTermination()

spark.sql("CREATE TABLE ice.db.copy (id INT, amount INT) USING iceberg")
to_table = stream.writeStream.format("iceberg").option("checkpointLocation", "state2").outputMode("append")
to_table.trigger(availableNow=True).toTable("ice.db.copy").awaitTermination()

spark.table("ice.db.copy").select("id").write.json("ids")
spark.stop()
