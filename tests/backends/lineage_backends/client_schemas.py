"""JSON Schemas of facets, read off the classes that OpenLineage generates for its Python client out of its schemas.

They stand in for the published files that ``tests/fixtures/schemas`` has not. The classes keep names, types,
enumerations and what is required; of the formats, those by name below.
"""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
from enum import Enum
from functools import cache
from typing import Any

import attr
from openlineage.client import generated
from openlineage.client.generated.base import BaseFacet

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}
# The generated classes check them in their validators, which a schema cannot call.
_FORMATS = {
    "_producer": "uri",
    "_schemaURL": "uri",
    "runId": "uuid",
    "nominalStartTime": "date-time",
    "nominalEndTime": "date-time",
    "lastUpdated": "date-time",
}


@cache
def client_schemas() -> dict[str, dict[str, Any]]:
    """The schema of each facet by its ``_schemaURL``, without the fragment: a document whose ``$defs`` holds it."""
    documents: dict[str, dict[str, Any]] = {}
    for module in pkgutil.iter_modules(generated.__path__):
        for value in vars(importlib.import_module(f"{generated.__name__}.{module.name}")).values():
            if (
                isinstance(value, type)
                and issubclass(value, BaseFacet)
                and value.__module__.endswith(f".{module.name}")
            ):
                url = value._get_schema().partition("#")[0]
                definitions = documents.setdefault(url, {"$id": url, "$defs": {}})["$defs"]
                _define(value, definitions)
    return documents


def _define(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of a class, which is in ``definitions`` then; classes may hold themselves."""
    reference = {"$ref": f"#/$defs/{kind.__name__}"}
    if kind.__name__ in definitions:
        return reference
    schema: dict[str, Any] = {"type": "object"}
    definitions[kind.__name__] = schema
    hints = typing.get_type_hints(kind)
    fields = [field for field in attr.fields(kind) if field.name != "_deleted"]
    schema["properties"] = {field.name: _schema(hints[field.name], definitions, field.name) for field in fields}
    required = {field.name for field in fields if field.default is attr.NOTHING}
    if issubclass(kind, BaseFacet):
        required |= {"_producer", "_schemaURL"}  # the classes fill them in by themselves
    schema["required"] = sorted(required)
    return reference


def _schema(hint: Any, definitions: dict[str, Any], name: str = "") -> dict[str, Any]:
    """The schema of one annotation. What may be None is left out of the JSON then, so null is never right."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        choices = [_schema(each, definitions, name) for each in arguments if each is not type(None)]
        return choices[0] if len(choices) == 1 else {"anyOf": choices}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    return _schema_of_class(hint, definitions, name)


def _schema_of_class(hint: Any, definitions: dict[str, Any], name: str) -> dict[str, Any]:
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]} | ({"format": _FORMATS[name]} if name in _FORMATS else {})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    if isinstance(hint, type) and attr.has(hint):
        return _define(hint, definitions)
    return {}
