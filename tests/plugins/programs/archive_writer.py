"""Writes an output of the archive until it is killed: ``archive_writer.py OUT DOCUMENTS``; says how far it has come."""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession

from spark_lineage.archive.destination import Destination
from spark_lineage.archive.rows import DOCUMENT
from spark_lineage.archive.tables import write_tables

if __name__ == "__main__":
    out, documents = sys.argv[1:]
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    destination = Destination(spark, out)
    version = destination.begin()
    sys.stdout.write(f"{version}\n")
    sys.stdout.flush()
    frame = spark.read.schema(DOCUMENT).json(documents)
    days = write_tables(destination, version, frame, frame.select("run_id"))
    sys.stdout.write("written\n")
    sys.stdout.flush()
    # A pointer that is replaced all the time, and is the same all the time.
    while destination.current is not None:
        destination.commit(destination.current)
    time.sleep(600)
