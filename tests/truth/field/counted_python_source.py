"""A data source of the program's own in Python is read, and what it gives is written to files."""

from collections.abc import Iterator

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType


class Readings(DataSource):
    """Readings of an instrument."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "readings"

    def schema(self) -> str:
        """Return the columns."""
        return "at INT, degrees DOUBLE"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads."""
        return Reader()


class Reader(DataSourceReader):
    """Reads two rows."""

    def read(self, partition: object) -> Iterator[tuple[int, float]]:
        """Return the rows."""
        yield from ((1, 20.5), (2, 21.0))


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(Readings)
spark.read.format("readings").load().where("degrees > 20").write.parquet("warm")
spark.read.csv("limits.csv", header=True).write.parquet("limits")
spark.stop()
