"""Finds the tables whose source answers ``count``, ``min`` and ``max`` itself: their plans have a ``LocalTableScan``.

Iceberg's answer is the scan below a projection of ``agg_func_0``, which Spark puts there (``V2ScanRelationPushDown``):
its columns are called ``min(id)``, and no text has the table. Delta's replaces the whole aggregate
(``OptimizeMetadataOnlyDeltaQuery``), so that its columns are called as the program wants; the queries over Delta's log
that it is made from have the table, and the columns whose least and greatest values they look up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from spark_lineage.merge.execution import hidden_table
from spark_lineage.merge.lineage import SchemaField
from spark_lineage.merge.observed import Observed, by_name
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.expressions import AGGREGATION
from spark_lineage.plans.lists import outputs
from spark_lineage.plans.plan import Node, Plan
from spark_lineage.plans.scope import NOTHING, Sources, Traced, given_out_by

LOCAL = "LocalTableScan"
UNREAD = f"{LOCAL}: its columns"
"""What is counted of an answer that may have its columns from several of a table."""
_PUSHED = re.compile(r"agg_func_\d+")
_FUNCTION = re.compile(r"(?:min|max|count)\((?P<column>.*)\)", re.DOTALL)
_LEAST_OR_GREATEST = re.compile(r"(?:min|max)\((?P<column>.*)\)", re.DOTALL)
_ALL, _COUNTS = "*", frozenset({"count(1)", "count(*)"})
DELTA_STATE = re.compile(
    r"Scan ExistingRDD Delta Table State.* #(?P<version>\d+) - (?P<location>.*)/_delta_log\s*", re.DOTALL
)
"""A leaf that reads the state of a table of Delta in one of its versions."""
_PHYSICAL = re.compile(r"col-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DELTA_COUNT = frozenset({"numLogicalRecords", "countNonEmptyFiles"})
_COMPLETE, _LEAST, _GREATEST = "complete_", "min_", "max_"
# A stream has new ones in each batch.
_KNOWN_MAX = 1000


class Answer(NamedTuple):
    """A table of Delta that answers a query itself, and the columns whose ends were looked up for that.

    ``mapped`` are columns that it knows by the names in its files alone.
    """

    table: Observed
    columns: frozenset[str]
    mapped: frozenset[str] = frozenset()


class Answered(NamedTuple):
    """What a ``LocalTableScan`` is: the tables that answered it, and the sources of each of its columns."""

    tables: tuple[Observed, ...]
    columns: tuple[Sources, ...]
    unread: tuple[str, ...] = ()


def delta_answer(plan: Plan, traced: Traced, at: Callable[[str], Observed]) -> Answer | None:
    """Return the table whose log a query of Delta's reads to answer another; ``at`` names the table at a location."""
    names = {column.name for column in traced.columns}
    ends = {name.removeprefix(_COMPLETE) for name in names if name.startswith(_COMPLETE)}
    columns = frozenset(column for column in ends if {_LEAST + column, _GREATEST + column} <= names)
    places = [match["location"] for node in plan.walk() if (match := DELTA_STATE.fullmatch(node.name))]
    is_answer = names >= _DELTA_COUNT or (bool(columns) and len(columns) * 3 == len(names))
    # A table whose columns are mapped calls them by other names in its files.
    mapped = frozenset(filter(_PHYSICAL.fullmatch, columns))
    return Answer(at(places[0]), columns - mapped, mapped) if is_answer and len(places) == 1 else None


class Answers:
    """The scans of an application that are answers of sources, by the first attribute that they give out.

    A plan that was cached is printed by later ones.
    """

    def __init__(self) -> None:
        self._known: dict[int, Answered] = {}
        self._pending: dict[int, list[Answer]] = {}

    def add(self, root_id: int, answer: Answer) -> None:
        """Note what Delta has answered for the execution of an id, or for one inside of it."""
        self._pending.setdefault(root_id, []).append(answer)

    def end(self, execution_id: int) -> None:
        """Forget what was answered for an execution, which has ended."""
        self._pending.pop(execution_id, None)

    def of(self, node: Node) -> Answered | None:
        """Return what a leaf is the answer of, None for other leaves and for rows of the program's own."""
        given_out = given_out_by(node) if node.name == LOCAL else ()
        return self._known.get(given_out[0].id) if given_out else None

    def find(self, plan: Plan, root_id: int, read: Callable[[], Collection[DatasetName]]) -> None:
        """Note which leaves of a plan are answers, by what is above them or by what Delta has answered for its root.

        :param read: returns the tables that the plan scans besides
        """
        for node in plan.walk():
            if node.name.startswith("Project") and len(node.children) == 1 and node.children[0].name == LOCAL:
                self._find_pushed(node, node.children[0])
        leaves = [node for node in plan.walk() if node.name == LOCAL and given_out_by(node)]
        own = {given_out_by(leaf)[0].id: leaf for leaf in leaves if self.of(leaf) is None}
        if own and (pending := self._pending.pop(root_id, ())):
            self._find_delta(list(own.values()), pending, read())
        while len(self._known) > _KNOWN_MAX:
            del self._known[next(iter(self._known))]

    def _find_pushed(self, project: Node, leaf: Node) -> None:
        output, given_out = outputs(project.fields.get("Output", ""), project.sizes.get("Output")), given_out_by(leaf)
        is_pushed = bool(output) and all(_PUSHED.fullmatch(each.name) and each.expression for each in output or ())
        functions = [_FUNCTION.fullmatch(attribute.name) for attribute in given_out]
        if not is_pushed or None in functions:
            return
        names = [match["column"] for match in functions if match is not None]
        columns = sorted({name for name in names if name != _ALL})
        table = hidden_table(columns)
        self._known[given_out[0].id] = Answered(
            (Observed(table, schema=tuple(map(SchemaField, columns))),),
            tuple(NOTHING if name == _ALL else frozenset({(table, name, AGGREGATION)}) for name in names),
        )

    def _find_delta(self, leaves: Sequence[Node], pending: Sequence[Answer], read: Collection[DatasetName]) -> None:
        asked = {(answer.table.dataset, column) for answer in pending for column in answer.columns}
        mapped = {(answer.table.dataset, column) for answer in pending for column in answer.mapped}
        if mapped and not asked:
            asked = _named_by(leaves, mapped)
        columns = [[_proven(attribute.name, asked) for attribute in given_out_by(leaf)] for leaf in leaves]
        left = asked.difference((table, column) for each in columns for one in each for table, column, _ in one or ())
        if len(asked) == len(leaves) == 1 and not any(table in read for table, _ in asked):
            columns = [_by_type(leaves[0], columns[0], min(asked))]
        # Rows of the program's own may stand beside an answer whose columns are all known.
        is_certain = not (asked or mapped) or (
            bool(asked) and not left and all(each.count(None) in {0, len(each)} for each in columns)
        )
        tables = by_name(answer.table for answer in pending)
        for leaf, each in zip(leaves, columns, strict=True):
            unread = () if is_certain or None not in each else (UNREAD,)
            self._known[given_out_by(leaf)[0].id] = Answered(tables, tuple(one or NOTHING for one in each), unread)


def _named_by(leaves: Sequence[Node], mapped: Collection[tuple[DatasetName, str]]) -> set[tuple[DatasetName, str]]:
    """Return the mapped columns by the names that an answer gives them, none if these are not as many or not clear."""
    names = [attribute.name for leaf in leaves for attribute in given_out_by(leaf) if attribute.name not in _COUNTS]
    found = {match["column"] for name in names if (match := _LEAST_OR_GREATEST.fullmatch(name))}
    tables = {table for table, _ in mapped}
    is_clear = len(tables) == 1 and len(found) == len(mapped) and all(map(_LEAST_OR_GREATEST.fullmatch, names))
    return {(table, column) for table in tables for column in found} if is_clear else set()


def _by_type(leaf: Node, columns: list[Sources | None], asked: tuple[DatasetName, str]) -> list[Sources | None]:
    """Return the columns of an answer whose only source is ``asked``, in so far as that is certain.

    A count is a bigint, which is marked by its id (``n#3L``), and the ends of a column are of its type.
    """
    source = frozenset({(*asked, AGGREGATION)})
    text = leaf.fields.get("Output", "")
    is_long = [re.search(rf"#{attribute.id}L\b", text) is not None for attribute in given_out_by(leaf)]
    if not all(is_long):
        return [NOTHING if each else source for each in is_long]
    # The ends that were looked up are in some column.
    is_only = columns.count(None) == 1 and not any(columns)
    return [source if is_only and each is None else each for each in columns]


def _proven(name: str, asked: Collection[tuple[DatasetName, str]]) -> Sources | None:
    """Return what a column is made from whose name is the SQL of an aggregate, None where it may be an alias."""
    if name in _COUNTS:
        return NOTHING
    match = _LEAST_OR_GREATEST.fullmatch(name)
    found = [(table, column) for table, column in asked if match and column == match["column"]]
    return frozenset({(*found[0], AGGREGATION)}) if len(found) == 1 else None
