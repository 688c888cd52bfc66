"""Sources and sinks of which no evidence has a name: a memory sink that is read back, and a data source in Python."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType


class Prices(DataSource):
    """Two prices, as a service might give them."""

    @classmethod
    def name(cls) -> str:
        return "prices"

    def schema(self) -> str:
        return "sku string, price double"

    def reader(self, schema: StructType) -> DataSourceReader:
        return PriceReader()


class Ledger(DataSource):
    """A service that takes all rows that it is given."""

    @classmethod
    def name(cls) -> str:
        return "ledger"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return LedgerWriter()


class PriceReader(DataSourceReader):
    def read(self, partition: Any) -> Iterator[tuple[str, float]]:
        yield "a", 1.5
        yield "b", 2.5


class LedgerWriter(DataSourceWriter):
    def write(self, rows: Iterator[Any]) -> WriterCommitMessage:
        list(rows)
        return WriterCommitMessage()


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(Prices)
spark.dataSource.register(Ledger)

orders = spark.readStream.schema("sku string, amount double").csv("orders")
query = orders.where("amount > 1").writeStream.format("memory").queryName("recent").trigger(availableNow=True).start()
query.awaitTermination()
spark.table("recent").select(f.upper("sku").alias("sku"), "amount").write.parquet("from_memory")

spark.read.format("prices").load().where("price > 2").write.parquet("from_service")
spark.read.csv("stock.csv", header=True).select("sku").write.format("ledger").mode("append").save()
spark.stop()
