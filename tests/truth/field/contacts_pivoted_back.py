"""Attributes of persons are turned into columns by PIVOT, and back into rows by stack and UNPIVOT."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("attributes.csv", header=True).createOrReplaceTempView("attributes")
spark.read.csv("quarters.csv", header=True, inferSchema=True).createOrReplaceTempView("quarters")
spark.sql("""
    SELECT * FROM (SELECT person, attribute, TRIM(content) AS content FROM attributes)
    PIVOT (MAX(content) FOR attribute IN ('email' AS email, 'phone' AS phone, 'city' AS city))
""").write.parquet("contacts")
spark.read.parquet("contacts").createOrReplaceTempView("contacts")
spark.sql("""
    SELECT * FROM (
        SELECT person, stack(2, 'e-mail', email, 'telephone', phone) AS (channel, address) FROM contacts
    ) WHERE address IS NOT NULL
""").write.parquet("addresses")
spark.sql("SELECT * FROM quarters UNPIVOT INCLUDE NULLS (amount FOR quarter IN (q1, q2, q3))").write.parquet("amounts")
spark.table("quarters").unpivot("shop", ["q1", "q2"], "quarter", "amount").write.orc("half_year")
spark.stop()
