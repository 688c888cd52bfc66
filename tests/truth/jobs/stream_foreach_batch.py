"""Each batch is kept, joined with customers into a second output, and its maximum overwrites a third."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
customers = spark.read.csv("customers.csv", header=True, schema="id INT, country STRING")


def keep(batch: DataFrame, number: int) -> None:
    """Write one batch to three places."""
    batch.persist()
    batch.select("order", "amount").write.mode("append").parquet("kept")
    joined = batch.join(customers, batch.customer == customers.id)
    joined.select("country", "amount", f.lit(number).alias("batch")).write.mode("append").parquet("countries")
    batch.agg(f.max("amount").alias("most")).write.mode("overwrite").parquet("last")
    batch.unpersist()


orders = spark.readStream.option("maxFilesPerTrigger", 1).csv(
    "in", header=True, schema="order INT, customer INT, amount INT"
)
query = orders.where("amount > 0").writeStream.foreachBatch(keep).option("checkpointLocation", "checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
spark.stop()
