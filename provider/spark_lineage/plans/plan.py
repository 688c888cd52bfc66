"""Parses the formatted text of a physical plan, as SQL executions of Spark's event log carry it, into nodes.

The text is that of ``EXPLAIN FORMATTED``: a tree of numbered operators, a block of details for each number, and the
same again for each subquery (``org.apache.spark.sql.execution.ExplainUtils``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from spark_lineage.plans.lists import UNKNOWN_NAME, arguments, outputs
from spark_lineage.plans.names import ATTRIBUTE, UNKNOWN, Attribute, Names

# The ids of what a subquery stands for are in its heading; one that only prunes partitions for a join has none.
_SUBQUERIES = re.compile(r"\n===== Subqueries =====\n(?=\n*Subquery:1 Hosting operator id = \d)")
_SUBQUERY = re.compile(
    r"^Subquery:(?P<number>\d+) Hosting operator id = \d+ Hosting Expression = (?P<of>.*)\n?", re.MULTILINE
)
_ID = re.compile(r"(?:subquery|exists|list)#(\d+)")
_BRANCH = re.compile(r"[ :]*[+:]- |[ :]*")
# The name of an operator may hold line ends, as a JDBC query does.
_NEXT_BRANCH = re.compile(r"\n(?=[ :]*[+:]- )")
# The node below a marker has no branch of its own.
_MARKER = re.compile(r"\A[ :]*[+:]- == (?:Final|Initial|Current) Plan ==.*\n?")
_OPERATOR = re.compile(r"(?:\* )?(?P<name>.*?)\s*\((?P<number>\d+|unknown)\)(?: \(columnarIn=.*\)|, .*)?", re.DOTALL)
_BLOCK = re.compile(r"\((?P<number>\d+)\) (?P<name>.*)")
_CODEGEN = re.compile(r"\s*\[codegen id : \d+\]\s*$")
# A source prints these of its scan, in the order of names.
_OF_SOURCES = (
    "Batched", "DataFilters", "Format", "Location", "PartitionFilters", "PushedAggregates", "PushedAggregation",
    "PushedFilters", "PushedGroupBy", "PushedGroupByExpressions", "PushedJoins", "PushedLimit", "PushedOffset",
    "PushedSample", "PushedTopN", "ReadSchema",
)  # fmt: skip
_LAST = ("Arguments", "External engine query")
# The fields that may come behind each; behind all others, among them the texts of a program, comes none.
_NEXT: Mapping[str, tuple[str, ...]] = {
    "": ("Output", "Input", "Arguments", "Left keys", "Left output", "Join type", "Loop id"),
    "Output": (*_OF_SOURCES, *_LAST, "Limit", "Accumulated"),
    "Input": ("Arguments", "Condition", "Keys"),
    "Keys": ("Functions",),
    "Functions": ("Aggregate Attributes",),
    "Aggregate Attributes": ("Results",),
    "Left keys": ("Right keys",),
    "Right keys": ("Join type",),
    "Join type": ("Join condition",),
    "Left output": ("Right output",),
    "Right output": ("Arguments", "Join type"),
    "Loop id": ("Output",),
    **{name: (*_OF_SOURCES[place + 1 :], *_LAST) for place, name in enumerate(_OF_SOURCES)},
}
_FIELD = re.compile(
    rf"(?P<key>{'|'.join({name for names in _NEXT.values() for name in names})})"
    r"\s?(?: \[(?P<size>\d+)\])?\s?: ?(?P<value>.*)"
)
GIVEN = "given out"
"""The length of what an operator gives out, by what the one above it is given."""
# They hold nothing but attributes, except in what makes columns, whose input comes behind its output.
_ATTRIBUTES = ("Output", "Input", "Left output", "Right output", "Aggregate Attributes")
_MAKING_COLUMNS = "Project"
_MADE = re.compile(
    r"Output(?: \[(?P<size>\d+)\])?: (?P<output>\[.*\])\nInput(?: \[(?P<input_size>\d+)\])?: (?P<input>\[.*\])",
    re.DOTALL,
)
_UNREAD_NAMES = "names of columns that look like several"
_ALIASES = ("Keys", "Results")
# These are the columns that Generate and Expand give out, and the only lists of a logical relation.
_GENERATING = ("Generate", "Expand")
_GENERATED = re.compile(r"(?:.*?, (?:true|false)(?:, \w+)?|\[\[.*\]\]), (?P<list>\[.*#\d+L?\])", re.DOTALL)
_CACHE, _LOGICAL = "InMemoryRelation", "LogicalRelation"
_RELATIONS = ("LogicalR", "HiveTableRelation", "LocalRelation", "RelationV2", _CACHE, "StreamingRelation")
_RELATION = re.compile(r"(?:(?<=, )|\A)\[.*#\d+L?(?:, \.\.\. \d+ more fields)?\](?=, |\Z)", re.DOTALL)
# Their lists are of expressions too.
_WITH_ALIASES = ("Project", "Aggregate", "TakeOrderedAndProject", "Window", "ArrowWindowPython")
_END = re.compile(r"#\d+L?(?=, |\]\Z)")
# This stands for the end of a list (SparkStringUtils.truncatedString, by spark.sql.debug.maxToStringFields).
_CUT = re.compile(r"(?:, |[\[(])\.\.\. \d+ more fields(?=[\])])")
_WATERMARK = re.compile(r"(#\d+L?)-T\d+ms")
_REUSED = re.compile(r"\[Reuses operator id: (\d+)\]")
STRUCT = re.compile(rf"named_struct\((?P<fields>(?:.*?, {ATTRIBUTE}, )*.*?, {ATTRIBUTE})\) AS {ATTRIBUTE}", re.DOTALL)


@dataclass
class Node:
    """One operator: its name (``Scan parquet``) and the fields of its block (``Output``, ``Arguments``), marked.

    ``sizes`` are the lengths that the text states for the lists of ``fields``; ``reuses`` is the number of the exchange
    that a ``ReusedExchange`` repeats. ``description`` is what a source says of its scan in words of its own.
    """

    number: int
    name: str
    fields: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    reuses: int | None = None
    description: str = ""

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

    @property
    def made(self) -> str:
        """The columns that it makes, as far as a field lists them."""
        return self.fields.get("Results", self.fields.get("Output", ""))

    @property
    def planned(self) -> list[Node]:
        """The children that its rows come from.

        Of an adaptive plan that was run, the first child is the final plan, in which an empty relation may stand for
        what gave no rows; the last is the initial one.
        """
        return self.children[-1:] if self.name.startswith("AdaptiveSparkPlan") else self.children

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
    unread: tuple[str, ...] = ()
    """What of its text was not understood."""

    def walk(self) -> Iterator[Node]:
        """Return all nodes, those of the subqueries last."""
        for root in (self.root, *self.subqueries.values()):
            yield from root.walk()

    def arguments_of(self, name: str) -> str:
        """Return the arguments of the first node of a name, empty without one."""
        return next((node.fields.get("Arguments", "") for node in self.walk() if node.name == name), "")


def parse_plan(text: str, names: Names | None = None) -> Plan | None:
    """Return the plan, or None for other text: ``spark.sql.ui.explainMode`` may not be ``formatted``.

    :param names: what earlier plans of the application have shown, to which this adds its own
    """
    # A column under a watermark is spelled `at#22-T600000ms`.
    _, _, body = _WATERMARK.sub(r"\1", text).partition("== Physical Plan ==")
    main, *rest = _SUBQUERIES.split(body, maxsplit=1)
    nodes: dict[int, Node] = {}
    root = _parse_section(main, nodes)
    if root is None:
        return None
    plan = Plan(root)
    for expression, section in _sections(rest[0]) if rest else ():
        node, identity = _parse_section(section, nodes), _ID.search(expression)
        if node is not None and identity:
            plan.subqueries.setdefault(int(identity[1]), node)
    reached = {node.number for node in plan.walk()}
    for number in reached:
        # An exchange that a join has in common with what prunes its partitions may be printed there alone.
        node, reused = nodes[number], nodes[number].reuses
        if reused in nodes and reused not in reached:
            node.children.append(nodes[reused])
    for node in nodes.values():
        if len(node.children) == 1 and "Input" in node.sizes:
            node.children[0].sizes[GIVEN] = node.sizes["Input"]
    _mark(plan, nodes.values(), names or Names())
    return plan


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Return the expression and the text of each subquery; they are numbered from 1."""
    headings: list[re.Match[str]] = []
    for match in _SUBQUERY.finditer(text):
        if int(match["number"]) == len(headings) + 1:
            headings.append(match)
    ends = [*(match.start() for match in headings[1:]), len(text)]
    for match, end in zip(headings, ends, strict=bool(headings)):
        yield match["of"], text[match.end() : end]


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
        # An operator that an empty relation replaces has no number.
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


def _parse_blocks(text: str, nodes: Mapping[int, Node]) -> None:
    """Give each node the fields of its block: the headings ascend, and bear the names of the tree."""
    node: Node | None = None
    lines: list[str] = []
    was_blank = True
    for line in text.split("\n"):
        block = _BLOCK.match(line) if was_blank else None
        found = nodes.get(int(block["number"])) if block else None
        # The tree may have more behind a name, or on further lines.
        kind = block["name"].split(" ", 1)[0] if block else ""
        is_next = found and (node is None or found.number > node.number)
        if block and found and is_next and found.name.removeprefix("* ").startswith(kind):
            if node is not None:
                _parse_fields(node, lines)
            node, lines = found, [block["name"]]
        else:
            lines.append(line)
        was_blank = not line.strip()
    if node is not None:
        _parse_fields(node, lines)


def _parse_fields(node: Node, lines: list[str]) -> None:
    name, key, is_open = lines[0], "", True
    reused = _REUSED.search(name)
    node.reuses = int(reused[1]) if reused else None
    made = _MADE.fullmatch("\n".join(lines[1:]).rstrip("\n")) if name.startswith(_MAKING_COLUMNS) else None
    if made:
        node.fields |= {"Output": made["output"], "Input": made["input"]}
        node.sizes |= {"Output": int(made["size"] or 0), "Input": int(made["input_size"] or 0)}
    for line in () if made else lines[1:]:
        field = _FIELD.fullmatch(line)
        is_unfinished = _is_unfinished(node, key)
        if field and field["key"] in _NEXT.get(key, ()) and not is_unfinished:
            key, is_open = field["key"], True
            node.fields[key] = field["value"]
            if field["size"]:
                node.sizes[key] = int(field["size"])
        elif key:
            # The value goes on: names and texts may hold line ends. Sources describe themselves behind a list.
            is_open &= is_unfinished or key not in _ATTRIBUTES
            node.fields[key] += f"\n{line}" if is_open else ""
            node.description += f"{line}\n" if line and not is_open else ""
        else:
            name += f"\n{line}"
    if key:
        node.fields[key] = node.fields[key].rstrip("\n")
    node.name = "\n".join(_CODEGEN.sub("", line) for line in name.split("\n")).strip()


def _is_unfinished(node: Node, key: str) -> bool:
    """Whether a list of attributes has fewer ends than it has attributes."""
    size, value = node.sizes.get(key, 0), node.fields.get(key, "")
    if key not in _ATTRIBUTES or (value.endswith("]") and _CUT.search(value)):
        return False
    return not value.endswith("]") or sum(1 for _ in _END.finditer(value)) < size


def _mark(plan: Plan, nodes: Collection[Node], names: Names) -> None:
    """Learn the names of all attributes, and mark them in all fields."""
    ascending = sorted(nodes, key=lambda one: one.number)
    lists = [
        (node.fields[key], node.sizes.get(key, 0), node.fields.get("ReadSchema", ""))
        for node in ascending
        for key in _ATTRIBUTES
        if key in node.fields and not (key == "Output" and node.name.startswith(_MAKING_COLUMNS))
    ]
    lists = _learned(lists, names)
    for node in ascending:
        _learn_aliases(node, names)
    if any(not _CUT.search(listed) for listed, *_ in _learned(lists, names)):
        plan.unread = (_UNREAD_NAMES,)
    fields = {identity: _merged_fields(node, names) for identity, node in plan.subqueries.items()}
    for node in nodes:
        node.fields = {key: names.marked(value, fields) for key, value in node.fields.items()}


def _learned(lists: list[tuple[str, int, str]], names: Names) -> list[tuple[str, int, str]]:
    """Learn from lists of attributes as long as one helps another, and return those that can be cut in several ways."""
    while left := [one for one in lists if not names.learn(*one)]:
        if len(left) == len(lists):
            break
        lists = left
    return left


def _learn_aliases(node: Node, names: Names) -> None:
    """Learn what no list of attributes has: the columns of a plan's root, and those of a logical plan."""
    listed = [(node.fields[key], node.sizes.get(key)) for key in _ALIASES if key in node.fields]
    if node.name.startswith(_MAKING_COLUMNS) and "Output" in node.fields:
        listed.append((node.fields["Output"], node.sizes["Output"]))
    if node.name.startswith(_GENERATING):
        if generated := _GENERATED.fullmatch(node.fields.get("Arguments", "")):
            names.learn(generated["list"], None)
    elif node.name.startswith(_RELATIONS):
        has_gaps = False if node.name == _LOGICAL else node.name.startswith(_CACHE) or None
        for part in _RELATION.findall(node.fields.get("Arguments", "")):
            names.learn(part, None, is_relation=True, has_gaps=has_gaps)
    elif node.name.startswith(_WITH_ALIASES):
        listed += [(part, None) for part in node.lists]
    for text, size in listed:
        marked = names.marked(text)
        for one in (outputs(marked, size) or ()) if UNKNOWN.search(marked) else ():
            if one.name != UNKNOWN_NAME:
                names.add(Attribute(one.id, one.name))


def _merged_fields(subquery: Node, names: Names) -> list[str]:
    """Return the names of the fields of the value in which Spark has merged several subqueries."""
    texts = (names.marked(node.made) for node in subquery.walk())
    found = [struct["fields"] for text in texts if (struct := STRUCT.search(text))]
    return [part.strip(", ") for fields in found for part in re.split(ATTRIBUTE, fields) if part.strip(", ")]
