"""What the event log alone lacks of a lineage, but for what an earlier run with both sources lends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import structs

from spark_lineage.merge.accounting import OF_PROGRAM
from spark_lineage.merge.lineage import CatalogChange, DatasetLineage, SchemaField, TaskLineage
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.options import DEFAULT_NAMING, Naming

_COMPARED = (
    *("outputs", "inputs", "attempted", "unconfirmed", "catalog_changes", "is_streaming", "foreign", "foreign_of_job"),
)


class ChangeKey(NamedTuple):
    """A kind of change of the catalog: ``change`` is a ``ChangeType``, ``name`` what the catalog calls the object."""

    change: str
    dataset: DatasetName
    name: str

    @classmethod
    def of(cls, change: CatalogChange) -> ChangeKey:
        """Return the key of a change."""
        return cls(change.change, change.dataset, change.name)


class Lent(NamedTuple):
    """What no event log has: of each dataset the types of columns, and its catalog. ``changes`` are in order."""

    inputs: Mapping[DatasetName, DatasetLineage]
    outputs: Mapping[DatasetName, DatasetLineage]
    changes: tuple[tuple[ChangeKey, tuple[SchemaField, ...]], ...]

    @classmethod
    def of(cls, lineage: TaskLineage) -> Lent:
        """Return what a lineage of both sources can lend."""
        changes = tuple((ChangeKey.of(each), each.schema) for each in lineage.catalog_changes)
        return cls(_by_name(lineage.inputs), _by_name(lineage.outputs), changes)

    def is_known(self, lineage: TaskLineage) -> bool:
        """Whether a lineage has no dataset, column or change of the catalog besides those of the lender."""
        sides = ((self.inputs, lineage.inputs), (self.outputs, lineage.outputs))
        return {key for key, _ in self.changes}.issuperset(map(ChangeKey.of, lineage.catalog_changes)) and all(
            one.dataset in known and _names(one.schema) <= _names(known[one.dataset].schema)
            for known, datasets in sides
            for one in datasets
        )

    def to(self, lineage: TaskLineage) -> TaskLineage:
        """Add types, catalogs, and the columns of inputs that were not read, to a lineage of the event log alone.

        Of an input with a new column only the known ones get a type: it has changed. An output that is made from an
        unknown input gets no type, because that input may give a column of the same name another one.
        """
        known_inputs = self.inputs.keys()
        changed = {one.dataset for one in lineage.outputs if not known_inputs >= set(one.fed_by)}

        def read(one: DatasetLineage) -> DatasetLineage:
            known = self.inputs.get(one.dataset, one)
            is_unchanged = _names(one.schema) <= _names(known.schema)
            schema = known.schema if is_unchanged else _typed(one.schema, known.schema)
            return structs.replace(one, schema=schema, catalog=one.catalog or known.catalog)

        def written(one: DatasetLineage) -> DatasetLineage:
            known = self.outputs.get(one.dataset, one)
            schema = one.schema if one.dataset in changed else _typed(one.schema, known.schema)
            return structs.replace(one, schema=schema, catalog=one.catalog or known.catalog)

        changes, lent = [], [*self.changes]
        for each in lineage.catalog_changes:
            found = next((one for one in lent if one[0] == ChangeKey.of(each)), None)
            if found is not None:
                # A table that is made twice may have other types then.
                lent.remove(found)
            types = found[1] if found and each.dataset not in changed else ()
            changes.append(structs.replace(each, schema=_typed(each.schema, types)))
        return structs.replace(
            lineage,
            inputs=tuple(map(read, lineage.inputs)),
            outputs=tuple(map(written, lineage.outputs)),
            catalog_changes=tuple(changes),
        )


def is_lacking(lineage: TaskLineage) -> bool:
    """Whether a lineage counts something that another source may have."""
    return bool(lineage.unknown) or any(one.part != OF_PROGRAM.name for one in lineage.unread)


def lacking_in_log(state: LineageState, lineage: TaskLineage, *, naming: Naming = DEFAULT_NAMING) -> str:
    """Return what the event log lacks of a lineage that both sources made; empty where the log alone is enough.

    It is enough without what this lineage can lend the next ones. A log of which something was not read never is.

    :param state: what the lineage was made from
    """
    alone = task_lineage(state.without_listener(), lineage.state, naming=naming)
    if is_lacking(alone):
        return "what it counts"
    alone = Lent.of(lineage).to(alone)
    lacking = (name for name in _COMPARED if getattr(lineage, name) != getattr(alone, name))
    return ", ".join(lacking).replace("_", " ")


def _typed(schema: tuple[SchemaField, ...], known: tuple[SchemaField, ...]) -> tuple[SchemaField, ...]:
    by_name = {field.name: field for field in known}
    return tuple(by_name.get(field.name, field) for field in schema)


def _names(schema: tuple[SchemaField, ...]) -> set[str]:
    return {field.name for field in schema}


def _by_name(datasets: Iterable[DatasetLineage]) -> dict[DatasetName, DatasetLineage]:
    return {one.dataset: one for one in datasets}
