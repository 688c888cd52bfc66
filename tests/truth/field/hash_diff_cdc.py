"""Finds what changed between two days' full exports by hashes of rows, and applies it to a copy of the older one."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()


def hashed(path: str) -> DataFrame:
    """Read an export with a hash of all but its key."""
    rows = spark.read.csv(path, header=True, schema="id INT, name STRING, city STRING, exported DATE")
    return rows.withColumn("hash", f.sha2(f.concat_ws("|", "name", "city"), 256))


old, new = hashed("monday.csv").alias("old"), hashed("tuesday.csv").alias("new")
kind = (
    f.when(f.col("old.id").isNull(), "I")
    .when(f.col("new.id").isNull(), "D")
    .when(f.col("old.hash") != f.col("new.hash"), "U")
)
changes = (
    old.join(new, f.col("old.id") == f.col("new.id"), "full_outer")
    .select(f.coalesce("new.id", "old.id").alias("id"), kind.alias("kind"), "new.name", "new.city")
    .where("kind IS NOT NULL")
)
changes.write.mode("overwrite").parquet("changes")
changed = spark.read.parquet("changes")
same = spark.read.csv("monday.csv", header=True, schema="id INT, name STRING, city STRING, exported DATE")
kept = same.join(changed, "id", "left_anti").select("id", "name", "city")
current = kept.unionByName(changed.where("kind <> 'D'").select("id", "name", "city"))
current.write.mode("overwrite").orc("current")
print(changed.groupBy("kind").count().collect())
spark.stop()
