"""Tables of a database are declared in Spark's catalog: one is filled, one replaced, one read; none has files."""

from pyspark.sql import SparkSession

OPTIONS = "OPTIONS (url 'jdbc:h2:file:./shop', driver 'org.h2.Driver', user 'sa', password 'pw-of-shop', dbtable '{}')"
spark = SparkSession.builder.getOrCreate()
for name, table in (("orders", "ORDERS"), ("customers", "CUSTOMERS"), ("totals", "TOTALS"), ("unused", "UNUSED")):
    spark.sql(f"CREATE TABLE {name} USING jdbc {OPTIONS.format(table)}")
spark.read.csv("new.csv", header=True, schema="id INT, customer INT, amount INT").createOrReplaceTempView("new")
spark.sql("INSERT INTO customers SELECT customer, concat('new ', id) FROM new WHERE amount IS NULL")
spark.sql("""
    INSERT OVERWRITE TABLE totals
    SELECT n.id, sum(o.AMOUNT) FROM orders o JOIN new n ON n.customer = o.CUSTOMER GROUP BY n.id
""")
spark.table("orders").select("ID", "AMOUNT").write.parquet("exported")
spark.stop()
