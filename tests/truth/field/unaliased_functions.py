"""Dates, strings, comparisons and hashes of a log, as they are typed into a notebook: without an alias."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("log.csv", header=True, quote='"').createOrReplaceTempView("log")
for name, query in {
    "dates": """
        SELECT year(at), date_format(at, 'yyyy-MM'), date_add(to_date(at), 7), datediff(to_date(at), DATE'2024-01-01'),
               extract(HOUR FROM CAST(at AS TIMESTAMP))
        FROM log
    """,
    "texts": """
        SELECT trim(note), substring(note, 1, 3), regexp_replace(note, '[(),]', '-'), split(note, ', ')[1],
               note LIKE '(%', note || ' x#12'
        FROM log
    """,
    "tests": """
        SELECT id, -CAST(amount AS INT), amount BETWEEN 1 AND 5, amount IN ('1', '2, x#3'), note IS NULL,
               NOT (user = 'a')
        FROM log
    """,
    "hashes": """
        SELECT nullif(user, '-'), nvl(user, note), greatest(amount, id), md5(concat(user, note)), hash(id, user)
        FROM log
    """,
    "hours": """
        SELECT window(CAST(at AS TIMESTAMP), '1 hour').start, count(*)
        FROM log GROUP BY window(CAST(at AS TIMESTAMP), '1 hour')
    """,
    "stamped": """
        SELECT id, 'lit, x#1', 1 + 1, current_date() FROM log
        WHERE to_date(at) > '2023-01-01' AND user LIKE '%'
    """,
    "sorted": """
        SELECT upper(user), CAST(amount AS INT) * 2 FROM log
        ORDER BY CAST(amount AS INT) * 2 DESC, length(note) LIMIT 5
    """,
}.items():
    spark.sql(query).write.parquet(name)
spark.stop()
