"""The scenario bigquery_to_delta of OpenLineage's compatibility-tests, with Parquet in place of BigQuery."""

import sys

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.appName("BigQuery to Delta on GCS").getOrCreate()
words = spark.read.parquet(f"{home}/shakespeare")
words.createOrReplaceTempView("words")
word_count = spark.sql("SELECT word, SUM(word_count) AS word_count FROM words GROUP BY word")
spark.sql(f"""CREATE TABLE IF NOT EXISTS e2e_delta_table (
    word string,
    word_count long)
USING delta
LOCATION '{home}/data/e2e_delta_table'""")
word_count.writeTo("e2e_delta_table").append()
spark.stop()
