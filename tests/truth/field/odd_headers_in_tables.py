"""Tables with odd headers: CTAS, INSERT with and without a list of columns, ADD COLUMNS, RENAME TO, saveAsTable."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
book = spark.read.parquet("book.parquet")
book.createOrReplaceTempView("book")
spark.sql("""
    CREATE TABLE copied USING parquet AS
    SELECT `Amount, EUR`, `#7` AS `cost AS planned`, sum(`THEN (`) FROM book GROUP BY `Amount, EUR`, `#7`
""")
spark.sql("CREATE TABLE ledger (`Amount, EUR` BIGINT, `cost AS planned` STRING, `#7` BIGINT) USING parquet")
spark.sql("""
    INSERT INTO ledger (`#7`, `Amount, EUR`, `cost AS planned`)
    SELECT `x#12L`, `THEN (`, CAST(`null` AS STRING) FROM book WHERE `AS y` > 0
""")
spark.sql("ALTER TABLE ledger ADD COLUMNS (`No #12, old` BIGINT COMMENT 'the (old) number, AS x#1')")
spark.sql("INSERT INTO ledger SELECT `a.b`, `it's`, `h[0]`, `No #12, old` FROM book")
spark.sql("ALTER TABLE ledger RENAME TO ledger_kept")
spark.sql("CREATE TABLE parts (`l{m}` BIGINT, `day (1), of` BIGINT) USING parquet PARTITIONED BY (`day (1), of`)")
spark.sql("INSERT INTO parts SELECT `q``t`, `total ` FROM book")
book.select("CASE WHEN", "Net\nprice").write.saveAsTable("saved")
book.select("count(1)", "Grün & Weiß").write.mode("append").format("orc").save("orcs")
spark.table("ledger_kept").groupBy("cost AS planned").max("No #12, old").write.json("json")
book.select("Rate (1) [%]", "select").write.csv("csv", header=True)
spark.stop()
