"""Rows of a table are written to a sink of the program's own in Python, whose place nobody else knows."""

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType


class Instrument(DataSource):
    """An instrument that takes rows."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "instrument"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what writes."""
        return Writer()


class Writer(DataSourceWriter):
    """Writes lines."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Append each row to a file."""
        with Path("/dev/null").open("a") as out:
            out.writelines(f"{row}\n" for row in iterator)
        return WriterCommitMessage()


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(Instrument)
orders = spark.read.parquet("orders.parquet")
orders.where("amount > 1").write.format("instrument").mode("append").save()
spark.stop()
