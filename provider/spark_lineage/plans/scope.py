"""What is known of the columns above one operator of a plan: names, what they are made from, what decided on rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_lineage.merge.lineage import Transformation
from spark_lineage.merge.observed import compose
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.expressions import (
    IDENTITY,
    TRANSFORMATION,
    Defined,
    arguments,
    defined,
    elements,
    references,
)
from spark_lineage.plans.plan import Node

# A column of a dataset, and how it was used.
Source = tuple[DatasetName, str, Transformation]
Sources = frozenset[Source]


class Read(NamedTuple):
    """What a leaf reads: the columns that each of its attributes is, and whether the plan names all datasets of it.

    ``deciding`` are the columns by which the source itself picks rows.
    """

    columns: Sequence[Sources]
    is_whole: bool
    deciding: Sources = frozenset()


@dataclass
class Scope:
    """What is known above an operator: by id the name and sources of each attribute, in order those it gives out."""

    names: dict[int, str] = field(default_factory=dict)
    sources: dict[int, Sources] = field(default_factory=dict)
    output: list[int] = field(default_factory=list)
    dataset_wide: set[Source] = field(default_factory=set)
    """What decided on the rows: filters, joins, groupings, orders."""
    grouped: set[Source] = field(default_factory=set)
    """What the aggregates directly below group by, which may be but a step to a ``DISTINCT`` of the one above."""
    filters: dict[tuple[str, int], Sources] = field(default_factory=dict)
    """By an aggregate, and which of its name it is, what decides on the values that it takes: FILTER, which only its
    first step tells."""
    unread: list[str] = field(default_factory=list)
    """The names of operators that no rule reads, and what else was not understood."""
    is_whole: bool = True
    """Whether each leaf below is a dataset that the plan names in full, or none."""

    def add(self, below: Scope) -> None:
        """Put what a child gives out behind what the others do."""
        self.names |= below.names
        self.sources |= below.sources
        self.output += below.output
        self.dataset_wide |= below.dataset_wide
        self.grouped |= below.grouped
        self.filters |= below.filters
        self.unread += below.unread
        self.is_whole &= below.is_whole

    def define(self, identity: int, name: str, sources: Iterable[Source]) -> None:
        """Make an attribute known."""
        self.names[identity] = name
        self.sources[identity] = frozenset(sources)

    def give_out(self, element: Defined, sources: Iterable[Source]) -> None:
        """Make an attribute known, and give it out behind the others."""
        self.define(element.id, element.name, sources)
        self.output.append(element.id)

    def define_as(self, element: Defined | None, how: Transformation = IDENTITY) -> None:
        """Make an attribute known by the expression that it is an alias of, if it is one."""
        if element is not None and element.expression is not None:
            self.define(element.id, element.name, self.made_from(element.expression, how))

    def made_from(self, expression: str, how: Transformation = IDENTITY) -> Sources:
        """Return the columns that an expression is made from."""
        return frozenset(
            (dataset, column, compose(how, compose(reference.how, made)))
            for reference in references(expression, self.names)
            for dataset, column, made in self.sources[reference.id]
        )

    def all_of(self, identities: Iterable[int], how: Transformation = TRANSFORMATION) -> Sources:
        """Return the columns that several attributes are made from, for what may use all of them."""
        return through((self.sources[identity] for identity in identities), how)

    def decide(self, expression: str, subtype: str) -> None:
        """Note that an expression decided on the rows."""
        self.dataset_wide.update(self.deciding(expression, subtype))

    def deciding(self, expression: str, subtype: str) -> Iterator[Source]:
        """Return the columns of an expression that decided on the rows; what came out of a window says so."""
        how = Transformation("INDIRECT", subtype)
        for reference in references(expression, self.names):
            for dataset, column, made in self.sources[reference.id]:
                yield dataset, column, compose(how, made)

    @property
    def decisions(self) -> Sources:
        """All that decided on the rows, groupings too."""
        return frozenset(self.dataset_wide | self.grouped)


def through(columns: Iterable[Sources], how: Transformation) -> Sources:
    """Return what several columns are made from as what is made from them in this way is."""
    return frozenset((dataset, name, compose(how, made)) for each in columns for dataset, name, made in each)


def attributes(text: str) -> list[Defined]:
    """The elements of a list that are attributes or aliases."""
    return [each for element in elements(text) if (each := defined(element))]


def given_out_by(leaf: Node) -> list[Defined]:
    """What a leaf gives out; a relation of a logical plan has it among its arguments."""
    if "Output" in leaf.fields:
        return attributes(leaf.fields["Output"])
    return [each for part in arguments(leaf.fields.get("Arguments", "")) for each in attributes(part)]


def given_out_of(parts: Iterable[str], scope: Scope) -> list[Defined]:
    """The attributes and aliases of a list, of its parts; what is neither is part of the next: literals hold commas."""
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


def project(node: Node, name: str, output: str, scope: Scope) -> None:
    """Return out a list of attributes and aliases, whose size the field ``name`` of ``node`` may tell."""
    given_out = given_out_of(elements(output), scope)
    size = node.sizes.get(name, len(given_out))
    if len(given_out) != size:
        # A name or literal with a lone bracket.
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
    scope.output = [element.id for element in given_out if element.id in scope.names]


def node_arguments(node: Node) -> list[str]:
    """Return the arguments of an operator."""
    return arguments(node.fields.get("Arguments", ""))
