"""Finds where Iceberg takes the files of another table over: ``CALL add_files``, ``snapshot`` and ``migrate``.

A call is no SQL execution. Those that it runs (``org.apache.iceberg.spark.SparkTableUtil``) look for files that the
table has already, in its metadata table ``entries``, and then write manifests; none names the files.
"""

from __future__ import annotations

import re

from spark_lineage.merge.observed import Observed
from spark_lineage.plans.plan import Plan
from spark_lineage.plans.tables import Tables

TAKEN_OVER = "CALL: the files that a table takes over"
"""What is counted of each table whose files come from elsewhere."""
_PARTITIONS = "org.apache.iceberg.spark.SparkTableUtil$SparkPartition"
_ENTRIES = re.compile(r"BatchScan (?P<table>\S+)\.entries\b")


def taken_over(plan: Plan, tables: Tables) -> tuple[Observed, ...] | None:
    """Return the table whose manifests a plan writes, none where its name is not known, None for all other plans.

    The table is the one whose entries were looked through before.
    """
    if not any(_PARTITIONS in node.fields.get("Arguments", "") for node in plan.walk()):
        return None
    entries = next((match for node in plan.walk() if (match := _ENTRIES.match(node.name))), None)
    if entries is not None:
        tables.looked_through = tables.named(entries["table"])
        return None
    table, tables.looked_through = tables.looked_through, None
    return () if table is None else (table,)
