"""The entities of a task's update, each once, after the entities that they refer to; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spark_lineage.atlas.datasets import Thing
from spark_lineage.atlas.task_update import TaskUpdate

ENDS = ("inputs", "outputs")
# Of a hive_column; a missing value leaves the attribute unchanged.
_DEMANDED = "type"
PARTITION_KEYS = "partitionKeys"
# Both kinds of a table's columns have the table in one attribute.
_KEY_OF = {"relationshipType": "hive_table_partitionkeys"}
Reference = Mapping[str, Any]
"""``{"typeName": …, "guid": …}``, of an entity of the same request or of one that is in Atlas."""
Key = tuple[str, str]


class Known(NamedTuple):
    """What Atlas has of an update's datasets.

    ``attributes`` stay, by the key of their entity. ``tables`` of Hive have columns, which only changes of the table
    change, and ``partition_keys`` are those of the columns by which their table is partitioned.
    """

    attributes: dict[Key, Mapping[str, Any]]
    tables: set[Key]
    partition_keys: set[Key]


@dataclass(frozen=True)
class AtlasOptions:
    """How lineage looks in Atlas.

    ``is_by_path``: each output has a process of its own, with what leads to it, and the task's has none.
    ``has_columns``: there are processes between columns.
    """

    is_by_path: bool = False
    has_columns: bool = True


class Entities:
    """Collects entities, in ``by_key``; attributes that are ``known`` take the place of what a thing says.

    Of a Hive table it has the columns that the update has made, and those of a table that has none in Atlas; to others
    it only refers, because the hooks of Hive know better which there are, and which are partition keys.
    """

    def __init__(self, update: TaskUpdate, known: Known | None = None) -> None:
        self.by_key: dict[Key, dict[str, Any]] = {}
        self._known = known.attributes if known else {}
        self._can_know = known is not None
        new = (each for each in update.schemas if known and each.within["table"].key not in known.tables)
        # Where Atlas cannot be queried, a partition key of an overwritten table would become a column.
        made = {key: value for key, value in update.made.items() if known or key not in update.undecided}
        self._made = {**{each.key: {} for each in new}, **made}
        self.partition_keys = {*update.partition_keys, *(known.partition_keys if known else ())}

    @property
    def found(self) -> Sequence[Mapping[str, Any]]:
        """The entities, each after those that it refers to."""
        return [*self.by_key.values()]

    def add(self, thing: Thing, **more: Any) -> Reference:
        """Add an entity, with attributes that refer to others, and return the reference to it."""
        if thing.key not in self.by_key:
            key_of = _KEY_OF if thing.key in self.partition_keys else {}
            within = {name: {**self.add(each), **key_of} for name, each in thing.within.items()}
            there = self._known.get(thing.key, {})
            made = self._made.get(thing.key, {})
            names = {*made, *thing.attributes, _DEMANDED}
            kept = {name: value for name, value in there.items() if name in names}
            # Of a type with legacy attributes Atlas looks for a relationship there; it ignores what it does not know.
            self.by_key[thing.key] = {
                "typeName": thing.type,
                "guid": f"-{len(self.by_key) + 1}",
                "attributes": {**made, **thing.attributes, **kept, **within, **more},
                "relationshipAttributes": {**within, **more},
            }
        return {"typeName": thing.type, "guid": self.by_key[thing.key]["guid"]}

    def add_all(self, things: Iterable[Thing]) -> list[Reference]:
        """Add several, or refer to those that are there; without those that lack what their type demands."""
        return [found for each in things if (found := self._add_or_refer(each))]

    def _add_or_refer(self, thing: Thing) -> Reference | None:
        there, made = self._known.get(thing.key), self._made.get(thing.key)
        has_type = _DEMANDED in {*thing.attributes, *(made or ()), *(there or ())}
        if thing.type != "hive_column" or (made is not None and has_type):
            return self.add(thing)
        # A message may refer to what is not there yet: Atlas completes it when its hook describes it.
        name = {"typeName": thing.type, "uniqueAttributes": {"qualifiedName": thing.qualified_name}}
        return None if there is None and self._can_know else name

    def own(self, owner: Thing, name: str, owned: Sequence[Reference]) -> None:
        """Let an entity that was added own these and no others, which Atlas deletes."""
        self.by_key[owner.key]["relationshipAttributes"][name] = owned


def process_of(update: TaskUpdate) -> Sequence[Mapping[str, Any]]:
    """Return the process of an update, as the only entity, without its inputs and outputs, which stay."""
    entities = Entities(update)
    entities.add(update.process)
    return entities.found


def entities_of(
    update: TaskUpdate, options: AtlasOptions, *, lists: Collection[str], owns: bool = False, known: Known | None = None
) -> Entities:
    """Return the entities of an update.

    :param lists: of inputs and outputs those that the process gets with it
    :param owns: with what the process and its tables own, so that Atlas deletes what they own no more
    :param known: what Atlas has, None where nobody can ask
    """
    entities = Entities(update, known)
    # Atlas compares lists in their order.
    ends = {name: sorted(getattr(update, name), key=lambda each: each.qualified_name) for name in ENDS}
    related = {name: [] if options.is_by_path else entities.add_all(things) for name, things in ends.items()}
    entities.add(update.process, **{name: some for name, some in related.items() if name in lists})
    entities.add_all(update.schemas)
    entities.add_all(each for each in update.storages if known is None or each.within["table"].key not in known.tables)
    paths = [
        entities.add(update.path(inputs, output), inputs=entities.add_all(inputs), outputs=[entities.add(output)])
        for inputs, output in (update.paths if options.is_by_path else ())
    ]
    columns = []
    for edges in update.columns if options.has_columns else ():
        sources, made = entities.add_all(edges.sources), entities.add_all([edges.column])
        if sources and made:
            columns.append(entities.add(update.column_lineage(edges), inputs=sources, outputs=made))
    if owns and update.is_whole:
        entities.own(update.process, "lineagePaths", paths)
        entities.own(update.process, "columnLineages", columns)
    if owns:
        for table, all_columns in update.remade:
            if table.key in entities.by_key and not update.undecided & {each.key for each in all_columns}:
                keys = [each for each in all_columns if each.key in entities.partition_keys]
                entities.own(
                    table, table.columns_name, entities.add_all(each for each in all_columns if each not in keys)
                )
                if keys:
                    entities.own(table, PARTITION_KEYS, entities.add_all(keys))
    return entities
