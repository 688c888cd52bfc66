"""The types of the Atlas emulator: their definitions, and what Atlas holds against a value."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

KINDS = ("enumDefs", "structDefs", "classificationDefs", "entityDefs", "relationshipDefs", "businessMetadataDefs")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*")
_NUMBERS = frozenset({"byte", "short", "int", "long", "float", "double", "biginteger", "bigdecimal", "date"})


def _date(value: Any) -> int:
    return value if isinstance(value, int) else int(datetime.fromisoformat(value).timestamp() * 1000)


_SIMPLE: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_NUMBERS, int),
    **dict.fromkeys(("float", "double", "bigdecimal"), float),
    "date": _date,
    "string": str,
    "boolean": lambda value: str(value).lower() == "true",
}


class AtlasError(Exception):
    """An answer that is no success; without a code Atlas answers a page of HTML."""

    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(f"{status} {code} {message}")
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True)
class Relation:
    """A relationship as the type at one of its ends sees it."""

    name: str
    """Of the attribute."""
    definition: Mapping[str, Any]
    end: int
    """1 or 2: the end that the type is."""
    declared_in: str

    @property
    def kind(self) -> str:
        """The name of the relationship."""
        return str(self.definition["name"])

    @property
    def here(self) -> Mapping[str, Any]:
        """The definition of this end."""
        return dict(self.definition[f"endDef{self.end}"])

    @property
    def target(self) -> str:
        """The type at the other end."""
        return str(self.definition[f"endDef{3 - self.end}"]["type"])

    @property
    def is_many(self) -> bool:
        """Whether the attribute is a list."""
        return bool(self.here["cardinality"] != "SINGLE")

    @property
    def is_owner(self) -> bool:
        """Whether what is at the other end goes with the entity."""
        return self.definition["relationshipCategory"] == "COMPOSITION" and bool(self.here["isContainer"])

    @property
    def is_mandatory(self) -> bool:
        """Whether no entity can be without it."""
        return self.definition["relationshipCategory"] == "COMPOSITION" and not self.here["isContainer"]


@dataclass
class Types:
    """All definitions by name."""

    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    _relations: dict[str, dict[str, list[Relation]]] = field(default_factory=dict)

    def get(self, name: str) -> dict[str, Any]:
        """One of them; 404 when it is missing."""
        if name not in self.definitions:
            raise AtlasError(404, "ATLAS-404-00-001", f"Given typename {name} was invalid")
        return self.definitions[name]

    def entity(self, name: str) -> dict[str, Any]:
        """The definition of an entity's type; 400 when it is missing."""
        if self.definitions.get(name, {}).get("category") != "ENTITY":
            raise AtlasError(400, "ATLAS-400-00-014", f"Type ENTITY with name {name} does not exist")
        return self.definitions[name]

    def lineage(self, name: str) -> list[str]:
        """The type's supertypes, first those of all, and the type itself."""
        found: list[str] = []
        for parent in self.definitions[name].get("superTypes", ()):
            found += [each for each in self.lineage(parent) if each not in found]
        return [*found, name]

    def attributes(self, name: str) -> dict[str, dict[str, Any]]:
        """What an entity of the type has, without relationships; ``declaredIn`` says by which type."""
        return {
            attribute["name"]: attribute | {"declaredIn": each}
            for each in self.lineage(name)
            for attribute in self.definitions[each].get("attributeDefs") or ()
        }

    def relations(self, name: str) -> dict[str, Relation]:
        """What an entity of the type is related by, by attribute: the first relationship of each."""
        return {attribute: some[0] for attribute, some in self.all_relations(name).items()}

    def relation(self, name: str, attribute: str, value: Any) -> Relation:
        """The relationship of an attribute that a reference, or the first of a list, names; else the first."""
        some, first = self.all_relations(name)[attribute], (value or [None])[0] if isinstance(value, list) else value
        return next((each for each in some if each.kind == (first or {}).get("relationshipType")), some[0])

    def all_relations(self, name: str) -> dict[str, list[Relation]]:
        """The same with all relationships of an attribute: a column is one of its table, or a partition key."""
        if name not in self._relations:
            found = self._relations[name] = {}
            for each in self.lineage(name):
                for definition, end in itertools.product(self.definitions.values(), (1, 2)):
                    if definition.get("category") == "RELATIONSHIP" and definition[f"endDef{end}"]["type"] == each:
                        attribute = definition[f"endDef{end}"]["name"]
                        found.setdefault(attribute, []).append(Relation(attribute, definition, end, each))
        return self._relations[name]

    def normalized(self, name: str, given: Mapping[str, Any], related: Mapping[str, Any], *, partly: bool) -> Any:
        """The attributes of an entity as they are kept; 404 with the first fault."""
        values: dict[str, Any] = {}
        relations = self.relations(name)
        for key, attribute in self.attributes(name).items():
            place, value = f"{name}.{key}", given.get(key)
            if key in relations:
                continue
            if value is not None:
                values[key] = self._value(place, attribute["typeName"], value)
            elif not attribute["isOptional"] and (not partly or key in given):
                self._missing(place, attribute["declaredIn"])
            elif key in given:
                values[key] = None
        for key, relation in relations.items():
            if relation.is_mandatory and not partly and related.get(key) is None:
                self._missing(f"{name}.{key}", relation.declared_in)
        return values

    def defaults(self, name: str) -> dict[str, Any]:
        """The attributes of a new entity that came without them."""
        values = {key: each.get("defaultValue") for key, each in self.attributes(name).items()}
        kinds = {key: each["typeName"] for key, each in self.attributes(name).items()}
        return {key: empty(kinds[key]) if value is None else value for key, value in values.items()}

    def create(self, given: Mapping[str, Any], user: str, at: int) -> dict[str, Any]:
        """What POST answers; all of them, or none."""
        new = list(_each(given))
        for definition in new:
            name = definition["name"]
            if name in self.definitions:
                raise AtlasError(409, "ATLAS-409-00-001", f"Given type {name} already exists")
            if not _NAME.fullmatch(name):
                rule = "Names must consist of a letter followed by a sequence of letter, number, space, or _ characters"
                message = f"{name}: invalid name for {definition['category']}.  {rule}"
                raise AtlasError(400, "ATLAS-400-00-019", message)
        self._check(new)
        for definition in new:
            stamp = {"createdBy": user, "createTime": at, "updatedBy": user, "updateTime": at}
            kept = {"description": definition["name"], "typeVersion": "1.0"} | definition | stamp
            kept |= {"guid": str(uuid.uuid4()), "version": 1}
            kept["attributeDefs"] = [_attribute(each) for each in definition.get("attributeDefs") or ()]
            kept |= {end: {"isLegacyAttribute": False} | kept[end] for end in ("endDef1", "endDef2") if end in kept}
            self.definitions[definition["name"]] = kept
        return self._changed(new)

    def update(self, given: Mapping[str, Any], user: str, at: int) -> dict[str, Any]:
        """What PUT answers; all of them, or none."""
        new = list(_each(given))
        for definition in new:
            _check_update(self.get(definition["name"]), definition)
        self._check(new)
        for definition in new:
            old = self.definitions[definition["name"]]
            attributes = [_attribute(each) for each in definition.get("attributeDefs") or ()]
            old |= definition | {"attributeDefs": attributes, "updatedBy": user, "updateTime": at}
            old["version"] += 1
        return self._changed(new)

    def delete(self, name: str, *, is_used: bool) -> None:
        """Remove one; 409 when something needs it."""
        self.get(name)
        if is_used or any(name in each.get("superTypes", ()) for each in self.definitions.values()):
            raise AtlasError(409, "ATLAS-409-00-002", f"Given type {name} has references")
        del self.definitions[name]
        self._relations.clear()

    def shown(self, name: str) -> dict[str, Any]:
        """A definition as GET shows it."""
        definition = self.get(name)
        if definition["category"] != "ENTITY":
            return definition | {"attributeDefs": definition.get("attributeDefs") or []}
        subtypes = [each for each, other in self.definitions.items() if name in other.get("superTypes", ())]
        related = [_relation_attribute(each) for each in self.relations(name).values()]
        return definition | {"subTypes": subtypes, "relationshipAttributeDefs": related, "businessAttributeDefs": {}}

    def headers(self) -> list[dict[str, Any]]:
        """The list of all."""
        return [
            {"guid": each["guid"], "name": name, "category": each["category"]}
            | ({"serviceType": each["serviceType"]} if each.get("serviceType") else {})
            for name, each in self.definitions.items()
        ]

    def all(self) -> dict[str, Any]:
        """All of them; 2.1.0 passes over ``serviceType``."""
        found: dict[str, Any] = {}
        for name, each in self.definitions.items():
            found.setdefault(_kind(each["category"]), []).append(self.shown(name))
        return found

    def _changed(self, changed: list[dict[str, Any]]) -> dict[str, Any]:
        self._relations.clear()
        if not changed:
            return {}
        answer: dict[str, Any] = {kind: [] for kind in KINDS}
        for each in changed:
            answer[_kind(each["category"])].append(self.shown(each["name"]))
        return answer

    def _check(self, new: list[dict[str, Any]]) -> None:
        known = self.definitions.keys() | {each["name"] for each in new}
        for definition in new:
            used = [*(definition.get("superTypes") or ())]
            used += [part for each in definition.get("attributeDefs") or () for part in _parts(each["typeName"])]
            used += [definition[end]["type"] for end in ("endDef1", "endDef2") if end in definition]
            for name in used:
                if name not in known and name not in _SIMPLE:
                    raise AtlasError(400, "ATLAS-400-00-029", f"Given typename {name} was invalid")

    def _value(self, place: str, kind: str, value: Any) -> Any:
        try:
            return self._read(place, kind, value)
        except (TypeError, ValueError):
            message = f"{place}={value}: invalid value for type {kind}"
            raise _invalid(message) from None

    def _read(self, place: str, kind: str, value: Any) -> Any:
        outer, *inner = _parts(kind, whole=True)
        if outer == "array":
            return [self._value(place, inner[0], each) for each in list(value)]
        if outer == "map":
            return {str(key): self._value(place, inner[1], each) for key, each in dict(value).items()}
        if "elementDefs" in self.definitions.get(kind, {}):
            values = [each["value"] for each in self.definitions[kind]["elementDefs"]]
            return values[values.index(value)]
        return _SIMPLE[kind](value) if kind in _SIMPLE else value

    def _missing(self, place: str, declared_in: str) -> None:
        raise _invalid(f"{place}: mandatory attribute value missing in type {declared_in}")


def empty(kind: str) -> Any:
    """What Atlas keeps for an attribute that is optional and not there."""
    return False if kind == "boolean" else 0 if kind in _NUMBERS else None


def _invalid(message: str) -> AtlasError:
    return AtlasError(404, "ATLAS-404-00-007", f"Invalid instance creation/updation parameters passed : {message}")


def _each(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        for definition in given.get(kind) or ():
            yield {"category": _category(kind)} | definition


def _category(kind: str) -> str:
    return "BUSINESS_METADATA" if kind == "businessMetadataDefs" else kind.removesuffix("Defs").upper()


def _kind(category: str) -> str:
    return next(kind for kind in KINDS if _category(kind) == category)


def _parts(kind: str, *, whole: bool = False) -> list[str]:
    """What ``map<string,array<int>>`` is made of; ``whole``: the outermost, and its arguments as they are."""
    found = re.fullmatch(r"(array|map)<(.*)>", kind)
    if found is None:
        return [kind]
    inner = found[2].split(",", 1) if found[1] == "map" else [found[2]]
    return [found[1], *inner] if whole else [part for each in inner for part in _parts(each.strip())]


def _check_update(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    before = {each["name"]: each for each in old.get("attributeDefs") or ()}
    after = {each["name"]: each for each in new.get("attributeDefs") or ()}
    if not set(old.get("superTypes") or ()) <= set(new.get("superTypes") or ()):
        raise AtlasError(400, "ATLAS-400-00-00E", "superType remove not supported")
    for name in before.keys() - after.keys():
        raise AtlasError(400, "ATLAS-400-00-00D", f"{old['name']}.{name} : attribute delete not supported")
    for name, attribute in after.items():
        if name not in before and not attribute.get("isOptional"):
            raise AtlasError(400, "ATLAS-400-00-00C", f"{old['name']}.{name} : can not add mandatory attribute")
        if name in before and before[name]["typeName"] != attribute["typeName"]:
            raise AtlasError(400, "ATLAS-400-00-029", "Data type update for attribute is not supported")


def _attribute(given: Mapping[str, Any]) -> dict[str, Any]:
    counts = {"valuesMinCount": 0 if given.get("isOptional") else 1, "valuesMaxCount": 1}
    flags = {"isOptional": False, "isUnique": False, "isIndexable": False, "includeInNotification": False}
    return {"cardinality": "SINGLE", "searchWeight": -1} | flags | counts | dict(given)


def _relation_attribute(relation: Relation) -> dict[str, Any]:
    shown = _attribute({"name": relation.name, "isOptional": not relation.is_mandatory})
    owned = {"constraints": [{"type": "ownedRef"}]} if relation.is_owner else {}
    return (
        shown
        | owned
        | {
            "typeName": f"array<{relation.target}>" if relation.is_many else relation.target,
            "cardinality": relation.here["cardinality"],
            "valuesMinCount": -1,
            "valuesMaxCount": -1,
            "relationshipTypeName": relation.kind,
            "isLegacyAttribute": bool(relation.here.get("isLegacyAttribute")),
        }
    )
