"""What a usual job loads: files, joins, tables, a view, and its UI asked for its state; run by ``spark-submit``."""

import contextlib
import sys
import urllib.request


def main(work: str) -> None:
    """Do a little of everything below a directory."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = SparkSession.builder.appName("everyday").getOrCreate()
    orders = spark.createDataFrame([(at, at % 3, at * 1.5) for at in range(50)], "id int, kind int, n double")
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
    with contextlib.suppress(OSError):
        urllib.request.urlopen(f"{spark.sparkContext.uiWebUrl}/api/v1/applications", timeout=10).read()  # noqa: S310
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
