"""Forgets people: deletes them by MERGE and DELETE, blanks what must stay, vacuums, and appends to a log of runs."""

import sys
from datetime import UTC, datetime

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

home = sys.argv[1]
spark = SparkSession.builder.appName("forget-me").getOrCreate()
requests = spark.read.csv("requests.csv", header=True, schema="user_id INT, status STRING, asked DATE")
approved = requests.where("status = 'approved'").select("user_id")

users = DeltaTable.forPath(spark, f"{home}/users")
users.alias("u").merge(approved.alias("r"), "u.id = r.user_id").whenMatchedDelete().execute()

ids = [row.user_id for row in approved.collect()]
events = DeltaTable.forPath(spark, f"{home}/events")
events.delete(f.col("user_id").isin(ids))
spark.sql(f"""
    UPDATE delta.`{home}/sessions` SET ip = NULL, agent = 'erased' WHERE user_id IN ({", ".join(map(str, ids))})
""")
events.vacuum(168)

log = spark.createDataFrame(
    [(datetime(2024, 1, 1, tzinfo=UTC), "forget", len(ids))], "at TIMESTAMP, what STRING, people INT"
)
log.coalesce(1).write.mode("append").json(f"{home}/runs")
spark.stop()
