"""What a usual job loads, as ``spark-lineage warm`` runs it: files, joins, tables, a view."""

from __future__ import annotations

import sys


def main(work: str) -> None:
    """Do a little of everything below a directory."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = SparkSession.builder.appName("spark-lineage warm").getOrCreate()
    orders = spark.createDataFrame(
        [(number, number % 3, number * 1.5) for number in range(50)], "id int, kind int, n double"
    )
    orders.write.csv(f"{work}/csv", header=True)
    read = spark.read.csv(f"{work}/csv", header=True, inferSchema=True)
    read.write.partitionBy("kind").parquet(f"{work}/parquet")
    spark.createDataFrame([(0, "a"), (1, "b")], "kind int, name string").write.json(f"{work}/json")
    joined = spark.read.parquet(f"{work}/parquet").join(spark.read.json(f"{work}/json"), "kind", "left")
    joined.withColumn("upper", f.upper("name")).filter("n > 3").createOrReplaceTempView("joined")
    spark.sql("CREATE TABLE sums USING parquet AS SELECT name, sum(n) AS n FROM joined GROUP BY name")
    spark.sql("INSERT INTO sums SELECT upper, count(DISTINCT id) FROM joined GROUP BY upper ORDER BY upper")
    spark.sql("ALTER TABLE sums RENAME TO totals")
    spark.table("totals").cache().count()
    spark.sql("DROP TABLE totals")
    spark.sparkContext.textFile(f"{work}/csv").map(len).sum()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
