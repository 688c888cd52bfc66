"""Writes a Delta or Iceberg table of an archive, and dies, and writes again: ``archive_snapshots.py OUT FORMAT``.

What must hold is asserted here, because the table needs a Spark with other jars than that of the tests.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from spark_lineage.archive.columns import TABLES
from spark_lineage.archive.destination import Current, Destination
from spark_lineage.archive.tables import check_format, open_tables, read_table, session_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_lineage.archive.pointer import TableFormat

DAY, NEXT_DAY, LATER = "2026-01-31", "2026-02-01", "2026-02-07"
NAME = "dataset_edges"


class Writer:
    """Writes one table, of which each row is told by its run."""

    def __init__(self, out: str, table_format: TableFormat) -> None:
        builder = SparkSession.builder.master("local[1]")
        for key, value in session_conf(table_format, out).items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.out = out
        self.table_format: TableFormat = table_format

    def write(self, runs: dict[str, str], *days: str, is_dead: bool = False) -> None:
        """Replace days by runs, each with its day; who is dead does not commit."""
        with Destination(self.spark, self.out) as destination:
            version = destination.begin()
            check_format(destination, self.table_format)
            tables = open_tables(self.spark, destination.files, destination.current, self.table_format)
            tables.write(NAME, self._rows(runs), days, version)
            assert self._of(tables.written(NAME, days, version)) == runs
            if not is_dead:
                destination.commit(Current(version=version, table_format=self.table_format))

    def read(self) -> dict[str, str]:
        """Return the runs that the pointer means."""
        return self._of(read_table(self.spark, self.out, NAME))

    def newest(self) -> dict[str, str]:
        """Return the runs that any reader of the table finds."""
        return self._of(self.spark.read.format(self.table_format).load(f"{self.out}/{NAME}"))

    def _rows(self, runs: dict[str, str]) -> DataFrame:
        rows = self.spark.createDataFrame([], f"{TABLES[NAME]}, day date")
        made = self.spark.createDataFrame(list(runs.items()), "run_id string, day string")
        return rows.unionByName(made.selectExpr("run_id", "to_date(day) AS day"), allowMissingColumns=True)

    @staticmethod
    def _of(rows: DataFrame) -> dict[str, str]:
        return {row["run_id"]: str(row["day"]) for row in rows.collect()}


def main(out: str, table_format: TableFormat) -> None:
    """Assert that what was committed is read, and no more, and that the next run is right."""
    writer = Writer(out, table_format)
    writer.write({"dead": DAY}, DAY, is_dead=True)
    first = {"a": DAY, "b": DAY, "c": NEXT_DAY}
    writer.write(first, DAY, NEXT_DAY)
    assert writer.read() == writer.newest() == first
    writer.write({"a": LATER}, DAY, LATER, is_dead=True)
    writer.write({"a": "2026-03-01"}, "2026-03-01", is_dead=True)
    assert writer.newest() != first
    assert writer.read() == first
    # What the dead wrote is gone, also from days that are not replaced.
    writer.write({"d": NEXT_DAY}, NEXT_DAY)
    assert writer.read() == writer.newest() == {"a": DAY, "b": DAY, "d": NEXT_DAY}
    sys.stdout.write("as it should be\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])  # type: ignore[arg-type]
