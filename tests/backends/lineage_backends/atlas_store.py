"""The entities of the Atlas emulator and what relates them.

Relationships are kept as Atlas keeps them: one that is taken off is only marked DELETED, and is listed as before.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lineage_backends.atlas_types import AtlasError, Relation, Types, empty

HEADER = ("name", "owner", "description", "displayName", "createTime")


@dataclass(eq=False)
class Entity:
    """One entity, or one that was deleted."""

    guid: str
    type: str
    attributes: dict[str, Any]
    created_by: str
    created_at: int
    updated_by: str
    updated_at: int
    status: str = "ACTIVE"
    is_incomplete: bool = False
    has_text: bool = True
    """Whether searches for text find it."""


@dataclass(eq=False)
class Edge:
    """One relationship; ``place`` is that in the list of which it is part."""

    kind: str
    ends: tuple[Entity, Entity]
    guid: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "ACTIVE"
    place: int = 0

    def other(self, entity: Entity) -> Entity:
        """What the entity is related to."""
        return self.ends[1] if self.ends[0] is entity else self.ends[0]


@dataclass
class Store:
    """All of them; the requests that change them are in ``atlas_graph``, what shows them is in ``atlas_view``."""

    types: Types
    entities: dict[str, Entity] = field(default_factory=dict)
    _edges: dict[Entity, list[Edge]] = field(default_factory=dict)
    _by_value: dict[tuple[str, Any], list[Entity]] = field(default_factory=dict)

    def of_type(self, name: str) -> list[Entity]:
        """The entities of a type and of its subtypes."""
        return [each for each in self.entities.values() if name in self.types.lineage(each.type)]

    def find(self, kind: str, unique: Mapping[str, Any]) -> Entity | None:
        """The entity of these unique attributes that is not deleted."""
        for key, value in unique.items():
            for each in self._by_value.get((key, value), ()):
                if each.status == "ACTIVE" and kind in self.types.lineage(each.type):
                    return each
        return None

    def named(self, kind: str, unique: Mapping[str, Any]) -> Entity:
        """The same; 404 when it is missing, 400 when the type or the attribute is."""
        self.types.entity(kind)
        known = {key for key, each in self.types.attributes(kind).items() if each["isUnique"]}
        if not known & unique.keys():
            names = ", ".join(unique)
            raise AtlasError(400, "ATLAS-400-00-013", f"Type {kind} with unique attribute {names} does not exist")
        found = self.find(kind, unique)
        if found is None:
            shown = ", ".join(f"{key}={value}" for key, value in unique.items())
            message = f"Instance {kind} with unique attribute {{{shown}}} does not exist"
            raise AtlasError(404, "ATLAS-404-00-009", message)
        return found

    def by_guid(self, guid: str) -> Entity:
        """The entity of a GUID, deleted or not; 404 when it is missing."""
        if guid not in self.entities:
            raise AtlasError(404, "ATLAS-404-00-005", f"Given instance guid {guid} is invalid/not found")
        return self.entities[guid]

    def referenced(self, reference: Mapping[str, Any], assigned: Mapping[str, Entity]) -> Entity:
        if guid := reference.get("guid"):
            found = assigned.get(guid) or self.entities.get(guid)
        else:
            self.types.entity(reference["typeName"])
            found = self.find(reference["typeName"], reference["uniqueAttributes"])
        if found is None:
            unique = ", ".join(f"{key}:{value}" for key, value in (reference.get("uniqueAttributes") or {}).items())
            told = f"typeName='{reference.get('typeName')}', uniqueAttributes={{{unique}}}"
            told = guid or f"AtlasObjectId{{guid='null', {told}}}"
            raise AtlasError(404, "ATLAS-404-00-00A", f"Referenced entity {told} is not found")
        return found

    def unique_of(self, kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
        known = self.types.attributes(kind)
        return {key: value for key, value in values.items() if value is not None and known[key]["isUnique"]}

    def add(self, kind: str, attributes: Mapping[str, Any], user: str, at: int) -> Entity:
        """Make one of these attributes."""
        entity = Entity(str(uuid.uuid4()), kind, {}, user, at, user, at)
        self.entities[entity.guid], self._edges[entity] = entity, []
        self.keep(entity, attributes)
        return entity

    def keep(self, entity: Entity, values: Mapping[str, Any]) -> None:
        known = self.types.attributes(entity.type)
        for key, value in values.items():
            if known[key]["isUnique"] and entity.attributes.get(key) != value:
                if (old := (key, entity.attributes.get(key))) in self._by_value:
                    self._by_value[old].remove(entity)
                self._by_value.setdefault((key, value), []).append(entity)
            entity.attributes[key] = empty(known[key]["typeName"]) if value is None else value

    def related(self, entity: Entity, attribute: str) -> list[Entity]:
        """What an attribute relates the entity to now."""
        relation = self.types.relations(entity.type).get(attribute)
        edges = self.edges_of(entity, relation.kind) if relation else []
        return [each.other(entity) for each in edges if each.status == "ACTIVE"]

    def edges_of(self, entity: Entity, kind: str, relation: Relation | None = None) -> list[Edge]:
        edges = [each for each in self._edges[entity] if each.kind == kind]
        if relation is not None:
            edges = [each for each in edges if each.ends[relation.end - 1] is entity]
        return sorted(edges, key=lambda each: each.place)

    def edge_between(self, kind: str, first: Entity, second: Entity) -> Edge | None:
        """The relationship between two that is there now."""
        wanted = (kind, (first, second), "ACTIVE")
        return next((each for each in self._edges[first] if (each.kind, each.ends, each.status) == wanted), None)

    def connect(self, kind: str, first: Entity, second: Entity) -> Edge:
        edge = Edge(kind, (first, second))
        for end in {first, second}:
            self._edges[end].append(edge)
        return edge

    def owned_by(self, entity: Entity, status: str = "") -> list[Entity]:
        owners = [each for each in self.types.relations(entity.type).values() if each.is_owner]
        edges = [edge for relation in owners for edge in self.edges_of(entity, relation.kind, relation)]
        return [edge.other(entity) for edge in edges if edge.status.startswith(status)]

    def header(self, entity: Entity) -> dict[str, Any]:
        """The entity as lists show it."""
        known = self.types.attributes(entity.type)
        shown = [key for key, each in known.items() if each["isUnique"] or key in HEADER]
        values = {key: entity.attributes[key] for key in shown if entity.attributes.get(key) is not None}
        return {
            "typeName": entity.type,
            "attributes": values,
            "guid": entity.guid,
            "status": entity.status,
            "displayText": text_of(entity),
            "classificationNames": [],
            "classifications": [],
            "meaningNames": [],
            "meanings": [],
            "isIncomplete": entity.is_incomplete,
            "labels": [],
        }

    def id_of(self, entity: Entity, *, has_name: bool = True) -> dict[str, Any]:
        name = {"uniqueAttributes": self.unique_of(entity.type, entity.attributes)} if has_name else {}
        return {"guid": entity.guid, "typeName": entity.type} | name


def text_of(entity: Entity) -> str | None:
    """What lists show as its name."""
    return entity.attributes.get("name") or entity.attributes.get("qualifiedName")
