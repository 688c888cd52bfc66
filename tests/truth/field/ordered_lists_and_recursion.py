"""A list in an order of its own, and recursive queries that begin with an aggregate over a whole table."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.parquet("steps.parquet").createOrReplaceTempView("steps")
spark.sql("""
    SELECT kind, listagg(note, ', ') WITHIN GROUP (ORDER BY day DESC) AS notes FROM steps GROUP BY kind
""").write.parquet("notes")
spark.sql("""
    WITH RECURSIVE counted(n, last) AS (
        SELECT min(cost) + 1, max(cost) FROM steps WHERE kind <> 'x'
        UNION ALL SELECT n + 1, last FROM counted WHERE n < last
    ) SELECT n, last FROM counted
""").write.parquet("counted")
spark.stop()
