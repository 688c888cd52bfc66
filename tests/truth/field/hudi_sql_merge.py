"""A Hudi table by SQL: CREATE TABLE, INSERT from a file, MERGE of changes, UPDATE and DELETE."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.conf.set("hoodie.metadata.enable", "false")
base = spark.read.csv("base.csv", header=True, schema="id INT, owner STRING, balance DOUBLE, ts BIGINT")
changes = spark.read.csv(
    "changes.csv", header=True, schema="account INT, name STRING, delta DOUBLE, op STRING, ts BIGINT"
)
base.createOrReplaceTempView("base")
changes.createOrReplaceTempView("changes")
spark.sql("""
    CREATE TABLE accounts (id INT, owner STRING, balance DOUBLE, ts BIGINT) USING hudi
    TBLPROPERTIES (type = 'cow', primaryKey = 'id', preCombineField = 'ts')
""")
spark.sql("INSERT INTO accounts SELECT id, owner, balance, ts FROM base")
spark.sql("""
    MERGE INTO accounts AS t
    USING (SELECT account AS id, name AS owner, delta AS balance, op, ts FROM changes) AS s ON t.id = s.id
    WHEN MATCHED AND s.op = 'close' THEN DELETE
    WHEN MATCHED AND s.op = 'set' THEN UPDATE SET balance = s.balance, ts = s.ts
    WHEN NOT MATCHED THEN INSERT (id, owner, balance, ts) VALUES (s.id, s.owner, s.balance, s.ts)
""")
spark.sql("UPDATE accounts SET balance = balance * 2 WHERE owner = 'Ann'")
spark.sql("DELETE FROM accounts WHERE balance < 0")
spark.table("accounts").select("id", "owner", "balance", "ts").show()
spark.stop()
