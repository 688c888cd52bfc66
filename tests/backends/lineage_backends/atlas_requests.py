"""What the Atlas emulator answers to requests of REST v2."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lineage_backends.atlas_graph import Graph
from lineage_backends.atlas_store import Entity
from lineage_backends.atlas_types import AtlasError
from lineage_backends.atlas_view import lineage, shown

VERSION = {
    "Description": "Metadata Management and Data Governance Platform over Hadoop",
    "Revision": "da3551938deceaf714f80ec8c0927161646cb8bb",
    "Version": "2.1.0",
    "Name": "apache-atlas",
}
_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "=": str.__eq__,
    "eq": str.__eq__,
    "neq": str.__ne__,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": str.__contains__,
}


@dataclass
class Request:
    """One request below ``/api/atlas``: ``path`` has what its route names, ``query`` the parameters."""

    graph: Graph
    query: Mapping[str, list[str]]
    body: bytes
    user: str
    path: Mapping[str, str]

    @property
    def now(self) -> int:
        return int(time.time() * 1000)

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            raise AtlasError(500) from None

    def one(self, key: str, otherwise: str = "") -> str:
        return self.query.get(key, [otherwise])[0]

    def unique(self, prefix: str = "attr:") -> dict[str, str]:
        return {key.removeprefix(prefix): each[0] for key, each in self.query.items() if key.startswith(prefix)}

    def named(self) -> Entity:
        return self.graph.named(self.path["type"], self.unique())

    def shown(self, entity: Entity) -> dict[str, Any]:
        hides = self.one("ignoreRelationships") == "true"
        return shown(self.graph, entity, is_small=self.one("minExtInfo") == "true", has_relations=not hides)

    def several(self) -> dict[str, Any]:
        """Entities by GUID, or by numbered unique attributes: those that are there."""
        found: list[Entity | None] = [self.graph.by_guid(guid) for guid in self.query.get("guid", ())]
        for key, values in self.query.items():
            if "type" in self.path and (numbered := re.fullmatch(r"attr_\d+:(.*)", key)):
                found.append(self.graph.find(self.path["type"], {numbered[1]: values[0]}))
        whole = [self.shown(each) for each in found if each is not None]
        referred = {guid: each for one in whole for guid, each in one["referredEntities"].items()}
        return {"referredEntities": referred, "entities": [each["entity"] for each in whole]}

    def lineage(self, entity: Entity) -> dict[str, Any]:
        return lineage(self.graph, entity, self.one("direction", "BOTH"), int(self.one("depth", "3")))

    def delete_type(self) -> None:
        types, name = self.graph.types, self.path["name"]
        is_used = types.get(name)["category"] == "ENTITY" and bool(self.graph.of_type(name))
        types.delete(name, is_used=is_used)

    def delete_all(self) -> dict[str, Any]:
        if "guid" not in self.query:
            raise AtlasError(400, "ATLAS-400-00-01A", "invalid parameters: Guid(s) not specified")
        answers = [self.graph.delete(_active(self.graph.by_guid(guid)), self.user) for guid in self.query["guid"]]
        deleted = [each for one in answers for each in one.get("mutatedEntities", {}).get("DELETE", ())]
        return {"mutatedEntities": {"DELETE": deleted}} if deleted else {}

    def find(self, given: Mapping[str, Any], text: str = "") -> dict[str, Any]:
        """A basic search: by type, by a filter of one level, by words of any attribute."""
        kind = given.get("typeName") or "Referenceable"
        text = text or given.get("query") or ""
        if kind not in self.graph.types.definitions:
            raise AtlasError(400, "ATLAS-400-00-00A", f"{kind}: Unknown/invalid typename")
        filters = given.get("entityFilters") or {}
        criteria = filters.get("criterion") or ([filters] if filters else [])
        found = [
            each
            for each in self.graph.of_type(kind)
            if not (given.get("excludeDeletedEntities") and each.status == "DELETED")
            and all(_fits(each, criterion) for criterion in criteria)
            and (each.has_text or not text)
            and text.rstrip("*") in " ".join(map(str, each.attributes.values()))
        ]
        offset, limit = int(given.get("offset") or 0), int(given.get("limit") or 100)
        headers = []
        for each in found[offset : offset + limit]:
            more = {key: each.attributes.get(key) for key in given.get("attributes") or ()}
            header = self.graph.header(each)
            headers.append(header | {"attributes": header["attributes"] | more})
        defaults = {
            "includeClassificationAttributes": False,
            "includeSubTypes": True,
            "includeSubClassifications": True,
        }
        paging = {"excludeDeletedEntities": False, "limit": limit, "offset": offset}
        asked = defaults | paging | dict(given) | ({"query": text} if text else {})
        answer = {"queryType": "BASIC", "searchParameters": asked, "entities": headers, "approximateCount": len(found)}
        return answer | ({"queryText": text} if text else {})

    def search(self) -> dict[str, Any]:
        return self.find({"typeName": self.one("typeName")}, self.one("query"))

    def search_by_prefix(self) -> dict[str, Any]:
        criterion = {"attributeName": self.one("attrName"), "operator": "startsWith"}
        criterion["attributeValue"] = self.one("attrValuePrefix")
        return self.find({"typeName": self.one("typeName"), "entityFilters": criterion})

    def search_by_query(self) -> dict[str, Any]:
        """Of the query language: ``type where attribute = "text"``."""
        query = self.one("query")
        text = f"`{self.one('typeName')}` {query}" if self.one("typeName") else query
        asked = re.fullmatch(r'`?([\w ]+?)`?(?: +where +(\w+) *= *"(.*)")? *', text)
        if asked is None:
            raise AtlasError(400, "ATLAS-400-00-059", f"Invalid DSL query: {text}: the emulator knows too little")
        criterion = {"attributeName": asked[2], "operator": "=", "attributeValue": asked[3]}
        found = self.find({"typeName": asked[1], "entityFilters": criterion if asked[2] else {}})
        return {"queryType": "DSL", "queryText": text, "entities": found["entities"], "approximateCount": -1}


def _fits(entity: Entity, criterion: Mapping[str, Any]) -> bool:
    value = str(entity.attributes.get(criterion["attributeName"]) or "")
    return _OPERATORS[criterion["operator"]](value, str(criterion["attributeValue"]))


def _active(entity: Entity) -> Entity | None:
    return entity if entity.status == "ACTIVE" else None


def entities(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those of a body or a message: its own, and those that only others refer to."""
    return [*(given.get("entities") or ()), *(given.get("referredEntities") or {}).values()]


_TYPE, _GUID = r"(?P<type>[^/]+)", r"(?P<guid>[^/]+)"
_TYPEDEF = r"(?:typedef|entitydef|enumdef|structdef|relationshipdef)/name/(?P<name>[^/]+)"
_ROUTES: tuple[tuple[str, str, Callable[[Request], Any]], ...] = (
    ("GET", "/admin/version", lambda _: VERSION),
    ("GET", "/admin/status", lambda _: {"Status": "ACTIVE"}),
    ("GET", "/v2/types/typedefs/headers", lambda on: on.graph.types.headers()),
    ("GET", "/v2/types/typedefs/?", lambda on: on.graph.types.all()),
    ("POST", "/v2/types/typedefs/?", lambda on: on.graph.types.create(on.json(), on.user, on.now)),
    ("PUT", "/v2/types/typedefs/?", lambda on: on.graph.types.update(on.json(), on.user, on.now)),
    ("GET", f"/v2/types/{_TYPEDEF}", lambda on: on.graph.types.shown(on.path["name"])),
    ("DELETE", f"/v2/types/{_TYPEDEF}", Request.delete_type),
    ("POST", "/v2/entity/bulk/?", lambda on: on.graph.post(entities(on.json()), on.user)),
    ("POST", "/v2/entity/?", lambda on: on.graph.post([on.json()["entity"]], on.user)),
    ("GET", "/v2/entity/bulk/?", Request.several),
    ("DELETE", "/v2/entity/bulk/?", Request.delete_all),
    ("GET", f"/v2/entity/bulk/uniqueAttribute/type/{_TYPE}", Request.several),
    ("GET", f"/v2/entity/uniqueAttribute/type/{_TYPE}", lambda on: on.shown(on.named())),
    ("GET", f"/v2/entity/uniqueAttribute/type/{_TYPE}/header", lambda on: on.graph.header(on.named())),
    (
        "PUT",
        f"/v2/entity/uniqueAttribute/type/{_TYPE}",
        lambda on: on.graph.put(on.named(), on.json()["entity"], on.user),
    ),
    (
        "DELETE",
        f"/v2/entity/uniqueAttribute/type/{_TYPE}",
        lambda on: on.graph.delete(on.graph.find(on.path["type"], on.unique()), on.user),
    ),
    ("GET", f"/v2/entity/guid/{_GUID}", lambda on: on.shown(on.graph.by_guid(on.path["guid"]))),
    (
        "PUT",
        f"/v2/entity/guid/{_GUID}",
        lambda on: on.graph.put(
            on.graph.by_guid(on.path["guid"]), {"attributes": {on.one("name"): on.json()}}, on.user
        ),
    ),
    (
        "DELETE",
        f"/v2/entity/guid/{_GUID}",
        lambda on: on.graph.delete(_active(on.graph.by_guid(on.path["guid"])), on.user),
    ),
    ("POST", "/v2/relationship/?", lambda on: on.graph.relate(on.json(), on.user)),
    ("DELETE", f"/v2/relationship/guid/{_GUID}", lambda on: on.graph.unrelate(on.path["guid"])),
    ("GET", f"/v2/lineage/uniqueAttribute/type/{_TYPE}", lambda on: on.lineage(on.named())),
    ("GET", f"/v2/lineage/{_GUID}", lambda on: on.lineage(on.graph.by_guid(on.path["guid"]))),
    ("POST", "/v2/search/basic", lambda on: on.find(on.json())),
    ("GET", "/v2/search/basic", Request.search),
    ("GET", "/v2/search/attribute", Request.search_by_prefix),
    ("GET", "/v2/search/dsl", Request.search_by_query),
)


def answer(method: str, path: str, graph: Graph, query: Mapping[str, list[str]], body: bytes, user: str) -> Any:
    """The body of the answer, None for none; ``AtlasError`` for one that is no success."""
    for wanted, pattern, handle in _ROUTES:
        if method == wanted and (found := re.fullmatch(pattern, path)):
            try:
                return handle(Request(graph, query, body, user, found.groupdict()))
            except (KeyError, TypeError, AttributeError, ValueError):  # a body of another form
                raise AtlasError(500) from None
    raise AtlasError(500)
