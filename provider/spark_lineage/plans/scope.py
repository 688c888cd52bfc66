"""Tracks what the columns above each operator of a plan are made from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.merge.observed import compose
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.expressions import TRANSFORMATION, references
from spark_lineage.plans.lists import Defined, attributes, outputs
from spark_lineage.plans.names import NAME
from spark_lineage.plans.plan import Node

USED = re.compile(rf"{NAME}#(\d+)")

# A column of a dataset, and how it was used.
Source = tuple[DatasetName, str, Transformation]
Sources = frozenset[Source]
NOTHING: Sources = frozenset()


class Read(NamedTuple):
    """What a leaf reads: the columns that each of its attributes is, and whether the plan names all datasets of it.

    ``deciding`` are the columns by which the source itself picks rows, ``unread`` what it does that was not understood.
    """

    columns: Sequence[Sources]
    is_whole: bool
    deciding: Sources = NOTHING
    unread: tuple[str, ...] = ()


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
    ``known`` are the attributes of all operators that have sources, those that the root gives out among them.
    """

    columns: tuple[Column, ...] = ()
    dataset_wide: Sources = NOTHING
    unread: tuple[str, ...] = ()
    is_whole: bool = False
    is_cut: bool = False
    known: tuple[Column, ...] = ()

    def with_sources(self, change: Callable[[Sources], Sources]) -> Traced:
        """Return the same columns and decisions with changed sources."""
        columns = tuple(replace(column, sources=change(column.sources)) for column in self.columns)
        return replace(self, columns=columns, dataset_wide=change(self.dataset_wide))


UNTRACED = Traced()


def listed_by(node: Node) -> list[Defined]:
    """Return the attributes and aliases of all lists among the arguments of an operator."""
    return [each for part in node.lists for each in attributes(part)]


def given_out_by(leaf: Node) -> list[Defined]:
    """Return what a leaf gives out; a relation of a logical plan has it among its arguments."""
    return attributes(leaf.fields["Output"]) if "Output" in leaf.fields else listed_by(leaf)


def through(columns: Iterable[Sources], how: Transformation) -> Sources:
    """Return the sources of what is made from several columns in one way."""
    return frozenset((dataset, name, compose(how, made)) for each in columns for dataset, name, made in each)


@dataclass
class Scope:
    """What is known above an operator: by id the name and sources of each attribute, and in order those it gives out.

    ``dataset_wide`` decided on the rows (filters, joins, groupings, orders). ``grouped`` is what the aggregates
    directly below group by, which may be but a step to a ``DISTINCT`` of the one above. ``filters`` are the FILTERs of
    aggregates, which only the first step states, by function and its place among those of the same text. ``expanded``
    are attributes that an Expand gives out and makes from nothing. ``unread`` names operators without a rule, and what
    else was not understood. ``is_whole``: the plan names the datasets of all leaves below.
    """

    names: dict[int, str] = field(default_factory=dict)
    sources: dict[int, Sources] = field(default_factory=dict)
    output: list[int] = field(default_factory=list)
    dataset_wide: set[Source] = field(default_factory=set)
    grouped: set[Source] = field(default_factory=set)
    filters: dict[tuple[str, int], Sources] = field(default_factory=dict)
    expanded: set[int] = field(default_factory=set)
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
        self.expanded |= below.expanded
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
        used = (one for one in references(expression) if one[0] in self.sources)
        return NOTHING.union(*(through([self.sources[each]], compose(how, used_how)) for each, used_how in used))

    def all_of(self, identities: Iterable[int], how: Transformation = TRANSFORMATION) -> Sources:
        """Return the columns that several attributes are made from, for what may use all of them."""
        return through((self.sources[identity] for identity in identities), how)

    def decide(self, expression: str, subtype: str) -> None:
        """Note that an expression decided on the rows."""
        self.dataset_wide |= self.deciding(expression, subtype)

    def deciding(self, expression: str, subtype: str) -> Sources:
        """Return the columns of an expression that decided on the rows; those that come out of a window say so."""
        used = (int(match[1]) for match in USED.finditer(expression))
        return self.all_of(filter(self.sources.__contains__, used), Transformation("INDIRECT", subtype))

    @property
    def decisions(self) -> Sources:
        """All that decided on the rows, groupings too."""
        return frozenset(self.dataset_wide | self.grouped)


def project(node: Node, key: str, scope: Scope) -> None:
    """Give out a field that is a list of attributes and aliases, whose size it may state."""
    give_out_list(outputs(node.fields.get(key, "[]"), node.sizes.get(key)), node, scope)


def give_out_list(given_out: Sequence[Defined] | None, node: Node, scope: Scope) -> None:
    """Give out attributes and aliases; where a list was not understood, no columns are better than wrong ones."""
    if given_out is None:
        scope.output = []
        scope.unread.append(f"{node.name}: its columns")
        return
    known = Scope(dict(scope.names), dict(scope.sources))
    for element in given_out:
        if element.expression is not None:
            scope.define(element.id, element.name, known.made_from(element.expression))
        elif element.id in scope.names:
            # It may be spelled in another way.
            scope.names[element.id] = element.name
        elif not scope.unread:
            scope.unread.append(f"{node.name}: its columns")
    scope.pass_on(given_out)


Rule = Callable[[Node, Scope], None]
