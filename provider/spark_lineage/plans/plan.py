"""Parses the formatted text of a physical plan, as SQL executions of Spark's event log carry it, into nodes.

The text is that of ``EXPLAIN FORMATTED``: a tree of numbered operators, a block of details for each number, and the
same again for each subquery (``org.apache.spark.sql.execution.ExplainUtils``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# The ids of what a subquery stands for are in its heading; one that only prunes partitions for a join has none.
_SUBQUERY = re.compile(r"^Subquery:\d+ Hosting operator id = \d+ Hosting Expression = (.*)\n?", re.MULTILINE)
_ID = re.compile(r"(?:subquery|exists|list)#(\d+)")
_BRANCH = re.compile(r"[ :]*[+:]- |[ :]*")
# The name of an operator may hold line ends, as a JDBC query does.
_NEXT_BRANCH = re.compile(r"\n(?=[ :]*[+:]- )")
# The node below a marker has no branch of its own.
_MARKER = re.compile(r"\A[ :]*[+:]- == (?:Final|Initial|Current) Plan ==.*\n?")
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
_OPENING, _CLOSING = "([{", ")]}"


@dataclass
class Node:
    """One operator: its name (``Scan parquet``) and the fields of its block (``Output``, ``Arguments``).

    ``sizes`` are the lengths that the text states for the lists of ``fields``; ``reuses`` is the number of the exchange
    that a ``ReusedExchange`` repeats.
    """

    number: int
    name: str
    fields: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    reuses: int | None = None

    @property
    def is_cut(self) -> bool:
        """Whether a list of columns ends before its last; types (``ReadSchema``) are not read."""
        return any(key != "ReadSchema" and _CUT.search(value) for key, value in self.fields.items())

    @property
    def arguments(self) -> list[str]:
        """The arguments, at least one, which may be empty."""
        return arguments(self.fields.get("Arguments", ""))

    @property
    def lists(self) -> list[str]:
        """The arguments that are lists."""
        return [part for part in self.arguments if part.startswith("[")]

    def walk(self) -> Iterator[Node]:
        """Return this node and all below it, from the top."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Plan:
    """The plan of one SQL execution; ``subqueries`` by the expression id that stands for them, in the text's order."""

    root: Node
    subqueries: dict[int, Node] = field(default_factory=dict)

    def walk(self) -> Iterator[Node]:
        """Return all nodes, those of the subqueries last."""
        for root in (self.root, *self.subqueries.values()):
            yield from root.walk()

    def arguments_of(self, name: str) -> str:
        """Return the arguments of the first node of a name, empty without one."""
        return next((node.fields.get("Arguments", "") for node in self.walk() if node.name == name), "")


def arguments(text: str) -> list[str]:
    """Split at the commas that are outside of all brackets and back quotes."""
    parts: list[str] = []
    depth, start, is_quoted = 0, 0, False
    for position, character in enumerate(text):
        if character == "`":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth = max(depth - 1, 0)
        elif character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def elements(text: str) -> list[str]:
    """Split ``[a#1, f(b#2, c#3) AS d#4]`` at the commas outside of all brackets; other text has no elements."""
    text = text.strip()
    is_list = text.startswith("[") and text.endswith("]")
    return [part for part in arguments(text[1:-1]) if part] if is_list else []


def parse_plan(text: str) -> Plan | None:
    """Return the plan, or None for other text: ``spark.sql.ui.explainMode`` may not be ``formatted``."""
    # A column under a watermark is spelled `at#22-T600000ms`.
    _, _, body = _WATERMARK.sub(r"\1", text).partition("== Physical Plan ==")
    main, _, rest = body.partition("\n===== Subqueries =====\n")
    nodes: dict[int, Node] = {}
    root = _parse_section(main, nodes)
    if root is None:
        return None
    plan = Plan(root)
    _, *found = _SUBQUERY.split(rest)
    for expression, section in zip(found[::2], found[1::2], strict=True):
        node, identity = _parse_section(section, nodes), _ID.search(expression)
        if node is not None and identity:
            plan.subqueries.setdefault(int(identity[1]), node)
    return plan


def _parse_section(text: str, nodes: dict[int, Node]) -> Node | None:
    """Parse a tree and, two blank lines below it, its blocks."""
    tree, _, blocks = text.strip("\n").partition("\n\n\n")
    path: list[tuple[int, list[Node]]] = []
    root: Node | None = None
    # A cache that several sections read is printed in each.
    seen = {number for number, node in nodes.items() if node.children}
    for operator in filter(None, (_MARKER.sub("", branch) for branch in _NEXT_BRANCH.split(tree))):
        branch = _BRANCH.match(operator)
        indent = branch.end() if branch else 0
        match = _OPERATOR.fullmatch(operator, indent)
        if match is None:
            return None
        # What an empty relation replaces has no number.
        number = int(match["number"]) if match["number"] != "unknown" else min(0, *nodes) - 1
        node = nodes.setdefault(number, Node(number, match["name"]))
        while path and path[-1][0] >= indent:
            path.pop()
        if path:
            path[-1][1].append(node)
        else:
            root = root or node
        # An operator that was seen before has its children already.
        path.append((indent, [] if number in seen else node.children))
        seen.add(number)
    if root is not None:
        _parse_blocks(blocks, nodes)
    return root


def _parse_blocks(text: str, nodes: dict[int, Node]) -> None:
    node: Node | None = None
    key, was_blank = "", True
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
        elif (found := _FIELD.fullmatch(line)) and _is_new(found["key"], node.fields):
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


def _is_new(key: str, fields: Mapping[str, str]) -> bool:
    """Whether a field begins, and not a line of a value, such as a ``CatalogTable``, which is several lines long."""
    return key not in fields and not (key == "Location" and "CatalogTable(" in fields.get("Arguments", ""))
