"""The entities of a task's update as Atlas takes them, each once, and those that others refer to before them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_lineage.atlas.datasets import Thing
from spark_lineage.atlas.task_update import TaskUpdate

Reference = Mapping[str, Any]
"""``{"typeName": …, "guid": …}``, of an entity of the same request or of one that is in Atlas."""


class Entities:
    """Collects entities; ``found`` is what ``/v2/entity/bulk`` and ``ENTITY_CREATE_V2`` take."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._references: dict[tuple[str, str], Reference] = {}

    def add(self, thing: Thing, **more: Any) -> Reference:
        """Add an entity, with attributes that refer to others, and return the reference to it."""
        known = self._references.get(thing.key)
        if known is not None:
            return known
        within = {name: self.add(each) for name, each in thing.within.items()}
        reference = self._references[thing.key] = {"typeName": thing.type, "guid": f"-{len(self.found) + 1}"}
        # Of a type with legacy attributes Atlas looks for a relationship there; it passes over what it does not know.
        self.found.append(
            {
                **reference,
                "attributes": {**thing.attributes, **within, **more},
                "relationshipAttributes": {**within, **more},
            }
        )
        return reference

    def add_all(self, things: Iterable[Thing]) -> list[Reference]:
        """Add several."""
        return [self.add(each) for each in things]


def entities_of(
    update: TaskUpdate,
    *,
    has_lists: bool,
    is_by_path: bool = False,
    has_columns: bool = True,
    others: Mapping[str, Sequence[Reference]] | None = None,
) -> list[dict[str, Any]]:
    """Return the entities of an update.

    :param has_lists: with inputs and outputs; without them those that the process has stay
    :param is_by_path: each output has a process of its own, with what leads to it, and the task's has none
    :param has_columns: with processes between columns
    :param others: inputs and outputs that the process has besides
    """
    entities = Entities()
    if not has_lists:
        entities.add(update.process)
        return entities.found
    lists: dict[str, list[Reference]] = {}
    for name, things in (("inputs", update.inputs), ("outputs", update.outputs)):
        found = [] if is_by_path else [*entities.add_all(things), *(others or {}).get(name, ())]
        if found or update.is_whole:
            lists[name] = found
    process = entities.add(update.process, **lists)
    entities.add_all(update.schemas)
    paths = [
        entities.add(update.path(inputs, output), inputs=entities.add_all(inputs), outputs=[entities.add(output)])
        for inputs, output in (update.paths if is_by_path else ())
    ]
    columns = []
    for edges in update.columns if has_columns else ():
        between = {"inputs": entities.add_all(edges.sources), "outputs": [entities.add(edges.column)]}
        columns.append(entities.add(update.column_lineage(edges), **between))
    if update.is_whole:
        # What is not in these lists any more is deleted: it was the task's alone.
        owned = {"lineagePaths": paths, "columnLineages": columns}
        own = next(each for each in entities.found if each["guid"] == process["guid"])
        own["relationshipAttributes"] |= owned
    return entities.found
