"""An Atlas in memory that answers as the real one, version 2.1.0, is recorded to: REST v2, hooks over Kafka, a page.

It knows neither classifications, glossary, audits nor users; a search is a look at every entity.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from lineage_backends.atlas import HOOK_TOPIC, PASSWORD, USER, models
from lineage_backends.atlas_graph import Entity, Graph
from lineage_backends.atlas_page import page
from lineage_backends.atlas_types import AtlasError, Types
from lineage_backends.kafka import Kafka
from lineage_backends.processes import HOST

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
class AtlasEmulator:
    """The server and what it knows; ``dropped`` are the hook messages that came to nothing, with the reason."""

    graph: Graph
    user: str = USER
    password: str = PASSWORD
    port: int = 0
    dropped: list[tuple[str, str]] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _parts: dict[str, dict[int, str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Its address; ``/api/atlas`` follows, or nothing for the page."""
        return f"http://{HOST}:{self.port}"

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes, user: str) -> Any:
        """What a request below ``/api/atlas`` gets."""
        for wanted, pattern, handle in _ROUTES:
            if method == wanted and (found := re.fullmatch(pattern, path)):
                with self._lock:
                    return handle(_Request(self, found.groupdict(), query, body, user))
        raise AtlasError(500)

    def take(self, text: str) -> None:
        """Deal with one message of the topic of the hooks, as the real one does: what it cannot use is dropped."""
        try:
            message = self._message(json.loads(text))
            if message is not None:
                with self._lock:
                    self._apply(message)
        except AtlasError as error:
            self.dropped.append((text, str(error)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self.dropped.append((text, f"no message: {error!r}"))

    def _message(self, envelope: dict[str, Any]) -> dict[str, Any] | None:
        """The message in an envelope; None while parts of it are missing."""
        version = envelope.get("version", {}).get("version", "1.0.0")
        if not version.startswith("1."):
            raise ValueError(f"the version is {version}")
        if envelope.get("msgSplitCount", 1) > 1:
            parts = self._parts.setdefault(envelope["msgId"], {})
            parts[envelope["msgSplitIdx"]] = envelope["message"]
            if len(parts) < envelope["msgSplitCount"]:
                return None
            del self._parts[envelope["msgId"]]
            envelope = envelope | {"message": "".join(part for _, part in sorted(parts.items()))}
        message = envelope.get("message", envelope)
        if isinstance(message, dict):
            return message
        content = base64.b64decode(message)
        unpacked = gzip.decompress(content) if envelope["msgCompressionKind"] == "GZIP" else content
        return dict(json.loads(unpacked)["message"])

    def _apply(self, message: dict[str, Any]) -> None:
        kind, user = message["type"], message.get("user") or "UNKNOWN"
        if kind in {"ENTITY_CREATE_V2", "ENTITY_FULL_UPDATE_V2"}:
            self.graph.post(_entities(message["entities"]), user, with_shells=True)
        elif kind == "ENTITY_PARTIAL_UPDATE_V2":
            wanted = message["entityId"]
            entity = self.graph.named(wanted["typeName"], wanted["uniqueAttributes"])
            self.graph.put(entity, message["entity"]["entity"], user)
        elif kind == "ENTITY_DELETE_V2":
            for each in message["entities"]:
                self.graph.delete(self.graph.find(each["typeName"], each["uniqueAttributes"]), user)
        else:
            raise ValueError(f"the kind is {kind}")


@contextmanager
def atlas_emulator(broker: Kafka | None = None, topic: str = HOOK_TOPIC) -> Iterator[AtlasEmulator]:
    """Run one, which reads a topic of ``broker`` when there is one."""
    at = int(time.time() * 1000)
    stamp = {"createdBy": USER, "updatedBy": USER, "createTime": at, "updateTime": at, "version": 1}
    known = [each for definitions in models().values() for each in definitions]
    emulator = AtlasEmulator(Graph(Types({each["name"]: {"guid": str(uuid.uuid4())} | stamp | each for each in known})))

    class Handler(_Handler):
        to = emulator

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    emulator.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.05,), name="atlas-emulator", daemon=True).start()
    is_over = threading.Event()
    reader = threading.Thread(target=_read, args=(emulator, broker, topic, is_over), name="atlas-hooks", daemon=True)
    if broker is not None:
        reader.start()
    try:
        yield emulator
    finally:
        is_over.set()
        if broker is not None:
            reader.join(10)
        server.shutdown()
        server.server_close()


def _read(emulator: AtlasEmulator, broker: Kafka, topic: str, is_over: threading.Event) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    with contextlib.suppress(KafkaException):  # it is there already
        broker.create_topic(topic)
    settings = {"bootstrap.servers": broker.open_bootstrap, "group.id": "atlas-emulator", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while not is_over.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            emulator.take(message.value().decode(errors="replace"))
    consumer.close()


@dataclass
class _Request:
    to: AtlasEmulator
    path: dict[str, str]
    query: dict[str, list[str]]
    body: bytes
    user: str

    @property
    def graph(self) -> Graph:
        return self.to.graph

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
        return self.graph.shown(entity, is_small=self.one("minExtInfo") == "true", has_relations=not hides)

    def several(self) -> dict[str, Any]:
        """Entities by GUID, or by numbered unique attributes: those that are there."""
        found: list[Entity | None] = [self.graph.by_guid(guid) for guid in self.query.get("guid", ())]
        for key, values in self.query.items():
            if "type" in self.path and (numbered := re.fullmatch(r"attr_\d+:(.*)", key)):
                found.append(self.graph.find(self.path["type"], {numbered[1]: values[0]}))
        shown = [self.shown(each) for each in found if each is not None]
        referred = {guid: each for one in shown for guid, each in one["referredEntities"].items()}
        return {"referredEntities": referred, "entities": [each["entity"] for each in shown]}

    def lineage(self, entity: Entity) -> dict[str, Any]:
        return self.graph.lineage(entity, self.one("direction", "BOTH"), int(self.one("depth", "3")))

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
        if kind not in self.graph.types.definitions:
            raise AtlasError(400, "ATLAS-400-00-00A", f"{kind}: Unknown/invalid typename")
        filters = given.get("entityFilters") or {}
        criteria = filters.get("criterion") or ([filters] if filters else [])
        found = [
            each
            for each in self.graph.of_type(kind)
            if not (given.get("excludeDeletedEntities") and each.status == "DELETED")
            and all(_fits(each, criterion) for criterion in criteria)
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
        asked = defaults | paging | given | ({"query": text} if text else {})
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


def _entities(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(given.get("entities") or ()), *(given.get("referredEntities") or {}).values()]


_TYPE, _GUID = r"(?P<type>[^/]+)", r"(?P<guid>[^/]+)"
_TYPEDEF = r"(?:typedef|entitydef|enumdef|structdef|relationshipdef)/name/(?P<name>[^/]+)"
_ROUTES: tuple[tuple[str, str, Callable[[_Request], Any]], ...] = (
    ("GET", "/admin/version", lambda _: VERSION),
    ("GET", "/admin/status", lambda _: {"Status": "ACTIVE"}),
    ("GET", "/v2/types/typedefs/headers", lambda on: on.graph.types.headers()),
    ("GET", "/v2/types/typedefs/?", lambda on: on.graph.types.all()),
    ("POST", "/v2/types/typedefs/?", lambda on: on.graph.types.create(on.json(), on.user, on.now)),
    ("PUT", "/v2/types/typedefs/?", lambda on: on.graph.types.update(on.json(), on.user, on.now)),
    ("GET", f"/v2/types/{_TYPEDEF}", lambda on: on.graph.types.shown(on.path["name"])),
    ("DELETE", f"/v2/types/{_TYPEDEF}", _Request.delete_type),
    ("POST", "/v2/entity/bulk/?", lambda on: on.graph.post(_entities(on.json()), on.user)),
    ("POST", "/v2/entity/?", lambda on: on.graph.post([on.json()["entity"]], on.user)),
    ("GET", "/v2/entity/bulk/?", _Request.several),
    ("DELETE", "/v2/entity/bulk/?", _Request.delete_all),
    ("GET", f"/v2/entity/bulk/uniqueAttribute/type/{_TYPE}", _Request.several),
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
    ("GET", f"/v2/lineage/uniqueAttribute/type/{_TYPE}", lambda on: on.lineage(on.named())),
    ("GET", f"/v2/lineage/{_GUID}", lambda on: on.lineage(on.graph.by_guid(on.path["guid"]))),
    ("POST", "/v2/search/basic", lambda on: on.find(on.json())),
    ("GET", "/v2/search/basic", _Request.search),
    ("GET", "/v2/search/attribute", _Request.search_by_prefix),
    ("GET", "/v2/search/dsl", _Request.search_by_query),
)


class _Handler(BaseHTTPRequestHandler):
    to: AtlasEmulator
    protocol_version = "HTTP/1.1"
    timeout = 60  # of a client that says nothing
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        login = f"Basic {base64.b64encode(f'{self.to.user}:{self.to.password}'.encode()).decode()}"
        query = parse_qs(url.query, keep_blank_values=True)
        if url.path != "/api/atlas/admin/status" and self.headers.get("Authorization") != login:
            self._send(401, b"", "text/plain")
        elif url.path == "/":
            with self.to._lock:
                self._send(200, page(self.to.graph, query.get("guid", [""])[0]).encode(), "text/html; charset=utf-8")
        else:
            self._answer(unquote(url.path).removeprefix("/api/atlas"), query, body)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 (the names are http.server's)

    def _answer(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        try:
            answer = self.to.answer(self.command, path, query, body, self.to.user)
        except AtlasError as error:
            if not error.code:
                self._send(error.status, b"<html><body>There was an error</body></html>", "text/html")
                return
            told = {"errorCode": error.code, "errorMessage": error.message}
            self._send(error.status, json.dumps(told).encode(), "application/json")
        else:
            content = b"" if answer is None else json.dumps(answer).encode()
            self._send(200 if content else 204, content, "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="atlas.com"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Nobody reads it."""
