"""Takes the secrets out of what was merged, once, before an event, a listener or a command shows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, structs

from spark_lineage.merge.lineage import Facets, SchemaField, Transformation
from spark_lineage.naming.identity import DatasetName
from spark_lineage.secrets.redaction import generation, redact, redact_dataset, redact_value

_T = TypeVar("_T")


def _redacted_facets(facets: Facets) -> Facets:
    return tuple((name, _redacted_json(content)) for name, content in facets)


def _redacted_json(content: Raw) -> Raw:
    value = msgspec.json.decode(content)
    redacted = redact_value(value)
    return content if redacted == value else Raw(msgspec.json.encode(redacted))


# Text of people and of errors, and URLs; names. All other text is a word of Spark's.
_NAMES = frozenset({"namespace", "name", "previous_name"})
_TEXTS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys((
        "description", "detail", "exception", "error", "command", "part", "label", "subject_id", "master",
        "job_namespace", "job_name", "ui_url", "history_url", "logs_url", "metadata_uri", "warehouse_uri", "location",
    ), redact),
    **dict.fromkeys(_NAMES, redact_dataset),
}  # fmt: skip
# Columns keep their names: edges and schemas must go on agreeing.
_TEXTS_OF_COLUMN = {field: mask for field, mask in _TEXTS.items() if field not in _NAMES}
# Facets of others, as JSON, and properties.
_VALUES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("foreign", "foreign_of_use", "foreign_of_job"), _redacted_facets),
    "properties": lambda properties: tuple(redact_value(dict(properties)).items()),
}


def redact_lineage(value: _T) -> _T:
    """Return the same lineage, a part of one, or a transition, without secrets; what has none is the same object."""
    return _redacted(value, generation())  # type: ignore[no-any-return]


def _redacted(value: Any, secrets: object) -> Any:
    if isinstance(value, tuple):
        redacted = tuple([_redacted(each, secrets) for each in value])
        is_same = all(new is old for new, old in zip(redacted, value, strict=True))
        return value if is_same else redacted
    if isinstance(value, DatasetName | Transformation | SchemaField):
        return _repeated(value, secrets)
    return _struct(value, secrets) if isinstance(value, Struct) else value


def _struct(value: Struct, secrets: object) -> Struct:
    changes: dict[str, Any] = {}
    texts = _TEXTS_OF_COLUMN if isinstance(value, SchemaField) else _TEXTS
    for field in value.__struct_fields__:
        if old := getattr(value, field):
            if isinstance(old, str):
                new = texts[field](old) if field in texts else old
            else:
                new = _VALUES[field](old) if field in _VALUES else _redacted(old, secrets)
            if new is not old and new != old:
                changes[field] = new
    return structs.replace(value, **changes) if changes else value


# Lineage names the same few datasets, columns and transformations over and over.
_repeated = lru_cache(maxsize=8192)(_struct)
