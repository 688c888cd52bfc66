"""The requests that change the entities of the Atlas emulator.

They do as Atlas does with lists of relationships: what was taken off is still compared with what comes, and matched by
its place.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lineage_backends.atlas_store import Edge, Entity, Store
from lineage_backends.atlas_types import AtlasError, Relation, empty

_Stream = Mapping[str, Mapping[str, Any]]


@dataclass
class _Changes:
    """What one request does."""

    user: str
    update: str
    at: int = field(default_factory=lambda: int(time.time() * 1000))
    headers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By operation and GUID."""
    touched: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The other ends of relationships that are new."""

    def add(self, operation: str, header: dict[str, Any]) -> None:
        if operation == "DELETE" or not any(header["guid"] in known for known in self.headers.values()):
            self.headers.setdefault(operation, {})[header["guid"]] = header

    def answer(self) -> dict[str, Any]:
        changed = {operation: list(headers.values()) for operation, headers in self.headers.items()}
        partly = {"partialUpdatedEntities": changed["PARTIAL_UPDATE"]} if "PARTIAL_UPDATE" in changed else {}
        return ({"mutatedEntities": changed} if changed else {}) | partly


@dataclass
class Graph(Store):
    """The entities and those requests."""

    _temporary: Iterator[int] = field(default_factory=lambda: itertools.count(10**12))

    def post(self, given: Iterable[Mapping[str, Any]], user: str, *, with_shells: bool = False) -> dict[str, Any]:
        """Create and update entities: all of them, or none."""
        stream = {str(each.get("guid") or -next(self._temporary)): each for each in given}
        if not stream:
            raise AtlasError(400, "ATLAS-400-00-01A", "invalid parameters: no entities to create/update.")
        return self._write(stream, _Changes(user, "UPDATE"), with_shells=with_shells)

    def put(self, entity: Entity, given: Mapping[str, Any], user: str) -> dict[str, Any]:
        """Change some attributes of one entity."""
        stream = {entity.guid: {**given, "typeName": entity.type}}
        return self._write(stream, _Changes(user, "PARTIAL_UPDATE"), is_partial=True)

    def delete(self, entity: Entity | None, user: str) -> dict[str, Any]:
        """Mark one as deleted, with what it owns; nothing when there is none."""
        changes = _Changes(user, "UPDATE")
        if entity is not None:
            self._delete(entity, changes)
        return changes.answer()

    def relate(self, given: Mapping[str, Any], user: str) -> dict[str, Any]:
        """Make one relationship; 409 when there is one."""
        kind = self.types.get(given["typeName"])
        ends = self.referenced(given["end1"], {}), self.referenced(given["end2"], {})
        if self.edge_between(kind["name"], *ends) is not None:
            told = f"{kind['name']} already exists between entities {ends[0].guid} and {ends[1].guid}"
            raise AtlasError(409, "ATLAS-409-00-004", f"relationship {told}")
        edge = self.connect(kind["name"], *ends)
        attribute = self.types.relations(ends[0].type)[kind["endDef1"]["name"]]
        label = f"__{attribute.here['type']}.{attribute.name}" if attribute.here.get("isLegacyAttribute") else None
        shown = {f"end{number}": self.id_of(end) for number, end in enumerate(ends, 1)}
        stamp = {"createdBy": user, "updatedBy": user, "status": edge.status, "version": 0, "provenanceType": 0}
        propagates = {"label": label or f"r:{kind['name']}", "propagateTags": kind.get("propagateTags", "NONE")}
        return {"typeName": kind["name"], "guid": edge.guid} | shown | stamp | propagates

    def unrelate(self, guid: str) -> None:
        """Mark one relationship as deleted; 404 when there is none, or when it is."""
        edge = next((each for edges in self._edges.values() for each in edges if each.guid == guid), None)
        if edge is None:
            raise AtlasError(404, "ATLAS-404-00-00C", f"Given relationship guid {guid} is invalid/not found")
        if edge.status == "DELETED":
            told = f"Attempting to delete a relationship which is already deleted : {guid}"
            raise AtlasError(404, "ATLAS-404-00-00F", told)
        edge.status = "DELETED"

    def _write(
        self, stream: _Stream, changes: _Changes, *, is_partial: bool = False, with_shells: bool = False
    ) -> dict[str, Any]:
        """Check everything, then write it."""
        related = {guid: self._split(given) for guid, given in stream.items()}
        shells = self._check_references(stream, related, with_shells=with_shells)
        values = {guid: self._checked(guid, stream[guid], related[guid], is_partial=is_partial) for guid in stream}
        for kind, unique in shells:
            if self.find(kind, unique) is None:
                self.add(kind, unique, changes.user, changes.at).is_incomplete = True
        assigned, created = self._assign(stream, values, changes)
        for guid in created:
            entity = assigned[guid]
            self._set(entity, self.types.defaults(entity.type) | values[guid], related[guid], assigned, changes)
            changes.add("CREATE", self.header(entity))
        for guid, entity in assigned.items():
            if guid not in created:
                entity.is_incomplete = entity.is_incomplete and is_partial
                if self._differs(entity, values[guid], related[guid], assigned):
                    self._set(entity, values[guid], related[guid], assigned, changes)
                    changes.add(changes.update, self.header(entity))
        given = {entity.guid for entity in assigned.values()}
        for guid in changes.touched.keys() - given:
            changes.add(changes.update, changes.touched[guid])
        temporary = {guid: entity.guid for guid, entity in assigned.items() if guid.startswith("-")}
        return changes.answer() | {"guidAssignments": temporary}

    def _assign(
        self, stream: _Stream, values: dict[str, Any], changes: _Changes
    ) -> tuple[dict[str, Entity], list[str]]:
        """The entities of a request, those that are there and new ones, and which are new."""
        assigned, created = {}, []
        for guid, given in stream.items():
            unique = self.unique_of(given["typeName"], values[guid])
            entity = self.entities.get(guid) or self.find(given["typeName"], unique)
            if entity is None:
                created.append(guid)
                entity = self.add(given["typeName"], unique, changes.user, changes.at)
            assigned[guid] = entity
        return assigned, created

    def _checked(self, guid: str, given: Mapping[str, Any], related: Mapping[str, Any], *, is_partial: bool) -> Any:
        kind = given["typeName"]
        values = self.types.normalized(kind, given.get("attributes") or {}, related, partly=is_partial)
        taken = self.find(kind, {"qualifiedName": values.get("qualifiedName")}) if is_partial else None
        if taken is not None and taken.guid != guid:
            raise AtlasError(500)
        return values

    def _split(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What an entity is to be related to, wherever it says so; 400 for an unknown type."""
        self.types.entity(given.get("typeName", ""))
        relations = self.types.relations(given["typeName"])
        among = {key: value for key, value in (given.get("attributes") or {}).items() if key in relations}
        return among | {k: v for k, v in (given.get("relationshipAttributes") or {}).items() if k in relations}

    def _check_references(
        self, stream: _Stream, related: dict[str, dict[str, Any]], *, with_shells: bool
    ) -> list[tuple[str, dict[str, Any]]]:
        """404 for a reference to nothing; the entities that a hook refers to before they are there."""
        shells = []
        for guid in stream:
            if not guid.startswith("-") and guid not in self.entities:
                raise AtlasError(404, "ATLAS-404-00-00A", f"Referenced entity {guid} is not found")
        for guid, given in stream.items():
            for key, value in related[guid].items():
                for each in _listed(value):
                    if with_shells and not each.get("guid") and not self._exists(each):
                        shells.append((each["typeName"], dict(each["uniqueAttributes"])))
                    else:
                        self._check_end(self.types.relation(given["typeName"], key, value), each, stream)
        return shells

    def _check_end(self, relation: Relation, reference: Mapping[str, Any], stream: _Stream) -> None:
        new = stream.get(reference.get("guid", ""))
        kind = new["typeName"] if new is not None else self.referenced(reference, {}).type
        if relation.target not in self.types.lineage(kind):
            ends = f"end type 1: {relation.target}, end type 2: {kind}"
            raise AtlasError(400, "ATLAS-400-00-036", f"invalid relationshipDef: {relation.kind}: {ends}")

    def _exists(self, reference: Mapping[str, Any]) -> bool:
        self.types.entity(reference["typeName"])
        return self.find(reference["typeName"], reference["uniqueAttributes"]) is not None

    def _differs(self, entity: Entity, values: dict[str, Any], related: dict[str, Any], assigned: Any) -> bool:
        """Whether a request says anything new; what was taken off still counts as said."""
        known = self.types.attributes(entity.type)
        for key, value in values.items():
            if entity.attributes.get(key) != (empty(known[key]["typeName"]) if value is None else value):
                return True
        for key, value in related.items():
            relation = self.types.relation(entity.type, key, value)
            now = [each.other(entity).guid for each in self.edges_of(entity, relation.kind, relation)]
            wanted = [self.referenced(each, assigned).guid for each in _listed(value)]
            # The order counts where the attribute is not there for the relationship alone: a process's inputs.
            if now != wanted if key in known else sorted(now) != sorted(wanted):
                return True
        return False

    def _set(self, entity: Entity, values: Any, related: Any, assigned: Any, changes: _Changes) -> None:
        entity.updated_by, entity.updated_at = changes.user, changes.at
        # A change without the name removes the entity from the index of texts.
        entity.has_text = "name" in values
        for key, value in related.items():
            relation = self.types.relation(entity.type, key, value)
            targets = list(dict.fromkeys(self.referenced(each, assigned) for each in _listed(value)))
            self._match(entity, relation, targets, changes)
        self.keep(entity, values)

    def _match(self, entity: Entity, relation: Relation, targets: list[Entity], changes: _Changes) -> None:
        """Bring the relationships of an attribute to these targets, place by place as Atlas does."""
        edges = self.edges_of(entity, relation.kind, relation)
        if not relation.is_many:
            edges = sorted(edges, key=lambda each: each.status != "ACTIVE")[:1]
        kept: list[Edge] = []
        for place, target in enumerate(targets):
            edge = edges[place] if place < len(edges) else None
            if edge is None or edge.other(entity) is not target:
                ends = (entity, target) if relation.end == 1 else (target, entity)
                edge = self.edge_between(relation.kind, *ends) or self.connect(relation.kind, *ends)
                changes.touched.setdefault(target.guid, self.header(target))
            kept.append(edge)
        gone = [edge for edge in edges if edge not in kept]
        for edge in gone:
            if relation.is_owner and edge.other(entity).status == "ACTIVE":
                self._delete(edge.other(entity), changes)
            edge.status = "DELETED"
        for place, edge in enumerate([*kept, *gone] if relation.is_many else []):
            edge.place = place

    def _delete(self, entity: Entity, changes: _Changes) -> None:
        changes.add("DELETE", self.header(entity))
        entity.status, entity.updated_by, entity.updated_at = "DELETED", changes.user, changes.at
        for each in self.owned_by(entity, status="ACTIVE"):
            if each.status == "ACTIVE":
                self._delete(each, changes)
        for edge in self._edges[entity]:
            edge.status = "DELETED"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []
