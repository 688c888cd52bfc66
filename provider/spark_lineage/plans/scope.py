"""Reads the expressions of a plan's text, and tracks what the columns above each operator are made from.

An attribute is written ``name#12`` (``#12L`` for a bigint), a new one ``expression AS name#13L``. Literals stand
unquoted, so only ids count; an id that no operator below gives out is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.merge.observed import compose
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.plan import Node, elements

TRANSFORMATION = Transformation("DIRECT", "TRANSFORMATION")
AGGREGATION = Transformation("DIRECT", "AGGREGATION")
CONDITIONAL = Transformation("INDIRECT", "CONDITIONAL")
WINDOW = Transformation("INDIRECT", "WINDOW")
GROUPED = Transformation("INDIRECT", "GROUP_BY")
_MASKED = Transformation("DIRECT", "TRANSFORMATION", masking=True)

# What hides the value that it is given, as the listener has it (``MaskingExpressionDependencyVisitor``).
_MASKING = frozenset({"crc32", "hash", "hive-hash", "mask", "md5", "sha", "sha1", "sha2", "xxhash64", "count"})
_PHASES = frozenset({"CASE", "WHEN", "THEN", "ELSE"})
# FILTER (WHERE …) behind an aggregate decides which values it takes.
_CONDITIONS = frozenset({"if", "WHEN", "FILTER"})
# Their arguments are what their window is ordered by.
_ORDERED_BY = frozenset({"windowspecdefinition", "rank", "dense_rank", "percent_rank"})
# A struct that is null stays null, where it is made anew field by field.
_NULL_STAYS = re.compile(r"\bif \(isnull\([^()]*\)\) null else ")
_BRACKETED = re.compile(r"\A\(([^()]*)\)\Z")
_ATTRIBUTE = re.compile(r"(?P<name>.*)#(?P<id>\d+)L?", re.DOTALL)
_TOKEN = re.compile(r"#(?P<id>\d+)L?|(?P<function>[\w$-]*) ?\(|(?P<close>\))|\b(?P<word>CASE|WHEN|THEN|ELSE|END)\b")

# A column of a dataset, and how it was used.
Source = tuple[DatasetName, str, Transformation]
Sources = frozenset[Source]
NOTHING: Sources = frozenset()


class Defined(NamedTuple):
    """One element of an operator's output: an attribute, and the expression that it is an alias of, if it is one."""

    id: int
    name: str
    expression: str | None


class Read(NamedTuple):
    """What a leaf reads: the columns that each of its attributes is, and whether the plan names all datasets of it.

    ``deciding`` are the columns by which the source itself picks rows.
    """

    columns: Sequence[Sources]
    is_whole: bool
    deciding: Sources = NOTHING


@dataclass(frozen=True)
class Column:
    """One column that a plan gives out, under the id of its attribute, and what it was made from."""

    id: int
    name: str
    sources: Sources


@dataclass(frozen=True)
class Traced:
    """The columns of a plan's root, and what decided on its rows (filters, joins, groupings, orders).

    ``unread`` are the names of operators that no rule reads. ``is_whole``: there are none, and the plan names the
    dataset of each leaf. ``is_cut``: the text leaves columns out, so there may be more of them, made from more.
    """

    columns: tuple[Column, ...] = ()
    dataset_wide: Sources = NOTHING
    unread: tuple[str, ...] = ()
    is_whole: bool = False
    is_cut: bool = False

    def with_sources(self, change: Callable[[Sources], Sources]) -> Traced:
        """Return the same columns and decisions with changed sources."""
        columns = tuple(replace(column, sources=change(column.sources)) for column in self.columns)
        return replace(self, columns=columns, dataset_wide=change(self.dataset_wide))


UNTRACED = Traced()


def defined(element: str) -> Defined | None:
    """Read ``name#12`` or ``expression AS name#13``; None for anything else."""
    expression, alias, attribute = element.rpartition(" AS ")
    match = _ATTRIBUTE.fullmatch(attribute)
    return Defined(int(match["id"]), match["name"], expression if alias else None) if match else None


def attributes(text: str) -> list[Defined]:
    """Return the elements of a list that are attributes or aliases."""
    return [each for element in elements(text) if (each := defined(element))]


def listed_by(node: Node) -> list[Defined]:
    """Return the attributes and aliases of all lists among the arguments of an operator."""
    return [each for part in node.lists for each in attributes(part)]


def given_out_by(leaf: Node) -> list[Defined]:
    """Return what a leaf gives out; a relation of a logical plan has it among its arguments."""
    return attributes(leaf.fields["Output"]) if "Output" in leaf.fields else listed_by(leaf)


def references(expression: str, names: Mapping[int, str]) -> Iterator[tuple[int, Transformation]]:
    """Return the ids of the attributes that an expression uses, and how; ``names`` are those known below.

    Conditions of ``if`` and ``CASE`` are INDIRECT, as are the partitions and orders of a window. ``coalesce`` both
    passes on and decides.
    """
    expression = _NULL_STAYS.sub("", expression).strip()
    whole = _ATTRIBUTE.fullmatch(_BRACKETED.sub(r"\1", expression).strip())
    if whole and names.get(int(whole["id"])) == whole["name"]:
        yield int(whole["id"]), IDENTITY
        return
    enclosing: list[str] = []
    for token in _TOKEN.finditer(expression):
        if token["id"] is None:
            _step(token, enclosing)
            continue
        identity, end = int(token["id"]), token.start()
        name = names.get(identity)
        # Its name stands before an id: those of plans, and texts of the program, look like ids of attributes.
        if name is not None and expression[max(end - len(name), 0) : end].lower() == name.lower():
            yield identity, _how(enclosing)
            if "coalesce" in enclosing:
                yield identity, CONDITIONAL


def _step(token: re.Match[str], enclosing: list[str]) -> None:
    """Go into or out of a function, or on to the next phase of a ``CASE``."""
    is_case = bool(enclosing) and enclosing[-1] in _PHASES
    if token["function"] is not None:
        enclosing.append(token["function"])
    elif token["word"] == "CASE":
        enclosing.append("CASE")
    elif token["close"] or token["word"] == "END":
        if enclosing and (is_case or token["close"]):
            enclosing.pop()
    elif is_case:
        enclosing[-1] = token["word"]


def _how(enclosing: Collection[str]) -> Transformation:
    if not _ORDERED_BY.isdisjoint(enclosing):
        return WINDOW
    if not _CONDITIONS.isdisjoint(enclosing):
        return CONDITIONAL
    return TRANSFORMATION if _MASKING.isdisjoint(enclosing) else _MASKED


def through(columns: Iterable[Sources], how: Transformation) -> Sources:
    """Return the sources of what is made from several columns in one way."""
    return frozenset((dataset, name, compose(how, made)) for each in columns for dataset, name, made in each)


@dataclass
class Scope:
    """What is known above an operator: by id the name and sources of each attribute, and in order those it gives out.

    ``dataset_wide`` decided on the rows (filters, joins, groupings, orders). ``grouped`` is what the aggregates
    directly below group by, which may be but a step to a ``DISTINCT`` of the one above. ``filters`` are the FILTERs of
    aggregates, which only the first step states, by function and its place among those of the same text. ``unread``
    names operators without a rule, and what else was not understood. ``is_whole``: the plan names the datasets of all
    leaves below.
    """

    names: dict[int, str] = field(default_factory=dict)
    sources: dict[int, Sources] = field(default_factory=dict)
    output: list[int] = field(default_factory=list)
    dataset_wide: set[Source] = field(default_factory=set)
    grouped: set[Source] = field(default_factory=set)
    filters: dict[tuple[str, int], Sources] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    is_whole: bool = True
    below: list[Scope] = field(default_factory=list)

    def add(self, below: Scope) -> None:
        """Put what a child gives out behind what the others do."""
        self.below.append(below)
        self.names |= below.names
        self.sources |= below.sources
        self.output += below.output
        self.dataset_wide |= below.dataset_wide
        self.grouped |= below.grouped
        self.filters |= below.filters
        self.unread += below.unread
        self.is_whole &= below.is_whole

    def define(self, identity: int, name: str, sources: Iterable[Source] = ()) -> None:
        """Make an attribute known."""
        self.names[identity] = name
        self.sources[identity] = frozenset(sources)

    def define_as(self, element: Defined | None, how: Transformation = IDENTITY) -> None:
        """Make an attribute known by the expression that it is an alias of, if it is one."""
        if element is not None and element.expression is not None:
            self.define(element.id, element.name, self.made_from(element.expression, how))

    def give_out(self, elements: Iterable[Defined], sources: Iterable[Source] = ()) -> None:
        """Make attributes known that are all made from the same, and give them out behind the others."""
        for element in elements:
            self.define(element.id, element.name, sources)
            self.output.append(element.id)

    def pass_on(self, elements: Iterable[Defined]) -> None:
        """Give out nothing but these attributes, as far as they are known."""
        self.output = [element.id for element in elements if element.id in self.names]

    def made_from(self, expression: str, how: Transformation = IDENTITY) -> Sources:
        """Return the columns that an expression is made from."""
        used = references(expression, self.names)
        return NOTHING.union(*(through([self.sources[each]], compose(how, used_how)) for each, used_how in used))

    def all_of(self, identities: Iterable[int], how: Transformation = TRANSFORMATION) -> Sources:
        """Return the columns that several attributes are made from, for what may use all of them."""
        return through((self.sources[identity] for identity in identities), how)

    def decide(self, expression: str, subtype: str) -> None:
        """Note that an expression decided on the rows."""
        self.dataset_wide |= self.deciding(expression, subtype)

    def deciding(self, expression: str, subtype: str) -> Sources:
        """Return the columns of an expression that decided on the rows; those that come out of a window say so."""
        used = (identity for identity, _ in references(expression, self.names))
        return self.all_of(used, Transformation("INDIRECT", subtype))

    @property
    def decisions(self) -> Sources:
        """All that decided on the rows, groupings too."""
        return frozenset(self.dataset_wide | self.grouped)


def given_out_of(parts: Iterable[str], scope: Scope) -> list[Defined]:
    """Return the attributes and aliases of a list; a part that is neither belongs to the next: literals hold commas."""
    found: list[Defined] = []
    pending = ""
    for part in parts:
        pending += part
        element = defined(pending)
        if element and (element.expression is not None or scope.names.get(element.id) == element.name):
            found.append(element)
            pending = ""
        else:
            pending += ", "
    return found


def project(node: Node, key: str, scope: Scope, output: str | None = None) -> None:
    """Give out a list of attributes and aliases, by default that of a field, whose size the field may state."""
    output = node.fields.get(key, "") if output is None else output
    given_out = given_out_of(elements(output), scope)
    size = node.sizes.get(key, len(given_out))
    if len(given_out) != size:
        # A name or literal has a lone bracket.
        given_out = given_out_of(output.strip()[1:-1].split(", "), scope)
    if len(given_out) != size:
        # Better no columns than wrong ones.
        scope.output = []
        scope.unread.append(f"{node.name}: its columns")
        return
    known = Scope(dict(scope.names), dict(scope.sources))
    for element in given_out:
        if element.expression is not None:
            scope.define(element.id, element.name, known.made_from(element.expression))
    scope.pass_on(given_out)
