"""What events say about one dataset, as values that can be joined in any order.

``join`` is commutative, associative and idempotent: a choice between two facets never depends on which came first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from spark_lineage.merge.lineage import (
    Catalog,
    ColumnChange,
    SchemaField,
    Statistics,
    Storage,
    Subscription,
    Symlink,
    Transformation,
)
from spark_lineage.merge.partitions import joined, partition_below
from spark_lineage.naming.identity import DatasetName, is_path_namespace
from spark_lineage.naming.options import Naming

_S = TypeVar("_S", bound=Struct)

# One edge: the output column (None for the dataset as a whole) and what it was made from.
Edge = tuple[str | None, DatasetName, str, Transformation]

NO_TRANSFORMATION = Transformation("")
# The schema of files that are read as lines of text.
LINES = (SchemaField("value", "string"),)
# The stronger of two direct steps names the whole.
_STRENGTH = {"": 0, "IDENTITY": 1, "AGGREGATION": 3}
_OTHER_STRENGTH = 2


class Observed(Struct, frozen=True, gc=False):
    """One dataset as an input or an output of one run.

    ``scanned`` are the snapshots that Iceberg reports to have read, which the listener writes as doubles, ``former``
    is the schema that an ALTER found, ``partition_keys`` and ``subscription`` are as in a ``DatasetLineage``.
    """

    dataset: DatasetName
    symlinks: frozenset[Symlink] = frozenset()
    schema: tuple[SchemaField, ...] = ()
    storage: Storage | None = None
    catalog: Catalog | None = None
    versions: frozenset[str] = frozenset()
    lifecycles: frozenset[str] = frozenset()
    previous_name: DatasetName | None = None
    edges: frozenset[Edge] = frozenset()
    statistics: Statistics | None = None
    scanned: frozenset[float] = frozenset()
    former: tuple[SchemaField, ...] = ()
    partition_keys: tuple[str, ...] = ()
    subscription: Subscription | None = None

    @property
    def names(self) -> tuple[DatasetName, ...]:
        """All that it is called: its own name, then those that symlinks give it, sorted; a partition as its dataset."""
        return self.dataset.whole, *sorted(link.dataset for link in self.symlinks)

    @property
    def tables(self) -> list[Symlink]:
        """What catalogs call it, sorted."""
        return tables(self.symlinks)

    @property
    def is_bare(self) -> bool:
        """Whether nothing but the name is known, as RDD runs give it."""
        return not (self.schema or self.symlinks or self.lifecycles)

    @property
    def is_empty(self) -> bool:
        """Whether a write of it wrote no data, as far as its run says: DDL."""
        return self.statistics is None and not self.edges


def tables(symlinks: Iterable[Symlink]) -> list[Symlink]:
    """Return the symlinks that are names of tables, sorted."""
    return sorted(link for link in symlinks if link.type == "TABLE")


def table_name(symlinks: Iterable[Symlink]) -> str | None:
    """Return what the catalog calls a dataset, None for what is in no catalog."""
    return min((link.name for link in symlinks if link.type == "TABLE"), default=None)


def join(left: tuple[Observed, ...], right: tuple[Observed, ...]) -> tuple[Observed, ...]:
    """Return what two events of one run say together (M2)."""
    if not left or left is right:
        return right
    return by_name((*left, *right)) if right else left


def by_name(observed: Iterable[Observed]) -> tuple[Observed, ...]:
    """Return one entry a name, sorted by name."""
    found: dict[DatasetName, Observed] = {}
    for one in observed:
        known = found.get(one.dataset)
        found[one.dataset] = one if known is None else join_one(known, one)
    return tuple(found[name] for name in sorted(found))


def join_one(left: Observed, right: Observed) -> Observed:
    """Return what two observations of one dataset say together; of each number the greater (M9 within a run)."""
    return join_fields(
        left,
        right,
        schema=max(left.schema, right.schema, key=_fullness),
        former=max(left.former, right.former, key=_fullness),
        statistics=combine(left.statistics, right.statistics, max),
    )


def _fullness(schema: tuple[SchemaField, ...]) -> tuple[int, int, bytes]:
    # A declared column has a name only.
    return len(schema), sum(field.type is not None for field in schema), msgspec.json.encode(schema)


def join_fields(left: _S, right: _S, **chosen: Any) -> _S:
    """Return two observations of one thing as one: of each field the union or the greater, but for those ``chosen``."""
    others = [name for name in left.__struct_fields__ if name not in chosen]
    return type(left)(**chosen, **{name: _greater(getattr(left, name), getattr(right, name)) for name in others})


def _greater(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, frozenset):
        return left | right
    return max(left, right, key=msgspec.json.encode) if isinstance(left, Struct) else max(left, right)


def combine(left: Statistics | None, right: Statistics | None, of_two: Callable[[int, int], int]) -> Statistics | None:
    """Return ``of_two`` of each number that both have, else the one there is; a true 0 is a number, None is none."""
    if left is None or right is None:
        return right if left is None else left
    pairs = zip(structs.astuple(left), structs.astuple(right), strict=True)
    return Statistics(
        *(of_two(one, other) if None not in {one, other} else other if one is None else one for one, other in pairs)
    )


def named(observed: Iterable[Observed], naming: Naming) -> tuple[Observed, ...]:
    """Return the same by the names that a naming has for them; what gets one name becomes one.

    A path of which the naming leaves the dataset above is a partition of that.
    """

    def name(former: DatasetName) -> DatasetName:
        new = naming.name(former.namespace, former.name)
        partition = former.partition
        if new.name != former.name and is_path_namespace(new.namespace):
            partition = joined(partition_below(new, former.name), partition)
        return DatasetName(new.namespace, new.name, partition) if partition else new

    def symlink(link: Symlink) -> Symlink:
        if link.type == "TABLE" and is_path_namespace(link.namespace):
            # The warehouse's folder as a namespace: the name in it is that of a table, no path.
            return link
        new = naming.name(link.namespace, link.name)
        return Symlink(new.namespace, new.name, link.type)

    found = []
    for former in observed:
        sources = {source: name(source) for source in {edge[1] for edge in former.edges}}
        one = with_sources(former, {source: new for source, new in sources.items() if new != source})
        symlinks = frozenset(map(symlink, one.symlinks))
        previous = one.previous_name and name(one.previous_name).whole
        found.append(structs.replace(one, dataset=name(one.dataset), symlinks=symlinks, previous_name=previous))
    return by_name(found)


def renamed(one: Observed, names: Mapping[DatasetName, DatasetName]) -> Observed:
    """Return a dataset by the name that it has in ``names``, if any."""
    return structs.replace(one, dataset=names[one.dataset]) if one.dataset in names else one


def in_partition(one: Observed, partition: str) -> Observed:
    """Return a dataset of which one partition alone is read or written."""
    return structs.replace(one, dataset=structs.replace(one.dataset, partition=partition)) if partition else one


def with_sources(one: Observed, names: Mapping[DatasetName, DatasetName]) -> Observed:
    """Return a dataset whose columns come from others by the names that these have in ``names``, if any."""
    if not names or not any(edge[1] in names for edge in one.edges):
        return one
    edges = frozenset((column, names.get(source, source), field, how) for column, source, field, how in one.edges)
    return structs.replace(one, edges=edges)


def keep_edges(one: Observed, is_kept: Callable[[Edge], bool]) -> Observed:
    """Return a dataset without the edges that are not to be kept."""
    kept = frozenset(filter(is_kept, one.edges))
    return one if len(kept) == len(one.edges) else structs.replace(one, edges=kept)


def compose(outer: Transformation, inner: Transformation) -> Transformation:
    """Return how an output column was made from an input column, through a column in between (M7).

    DIRECT through DIRECT is DIRECT; all else is INDIRECT, as the indirect step nearer to the input says. What either
    step masked is masked. A step without a type says nothing: the other one counts.

    :param outer: how the output was made from the column in between
    :param inner: how the column in between was made from the input
    """
    if not (outer.type and inner.type):
        how = outer if outer.type else inner
    elif outer.type == inner.type == "DIRECT":
        how = max(outer, inner, key=lambda step: _STRENGTH.get(step.subtype, _OTHER_STRENGTH))
    else:
        how = outer if inner.type == "DIRECT" else inner
    return Transformation(how.type, how.subtype, how.description, outer.masking or inner.masking)


def indirect(how: Transformation) -> Transformation:
    """Return the same as an influence on the dataset as a whole; of what kind is not known, where it was DIRECT."""
    subtype = "UNKNOWN" if how.type == "DIRECT" else how.subtype
    return Transformation("INDIRECT", subtype, how.description, how.masking)


def column_changes(old: Sequence[SchemaField], new: Sequence[SchemaField]) -> tuple[ColumnChange, ...]:
    """Return what an ALTER changed, by column name; a column that lost only its name was renamed."""
    if not old or not new:
        return ()
    before, after = {field.name: field for field in old}, {field.name: field for field in new}
    retyped = tuple(ColumnChange(field, after[field.name]) for field in old if after.get(field.name, field) != field)
    if len(old) == len(new):
        gone = [position for position, field in enumerate(old) if field.name not in after]
        come = [position for position, field in enumerate(new) if field.name not in before]
        if gone == come and all(structs.replace(old[at], name=new[at].name) == new[at] for at in gone):
            return tuple(ColumnChange(old[at], new[at]) for at in gone) + retyped
    dropped = tuple(ColumnChange(field, None) for field in old if field.name not in after)
    added = tuple(ColumnChange(None, field) for field in new if field.name not in before)
    return dropped + added + retyped


def lacks(schema: Sequence[SchemaField], changes: Iterable[ColumnChange]) -> bool:
    """Whether columns are those of before changes that a command names."""
    names = {field.name.casefold() for field in schema}
    return any(
        change.new.name.casefold() not in names
        if change.new is not None
        else change.old is not None and change.old.name.casefold() in names
        for change in _of_columns(changes)
    )


def with_changes(schema: Sequence[SchemaField], changes: Iterable[ColumnChange]) -> tuple[SchemaField, ...]:
    """Return the columns of a table after changes that its command names; types that it does not name stay."""
    changes = list(_of_columns(changes))
    changed = {change.old.name.casefold(): change.new for change in changes if change.old is not None}
    kept = (_changed(field, changed.get(field.name.casefold(), field)) for field in schema)
    added = (change.new for change in changes if change.old is None)
    return tuple(field for field in (*kept, *added) if field is not None)


def of_schema(changes: Iterable[ColumnChange], schema: Sequence[SchemaField]) -> tuple[ColumnChange, ...]:
    """Return the changes of a command, in which a column with a dot in its name looks as a struct's field."""
    names = {field.name for field in schema}
    return tuple(
        structs.replace(one, new=structs.replace(one.new, name=one.new.name.removeprefix(_above(one.old.name))))
        if one.old is not None and one.new is not None and one.old.name in names and one.old.name != one.new.name
        else one
        for one in changes
    )


def _above(name: str) -> str:
    return "".join(name.rpartition(".")[:2])


def _of_columns(changes: Iterable[ColumnChange]) -> Iterator[ColumnChange]:
    """Return the changes of columns, without those of a struct's fields (``address.city``)."""
    for change in changes:
        if not any("." in field.name for field in (change.old, change.new) if field is not None):
            yield change


def _changed(field: SchemaField, new: SchemaField | None) -> SchemaField | None:
    return None if new is None else structs.replace(field, name=new.name, type=new.type or field.type)
