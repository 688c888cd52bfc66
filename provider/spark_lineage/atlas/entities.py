"""The entities of a task's update, each once, after the entities that they refer to; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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


class Entities:
    """Collects entities; ``found`` is what ``/v2/entity/bulk`` and ``ENTITY_CREATE_V2`` take.

    :param known: takes the place of what a thing says
    """

    def __init__(self, known: Known | None = None) -> None:
        self.found: list[dict[str, Any]] = []
        self._known = known or {}
        self._references: dict[tuple[str, str], Reference] = {}

    def add(self, thing: Thing, **more: Any) -> Reference:
        """Add an entity, with attributes that refer to others, and return the reference to it."""
        known = self._references.get(thing.key)
        if known is not None:
            return known
        within = {name: self.add(each) for name, each in thing.within.items()}
        reference = self._references[thing.key] = {"typeName": thing.type, "guid": f"-{len(self.found) + 1}"}
        there = self._known.get(thing.key, {})
        kept = {name: value for name, value in there.items() if name in thing.attributes or name == _DEMANDED}
        # Of a type with legacy attributes Atlas looks for a relationship there; it passes over what it does not know.
        self.found.append(
            {
                **reference,
                "attributes": {**thing.attributes, **kept, **within, **more},
                "relationshipAttributes": {**within, **more},
            }
        )
        return reference

    def add_all(self, things: Iterable[Thing]) -> list[Reference]:
        """Add several, but those that lack what their type demands."""
        return [self.add(each) for each in things if each.is_complete or each.key in self._known]

    def own(self, owner: Thing, name: str, owned: Sequence[Reference]) -> None:
        """Let an entity that was added own these and no others, which Atlas deletes."""
        guid = self._references[owner.key]["guid"]
        next(each for each in self.found if each["guid"] == guid)["relationshipAttributes"][name] = owned

    def process(self, update: TaskUpdate) -> Mapping[str, Any]:
        """Add the process of an update without its inputs and outputs, which stay, and return it."""
        self.add(update.process)
        return self.found[-1]

    def has(self, thing: Thing) -> bool:
        """Whether an entity was added."""
        return thing.key in self._references

    def guid(self, thing: Thing) -> str:
        """Return the temporary GUID of an entity that was added."""
        return str(self._references[thing.key]["guid"])


def entities_of(
    update: TaskUpdate,
    *,
    lists: Collection[str] = ENDS,
    is_by_path: bool = False,
    has_columns: bool = True,
    owns: bool = False,
    known: Known | None = None,
) -> Entities:
    """Return the entities of an update.

    :param lists: of inputs and outputs those that the process gets with it
    :param is_by_path: each output has a process of its own, with what leads to it, and the task's has none
    :param has_columns: with processes between columns
    :param owns: with what the process and its tables own, so that Atlas deletes what they own no more
    :param known: attributes that Atlas has
    """
    entities = Entities(known)
    # Atlas compares lists in their order.
    ends = {name: sorted(getattr(update, name), key=lambda each: each.qualified_name) for name in ENDS}
    related = {name: [] if is_by_path else entities.add_all(things) for name, things in ends.items()}
    entities.add(update.process, **{name: some for name, some in related.items() if name in lists})
    entities.add_all(update.schemas)
    paths = [
        entities.add(update.path(inputs, output), inputs=entities.add_all(inputs), outputs=[entities.add(output)])
        for inputs, output in (update.paths if is_by_path else ())
    ]
    columns = []
    for edges in update.columns if has_columns else ():
        sources, made = entities.add_all(edges.sources), entities.add_all([edges.column])
        if sources and made:
            columns.append(entities.add(update.column_lineage(edges), inputs=sources, outputs=made))
    if owns and update.is_whole:
        entities.own(update.process, "lineagePaths", paths)
        entities.own(update.process, "columnLineages", columns)
    if owns:
        for table, all_columns in update.remade:
            if entities.has(table) and table.column_owner == "table":
                entities.own(table, table.columns_name, entities.add_all(all_columns))
    return entities
