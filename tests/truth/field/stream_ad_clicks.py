"""Joins the streams of shown and clicked advertisements within an hour; clicks that came twice count once."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
shown = (
    spark.readStream.schema("ad STRING, shown_at TIMESTAMP, site STRING")
    .json("impressions")
    .withWatermark("shown_at", "1 hour")
)
clicked = (
    spark.readStream.schema("click STRING, ad_id STRING, clicked_at TIMESTAMP, person STRING")
    .json("clicks")
    .withWatermark("clicked_at", "2 hours")
    .dropDuplicates(["click", "clicked_at"])
)
matched = shown.join(
    clicked,
    f.expr("ad = ad_id AND clicked_at >= shown_at AND clicked_at <= shown_at + INTERVAL 1 HOUR"),
)
matched = matched.select("ad", f.upper("site").alias("site"), "person")
query = matched.writeStream.format("parquet").option("checkpointLocation", "checkpoint").trigger(availableNow=True)
query.start("matched").awaitTermination()

per_site = (
    spark.readStream.schema("ad STRING, shown_at TIMESTAMP, site STRING").json("impressions").groupBy("site").count()
)
memory = per_site.writeStream.format("memory").queryName("per_site").outputMode("complete")
memory.trigger(availableNow=True).start().awaitTermination()
spark.table("per_site").show()
per_site.writeStream.format("console").outputMode("complete").trigger(availableNow=True).start().awaitTermination()
spark.stop()
