"""Tells which datasets the operators of a plan read."""

from __future__ import annotations

import re

from spark_lineage.merge.lineage import IDENTITY, SchemaField, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.unnamed_datasets import unnamed
from spark_lineage.naming.path_patterns import PARTITION
from spark_lineage.plans.plan import Node, Plan, arguments, elements
from spark_lineage.plans.scope import Read, given_out_by
from spark_lineage.plans.tables import IDENTIFIER, Tables

# Scan parquet spark_catalog.db.t; of a path, the table is missing.
_FILE_SCAN = re.compile(r"(?:File)?Scan (?P<format>[\w.]+)(?: +(?P<table>\S+))?\s*")
_V2_SCAN = re.compile(r"BatchScan (?P<table>\S+)(?P<rest>.*)", re.DOTALL)
_HIVE_SCAN = re.compile(r"Scan hive (?P<table>\S+)")
_JDBC_SCAN = re.compile(r"Scan JDBCRelation\((?P<table>[^()]+)\)")
_LOCATION = re.compile(r"(?P<index>\w+) ?(?:\(\d+ paths\))?\[(?P<first>.*?)(?:, \.\.\. \d+ entries)?\]")
# What a command's logical plan reads, by the name of a table; without one its place is not told.
_LOGICAL = frozenset({"LogicalRelation", "HiveTableRelation"})
# The change feed of a Delta table names the table's log, and no location of its own.
_CHANGE_FEED = re.compile(r"DeltaCDFRelation\(.*?\bSnapshot\(path=(?P<location>\S+?)/_delta_log\b", re.DOTALL)
# A filter with a star is applied by the source alone: *In(kind, [a,b]), *Not(EqualTo(`a.b`,1)).
_PREDICATE = re.compile(r"\b(?!And\b|Or\b|Not\b)\w+\(`?([^(),`]+)`?[,)]")
_PUSHED = Transformation("INDIRECT", "FILTER")
_METADATA = frozenset(
    {
        "_metadata",
        "file_path",
        "file_name",
        "file_size",
        "file_block_start",
        "file_block_length",
        "file_modification_time",
    }
)
# They read no dataset.
_LOCAL = re.compile(r"LocalTableScan|LocalRelation|Range|EmptyRelation|(?:Scan )?OneRowRelation")
_SEVERAL = re.compile(r"\(\d+ paths\)\[|, \.\.\. \d+ entries\]")
# Delta's own log, which it reads to find its files.
_INTERNAL_INDEXES = frozenset({"DeltaLogFileIndex"})


def location_of(node: Node) -> str:
    """Return the first location that a scan of files names, empty if it names none, or nothing of the user's."""
    match = _LOCATION.match(node.fields.get("Location", ""))
    if match is None or match["index"] in _INTERNAL_INDEXES:
        return ""
    return match["first"]


def scanned(node: Node, tables: Tables) -> Observed | None:
    """Return the dataset that a leaf reads; None for what is no dataset, or one that the plan does not name.

    One that it names without its place is ``unnamed``: a JDBC table, whose URL Spark redacts, or a logical relation.
    """
    if feed := _CHANGE_FEED.search(f"{node.name} {node.fields.get('Arguments', '')}"):
        return tables.at(feed["location"])
    location = location_of(node)
    if (file_scan := _FILE_SCAN.fullmatch(node.name)) and location:
        table = file_scan["table"] or ""
        tables.learn(table, _table_root(location, node) if table else "")
        return tables.at(_table_root(location, node) if table else location, table)
    if location and _V2_SCAN.fullmatch(node.name):
        return tables.at(location)
    table, is_table = _named_by(node)
    if is_table:
        return tables.named(table)
    return _without_place(node, table) if table or node.name in _LOGICAL else None


def _named_by(node: Node) -> tuple[str, bool]:
    """The name by which a leaf reads, empty without one, and whether a catalog knows it; a database does else."""
    if node.name in _LOGICAL:
        parts = arguments(node.fields.get("Arguments", ""))
        table = next((part for part in parts if IDENTIFIER.fullmatch(part)), "")
        return table, bool(table)
    if hive := _HIVE_SCAN.match(node.name):
        return hive["table"], True
    if v2 := _V2_SCAN.fullmatch(node.name):
        return (v2["table"], True) if "." in v2["table"] else ("", False)
    jdbc = _JDBC_SCAN.match(node.name)
    return (jdbc["table"] if jdbc else ""), False


def _without_place(node: Node, table: str) -> Observed:
    columns = [attribute.name for attribute in given_out_by(node)]
    return Observed(unnamed(table, columns), schema=tuple(SchemaField(column) for column in columns))


def _table_root(location: str, node: Node) -> str:
    """A scan of one partition of a table names its directory: leave out ``key=value`` at the end."""
    if "PartitionFilters" not in node.fields:
        return location
    return re.sub(rf"(?:/{PARTITION})+\Z", "", location)


def read_by(plan: Plan, tables: Tables) -> tuple[Observed, ...]:
    """Return all datasets that a plan reads."""
    return tuple(observed for node in plan.walk() if not node.children and (observed := scanned(node, tables)))


def read_leaf(node: Node, tables: Tables) -> Read:
    """Return the columns that the attributes of a leaf are; of several paths the plan names the first alone."""
    observed = scanned(node, tables)
    if observed is None:
        return Read([], is_whole=bool(_LOCAL.match(node.name)))
    schema = node.fields.get("ReadSchema", "")
    columns = [
        # Where a row came from is no column of its file.
        frozenset()
        if attribute.name in _METADATA and f"{attribute.name}:" not in schema
        else frozenset(((observed.dataset, attribute.name, IDENTITY),))
        for attribute in given_out_by(node)
    ]
    pushed = (each for each in elements(node.fields.get("PushedFilters", "")) if each.startswith("*"))
    deciding = frozenset(
        (observed.dataset, match[1], _PUSHED) for each in pushed for match in _PREDICATE.finditer(each)
    )
    return Read(columns, not _SEVERAL.search(node.fields.get("Location", "")), deciding)
