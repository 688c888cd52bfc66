"""An example: four questions to the tables of an archive, as a notebook.

``python lineage_questions.py ARCHIVE [NAMESPACE NAME [COLUMN]]``; without a name it asks about what most tasks read.
Cells begin with ``# %%``, as VS Code and Databricks read them. ``lineage_questions.ipynb`` is the same for Jupyter; its
archive is that of the variable ``SPARK_LINEAGE_EXAMPLE_ARCHIVE``.
"""

# %%
from __future__ import annotations

import os
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_lineage.archive.rows import TABLES
from spark_lineage.archive.tables import read_table

# The arguments of a kernel are its own.
IN_JUPYTER = "ipykernel" in sys.modules
ARCHIVE, *ASKED = [os.environ["SPARK_LINEAGE_EXAMPLE_ARCHIVE"]] if IN_JUPYTER else sys.argv[1:]
DAYS = 7

spark = SparkSession.builder.getOrCreate()
tables: dict[str, DataFrame] = {}
for table in TABLES:
    tables[table] = read_table(spark, ARCHIVE, table)
    tables[table].createOrReplaceTempView(table)

most_read = tables["run_inputs"].groupBy("namespace", "name").count().orderBy(f.desc("count"), "name").first()
if not ASKED and most_read is not None:
    ASKED = [most_read.namespace, most_read.name]

# %% [markdown]
# What is downstream of this table, and how many steps away?


# %%
def reached(edges: DataFrame, begin: DataFrame, keys: list[str]) -> DataFrame:
    """Give all that the edges lead to: ``from_KEY`` to ``to_KEY``, each with the fewest ``steps``.

    Edges of many runs are the same edge; a table that feeds itself ends the walk, as nothing new is found.
    """
    edges = edges.distinct().cache()
    found = begin.withColumn("steps", f.lit(0))
    newest, steps = found, 0
    while not newest.isEmpty():
        steps += 1
        ends = newest.select(*(f.col(key).alias(f"from_{key}") for key in keys))
        following = edges.join(ends, [f"from_{key}" for key in keys])
        following = following.select(*(f.col(f"to_{key}").alias(key) for key in keys)).distinct()
        # Kept, so that each step begins where the last one ended.
        newest = following.join(found, keys, "left_anti").withColumn("steps", f.lit(steps)).localCheckpoint()
        found = found.union(newest)
    return found.where("steps > 0").orderBy("steps", *keys)


namespace, name = ASKED[:2]
edges = spark.sql("""
    SELECT input_namespace AS from_namespace, input_name AS from_name,
           output_namespace AS to_namespace, output_name AS to_name
    FROM dataset_edges
""")
asked = spark.createDataFrame([(namespace, name)], "namespace string, name string")
print(f"Downstream of {name}:")
downstream = reached(edges, asked, ["namespace", "name"])
downstream.show(truncate=False)

# %% [markdown]
# Which columns feed this one, through all tables between? Filters and joins (INDIRECT) are left out.

# %%
columns = spark.sql("""
    SELECT DISTINCT output_namespace AS namespace, output_name AS name, output_field AS field
    FROM column_edges WHERE output_field IS NOT NULL ORDER BY namespace, name, field
""")
if len(ASKED) > 2:  # noqa: PLR2004  # a column is asked about
    columns = columns.where((f.col("name") == name) & (f.col("field") == ASKED[2]))
column = columns.limit(1).localCheckpoint()
column_edges = spark.sql("""
    SELECT output_namespace AS from_namespace, output_name AS from_name, output_field AS from_field,
           input_namespace AS to_namespace, input_name AS to_name, input_field AS to_field
    FROM column_edges
    WHERE transformation_type = 'DIRECT' AND output_field IS NOT NULL
""")
print("Columns that feed", *(f"{each.name}.{each.field}:" for each in column.collect()))
sources = reached(column_edges, column, ["namespace", "name", "field"])
sources.show(truncate=False)

# %% [markdown]
# Which tasks fail most?

# %%
failures = spark.sql("""
    SELECT job_namespace, job_name, count(*) AS runs, count_if(event_type = 'FAIL') AS failed,
           round(100 * count_if(event_type = 'FAIL') / count(*)) AS percent,
           max_by(error_message, event_time) FILTER (WHERE event_type = 'FAIL') AS last_error
    FROM runs
    GROUP BY job_namespace, job_name
    HAVING failed > 0
    ORDER BY failed DESC, percent DESC, job_name
""")
print("Tasks that fail most:")
failures.show(truncate=False)

# %% [markdown]
# What has not been written for a week, seen from the last day of the archive, though it is still there?

# %%
stale = spark.sql(
    """
    WITH written AS (
        SELECT namespace, name, max(last_written_at) AS written_at FROM datasets GROUP BY namespace, name
    ), dropped AS (
        SELECT namespace, name, max(time) AS dropped_at FROM catalog_changes
        WHERE change = 'DROP' GROUP BY namespace, name
    )
    SELECT namespace, name, written_at
    FROM written LEFT JOIN dropped USING (namespace, name)
    WHERE written_at < (SELECT max(event_time) FROM runs) - make_dt_interval(:days)
      AND (dropped_at IS NULL OR dropped_at < written_at)
    ORDER BY written_at, namespace, name
    """,
    args={"days": DAYS},
)
print(f"Not written for {DAYS} days:")
stale.show(truncate=False)
