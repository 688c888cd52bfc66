"""Parses the formatted text of a physical plan, as SQL executions of Spark's event log carry it, into nodes.

The text is that of ``EXPLAIN FORMATTED``: a tree of numbered operators, a block of details for each number, and the
same again for each subquery (``org.apache.spark.sql.execution.ExplainUtils``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADING = "== Physical Plan =="
_SUBQUERIES = "===== Subqueries ====="
_SUBQUERY = re.compile(r"Subquery:\d+ Hosting operator id = \d+ Hosting Expression = (?P<expression>.*)")
# A branch of the tree; the node below "== Final Plan ==" has none.
_BRANCH = re.compile(r"[ :]*[+:]- ")
_MARKER = re.compile(r"[ :]*[+:]- == (?:Final|Initial|Current) Plan ==")
_OPERATOR = re.compile(r"(?:\* )?(?P<name>.*?)\s*\((?P<number>\d+|unknown)\)(?: \(columnarIn=.*\)|, .*)?", re.DOTALL)
_BLOCK = re.compile(r"\((?P<number>\d+)\) (?P<name>.*)")
_CODEGEN = re.compile(r"\s*\[codegen id : \d+\]\s*$")
_FIELD = re.compile(
    r"(?P<key>Output|Input|Arguments|Condition|Keys|Functions|Aggregate Attributes|Results|Location|ReadSchema"
    r"|PartitionFilters|DataFilters|PushedFilters|Left keys|Right keys|Join type|Join condition"
    r"|Left output|Right output|Batched|External engine query|Limit|Loop id|Accumulated)"
    r"\s?(?: \[(?P<size>\d+)\])?\s?: ?(?P<value>.*)",
)
_LISTS = frozenset({"Output", "Input"})
# What stands for the end of a list (SparkStringUtils.truncatedString, by spark.sql.debug.maxToStringFields).
_CUT = re.compile(r"\.\.\. \d+ more fields\b")
_WATERMARK = re.compile(r"(#\d+L?)-T\d+ms")
_REUSED = re.compile(r"\[Reuses operator id: (\d+)\]")
# What a subquery stands for; of one that only prunes partitions for a join nothing is made.
_ID = re.compile(r"(?:subquery|exists|list)#(\d+)")


@dataclass
class Node:
    """One operator: its name (``Scan parquet``) and the fields of its block (``Output``, ``Arguments``)."""

    number: int
    name: str
    fields: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """How many elements the text says that a list of ``fields`` has."""
    children: list[Node] = field(default_factory=list)
    reuses: int | None = None
    """The number of the exchange that a ``ReusedExchange`` repeats."""

    @property
    def is_cut(self) -> bool:
        """Whether a list of columns ends before its last; types (``ReadSchema``) are read from nowhere."""
        return any(key != "ReadSchema" and _CUT.search(value) for key, value in self.fields.items())

    def walk(self) -> Iterator[Node]:
        """This node and all below it, from the top."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Plan:
    """The plan of one SQL execution; ``subqueries`` by the expression id that stands for them, in the text's order."""

    root: Node
    subqueries: dict[int, Node] = field(default_factory=dict)

    def walk(self) -> Iterator[Node]:
        """All nodes, those of the subqueries last."""
        yield from self.root.walk()
        for subquery in self.subqueries.values():
            yield from subquery.walk()


def parse_plan(text: str) -> Plan | None:
    """The plan, or None where the text is none: ``spark.sql.ui.explainMode`` may be another than ``formatted``."""
    # A column under a watermark is spelled `at#22-T600000ms`.
    _, _, body = _WATERMARK.sub(r"\1", text).partition(_HEADING)
    main, _, rest = body.partition(f"\n{_SUBQUERIES}\n")
    nodes: dict[int, Node] = {}
    root = _parse_section(main, nodes)
    if root is None:
        return None
    plan = Plan(root)
    for subquery, section in _subquery_sections(rest):
        node = _parse_section(section, nodes)
        if node is not None and subquery is not None:
            plan.subqueries.setdefault(subquery, node)
    return plan


def _subquery_sections(text: str) -> Iterator[tuple[int | None, str]]:
    subquery: int | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        if match := _SUBQUERY.match(line):
            yield subquery, "\n".join(lines)
            found = _ID.search(match["expression"])
            subquery, lines = int(found[1]) if found else None, []
        else:
            lines.append(line)
    yield subquery, "\n".join(lines)


def _parse_section(text: str, nodes: dict[int, Node]) -> Node | None:
    """Parse one tree and the blocks that follow it."""
    # Two blank lines are between the tree and the blocks.
    tree, _, blocks = text.strip("\n").partition("\n\n\n")
    root = _parse_tree(tree, nodes)
    if root is not None:
        _parse_blocks(blocks, nodes)
    return root


def _parse_tree(text: str, nodes: dict[int, Node]) -> Node | None:
    path: list[tuple[int, Node]] = []
    root: Node | None = None
    # Of a cache that several sections read, each prints the operators.
    seen = {number for number, node in nodes.items() if node.children}
    for indent, operator in _operators(text):
        match = _OPERATOR.fullmatch(operator)
        if match is None:
            return None
        # What an empty relation stands for in the place of has no number.
        number = int(match["number"]) if match["number"] != "unknown" else min(0, *nodes) - 1
        node = nodes.setdefault(number, Node(number, match["name"]))
        while path and path[-1][0] >= indent:
            path.pop()
        if path:
            path[-1][1].children.append(node)
        elif root is None:
            root = node
        # An operator that is there for a second time (a cache that is read twice) has its children already.
        path.append((indent, Node(number, "") if number in seen else node))
        seen.add(number)
    return root


def _operators(text: str) -> Iterator[tuple[int, str]]:
    """The operators of a tree with their indents; one whose name holds line ends, as a JDBC query may, is one."""
    indent, lines = 0, list[str]()
    after_marker = False
    for line in text.split("\n"):
        branch = _BRANCH.match(line)
        if branch or after_marker or not lines:
            if lines:
                yield indent, "\n".join(lines)
            lines = []
            after_marker = bool(_MARKER.match(line))
            if after_marker:
                continue
            indent = branch.end() if branch else len(line) - len(line.lstrip(" :"))
            lines = [line[indent:]]
        else:
            lines.append(line)
    if lines:
        yield indent, "\n".join(lines)


def _parse_blocks(text: str, nodes: dict[int, Node]) -> None:
    node: Node | None = None
    key = ""
    was_blank = True
    for line in text.split("\n"):
        block = _BLOCK.match(line) if was_blank else None
        was_blank = not line.strip()
        if block and int(block["number"]) in nodes:
            node, key = nodes[int(block["number"])], ""
            reused = _REUSED.search(block["name"])
            node.reuses = int(reused[1]) if reused else None
            node.name = _CODEGEN.sub("", block["name"]).strip()
        elif node is None:
            continue
        elif (
            (found := _FIELD.fullmatch(line)) and found["key"] not in node.fields and not _is_inside(node, found["key"])
        ):
            key = found["key"]
            node.fields[key] = found["value"]
            if found["size"]:
                node.sizes[key] = int(found["size"])
        elif was_blank or (key in _LISTS and node.fields[key].endswith("]")):
            # The scans of other sources describe themselves behind what they give out.
            continue
        elif key:
            # The value goes on: texts of queries and literals may hold line ends.
            node.fields[key] += f"\n{line}"
        else:
            node.name = _CODEGEN.sub("", f"{node.name}\n{line}")


def _is_inside(node: Node, key: str) -> bool:
    """Whether what looks like a field is a line of a ``CatalogTable``, which is printed over several lines."""
    return key == "Location" and "CatalogTable(" in node.fields.get("Arguments", "")
