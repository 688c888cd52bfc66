"""Takes the secrets out of what was merged, once, before an event, a listener or a command shows it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

from msgspec import Struct, structs

from spark_lineage.merge.lineage import SchemaField
from spark_lineage.naming.identity import DatasetName
from spark_lineage.secrets.redaction import redact, redact_dataset, redact_value
from spark_lineage.secrets.registered_secrets import generation

_T = TypeVar("_T")

# Text of people and of errors, and URLs. All other text is a name, which is identity, or a word of Spark's.
_TEXTS = frozenset({
    "description", "detail", "exception", "error", "command", "part", "label", "subject_id", "master", "job_namespace",
    "job_name", "ui_url", "history_url", "logs_url", "metadata_uri", "warehouse_uri",
})  # fmt: skip
_NAMES = frozenset({"namespace", "name", "previous_name"})


def redact_lineage(value: _T) -> _T:
    """Return the same lineage, a part of one, or a transition, without secrets; what has none is the same object."""
    if isinstance(value, DatasetName):
        return _redacted_name(value, generation())  # type: ignore[return-value]
    if isinstance(value, Struct):
        return _redacted_struct(value)  # type: ignore[return-value]
    if isinstance(value, tuple):
        redacted = tuple(map(redact_lineage, value))
        is_same = all(new is old for new, old in zip(redacted, value, strict=True))
        return value if is_same else redacted  # type: ignore[return-value]
    return value


def _redacted_struct(value: Struct) -> Struct:
    # Columns keep their names: edges and schemas must go on agreeing.
    has_names = not isinstance(value, SchemaField)
    changes: dict[str, Any] = {}
    for field in value.__struct_fields__:
        old: Any = getattr(value, field)
        if not old:
            continue
        if field == "properties":
            new: Any = tuple(redact_value(dict(old)).items())
        elif isinstance(old, str):
            new = redact(old) if field in _TEXTS else redact_dataset(old) if has_names and field in _NAMES else old
        else:
            new = redact_lineage(old)
        if new is not old and new != old:
            changes[field] = new
    return structs.replace(value, **changes) if changes else value


# Column lineage names the same few datasets over and over.
@lru_cache(maxsize=8192)
def _redacted_name(name: DatasetName, _secrets: object) -> DatasetName:
    redacted = DatasetName(redact_dataset(name.namespace), redact_dataset(name.name))
    return name if redacted == name else redacted
