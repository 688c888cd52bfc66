"""The same texts in groups, windows, joins, unions, explode, sorts, subqueries, HAVING and tables."""

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

LITERALS = ("(", "]", ", x#12", " AS y#3", "\n\n\n===== Subqueries =====\n", "`")
spark = SparkSession.builder.getOrCreate()
notes = spark.read.parquet("notes.parquet")
people = spark.read.parquet("people.parquet")
notes.createOrReplaceTempView("notes")
people.createOrReplaceTempView("people")
for at, literal in enumerate(LITERALS):
    bare = f.replace("day", f.lit(literal), f.lit(""))
    notes.groupBy(f.concat("day", f.lit(literal)).alias("d")).agg(
        f.concat_ws(literal, f.collect_list("raw")).alias("all"), f.sum("amount").alias("sum")
    ).write.parquet(f"grouped/{at}")
    notes.select(
        "id",
        f.lag("raw", 1, literal).over(Window.partitionBy(bare).orderBy(f.concat("who", f.lit(literal)))).alias("l"),
    ).write.parquet(f"windowed/{at}")
    notes.join(people, f.concat(notes.who, f.lit(literal)) == f.concat(people.name, f.lit(literal))).select(
        "id", f.concat("city", f.lit(literal)).alias("city")
    ).write.parquet(f"joined/{at}")
    notes.select(f.lit(literal).alias("kind"), f.col("who")).union(
        people.select(f.lit(literal + "2"), f.concat("name", f.lit(literal)))
    ).write.parquet(f"united/{at}")
    notes.select("id", f.explode(f.split("csvs", "\\Q" + literal + "\\E")).alias("part")).write.parquet(
        f"exploded/{at}"
    )
    notes.orderBy(f.concat("raw", f.lit(literal))).limit(2).select("id").write.parquet(f"sorted/{at}")
    spark.sql(
        "SELECT id FROM notes WHERE day < (SELECT max(concat(name, :text)) FROM people WHERE city <> :text)",
        args={"text": literal},
    ).write.parquet(f"asked/{at}")
    spark.sql(
        "SELECT who, max(concat(raw, :text)) AS m FROM notes GROUP BY who HAVING min(day) <> :text",
        args={"text": literal},
    ).write.saveAsTable(f"having_{at}")
spark.sql(r"""
    CREATE TABLE made USING parquet AS
    SELECT CASE WHEN raw LIKE '(%' THEN day WHEN raw = ']' THEN csvs ELSE '(, x#1 AS y#2' END AS d,
           count(*) OVER (PARTITION BY substring_index(day, '(', 1)) AS n
    FROM notes WHERE raw NOT IN ('[', ', a#1', '(') AND who RLIKE '^[a-z(]+'
""")
spark.stop()
