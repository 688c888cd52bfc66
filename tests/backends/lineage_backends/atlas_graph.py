"""The entities of the Atlas emulator and what relates them.

Relationships are kept as Atlas keeps them: one that is taken off is only marked DELETED, is listed as before, and is
compared and matched by its place with what comes next.
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lineage_backends.atlas_types import AtlasError, Relation, Types, empty

_INPUTS, _OUTPUTS = "dataset_process_inputs", "process_dataset_outputs"
_HEADER = ("name", "owner", "description", "displayName", "createTime")


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


@dataclass(eq=False)
class Edge:
    """One relationship."""

    kind: str
    ends: tuple[Entity, Entity]
    guid: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "ACTIVE"
    place: int = 0

    def other(self, entity: Entity) -> Entity:
        """What the entity is related to."""
        return self.ends[1] if self.ends[0] is entity else self.ends[0]


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
class Graph:
    """All entities, and the requests that change or show them."""

    types: Types
    entities: dict[str, Entity] = field(default_factory=dict)
    _edges: dict[Entity, list[Edge]] = field(default_factory=dict)
    _by_value: dict[tuple[str, Any], list[Entity]] = field(default_factory=dict)
    _temporary: Any = field(default_factory=lambda: itertools.count(10**12))

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
        ends = tuple(self._referenced(given[end], {}) for end in ("end1", "end2"))
        if self._edge(kind["name"], *ends) is not None:
            told = f"{kind['name']} already exists between entities {ends[0].guid} and {ends[1].guid}"
            raise AtlasError(409, "ATLAS-409-00-004", f"relationship {told}")
        edge = self._relate(kind["name"], ends[0], ends[1])
        attribute = self.types.relations(ends[0].type)[kind["endDef1"]["name"]]
        label = f"__{attribute.here['type']}.{attribute.name}" if attribute.here.get("isLegacyAttribute") else None
        shown = {f"end{number}": self._id(end) for number, end in enumerate(ends, 1)}
        stamp = {"createdBy": user, "updatedBy": user, "status": edge.status, "version": 0, "provenanceType": 0}
        propagates = {"label": label or f"r:{kind['name']}", "propagateTags": kind.get("propagateTags", "NONE")}
        return {"typeName": kind["name"], "guid": edge.guid} | shown | stamp | propagates

    def header(self, entity: Entity) -> dict[str, Any]:
        """The entity as lists show it."""
        known = self.types.attributes(entity.type)
        shown = [key for key, each in known.items() if each["isUnique"] or key in _HEADER]
        values = {key: entity.attributes[key] for key in shown if entity.attributes.get(key) is not None}
        return {
            "typeName": entity.type,
            "attributes": values,
            "guid": entity.guid,
            "status": entity.status,
            "displayText": _text(entity),
            "classificationNames": [],
            "classifications": [],
            "meaningNames": [],
            "meanings": [],
            "isIncomplete": entity.is_incomplete,
            "labels": [],
        }

    def shown(self, entity: Entity, *, is_small: bool = False, has_relations: bool = True) -> dict[str, Any]:
        """The entity as GET shows it, with what it owns unless ``is_small``."""
        referred = {each.guid: self._whole(each, has_relations=has_relations) for each in self._owned(entity)}
        if is_small:
            referred = {guid: self._small(self.entities[guid], each) for guid, each in referred.items()}
        return {"referredEntities": referred, "entity": self._whole(entity, has_relations=has_relations)}

    def lineage(self, entity: Entity, direction: str, depth: int) -> dict[str, Any]:
        """What leads to the entity and what comes of it, over relationships of any status."""
        edges: dict[str, Edge] = {}
        is_process = "Process" in self.types.lineage(entity.type)
        for way, back, on in (("INPUT", _OUTPUTS, _INPUTS), ("OUTPUT", _INPUTS, _OUTPUTS)):
            if direction not in {way, "BOTH"}:
                continue
            if not is_process:
                self._walk(entity, back, on, depth or -1, edges, set())
                continue
            for edge in self._of(entity, on):
                edges[edge.guid] = edge
                self._walk(edge.other(entity), back, on, (depth or -1) - 1, edges, set())
        relations = []
        for edge in edges.values():
            process, dataset = edge.ends
            start, end = (dataset, process) if edge.kind == _INPUTS else (process, dataset)
            relations.append({"fromEntityId": start.guid, "toEntityId": end.guid, "relationshipId": edge.guid})
        known = {end.guid: self.header(end) for edge in edges.values() for end in edge.ends}
        base = {"baseEntityGuid": entity.guid, "lineageDirection": direction, "lineageDepth": depth}
        return base | {"guidEntityMap": known, "relations": relations}

    def related(self, entity: Entity, attribute: str) -> list[Entity]:
        """What an attribute relates the entity to now."""
        relation = self.types.relations(entity.type).get(attribute)
        edges = self._of(entity, relation.kind) if relation else []
        return [each.other(entity) for each in edges if each.status == "ACTIVE"]

    def _write(
        self,
        stream: dict[str, Mapping[str, Any]],
        changes: _Changes,
        *,
        is_partial: bool = False,
        with_shells: bool = False,
    ) -> dict[str, Any]:
        values, related = {}, {}
        for guid, given in stream.items():
            self.types.entity(given.get("typeName", ""))
            related[guid] = self._split(given)
        shells = self._check_references(stream, related, with_shells=with_shells)
        for guid, given in stream.items():
            kind = given["typeName"]
            values[guid] = self.types.normalized(kind, given.get("attributes") or {}, related[guid], partly=is_partial)
            for key in ("qualifiedName",) if is_partial else ():
                taken = self.find(kind, {key: values[guid].get(key)})
                if taken is not None and taken.guid != guid:
                    raise AtlasError(500)
        for kind, unique in shells:
            if self.find(kind, unique) is None:
                self._new(kind, unique, changes).is_incomplete = True
        assigned: dict[str, Entity] = {}
        created = {}
        for guid, given in stream.items():
            known = self.entities.get(guid) or self.find(
                given["typeName"], self._unique(given["typeName"], values[guid])
            )
            assigned[guid] = known or self._new(
                given["typeName"], self._unique(given["typeName"], values[guid]), changes
            )
            if known is None:
                created[guid] = self.types.defaults(given["typeName"]) | values[guid]
        for guid, entity in assigned.items():
            if guid in created:
                self._set(entity, created[guid], related[guid], assigned, changes)
                changes.add("CREATE", self.header(entity))
        for guid, entity in assigned.items():
            if guid not in created:
                entity.is_incomplete = entity.is_incomplete and is_partial
                if self._differs(entity, values[guid], related[guid], assigned):
                    self._set(entity, values[guid], related[guid], assigned, changes)
                    changes.add(changes.update, self.header(entity))
        unchanged = {entity.guid for entity in assigned.values()}
        for guid, header in changes.touched.items():
            if guid not in unchanged:
                changes.add(changes.update, header)
        temporary = {guid: entity.guid for guid, entity in assigned.items() if guid.startswith("-")}
        return changes.answer() | {"guidAssignments": temporary}

    def _split(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What an entity is to be related to, wherever it says so."""
        relations = self.types.relations(given["typeName"])
        among = {key: value for key, value in (given.get("attributes") or {}).items() if key in relations}
        return among | {k: v for k, v in (given.get("relationshipAttributes") or {}).items() if k in relations}

    def _check_references(
        self, stream: dict[str, Mapping[str, Any]], related: dict[str, dict[str, Any]], *, with_shells: bool
    ) -> list[tuple[str, dict[str, Any]]]:
        """404 for a reference to nothing; the entities that a hook refers to before they are there."""
        shells = []
        for guid in stream:
            if not guid.startswith("-") and guid not in self.entities:
                raise AtlasError(404, "ATLAS-404-00-00A", f"Referenced entity {guid} is not found")
        for guid, given in stream.items():
            for key, value in related[guid].items():
                for each in value if isinstance(value, list) else [value] if value else []:
                    if not each.get("guid") and with_shells and not self._exists(each):
                        shells.append((each["typeName"], dict(each["uniqueAttributes"])))
                        continue
                    target = stream[each["guid"]] if each.get("guid") in stream else self._referenced(each, stream)
                    kind = target["typeName"] if isinstance(target, Mapping) else target.type
                    relation = self.types.relations(given["typeName"])[key]
                    if relation.target not in self.types.lineage(kind):
                        ends = f"end type 1: {relation.target}, end type 2: {kind}"
                        raise AtlasError(400, "ATLAS-400-00-036", f"invalid relationshipDef: {relation.kind}: {ends}")
        return shells

    def _exists(self, reference: Mapping[str, Any]) -> bool:
        self.types.entity(reference["typeName"])
        return self.find(reference["typeName"], reference["uniqueAttributes"]) is not None

    def _referenced(self, reference: Mapping[str, Any], assigned: Mapping[str, Any]) -> Any:
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

    def _unique(self, kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
        known = self.types.attributes(kind)
        return {key: value for key, value in values.items() if value is not None and known[key]["isUnique"]}

    def _new(self, kind: str, attributes: Mapping[str, Any], changes: _Changes) -> Entity:
        who = (changes.user, changes.at, changes.user, changes.at)
        entity = Entity(str(uuid.uuid4()), kind, {}, *who)
        self.entities[entity.guid], self._edges[entity] = entity, []
        self._keep(entity, attributes)
        return entity

    def _keep(self, entity: Entity, values: Mapping[str, Any]) -> None:
        known = self.types.attributes(entity.type)
        for key, value in values.items():
            if known[key]["isUnique"] and entity.attributes.get(key) != value:
                if (old := (key, entity.attributes.get(key))) in self._by_value:
                    self._by_value[old].remove(entity)
                self._by_value.setdefault((key, value), []).append(entity)
            entity.attributes[key] = empty(known[key]["typeName"]) if value is None else value

    def _differs(self, entity: Entity, values: dict[str, Any], related: dict[str, Any], assigned: Any) -> bool:
        """Whether a request says anything new; what was taken off still counts as said."""
        known = self.types.attributes(entity.type)
        for key, value in values.items():
            if entity.attributes.get(key) != (empty(known[key]["typeName"]) if value is None else value):
                return True
        for key, value in related.items():
            relation = self.types.relations(entity.type)[key]
            now = [each.other(entity).guid for each in self._of(entity, relation.kind, relation)]
            given = value if isinstance(value, list) else [value] if value else []
            wanted = [self._referenced(each, assigned).guid for each in given]
            # The order counts where the attribute is not there for the relationship alone: a process's inputs.
            if now != wanted if key in known else sorted(now) != sorted(wanted):
                return True
        return False

    def _set(self, entity: Entity, values: Any, related: Any, assigned: Any, changes: _Changes) -> None:
        entity.updated_by, entity.updated_at = changes.user, changes.at
        for key, value in related.items():
            relation = self.types.relations(entity.type)[key]
            wanted = value if isinstance(value, list) else [value] if value else []
            targets = list(dict.fromkeys(self._referenced(each, assigned) for each in wanted))
            self._match(entity, relation, targets, changes)
        self._keep(entity, values)

    def _match(self, entity: Entity, relation: Relation, targets: list[Entity], changes: _Changes) -> None:
        """Bring the relationships of an attribute to these targets, place by place as Atlas does."""
        edges = self._of(entity, relation.kind, relation)
        if not relation.is_many:
            edges = sorted(edges, key=lambda each: each.status != "ACTIVE")[:1]
        kept = []
        for place, target in enumerate(targets):
            edge = edges[place] if place < len(edges) else None
            if edge is None or edge.other(entity) is not target:
                ends = (entity, target) if relation.end == 1 else (target, entity)
                edge = self._edge(relation.kind, *ends) or self._relate(relation.kind, *ends)
                changes.touched.setdefault(target.guid, self.header(target))
            kept.append(edge)
        gone = [edge for edge in edges if edge not in kept]
        for edge in gone:
            if relation.is_owner and edge.other(entity).status == "ACTIVE":
                self._delete(edge.other(entity), changes)
            edge.status = "DELETED"
        for place, edge in enumerate([*kept, *gone] if relation.is_many else []):
            edge.place = place

    def _relate(self, kind: str, first: Entity, second: Entity) -> Edge:
        edge = Edge(kind, (first, second))
        for end in {first, second}:
            self._edges[end].append(edge)
        return edge

    def _edge(self, kind: str, first: Entity, second: Entity) -> Edge | None:
        """The relationship between two that is there now."""
        wanted = (kind, (first, second), "ACTIVE")
        return next((each for each in self._edges[first] if (each.kind, each.ends, each.status) == wanted), None)

    def _of(self, entity: Entity, kind: str, relation: Relation | None = None) -> list[Edge]:
        edges = [each for each in self._edges[entity] if each.kind == kind]
        if relation is not None:
            edges = [each for each in edges if each.ends[relation.end - 1] is entity]
        return sorted(edges, key=lambda each: each.place)

    def _delete(self, entity: Entity, changes: _Changes) -> None:
        changes.add("DELETE", self.header(entity))
        entity.status, entity.updated_by, entity.updated_at = "DELETED", changes.user, changes.at
        for each in self._owned(entity, status="ACTIVE"):
            if each.status == "ACTIVE":
                self._delete(each, changes)
        for edge in self._edges[entity]:
            edge.status = "DELETED"

    def _owned(self, entity: Entity, status: str = "") -> list[Entity]:
        owners = [each for each in self.types.relations(entity.type).values() if each.is_owner]
        edges = [edge for relation in owners for edge in self._of(entity, relation.kind, relation)]
        return [edge.other(entity) for edge in edges if edge.status.startswith(status)]

    def _walk(self, entity: Entity, back: str, on: str, depth: int, edges: dict[str, Edge], seen: set[Entity]) -> None:
        if depth == 0:
            return
        seen.add(entity)
        for first in self._of(entity, back):
            process = first.other(entity)
            for second in self._of(process, on):
                edges |= {first.guid: first, second.guid: second}
                if (following := second.other(process)) not in seen:
                    self._walk(following, back, on, depth - 1, edges, seen)

    def _whole(self, entity: Entity, *, has_relations: bool) -> dict[str, Any]:
        known = self.types.attributes(entity.type)
        relations = self.types.relations(entity.type)
        values = {key: entity.attributes.get(key) for key in known}
        shown = {}
        for key, relation in relations.items():
            edges = self._of(entity, relation.kind, relation)
            found = [self._related(entity, edge) for edge in edges]
            one = next((each for each in found if each["relationshipStatus"] == "ACTIVE"), (found or [None])[-1])
            shown[key] = found if relation.is_many else one
            if key in known or relation.here.get("isLegacyAttribute"):
                ids = [self._id(edge.other(entity), has_name=key in known) for edge in edges]
                values[key] = ids if relation.is_many else (ids or [None])[-1]
        stamp = {"createdBy": entity.created_by, "updatedBy": entity.updated_by}
        stamp |= {"createTime": entity.created_at, "updateTime": entity.updated_at}
        whole = {
            "typeName": entity.type,
            "attributes": values,
            "guid": entity.guid,
            "isIncomplete": entity.is_incomplete,
            "status": entity.status,
            **stamp,
            "version": 0,
            "labels": [],
        }
        return whole | ({"relationshipAttributes": shown} if has_relations else {})

    def _small(self, entity: Entity, whole: dict[str, Any]) -> dict[str, Any]:
        known = self.types.attributes(entity.type)
        columns = json.loads(self.types.entity(entity.type).get("options", {}).get("schemaAttributes", "[]"))
        wanted = {*columns, *_HEADER, *(key for key, each in known.items() if not each["isOptional"])}
        values = {key: value for key, value in whole["attributes"].items() if key in wanted and value is not None}
        return {key: value for key, value in whole.items() if key != "relationshipAttributes"} | {"attributes": values}

    def _related(self, entity: Entity, edge: Edge) -> dict[str, Any]:
        other = edge.other(entity)
        return {
            "guid": other.guid,
            "typeName": other.type,
            "entityStatus": other.status,
            "displayText": _text(other),
            "relationshipType": edge.kind,
            "relationshipGuid": edge.guid,
            "relationshipStatus": edge.status,
            "relationshipAttributes": {"typeName": edge.kind},
        }

    def _id(self, entity: Entity, *, has_name: bool = True) -> dict[str, Any]:
        name = {"uniqueAttributes": self._unique(entity.type, entity.attributes)} if has_name else {}
        return {"guid": entity.guid, "typeName": entity.type} | name


def _text(entity: Entity) -> str | None:
    return entity.attributes.get("name") or entity.attributes.get("qualifiedName")
