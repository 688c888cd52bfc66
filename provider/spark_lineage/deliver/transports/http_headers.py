"""The headers that a connection adds to its requests, checked before the first of them is sent; pure."""

from __future__ import annotations

import re

from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.secrets.redaction import redact

# RFC 9110, 5.1 and 5.5: what http.client refuses too, with an error that shows the value.
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LAST_LATIN_1 = 0xFF
_NO_VALUE = re.compile(r"[\r\n\0]")


def headers_of(fields: ConnectionFields) -> tuple[dict[str, str], bool]:
    """Return the headers, and whether one of them holds the password (``{"X-Api-Key": "{password}"}``).

    :raises SettingError: for a header that HTTP cannot carry
    """
    headers, is_password_used = fields.filled(fields.texts("headers"))
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise fields.error("headers", f"has {redact(name)!r}, which is no name of a header")
        check_header(fields, f"headers.{name}", value)
    return dict(headers), is_password_used


def check_header(fields: ConnectionFields, name: str, value: str) -> str:
    """Return the value back.

    :raises SettingError: when no header can carry it; the value is not shown
    """
    if _NO_VALUE.search(value) or any(ord(letter) > _LAST_LATIN_1 for letter in value):
        raise fields.error(name, "has a line break or a letter that no HTTP header can carry; take it away")
    return value
