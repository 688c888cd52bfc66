"""The last look at an event before it leaves, whoever made it: every text in it without secrets.

Spec: OpenLineage 2-0-2. What a schema says of a value stays true: text stays text, a number a number, a required key is
there, and ``runId``, times, ``producer`` and schema URLs are never touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from openlineage.client.serde import Serde

from spark_lineage.secrets.redaction import (
    MASK,
    redact,
    redact_command,
    redact_dataset,
    redact_key,
    redact_name,
    unused_key,
)
from spark_lineage.secrets.secret_keys import VALUE_OF_PAIR, has_secret_value, is_harmless_value, is_secret_key

if TYPE_CHECKING:
    from openlineage.client.client import Event

_UNTOUCHED = frozenset({"eventType", "eventTime", "producer", "schemaURL", "_producer", "_schemaURL"})
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]{5,20}(?:Z|[+-]\d\d:?\d\d)?")
# The keys in these are names of facets, and the keys in those are names of columns.
_FACETS = frozenset({"facets", "inputFacets", "outputFacets"})
_COLUMN_MAPS = frozenset({"fields", "columnMetrics"})
# Lists of columns, objects that are columns (whose types name columns within them), and texts that are names alone.
_COLUMNS = frozenset({"fields[]", "schema[]", "old", "new"})
_NAMES = frozenset({"field", "column", "objectName", "previousObjectName", "database", "partitionedBy"})
# Nothing that OpenLineage knows is nested so deep, and Python has a thousand levels in all.
_MAX_LEVELS = 200


def encode(event: Event) -> bytes:
    """Return an event as it leaves: JSON in UTF-8, sorted keys, without secrets."""
    # JSON has no NaN and no infinity; Python's writer has, and its reader says what becomes of them.
    redacted = redact_event(json.loads(Serde.to_json(event), parse_constant=lambda _: None))
    text = json.dumps(redacted, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate cannot be written in UTF-8; a question mark for it is better than no event.
    return text.encode("utf-8", "replace")


def redact_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a ``RunEvent`` without secrets; doing it again changes nothing.

    Names of datasets keep what is identity (``redact_dataset``), and columns may be called ``password``. Under a key
    that names a secret every text becomes ``***``, and every number 0.
    """
    return _Redaction().mapping(event, level=0)


class _Redaction:
    """One pass over one event, which says the same few things over and over: each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Callable[[str], str], str], str] = {}

    def mapping(
        self, value: Mapping[str, Any], *, level: int, place: str = "", is_secret: bool = False
    ) -> dict[str, Any]:
        """Return an object; ``place`` is the key that it stands under, with ``[]`` for an entry of a list."""
        if level > _MAX_LEVELS:
            return {}
        is_pair = has_secret_value(value)
        result: dict[str, Any] = {}
        for key, each in value.items():
            new_key = unused_key(self._key(key, place), result)
            is_named = isinstance(each, Mapping) and (place in _FACETS or place in _COLUMN_MAPS)
            result[new_key] = self._entry(
                key,
                each,
                level=level + 1,
                mask=self._mask_of(key, value, place),
                is_secret=is_secret or (is_pair and key in VALUE_OF_PAIR) or (not is_named and is_secret_key(key)),
            )
        return result

    def _entry(self, key: str, value: Any, *, level: int, mask: Callable[[str], str], is_secret: bool) -> Any:
        if isinstance(value, str):
            return value if _is_untouched(key, value) else self._text(value, mask, is_secret=is_secret)
        if isinstance(value, Mapping):
            return self.mapping(value, level=level, place=key, is_secret=is_secret)
        if isinstance(value, (list, tuple)):
            return self._list(key, value, level=level, is_secret=is_secret)
        if is_secret and isinstance(value, (int, float)) and not isinstance(value, bool):
            return type(value)(0)
        return value

    def _list(self, key: str, value: list[Any] | tuple[Any, ...], *, level: int, is_secret: bool) -> list[Any]:
        if level > _MAX_LEVELS:
            return []
        if not is_secret and key not in _NAMES and all(isinstance(each, str) for each in value):
            # The arguments of a command, perhaps.
            return redact_command(value)
        mask = redact_dataset if key in _NAMES else redact
        return [self._entry(f"{key}[]", each, level=level + 1, mask=mask, is_secret=is_secret) for each in value]

    def _text(self, text: str, mask: Callable[[str], str], *, is_secret: bool) -> str:
        if is_secret:
            return text if is_harmless_value(text) else MASK
        known = self._known.get((mask, text))
        if known is None:
            known = self._known[mask, text] = mask(text)
        return known

    def _key(self, key: str, place: str) -> str:
        if place in _FACETS:
            return key
        return self._text(key, redact_dataset if place in _COLUMN_MAPS else redact_key, is_secret=False)

    def _mask_of(self, key: str, siblings: Mapping[str, Any], place: str) -> Callable[[str], str]:
        """Say how a text under this key is masked."""
        if key in _NAMES or (key in ("name", "type") and place in _COLUMNS and "namespace" not in siblings):
            return redact_dataset
        if place == "dataSource" and key in ("name", "uri"):
            return redact_dataset
        if key in ("namespace", "name") and "namespace" in siblings and "name" in siblings:
            return redact_name if place == "job" else redact_dataset
        return redact


def _is_untouched(key: str, text: str) -> bool:
    if key in _UNTOUCHED:
        return True
    if key == "runId":
        return _UUID.fullmatch(text) is not None
    return key.lower().endswith("time") and _TIME.fullmatch(text) is not None
