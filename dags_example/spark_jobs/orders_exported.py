"""Exports orders by plain Python, which no listener sees, and declares the file with what accumulators have counted.

Usage: ``spark-submit orders_exported.py ORDERS_CSV TARGET``. ``TARGET`` is a file of JSON lines.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import Row, SparkSession

from spark_lineage.declare import read, wrote


def main(orders_csv: str, target: str) -> None:
    """Export the orders with a quantity; count those and the others."""
    spark = SparkSession.builder.appName("orders_exported").getOrCreate()
    exported = spark.sparkContext.accumulator(0)
    rejected = spark.sparkContext.accumulator(0)
    pieces = Path(f"{target}.pieces")
    pieces.mkdir(parents=True, exist_ok=True)

    def export(number: int, orders: list[Row]) -> list[int]:
        """Write the orders of one partition; an accumulator adds what the partition has counted."""
        lines = [json.dumps([order.order_id, order.quantity]) for order in orders if order.quantity is not None]
        (pieces / f"{number:05}").write_text("".join(f"{line}\n" for line in lines))
        exported.add(len(lines))
        rejected.add(len(orders) - len(lines))
        return []

    orders = spark.read.csv(orders_csv, header=True, inferSchema=True)
    orders.rdd.mapPartitionsWithIndex(lambda number, rows: export(number, list(rows))).count()
    Path(target).write_text("".join(piece.read_text() for piece in sorted(pieces.iterdir())))
    source = read(orders_csv)
    wrote(
        target,
        columns={"order_id": source["order_id"], "quantity": source["quantity"]},
        rows=exported.value,
        mode="overwrite",
        properties={"rejected": str(rejected.value)},
    )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
