"""A catalog of a database that answers sums, groups, conditions and limits itself."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.csv("depots.csv", header=True, inferSchema=True).createOrReplaceTempView("depots")
for name, query in {
    "by_depot": """
        SELECT DEPOT, SUM(COST) FROM h2.SALES.ORDERS WHERE STATE = 'paid' GROUP BY DEPOT HAVING SUM(COST) > 10
    """,
    "totals": "SELECT COUNT(*), MAX(COST), MIN(ID) AS first FROM h2.SALES.ORDERS WHERE ID > 1",
    "averages": "SELECT DEPOT AS d, AVG(COST) AS a, COUNT(DISTINCT STATE) AS s FROM h2.SALES.ORDERS GROUP BY DEPOT",
    "dearest": "SELECT ID, COST FROM h2.SALES.ORDERS ORDER BY COST DESC LIMIT 2",
    "named": """
        SELECT n.name, t.total FROM (SELECT DEPOT, SUM(COST) AS total FROM h2.SALES.ORDERS GROUP BY DEPOT) t
        JOIN depots n ON n.id = t.DEPOT
    """,
    "computed": """
        SELECT SUM(COST * 2) AS twice, SUM(CASE WHEN STATE = 'paid' THEN COST ELSE 0 END) AS paid
        FROM h2.SALES.ORDERS
    """,
    "plain": "SELECT ID, upper(STATE) AS state FROM h2.SALES.ORDERS WHERE COST > 5",
}.items():
    spark.sql(query).write.parquet(name)
print(spark.table("h2.SALES.DEPOTS").count(), "depots")
spark.stop()
