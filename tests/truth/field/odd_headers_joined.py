"""Two workbooks with odd headers: joined by them, united by place and by name, compared."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
plan = spark.read.parquet("plan.parquet")
real = spark.read.parquet("real.parquet")
plan.createOrReplaceTempView("plan")
real.createOrReplaceTempView("real")
for name, query in {
    "inner": """
        SELECT p.`key, one`, p.`a AS b`, r.`THEN (` AS `THEN (`, p.`#7` - r.`x#12` AS `diff (p - r), EUR`
        FROM plan p JOIN real r ON p.`key, one` = r.`key, one` AND p.`#7` > r.`x#12`
    """,
    "usual": "SELECT * FROM plan LEFT JOIN real USING (`key, one`)",
    "full": "SELECT coalesce(p.`a AS b`, r.`THEN (`) AS `a AS b` FROM plan p FULL JOIN real r ON p.`#7` = r.`x#12`",
    "semi": "SELECT p.`#7` AS `#8` FROM plan p LEFT SEMI JOIN real r ON p.`a AS b` = r.`THEN (`",
    "anti": "SELECT p.`key, one` FROM plan p LEFT ANTI JOIN real r ON p.`#7` = r.`x#12`",
    "self": "SELECT l.`#7`, r.`#7` AS `#7, again` FROM plan l JOIN plan r ON l.`a AS b` = r.`key, one`",
    "united": "SELECT `key, one`, `#7` FROM plan UNION ALL SELECT `THEN (`, `x#12` FROM real",
    "united_once": "SELECT `a AS b` FROM plan UNION SELECT `THEN (` FROM real",
    "common": "SELECT `#7` FROM plan INTERSECT SELECT `x#12` FROM real",
    "broadcast": "SELECT /*+ BROADCAST(r) */ p.`#7`, r.`x#12` FROM plan p JOIN real r ON p.`#7` = r.`x#12`",
}.items():
    spark.sql(query).write.parquet(name)
plan.unionByName(real.withColumnRenamed("x#12", "#7"), allowMissingColumns=True).write.parquet("by_name")
spark.stop()
