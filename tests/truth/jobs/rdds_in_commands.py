"""Rows of RDDs are written by commands of every kind: JDBC, Delta, tables, MERGE, a cache, a stream's function."""

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

SHOP = {"user": "sa", "password": "pw-of-shop", "driver": "org.h2.Driver"}
spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext


def frame(name: str) -> DataFrame:
    """Read a file of names by an RDD."""
    rows = sc.textFile(f"in/{name}.txt").map(lambda line: (line,))
    return spark.createDataFrame(rows, "name string")


spark.read.text("in/other.txt").write.parquet("out/other")
frame("jdbc").write.jdbc("jdbc:h2:file:./shop", "PUBLIC.NAMES", "append", SHOP)
frame("delta").write.format("delta").save("out/delta")
frame("table").createOrReplaceTempView("names")
spark.sql("CREATE TABLE names_table USING parquet AS SELECT upper(name) AS name FROM names")
frame("insert").write.insertInto("names_table")

merged = DeltaTable.forPath(spark, "out/delta").alias("t")
merged.merge(frame("merge").alias("s"), "t.name = s.name").whenNotMatchedInsertAll().execute()

kept = frame("cached").cache()
print(kept.count(), "names")
kept.write.parquet("out/cached")
kept.rdd.map(lambda row: row.name).saveAsTextFile("out/lines")
kept.unpersist()
frame("left").unionByName(spark.read.csv("in/right.csv", schema="name string")).write.parquet("out/union")
frame("key").join(frame("value"), "name", "left_semi").orderBy("name").write.parquet("out/joined")

sizes = sc.broadcast(sc.textFile("in/sizes.txt").count())
spark.createDataFrame([(sizes.value,)], "size int").write.parquet("out/size")


def keep(batch: DataFrame, number: int) -> None:
    """Write a batch, and rows of an RDD beside it."""
    batch.write.mode("append").parquet("out/batches")
    frame("beside").write.mode("append").parquet("out/beside")


query = spark.readStream.schema("name string").csv("stream").writeStream.foreachBatch(keep)
query.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start().awaitTermination()
spark.stop()
