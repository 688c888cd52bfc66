"""Delta tables with odd headers (column mapping): MERGE, UPDATE, DELETE, INSERT, and RENAME COLUMN after a write."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
stock, prices, old, renamed, grown = (
    f"delta.`{sys.argv[1]}/{name}`" for name in ("stock", "prices", "old", "renamed", "grown")
)
spark.read.parquet("changes.parquet").createOrReplaceTempView("changes")
spark.sql(f"""
    MERGE INTO {stock} t USING changes s ON t.id = s.`No #12, old`
    WHEN MATCHED AND s.`CASE WHEN` = '(, D' THEN DELETE
    WHEN MATCHED THEN UPDATE SET `Amount, EUR` = s.`x#12L` + 1, `cost AS planned` = s.`AS y`
    WHEN NOT MATCHED THEN INSERT (id, `Amount, EUR`, `cost AS planned`, `THEN (`)
        VALUES (s.`No #12, old`, s.`x#12L`, s.`AS y`, 0)
""")
spark.sql(f"""
    UPDATE {prices} SET `Amount, EUR` = `Amount, EUR` * 2, `cost AS planned` = concat(`cost AS planned`, ' (x, y#1')
    WHERE `THEN (` > 0
""")
spark.sql(f"DELETE FROM {old} WHERE `Amount, EUR` < 0 OR `cost AS planned` = '(a, b'")
spark.sql(f"INSERT INTO {renamed} SELECT `No #12, old`, `x#12L`, `AS y`, 1 FROM changes WHERE `CASE WHEN` <> '['")
spark.sql(f"ALTER TABLE {renamed} RENAME COLUMN `cost AS planned` TO `#7, new`")
spark.sql(f"ALTER TABLE {grown} ADD COLUMNS (`No #12, new` BIGINT)")
spark.sql(f"""
    INSERT INTO {grown} (id, `No #12, new`, `Amount, EUR`, `cost AS planned`, `THEN (`)
    SELECT `No #12, old`, `x#12L` * 2, `x#12L`, `AS y`, 3 FROM changes
""")
spark.stop()
