"""Makes the Delta table dim_customers, with a closed and two open versions."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("""
    SELECT id, name, city, CAST(valid_from AS DATE) AS valid_from, CAST(valid_to AS DATE) AS valid_to, current
    FROM VALUES (1, 'Ann', 'Rome', '2023-01-01', '2023-06-01', false),
                (1, 'Ann', 'Oslo', '2023-06-01', NULL, true),
                (2, 'Bob', 'Moss', '2023-01-01', NULL, true)
    AS t(id, name, city, valid_from, valid_to, current)
""").coalesce(1).write.format("delta").save(f"{sys.argv[1]}/dim_customers")
spark.stop()
