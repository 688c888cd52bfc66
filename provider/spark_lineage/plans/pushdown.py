"""Reads what a scan leaves to its source: filters, aggregates, groupings, orders and joins.

Where a source filters by itself, no operator above the scan has the condition; where it aggregates, the scan gives out
aggregates in place of columns (``RowDataSourceScanExec``, ``V2ScanRelationPushDown``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from spark_lineage.merge.execution import PUSHED_JOIN
from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.merge.partitions import column_compared, column_value, joined
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.expressions import AGGREGATION
from spark_lineage.plans.names import plain
from spark_lineage.plans.plan import Node
from spark_lineage.plans.predicates import (
    UnreadableError,
    V2Expressions,
    columns_of_filter,
    columns_of_iceberg,
    filters_of,
    not_null,
)
from spark_lineage.plans.scope import NOTHING, Read, Scope, Sources, given_out_by

V2_DATABASE_SCAN = re.compile(
    r"Scan (?:JDBC v1 Relation from v2 scan (?P<table>.*\S)|org\.apache\.spark\.sql\.\S+\.v2\.jdbc\.JDBCScan\$\S+)\s*",
    re.DOTALL,
)
"""A scan of a JDBC catalog, with the name of its table from Spark 4 on."""
# A database prints the first of these fields, a file source of v2 the second.
_AGGREGATES, _GROUPS = ("PushedAggregates", "PushedAggregation"), ("PushedGroupByExpressions", "PushedGroupBy")
_FILTERS, _ORDER, _JOINS = "PushedFilters", "PushedTopN", "PushedJoins"
_ORDERED = re.compile(r"ORDER BY (?P<keys>\[.*\]) LIMIT \d+", re.DOTALL)
_RELATION = re.compile(r"^\[[LR]\]: Relation: (?P<table>.+)$", re.MULTILINE)
# A filter of v1 with a star is applied by the source alone.
_STAR = "*"
_ICEBERG = re.compile(r"\bfilters=(?P<filters>.*?), (?:runtimeFilters=.*?, )?groupedBy=[^\n]*\s*\Z", re.DOTALL)
_PARTITION_FILTERS = "PartitionFilters"
# `HiveTableRelation [`db`.`t`, …, Partition Cols: [day#1], Pruned Partitions: [(day=1)]], [(day#1 = 1)]`.
_HIVE = re.compile(r"Partition Cols: \[(?P<columns>.*?#\d+L?)\].*?\]?\], \[(?P<filters>.*)\]", re.DOTALL)
_HIVE_COLUMN = re.compile(r"(?P<name>.+?)(?P<id>#\d+)L?(?:, |\Z)", re.DOTALL)
# A match is one of the filters that hold: `[isnotnull(day#1), (day#1 < 3)]`, `[day#1 IN (1,2)]`, `day >= '2026-01-01'`.
_COMPARED = re.compile(
    r"(?:\A\[|, )(?:\((?P<column>[^()#,]+)#\d+L? (?P<how>[<>]?=|[<>]) (?P<value>[^()#]+)\)"
    r"|(?P<column_in>[^()#,]+)#\d+L? IN \((?P<values>[^()#]+)\))(?=, |\]\s*\Z)"
)
_ICEBERG_COMPARED = re.compile(
    r"(?:\A|, )(?:(?P<column>\w+) (?P<how>[<>]?=|[<>]) (?P<quote>'?)(?P<value>[^(),' ]+)(?P=quote)"
    r"|(?P<column_in>\w+) IN \((?P<values>[^()]+)\))(?=, |\Z)"
)
# A text of Iceberg is quoted, a number is not.
_LITERAL = re.compile(r"'([^']*)'|([^', ]+)")
# Iceberg adds these to the columns of each table.
_ICEBERG_OWN = frozenset({"_file", "_pos", "_spec_id", "_partition", "_deleted"})


def joined_tables(node: Node) -> list[str]:
    """Return the tables that a database joins by itself, none where it does not."""
    return _RELATION.findall(node.fields.get(_JOINS, ""))


def named_columns(node: Node, columns: Sequence[str]) -> list[str]:
    """Return the columns of its table that a scan names, ``columns`` being what it gives out."""
    place = DatasetName("", "")
    read = read_pushed(node, [place], [frozenset({(place, column, IDENTITY)}) for column in columns])
    return sorted({column for sources in (*read.columns, read.deciding) for _, column, _ in sources})


def partition_of(node: Node) -> str:
    """Return the columns that are compared with values in all rows that a scan reads, as a partition: ``day=1``."""
    equal: dict[str, set[str]] = {}
    compared: dict[str, list[tuple[str, list[str]]]] = {}
    hive = _HIVE.search(plain(node.fields.get("Arguments", "")))
    filters = f"[{hive['filters']}]" if hive else plain(node.fields.get(_PARTITION_FILTERS, ""))
    iceberg = _ICEBERG.search(node.description)
    for pattern, text in ((_COMPARED, filters), (_ICEBERG_COMPARED, plain(iceberg["filters"]) if iceberg else "")):
        for match in pattern.finditer(text):
            if match["how"] == "=":
                equal.setdefault(match["column"], set()).add(match["value"])
            elif match["how"]:
                compared.setdefault(match["column"], []).append((match["how"], [match["value"]]))
            else:
                found = _values_in(match["values"], are_quoted=pattern is _ICEBERG_COMPARED)
                compared.setdefault(match["column_in"], []).append(("|", found))
    values_of = {column: column_value(column, *values) for column, values in equal.items() if len(values) == 1}
    others = {column: column_compared(column, each) for column, each in compared.items() if column not in equal}
    return joined(*values_of.values(), *others.values())


def _values_in(text: str, *, are_quoted: bool) -> list[str]:
    """Return the values that a list may hold; a text that Spark prints without quotes may hold a comma."""
    if are_quoted:
        return ["".join(each) for each in _LITERAL.findall(text)]
    parts = text.split(",")
    ends = range(1, len(parts) + 1)
    return [",".join(parts[start:end]).strip() for end in ends for start in range(end)]


def read_pushed(node: Node, datasets: Sequence[DatasetName], columns: Sequence[Sources]) -> Read:
    """Return what a scan gives out, ``columns`` unless its source makes others, and what decided on its rows."""
    kind = node.name.split(" ", 1)[0]
    if _JOINS in node.fields:
        # The text has no table for a column.
        return Read([NOTHING for _ in columns], is_whole=False, unread=(PUSHED_JOIN,))
    unread: list[str] = []
    deciding: Sources = NOTHING
    try:
        columns, deciding = _made(node, datasets, columns)
    except UnreadableError:
        columns = [NOTHING for _ in columns]
        unread.append(f"{kind}: aggregates of its source")
    for read in (_filters, _order):
        try:
            for sources in read(node, datasets):
                deciding |= sources
        except UnreadableError:
            unread.append(f"{kind}: filters of its source")
    return Read(columns, is_whole=not unread, deciding=deciding, unread=tuple(unread))


def _made(node: Node, datasets: Sequence[DatasetName], columns: Sequence[Sources]) -> tuple[Sequence[Sources], Sources]:
    """Return the keys and then the aggregates that a source gives out, and what it groups by."""
    keys, functions = (
        [each for name in names for each in _parsed(node.fields.get(name, ""), datasets)]
        for names in (_GROUPS, _AGGREGATES)
    )
    if not (keys or functions):
        return columns, NOTHING
    if len(keys) + len(functions) != len(columns) or node.sizes.get("Output", len(columns)) != len(columns):
        raise UnreadableError
    made = [scope.made_from(text) for scope, text in keys]
    made += [scope.made_from(text, AGGREGATION) for scope, text in functions]
    return made, NOTHING.union(*(scope.deciding(text, "GROUP_BY") for scope, text in keys))


def _filters(node: Node, datasets: Sequence[DatasetName]) -> Iterator[Sources]:
    """Return the columns of what the source filters by, up to what cannot be read."""
    filters, known = plain(node.fields.get(_FILTERS, "")), {attribute.name for attribute in given_out_by(node)}
    if V2_DATABASE_SCAN.fullmatch(node.name):
        yield from (scope.deciding(text, "FILTER") for scope, text in _parsed(filters, datasets))
    elif match := _ICEBERG.search(node.description):
        names = columns_of_iceberg(match["filters"], known) if match["filters"] else set()
        yield _filtered_by(names - _ICEBERG_OWN, datasets)
    elif hive := _HIVE.search(plain(node.fields.get("Arguments", ""))):
        partitioned = _HIVE_COLUMN.finditer(hive["columns"])
        yield _filtered_by(
            (each["name"] for each in partitioned if each["name"] + each["id"] in hive["filters"]), datasets
        )
    else:
        # The columns of those without a star are in an operator above, too.
        found = filters_of(filters)
        known |= not_null(found)
        alone = [each.removeprefix(_STAR) for each in found if each.startswith(_STAR)]
        # Those that are certain come first.
        for each in sorted(alone, key=lambda text: not text.startswith("IsNotNull(")):
            yield _filtered_by(columns_of_filter(each, known), datasets)


def _order(node: Node, datasets: Sequence[DatasetName]) -> Iterator[Sources]:
    order = node.fields.get(_ORDER, "").strip()
    match = _ORDERED.fullmatch(order)
    if order and match is None:
        raise UnreadableError
    yield from (scope.deciding(text, "SORT") for scope, text in _parsed(match["keys"] if match else "", datasets))


def _filtered_by(names: Iterable[str], datasets: Sequence[DatasetName]) -> Sources:
    how = Transformation("INDIRECT", "FILTER")
    return frozenset((dataset, name, how) for name in names for dataset in datasets)


def _parsed(text: str, datasets: Sequence[DatasetName]) -> list[tuple[Scope, str]]:
    """Return the expressions of a list, each with the scope in which it stands."""
    if not text.strip():
        return []
    found = V2Expressions(plain(text).strip())
    scope = Scope()
    for identity, column in enumerate(found.columns):
        scope.define(identity, column, ((dataset, column, IDENTITY) for dataset in datasets))
    return [(scope, each) for each in found.texts]
