"""UPDATE, DELETE and MERGE of Iceberg tables that are merged on read, and an UPDATE that copies rows."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
changes = spark.read.csv("changes.csv", header=True, schema="id INT, name STRING, gone BOOLEAN")
changes.createOrReplaceTempView("changes")
spark.sql("UPDATE ice.db.updated SET status = upper(name) WHERE id IN (SELECT id FROM ice.db.flags WHERE bad)")
spark.sql("DELETE FROM ice.db.deleted WHERE status = 'old' AND id > 2")
spark.sql("""
    MERGE INTO ice.db.merged t USING changes s ON t.id = s.id
    WHEN MATCHED AND s.gone THEN DELETE
    WHEN MATCHED THEN UPDATE SET name = s.name
    WHEN NOT MATCHED THEN INSERT (id, name, status) VALUES (s.id, s.name, 'new')
""")
spark.sql("UPDATE ice.db.copied SET status = 'seen' WHERE id = 1")
spark.stop()
