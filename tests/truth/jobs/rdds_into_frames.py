"""Rows of RDDs become data frames, beside files that other actions read: shuffles, unions, caches, every format."""

from operator import add

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
sc.setCheckpointDir("checkpoints")
spark.read.csv("in/prices.csv", schema="item string, price int").write.parquet("out/prices")

orders = sc.textFile("in/orders.txt").map(lambda line: tuple(line.split(",")))
spark.createDataFrame(orders, "item string, amount string").write.parquet("out/orders")
hits = sc.textFile("in/hits.txt").map(lambda page: (page, 1)).reduceByKey(add)
spark.createDataFrame(hits, "page string, hits int").groupBy("hits").count().write.parquet("out/hits")

left, right = (sc.textFile(f"in/{name}.txt").map(lambda line: (line,)) for name in ("left", "right"))
spark.createDataFrame(left.union(right), "line string").write.parquet("out/both")
spark.createDataFrame(left, "line string").write.parquet("out/left")
pairs = left.zip(right).map(lambda pair: (pair[0][0], pair[1][0]))
spark.createDataFrame(pairs, "one string, two string").write.parquet("out/pairs")

ages = sc.textFile("people/ages.txt").map(lambda line: tuple(line.split(",")))
names = sc.textFile("people/names.txt").map(lambda line: tuple(line.split(","))).persist()
print(names.count(), "names")
joined = names.join(ages).map(lambda row: (row[1][0], row[1][1]))
spark.createDataFrame(joined, "name string, age string").write.parquet("out/people")
spark.createDataFrame(names, "id string, name string").write.parquet("out/names")

pages = sc.wholeTextFiles("docs").map(lambda pair: (len(pair[1]),))
images = sc.binaryFiles("images/one.png").map(lambda pair: (len(pair[1]),))
spark.createDataFrame(pages.union(images), "size int").write.parquet("out/sizes")
codes = sc.sequenceFile("codes")
spark.createDataFrame(codes, "code string, number int").write.parquet("out/codes")
lines = sc.newAPIHadoopFile(
    "in/lines.txt",
    "org.apache.hadoop.mapreduce.lib.input.TextInputFormat",
    "org.apache.hadoop.io.LongWritable",
    "org.apache.hadoop.io.Text",
).map(lambda pair: (pair[1],))
lines.checkpoint()
print(lines.count(), "lines")
spark.createDataFrame(lines, "line string").write.parquet("out/lines")

prices = spark.read.csv("in/prices.csv", schema="item string, price int")
priced = spark.createDataFrame(orders, "item string, amount string").join(prices, "item")
priced.select("amount", "price").write.parquet("out/priced")
spark.read.json(sc.textFile("in/events.json")).write.saveAsTable("events")
spark.createDataFrame([("a", 1)], "letter string, number int").write.parquet("out/local")
spark.stop()
