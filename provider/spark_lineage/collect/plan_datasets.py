"""Tells which datasets the operators of a plan read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_lineage.collect.plan import Node, Plan
from spark_lineage.collect.plan_expressions import IDENTITY, arguments
from spark_lineage.collect.plan_operators import Sources, given_out_by
from spark_lineage.collect.plan_tables import IDENTIFIER, Tables
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.path_patterns import PARTITION

# Scan parquet spark_catalog.db.t; of a path, the table is missing.
_FILE_SCAN = re.compile(r"(?:File)?Scan (?P<format>[\w.]+)(?: +(?P<table>\S+))?\s*")
_V2_SCAN = re.compile(r"BatchScan (?P<table>\S+)(?P<rest>.*)", re.DOTALL)
_HIVE_SCAN = re.compile(r"Scan hive (?P<table>\S+)")
_LOCATION = re.compile(r"(?P<index>\w+) ?(?:\(\d+ paths\))?\[(?P<first>.*?)(?:, \.\.\. \d+ entries)?\]")
# What a command's logical plan reads, by the name of a table; without one its place is not told.
_LOGICAL = frozenset({"LogicalRelation", "HiveTableRelation"})
# Delta's own log, which it reads to find its files.
_INTERNAL_INDEXES = frozenset({"DeltaLogFileIndex"})


def location_of(node: Node) -> str:
    """Give the first location that a scan of files names, empty if it names none, or nothing of the user's."""
    match = _LOCATION.match(node.fields.get("Location", ""))
    if match is None or match["index"] in _INTERNAL_INDEXES:
        return ""
    return match["first"]


def scanned(node: Node, tables: Tables) -> Observed | None:
    """Give the dataset that a leaf reads; None for what is no dataset, or one that the plan does not name.

    A JDBC table is none: the plan does not tell its database, since Spark redacts its URL.
    """
    location = location_of(node)
    if (file_scan := _FILE_SCAN.fullmatch(node.name)) and location:
        table = file_scan["table"] or ""
        tables.learn(table, _table_root(location, node) if table else "")
        return tables.at(_table_root(location, node) if table else location, table)
    if node.name in _LOGICAL:
        table = next((part for part in arguments(node.fields.get("Arguments", "")) if IDENTIFIER.fullmatch(part)), "")
        return tables.named(table) if table else None
    if hive := _HIVE_SCAN.match(node.name):
        return tables.named(hive["table"])
    if v2 := _V2_SCAN.fullmatch(node.name):
        if location:
            return tables.at(location)
        if "." in v2["table"]:
            return tables.named(v2["table"])
    return None


def _table_root(location: str, node: Node) -> str:
    """A scan of one partition of a table names its directory: leave out ``key=value`` at the end."""
    if "PartitionFilters" not in node.fields:
        return location
    return re.sub(rf"(?:/{PARTITION})+\Z", "", location)


def read_by(plan: Plan, tables: Tables) -> tuple[Observed, ...]:
    """Give all datasets that a plan reads."""
    return tuple(observed for node in plan.walk() if not node.children and (observed := scanned(node, tables)))


def leaf_sources(node: Node, tables: Tables) -> Iterator[Sources]:
    """Give for each attribute of a leaf the column that it is, by position."""
    observed = scanned(node, tables)
    for attribute in given_out_by(node):
        yield frozenset() if observed is None else frozenset(((observed.dataset, attribute.name, IDENTITY),))
