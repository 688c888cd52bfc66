"""How the Atlas emulator shows an entity, and its lineage."""

from __future__ import annotations

import json
from typing import Any

from lineage_backends.atlas_store import HEADER, Edge, Entity, Store, text_of

_INPUTS, _OUTPUTS = "dataset_process_inputs", "process_dataset_outputs"


def shown(store: Store, entity: Entity, *, is_small: bool = False, has_relations: bool = True) -> dict[str, Any]:
    """The entity as GET shows it, with what it owns unless ``is_small``."""
    referred = {each.guid: _whole(store, each, has_relations=has_relations) for each in store.owned_by(entity)}
    if is_small:
        referred = {guid: _small(store, store.entities[guid], each) for guid, each in referred.items()}
    return {"referredEntities": referred, "entity": _whole(store, entity, has_relations=has_relations)}


def lineage(store: Store, entity: Entity, direction: str, depth: int) -> dict[str, Any]:
    """What leads to the entity and what comes of it, over relationships of any status."""
    edges: dict[str, Edge] = {}
    is_process = "Process" in store.types.lineage(entity.type)
    for way, back, on in (("INPUT", _OUTPUTS, _INPUTS), ("OUTPUT", _INPUTS, _OUTPUTS)):
        if direction not in {way, "BOTH"}:
            continue
        if not is_process:
            _walk(store, entity, back, on, depth or -1, edges, set())
            continue
        for edge in store.edges_of(entity, on):
            edges[edge.guid] = edge
            _walk(store, edge.other(entity), back, on, (depth or -1) - 1, edges, set())
    relations = []
    for edge in edges.values():
        process, dataset = edge.ends
        start, end = (dataset, process) if edge.kind == _INPUTS else (process, dataset)
        relations.append({"fromEntityId": start.guid, "toEntityId": end.guid, "relationshipId": edge.guid})
    known = {end.guid: store.header(end) for edge in edges.values() for end in edge.ends}
    base = {"baseEntityGuid": entity.guid, "lineageDirection": direction, "lineageDepth": depth}
    return base | {"guidEntityMap": known, "relations": relations}


def _walk(
    store: Store, entity: Entity, back: str, on: str, depth: int, edges: dict[str, Edge], seen: set[Entity]
) -> None:
    if depth == 0:
        return
    seen.add(entity)
    for first in store.edges_of(entity, back):
        process = first.other(entity)
        for second in store.edges_of(process, on):
            edges |= {first.guid: first, second.guid: second}
            if (following := second.other(process)) not in seen:
                _walk(store, following, back, on, depth - 1, edges, seen)


def _whole(store: Store, entity: Entity, *, has_relations: bool) -> dict[str, Any]:
    known = store.types.attributes(entity.type)
    relations = store.types.relations(entity.type)
    values = {key: entity.attributes.get(key) for key in known}
    shown: dict[str, Any] = {}
    for key, relation in relations.items():
        some = store.types.all_relations(entity.type)[key]
        edges = [edge for each in some for edge in store.edges_of(entity, each.kind, each)]
        found = [_related(entity, edge) for edge in edges]
        one = next((each for each in found if each["relationshipStatus"] == "ACTIVE"), found[-1] if found else None)
        shown[key] = found if relation.is_many else one
        if key in known or relation.here.get("isLegacyAttribute"):
            ids = [store.id_of(edge.other(entity), has_name=key in known) for edge in edges]
            values[key] = ids if relation.is_many else ids[-1] if ids else None
    stamp: dict[str, Any] = {"createdBy": entity.created_by, "updatedBy": entity.updated_by}
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


def _small(store: Store, entity: Entity, whole: dict[str, Any]) -> dict[str, Any]:
    known = store.types.attributes(entity.type)
    columns = json.loads(store.types.entity(entity.type).get("options", {}).get("schemaAttributes", "[]"))
    wanted = {*columns, *HEADER, *(key for key, each in known.items() if not each["isOptional"])}
    values = {key: value for key, value in whole["attributes"].items() if key in wanted and value is not None}
    return {key: value for key, value in whole.items() if key != "relationshipAttributes"} | {"attributes": values}


def _related(entity: Entity, edge: Edge) -> dict[str, Any]:
    other = edge.other(entity)
    return {
        "guid": other.guid,
        "typeName": other.type,
        "entityStatus": other.status,
        "displayText": text_of(other),
        "relationshipType": edge.kind,
        "relationshipGuid": edge.guid,
        "relationshipStatus": edge.status,
        "relationshipAttributes": {"typeName": edge.kind},
    }
