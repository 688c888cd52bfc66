"""Reads the leaves of ``sparkPlanInfo``: which dataset each needs, or that a rule ignores it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_lineage.merge.accounting import PlanPart
from spark_lineage.plans.accounting_rules import INDEXES, LEAVES, METADATA_SCAN, RELATIONS
from spark_lineage.plans.event_log_lines import PlanInfo

EXISTING_RDD = "Scan ExistingRDD"
LOCAL_ROWS = "LocalTableScan"

_LOCATION = re.compile(r"(?P<index>\w+)\((?P<count>\d+) paths\)\[(?P<paths>.*)\]", re.DOTALL)
_CUT_PATHS = ", ..."
_HIVE = re.compile(r"Scan hive (?P<table>\S+)")
_JDBC_SCAN = "Scan JDBCRelation"
_JDBC = re.compile(rf"{_JDBC_SCAN}\((?P<table>.*)\) \[numPartitions=\d+\]", re.DOTALL)
_V2_SCAN = re.compile(r"BatchScan (?P<table>.+)", re.DOTALL)
# A v2 scan whose source has Spark read as before (``V1ScanWrapper``).
_WRAPPED = re.compile(r"Scan .+ from v2 scan (?P<table>.+)", re.DOTALL)
_MOST_LETTERS = 100
# Files as a v2 source reads them (``FileTable.name``).
_V2_FILES = re.compile(r"BatchScan \w+ (?P<paths>[a-z][a-z0-9+.-]*:/.+)", re.DOTALL)
_HASH = re.compile(r"@[0-9a-f]{3,}\b")
_STREAM_SCAN = re.compile(
    r"(?P<node>(?:MicroBatch|Continuous|RealTimeStream)Scan)\b.*?\bclass (?P<class>[\w.$]+)", re.DOTALL
)
_LOOP = "UnionLoop"
_DELTA_LOG_RDD = re.compile(r"Scan ExistingRDD Delta \w.*_delta_log\b|Scan ExistingRDD\[txn#\d+,add#\d+,remove#\d+")
# The source of a MERGE, which an execution before it has read.
_MERGE_SOURCE = "Scan ExistingRDD mergeMaterializedSource"
# The answer of a source to aggregates that Spark has pushed down, such as Iceberg's from the statistics of its files.
_AGGREGATE = r"(?:count|min|max|sum)\([^#]*\)#\d+L?"
_AGGREGATES = re.compile(rf"{LOCAL_ROWS} \[{_AGGREGATE}(?:, {_AGGREGATE})*\]", re.DOTALL)
PUSHED_AGGREGATES = PlanPart(f"{LOCAL_ROWS} of aggregates", "input")
# Rows that a program makes as objects.
_OBJECTS = "[obj#"


def walk(info: PlanInfo) -> Iterator[PlanInfo]:
    """Return the nodes of a plan, parents before their children."""
    yield info
    for child in info.children:
        yield from walk(child)


def name_of(node: PlanInfo) -> str:
    """Return the name of a node, without the spaces that some scans have in it and the address of an object."""
    return _HASH.sub("", " ".join(node.nodeName.split()))


def is_of_rdd(node: PlanInfo) -> bool:
    """Whether a leaf gives out the rows of an RDD of the program: its jobs have what the RDD reads."""
    is_rdd = node.nodeName.startswith(EXISTING_RDD) or (node.nodeName.startswith("Scan") and _OBJECTS in node.described)
    return is_rdd and not is_of_delta_log(node) and not node.nodeName.startswith(_MERGE_SOURCE)


def is_of_delta_log(node: PlanInfo) -> bool:
    """Whether a leaf gives out what Delta has read of its own log, to find the files of a table."""
    located = _LOCATION.fullmatch(node.metadata.location)
    if located is not None:
        return located["index"] in INDEXES
    return node.nodeName.startswith(EXISTING_RDD) and _DELTA_LOG_RDD.match(node.described) is not None


def leaf_part(node: PlanInfo) -> PlanPart | None:
    """Return what a leaf needs, None for one that a rule ignores."""
    name = name_of(node)
    # A plan that could not be made has no name: its execution failed before anything was read.
    if name == LOCAL_ROWS and _AGGREGATES.fullmatch(node.described):
        return PUSHED_AGGREGATES
    is_ignored = not name or name.removeprefix("Scan ") in LEAVES or METADATA_SCAN.fullmatch(name) is not None
    if is_ignored or is_of_delta_log(node) or name.startswith(EXISTING_RDD):
        return None
    if located := _LOCATION.fullmatch(node.metadata.location):
        return PlanPart(name, "input", *_paths(located))
    return _without_location(node, name)


def _without_location(node: PlanInfo, name: str) -> PlanPart | None:
    if stream := _STREAM_SCAN.match(node.described):
        relation = last_part(stream["class"])
        return None if relation in RELATIONS else PlanPart(f"{stream['node']} {relation}", "input")
    if name == _LOOP:
        # It hides the scans of its plan, and runs them as executions or as jobs of its own.
        return PlanPart(name, "any input")
    if name.startswith(f"{_JDBC_SCAN}(("):
        return PlanPart(f"{_JDBC_SCAN} of a query", "input")
    if files := _V2_FILES.fullmatch(name):
        return PlanPart(name, "input", tuple(files["paths"].split(",")))
    scans = (_HIVE, _JDBC, _V2_SCAN, _WRAPPED)
    table = next((match["table"] for each in scans if (match := each.fullmatch(name))), "")
    name = f"{_JDBC_SCAN}({table})" if name.startswith(_JDBC_SCAN) and table else name
    # Some relations print all of their options.
    name = name if len(name) <= _MOST_LETTERS else f"{name[:_MOST_LETTERS]}…"
    return PlanPart(name, "input", (table,) if table else ())


def last_part(name: str) -> str:
    """Return the last part of the name of a class: ``RateStreamTable`` of ``….RateStreamTable$$anon$1``."""
    named = [part for part in re.split(r"[.$]+", name) if part and part != "anon" and not part.isdigit()]
    return named[-1] if named else name


def _paths(located: re.Match[str]) -> tuple[tuple[str, ...], int]:
    """Return the paths of a scan, and how many it has: the list may be cut."""
    count, text = int(located["count"]), located["paths"]
    if count == 1:
        return (text,), 1
    paths = tuple(path for path in text.removesuffix(_CUT_PATHS).split(", ") if path)
    # A path that holds a comma makes more of them; nobody can know which belong together.
    return (paths, count) if len(paths) <= count else ((), 1)
