"""An Iceberg table is read, appended to from itself, merged into, and compared with what it was before all of it."""

from pyspark.sql import SparkSession

TABLE = "ice.db.accounts"
spark = SparkSession.builder.getOrCreate()
spark.read.csv("changes.csv", header=True, schema="id INT, cents INT").createOrReplaceTempView("changes")
first = spark.sql(f"SELECT snapshot_id FROM {TABLE}.refs WHERE name = 'main'").first().snapshot_id
spark.sql(f"INSERT INTO {TABLE} SELECT id + 10, cents, kind FROM {TABLE} WHERE kind = 'open'")
spark.sql(f"""
    MERGE INTO {TABLE} t USING changes s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET cents = s.cents
    WHEN NOT MATCHED THEN INSERT (id, cents, kind) VALUES (s.id, s.cents, 'new')
""")
spark.sql(f"""
    SELECT o.id, o.cents AS before, c.cents AS wanted
    FROM (SELECT * FROM {TABLE} VERSION AS OF {first}) o JOIN changes c ON c.id = o.id
""").write.parquet("changed")
spark.stop()
