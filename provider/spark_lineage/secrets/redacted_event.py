"""Redacts events as they are sent; writes times as events have them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from openlineage.client.serde import Serde

from spark_lineage.secrets.redaction import Redaction, redact, redact_dataset, redact_key, redact_name

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
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def encode(event: Event) -> bytes:
    """Return an event as it leaves: JSON in UTF-8, sorted keys, without secrets."""
    # JSON has no NaN and no infinity, which Python writes: they become null.
    redacted = redact_event(json.loads(Serde.to_json(event), parse_constant=lambda _: None))
    text = json.dumps(redacted, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate cannot be written in UTF-8; a question mark for it is better than no event.
    return text.encode("utf-8", "replace")


def redact_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a ``RunEvent`` without secrets; doing it again changes nothing.

    Names of datasets keep what is identity (``redact_dataset``), and columns may be called ``password``. Under a key
    that names a secret every text becomes ``***``, and every number 0.
    """
    redacted: dict[str, Any] = _EventRedaction().value(event)
    return redacted


class _EventRedaction(Redaction):
    hides_all = False

    def mask_of_keys(self, place: str) -> Callable[[str], str]:
        return str if place in _FACETS else redact_dataset if place in _COLUMN_MAPS else redact_key

    def mask_of(self, key: str, siblings: Mapping[str, Any], place: str) -> Callable[[str], str]:
        if isinstance(text := siblings.get(key), str):
            is_id = key == "runId" and _UUID.fullmatch(text)
            is_time = key.lower().endswith("time") and _TIME.fullmatch(text)
            if key in _UNTOUCHED or is_id or is_time:
                return str
        if key in _NAMES or (key in ("name", "type") and place in _COLUMNS and "namespace" not in siblings):
            return redact_dataset
        if place == "dataSource" and key in ("name", "uri"):
            return redact_dataset
        if key in ("namespace", "name") and "namespace" in siblings and "name" in siblings:
            return redact_name if place == "job" else redact_dataset
        return redact


def without_controls(text: str) -> str:
    """Replace what no backend can hold: of control characters, all but tab and line end."""
    return _CONTROLS.sub("\ufffd", text)


def event_time(moment: datetime) -> str:
    """An aware time as ``RunEvent.eventTime`` has it: RFC 3339, in UTC, with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
