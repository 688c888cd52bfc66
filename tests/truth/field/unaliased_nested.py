"""Fields, elements, lambdas and rows of arrays, none of them with an alias."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
schema = "id INT, info STRUCT<city: STRING, zip: STRING>, tags ARRAY<STRING>, body STRING"
spark.read.json("events.json", schema=schema).createOrReplaceTempView("events")
for name, query in {
    "fields": "SELECT info.city, tags[0], size(tags), get_json_object(body, '$.k') FROM events",
    "elements": "SELECT id, explode(tags) FROM events",
    "parts": r"SELECT id, explode(split(body, '\\(')) FROM events",
    "numbered": "SELECT posexplode(tags), id FROM events",
    "lambdas": """
        SELECT transform(tags, t -> upper(t)), filter(tags, t -> t LIKE '(%'), array_join(tags, ', ')
        FROM events
    """,
    "made": "SELECT struct(id, tags), map('(', body), array(id, size(tags)), named_struct('f', id).f FROM events",
    "cities": "SELECT info.city, count(*), collect_set(info.zip) FROM events GROUP BY info.city",
    "parsed": "SELECT from_json(body, 'k INT').k, element_at(tags, 1), to_json(info) FROM events WHERE size(tags) > 0",
}.items():
    spark.sql(query).write.parquet(name)
spark.stop()
