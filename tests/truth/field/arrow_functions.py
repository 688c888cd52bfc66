"""Arrow instead of pandas: a map over batches, a map over groups, and a Python function whose values come by Arrow."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()


def scaled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make Fahrenheit of Celsius."""
    for batch in batches:
        degrees = pc.add(pc.multiply(batch.column("celsius"), 1.8), 32.0)
        yield pa.RecordBatch.from_arrays([batch.column("sensor"), degrees], names=["sensor", "fahrenheit"])


def ranked(group: pa.Table) -> pa.Table:
    """Return the rank of each reading of a sensor."""
    ordered = group.sort_by([("celsius", "descending")])
    return ordered.append_column("rank", pa.array(range(1, ordered.num_rows + 1), pa.int64()))


@f.udf("string", useArrow=True)
def label(sensor: str, celsius: float) -> str:
    """Name a reading."""
    return f"{sensor}: {'warm' if celsius > 20 else 'cold'}"


readings = spark.read.json("readings.json", schema="sensor STRING, celsius DOUBLE, day INT")
readings.select("sensor", "celsius").mapInArrow(scaled, "sensor STRING, fahrenheit DOUBLE").write.parquet("fahrenheit")
groups = readings.where("day > 1").select("sensor", "celsius").groupBy("sensor")
groups.applyInArrow(ranked, "sensor STRING, celsius DOUBLE, rank BIGINT").write.parquet("ranks")
readings.select("day", label("sensor", "celsius").alias("label")).write.mode("overwrite").orc("labels")
spark.stop()
