"""Makes a Delta table of 27 columns by path: wide."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
columns = ", ".join(f"'{number}' AS c{number}" for number in range(1, 27))
spark.sql(f"SELECT id, {columns} FROM range(3)").coalesce(1).write.format("delta").save("wide")
spark.stop()
