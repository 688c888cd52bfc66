"""A seed is loaded from literals, a date spine is made, and a mart counts the active users of each day and country."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.json(
    "events.json", schema="user_id INT, country STRING, event_date DATE, kind STRING"
).createOrReplaceTempView("events")
spark.sql("CREATE TABLE seed_countries (code STRING, name STRING) USING parquet")
spark.sql("INSERT OVERWRITE TABLE seed_countries VALUES ('NO', 'Norway'), ('SE', 'Sweden')")
spark.sql("""
    CREATE OR REPLACE TEMPORARY VIEW all_days AS
    SELECT explode(sequence(DATE '2024-01-01', DATE '2024-01-04', INTERVAL 1 DAY)) AS date_day
""")
spark.sql("""
    CREATE TABLE fct_active_users USING parquet AS
    WITH first_and_last AS (
        SELECT user_id, country, MIN(event_date) AS first_seen, MAX(event_date) AS last_seen
        FROM events WHERE kind <> 'ping' GROUP BY user_id, country
    ),
    active AS (
        SELECT d.date_day, f.user_id, f.country, datediff(d.date_day, f.first_seen) AS age
        FROM all_days d JOIN first_and_last f ON d.date_day BETWEEN f.first_seen AND f.last_seen
    )
    SELECT md5(concat_ws('-', CAST(date_day AS STRING), c.name)) AS active_key, date_day, c.name AS country,
           COUNT(DISTINCT user_id) AS users, approx_count_distinct(user_id) AS users_about, MAX(age) AS oldest
    FROM active LEFT JOIN seed_countries c ON c.code = active.country
    GROUP BY date_day, c.name
""")
spark.stop()
