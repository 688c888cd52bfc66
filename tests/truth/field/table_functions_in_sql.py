"""Functions that make tables: lateral views, inline, stack and range in FROM, and lateral subqueries."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("articles.csv", header=True, inferSchema=True).createOrReplaceTempView("articles")
spark.read.csv("visits.csv", header=True, inferSchema=True).createOrReplaceTempView("visits")
spark.sql("""
    SELECT article, word, COUNT(pos) AS times, MIN(pos) AS first
    FROM articles LATERAL VIEW posexplode(split(lower(text), ' ')) w AS pos, word
    WHERE word <> 'the' GROUP BY article, word
""").write.parquet("words")
spark.sql("""
    SELECT article, tag, what, size FROM articles
    LATERAL VIEW explode(split(tags, ';')) t AS tag
    LATERAL VIEW inline(array(struct('text', length(text)), struct('title', length(title)))) s AS what, size
""").write.parquet("tags")
spark.sql("""
    SELECT r.id AS hour, COUNT(v.article) AS visits
    FROM range(0, 24) r LEFT JOIN visits v ON v.hour = r.id GROUP BY r.id
""").write.parquet("hours")
spark.sql("""
    SELECT v.article, kind.label, v.seconds
    FROM visits v JOIN stack(2, 'w', 'web', 'a', 'app') AS kind (code, label) ON kind.code = v.source
""").write.parquet("visit_kinds")
spark.sql("""
    SELECT a.article, a.title, best.seconds, best.hour
    FROM articles a, LATERAL (
        SELECT MAX(v.seconds) AS seconds, MAX(v.hour) AS hour FROM visits v WHERE v.article = a.article
    ) best
""").write.parquet("longest_visits")
spark.stop()
