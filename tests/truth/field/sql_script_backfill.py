"""A script of SQL fills a table day by day in a loop, and makes a second one if the first has come out right."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("orders.csv", header=True, inferSchema=True).createOrReplaceTempView("orders")
spark.sql("""
    BEGIN
        DECLARE v_day INT DEFAULT 1;
        CREATE TABLE day_totals (day INT, total BIGINT, best STRING) USING parquet;
        WHILE v_day <= 3 DO
            INSERT INTO day_totals
            SELECT v_day, SUM(amount), MAX(customer) FROM orders WHERE order_day = v_day;
            SET v_day = v_day + 1;
        END WHILE;
        IF (SELECT COUNT(*) FROM day_totals WHERE total IS NOT NULL) = 3 THEN
            CREATE TABLE good_days USING parquet AS SELECT day, total FROM day_totals WHERE total > 15;
        ELSE
            CREATE TABLE bad_days USING parquet AS SELECT day FROM day_totals WHERE total IS NULL;
        END IF;
    END
""")
spark.stop()
