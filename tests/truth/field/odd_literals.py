"""Texts with brackets, commas, ids, line ends and words of plans, in values, conditions and branches."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

LITERALS = (
    "(", ")", "[", "{", ", x#12", " AS y#3", "line\nend", "\n\n\n===== Subqueries =====\n", "`", "'", "THEN (",
    " ELSE x END) AS z#9", "(1) Scan parquet \nOutput [1]: [zzz#1]\n", "\\(",
)  # fmt: skip

spark = SparkSession.builder.getOrCreate()
notes = spark.read.parquet("notes.parquet")
for at, literal in enumerate(LITERALS):
    notes.where(f.col("raw") != literal).select(
        "id",
        f.concat("day", f.lit(literal)).alias("labelled"),
        f.when(f.col("csvs") == literal, f.col("day")).otherwise(f.lit(literal)).alias("chosen"),
        f.lit(literal).alias("constant"),
        f.instr("raw", literal).alias("place"),
    ).write.parquet(f"p/{at:02}")
    notes.select(f.replace("raw", f.lit(literal), f.lit("")), f.col("day").contains(literal)).toDF(
        "a", "b"
    ).write.parquet(f"q/{at:02}")
spark.stop()
