"""RDDs are saved as text, as a pickle, and by Hadoop's own formats; one only by code of the program."""

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext


def keep(lines: Iterable[str]) -> None:
    """Write the lines wherever the program likes."""
    with Path("/dev/null").open("a") as out:
        out.writelines(lines)


lines = sc.textFile("in/lines.txt")
pairs = lines.map(lambda line: (line, len(line)))
pairs.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile("out/text")
pairs.saveAsPickleFile("out/pickle")
pairs.saveAsNewAPIHadoopFile(
    "out/hadoop",
    "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat",
    "org.apache.hadoop.io.Text",
    "org.apache.hadoop.io.IntWritable",
)
sc.textFile("in/more.txt").foreachPartition(keep)
spark.stop()
