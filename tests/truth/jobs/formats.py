"""JSON, ORC, text and CSV, with and without a schema, each to an output of its own format."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.json("events.json").where("kind = 'a'").select("id").write.orc("event_ids")
spark.read.orc("stock").write.json("stock_json")
words = spark.read.text("words.txt").selectExpr("explode(split(value, ' ')) AS word")
words.groupBy("word").count().write.csv("counts")
spark.read.csv("plain.csv").selectExpr("_c0 AS first").write.text("firsts")
typed = spark.read.csv("typed.csv", schema="a INT, b STRING", sep=";")
typed.write.option("compression", "gzip").json("typed_json")
spark.stop()
