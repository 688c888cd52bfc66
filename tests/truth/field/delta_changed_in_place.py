"""A Delta table is changed three times in place: by rows of its own, by an update, and by a merge with a file."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("changes.csv", header=True, schema="id INT, cents INT").createOrReplaceTempView("changes")
spark.sql("INSERT INTO accounts SELECT id + 10, cents, 'copied' FROM accounts WHERE status = 'open'")
spark.sql("UPDATE accounts SET cents = 0 WHERE status = 'shut'")
spark.sql("""
    MERGE INTO accounts t USING changes s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET cents = s.cents
    WHEN NOT MATCHED THEN INSERT (id, cents, status) VALUES (s.id, s.cents, 'new')
""")
spark.stop()
