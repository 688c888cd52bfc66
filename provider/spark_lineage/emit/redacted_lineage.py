"""Takes the secrets out of what was merged, once, before an event, a listener or a command shows it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct, structs

from spark_lineage.merge.lineage import Facets, SchemaField, Transformation
from spark_lineage.naming.identity import DatasetName
from spark_lineage.secrets.redaction import redact, redact_dataset, redact_value
from spark_lineage.secrets.registered_secrets import generation

_T = TypeVar("_T")

# Text of people and of errors, and URLs. All other text is a name, which is identity, or a word of Spark's.
_TEXTS = frozenset({
    "description", "detail", "exception", "error", "command", "part", "label", "subject_id", "master", "job_namespace",
    "job_name", "ui_url", "history_url", "logs_url", "metadata_uri", "warehouse_uri", "location",
})  # fmt: skip
# Facets of others, as JSON.
_FACETS = frozenset({"foreign", "foreign_of_use", "foreign_of_job"})
_NAMES = frozenset({"namespace", "name", "previous_name"})
# What holds no text that is redacted.
_PLAIN = {str, bytes, int, float, bool, datetime, NoneType}


def redact_lineage(value: _T) -> _T:
    """Return the same lineage, a part of one, or a transition, without secrets; what has none is the same object."""
    return _redacted(value, generation())  # type: ignore[no-any-return]


def _redacted(value: Any, secrets: object) -> Any:
    if isinstance(value, tuple):
        redacted = tuple([_redacted(each, secrets) for each in value])
        is_same = all(new is old for new, old in zip(redacted, value, strict=True))
        return value if is_same else redacted
    if isinstance(value, DatasetName | Transformation):
        return _repeated(value, secrets)
    return _struct(value, secrets) if isinstance(value, Struct) else value


def _struct(value: Struct, secrets: object) -> Struct:
    changes: dict[str, Any] = {}
    for field, mask in _masks(type(value)):
        if old := getattr(value, field):
            new = mask(old) if mask is not None else _redacted(old, secrets)
            if new is not old and new != old:
                changes[field] = new
    return structs.replace(value, **changes) if changes else value


# Column lineage names the same few datasets and transformations over and over.
_repeated = lru_cache(maxsize=8192)(_struct)


@cache
def _masks(kind: type[Struct]) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    """Return the fields of a struct that may hold a secret, and what masks each; None for one that holds more."""
    found: list[tuple[str, Callable[[Any], Any] | None]] = []
    for field, annotation in get_type_hints(kind).items():
        # Columns keep their names: edges and schemas must go on agreeing.
        is_name = field in _NAMES and kind is not SchemaField
        if field in _FACETS:
            found.append((field, _redacted_facets))
        elif field == "properties":
            found.append((field, lambda properties: tuple(redact_value(dict(properties)).items())))
        elif _is_plain(annotation):
            found += [(field, redact if field in _TEXTS else redact_dataset)] if field in _TEXTS or is_name else []
        else:
            found.append((field, None))
    return tuple(found)


def _redacted_facets(facets: Facets) -> Facets:
    return tuple((name, _redacted_json(content)) for name, content in facets)


def _redacted_json(content: Raw) -> Raw:
    value = msgspec.json.decode(content)
    redacted = redact_value(value)
    return content if redacted == value else Raw(msgspec.json.encode(redacted))


def _is_plain(annotation: Any) -> bool:
    if get_origin(annotation) is Literal or annotation in _PLAIN or annotation is Ellipsis:
        return True
    arguments = get_args(annotation)
    return bool(arguments) and all(map(_is_plain, arguments))
