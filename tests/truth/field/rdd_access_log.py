"""Counts pages of an access log with RDDs; rules from a directory of small files say which pages do not count."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("access-log").getOrCreate()
sc = spark.sparkContext

rules = sc.wholeTextFiles("rules").flatMap(lambda pair: pair[1].split()).setName("rules").collect()
ignored = sc.broadcast(set(rules))
lines = sc.textFile("access.log").setName("access log").cache()
requests = lines.map(lambda line: line.split(" ")).filter(lambda parts: len(parts) == 3)
hits = (
    requests.map(lambda parts: (parts[1], 1))
    .filter(lambda pair: pair[0] not in ignored.value)
    .reduceByKey(lambda left, right: left + right)
    .setName("hits per page")
)
hits.map(lambda pair: f"{pair[0]}\t{pair[1]}").coalesce(1).saveAsTextFile("hits")
hits.toDF(["page", "hits"]).write.mode("overwrite").parquet("pages")
print(lines.count() - requests.count(), "lines could not be read")
spark.stop()
