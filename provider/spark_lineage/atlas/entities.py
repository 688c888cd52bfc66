"""The entities of a task's update, each once, after the entities that they refer to; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_lineage.atlas.datasets import Thing
from spark_lineage.atlas.task_update import TaskUpdate

ENDS = ("inputs", "outputs")
# Of a hive_column; a missing value leaves the attribute unchanged.
_DEMANDED = "type"
Reference = Mapping[str, Any]
"""``{"typeName": …, "guid": …}``, of an entity of the same request or of one that is in Atlas."""
Known = Mapping[tuple[str, str], Mapping[str, Any]]
"""Attributes that Atlas has, and that stay, by the key of their entity."""


@dataclass(frozen=True)
class AtlasOptions:
    """How lineage looks in Atlas.

    ``is_by_path``: each output has a process of its own, with what leads to it, and the task's has none.
    ``has_columns``: there are processes between columns.
    """

    is_by_path: bool = False
    has_columns: bool = True


class Entities:
    """Collects entities, in ``by_key``; attributes that are ``known`` take the place of what a thing says."""

    def __init__(self, known: Known | None = None) -> None:
        self.by_key: dict[tuple[str, str], dict[str, Any]] = {}
        self._known = known or {}

    @property
    def found(self) -> Sequence[Mapping[str, Any]]:
        """The entities, each after those that it refers to."""
        return [*self.by_key.values()]

    def add(self, thing: Thing, **more: Any) -> Reference:
        """Add an entity, with attributes that refer to others, and return the reference to it."""
        if thing.key not in self.by_key:
            within = {name: self.add(each) for name, each in thing.within.items()}
            there = self._known.get(thing.key, {})
            kept = {name: value for name, value in there.items() if name in thing.attributes or name == _DEMANDED}
            # Of a type with legacy attributes Atlas looks for a relationship there; it ignores what it does not know.
            self.by_key[thing.key] = {
                "typeName": thing.type,
                "guid": f"-{len(self.by_key) + 1}",
                "attributes": {**thing.attributes, **kept, **within, **more},
                "relationshipAttributes": {**within, **more},
            }
        return {"typeName": thing.type, "guid": self.by_key[thing.key]["guid"]}

    def add_all(self, things: Iterable[Thing]) -> list[Reference]:
        """Add several, but those that lack what their type demands."""
        return [self.add(each) for each in things if each.is_complete or each.key in self._known]

    def own(self, owner: Thing, name: str, owned: Sequence[Reference]) -> None:
        """Let an entity that was added own these and no others, which Atlas deletes."""
        self.by_key[owner.key]["relationshipAttributes"][name] = owned


def process_of(update: TaskUpdate) -> Sequence[Mapping[str, Any]]:
    """Return the process of an update, as the only entity, without its inputs and outputs, which stay."""
    entities = Entities()
    entities.add(update.process)
    return entities.found


def entities_of(
    update: TaskUpdate, options: AtlasOptions, *, lists: Collection[str], owns: bool = False, known: Known | None = None
) -> Entities:
    """Return the entities of an update.

    :param lists: of inputs and outputs those that the process gets with it
    :param owns: with what the process and its tables own, so that Atlas deletes what they own no more
    :param known: attributes that Atlas has
    """
    entities = Entities(known)
    # Atlas compares lists in their order.
    ends = {name: sorted(getattr(update, name), key=lambda each: each.qualified_name) for name in ENDS}
    related = {name: [] if options.is_by_path else entities.add_all(things) for name, things in ends.items()}
    entities.add(update.process, **{name: some for name, some in related.items() if name in lists})
    entities.add_all(update.schemas)
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
            if table.key in entities.by_key and table.column_owner == "table":
                entities.own(table, table.columns_name, entities.add_all(all_columns))
    return entities
