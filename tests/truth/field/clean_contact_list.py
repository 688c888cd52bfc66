"""A contact list is cleaned: spaces, phone numbers, dates, tags; duplicates of an e-mail address go."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
raw = spark.read.csv("contacts.csv", header=True)
digits = f.regexp_replace("phone", "[^0-9]", "")
clean = (
    raw.withColumnRenamed("E-Mail", "email")
    .where(f.col("email").rlike("^[^@]+@[^@]+$"))
    .withColumn("email", f.lower(f.trim("email")))
    .dropDuplicates(["email"])
    .withColumns(
        {
            "domain": f.regexp_extract("email", "@(.+)$", 1),
            "name": f.initcap(f.trim(f.regexp_replace("name", r"\s+", " "))),
            "phone": f.when(f.length("country") > 0, f.concat("country", digits)).otherwise(digits),
            "joined": f.to_date("joined", "dd.MM.yyyy"),
            "tags": f.array_distinct(f.split(f.lower("tags"), ";")),
        }
    )
    .withColumn("first_tag", f.col("tags")[0])
    .withColumn("days", f.datediff(f.lit("2024-12-31"), f.col("joined")))
    .withColumn("key", f.sha2(f.concat_ws("|", "email", "joined"), 256))
)
clean.drop("country", "tags").write.parquet("contacts")
clean.select("key", f.explode("tags").alias("tag")).write.mode("overwrite").csv("tags")
clean.groupBy("domain", f.date_trunc("month", "joined").alias("month")).agg(
    f.count("key").alias("contacts"), f.max(f.length("name")).alias("longest")
).write.json("domains")
spark.stop()
