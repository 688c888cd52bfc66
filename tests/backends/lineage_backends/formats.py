"""The formats that OpenLineage's schemas name, checked strictly and without further packages."""

from __future__ import annotations

import re
from datetime import datetime
from uuid import UUID

from jsonschema import FormatChecker

FORMATS = FormatChecker(formats=())

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
# RFC 3986: a scheme, then nothing that must be percent-encoded.
_URI = re.compile(r"[a-z][a-z0-9+.-]*:([a-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9a-f]{2})*", re.ASCII | re.IGNORECASE)


@FORMATS.checks("date-time")
def is_date_time(value: object) -> bool:
    """RFC 3339, so with a time zone."""
    if not isinstance(value, str):
        return True
    if not _DATE_TIME.fullmatch(value):
        return False
    try:
        # Python's own reader is stricter about fractions, and no fraction makes a date wrong.
        datetime.fromisoformat(re.sub(r"\.\d+", "", value).upper())
    except ValueError:
        return False
    return True


@FORMATS.checks("uuid")
def is_uuid(value: object) -> bool:
    """RFC 9562, with its hyphens."""
    return not isinstance(value, str) or (_UUID.fullmatch(value) is not None and bool(UUID(value)))


@FORMATS.checks("uri")
def is_uri(value: object) -> bool:
    """RFC 3986."""
    return not isinstance(value, str) or _URI.fullmatch(value) is not None
