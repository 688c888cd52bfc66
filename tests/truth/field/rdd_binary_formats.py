"""RDDs of pickled pairs, a sequence file and binary files are joined, and saved as a sequence and a pickle file."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
scores = sc.pickleFile("scores")
names = sc.sequenceFile("names")
sizes = sc.binaryFiles("images").map(lambda pair: (pair[0].rsplit("/", 1)[1].split(".")[0], len(pair[1])))

joined = names.join(scores).mapValues(lambda both: f"{both[0]}={both[1]}")
joined.saveAsSequenceFile("scored_names")
sizes.leftOuterJoin(scores).coalesce(1).saveAsPickleFile("sizes")
print(sizes.values().sum(), "bytes")
spark.stop()
