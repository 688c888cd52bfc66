"""A database of a catalog filters, groups, aggregates, sorts and limits itself; a table with odd names does, too."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
queries = {
    "totals": """
        SELECT DEPOT, SUM(COST) AS total, COUNT(*) AS n FROM depot.PUBLIC.COSTS WHERE KIND <> 'fee' GROUP BY DEPOT
        HAVING SUM(COST) > 5
    """,
    "ends": """
        SELECT MIN(COST) AS least, MAX(ID), COUNT(DISTINCT DEPOT) AS depots, AVG(COST * 2) FROM depot.PUBLIC.COSTS
    """,
    "shares": """
        SELECT SUM(CASE WHEN KIND = 'rent' THEN COST ELSE 0 END) AS rent FROM depot.PUBLIC.COSTS
        WHERE YEAR_ IN (2023, 2024) AND (DEPOT LIKE 'n%' OR DEPOT = 'a, b')
    """,
    "dearest": "SELECT ID, COST FROM depot.PUBLIC.COSTS WHERE DEPOT <> 'it''s' ORDER BY COST DESC, YEAR_ LIMIT 2",
    "odd": """
        SELECT `cost AS planned` AS plan, SUM(`Amount, EUR`) AS amount, MIN(`max(x)`) AS x FROM depot.PUBLIC.`Plan 1`
        WHERE `No #12, old` > 1 GROUP BY `cost AS planned`
    """,
    "counted": "SELECT COUNT(*) AS n FROM depot.PUBLIC.COSTS",
}
for name, query in queries.items():
    spark.sql(query).write.json(name)
spark.stop()
