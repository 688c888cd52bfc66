"""An Iceberg catalog of directories and one that a database keeps: a table goes over, another is only registered."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

home = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
# DriverManager knows only drivers that were loaded.
spark._jvm.org.h2.Driver.load()
spark.read.csv("rates.csv", header=True, schema="code STRING, rate INT").createOrReplaceTempView("rates")
spark.sql("CREATE NAMESPACE IF NOT EXISTS kept.db")
spark.sql("""
    CREATE TABLE kept.db.sales USING iceberg AS
    SELECT s.id, s.amount * r.rate AS amount FROM files.db.sales s JOIN rates r ON r.code = s.code
""")
newest = max(Path(home, "lake/db/shops/metadata").glob("v*.metadata.json"))
spark.sql(f"CALL kept.system.register_table(table => 'db.shops', metadata_file => '{newest}')")
spark.sql("INSERT INTO kept.db.sales SELECT id, 0 FROM kept.db.shops WHERE open")
spark.sql("""
    SELECT k.amount, f.code FROM kept.db.sales k JOIN files.db.sales f ON f.id = k.id
""").write.parquet("both")
spark.stop()
