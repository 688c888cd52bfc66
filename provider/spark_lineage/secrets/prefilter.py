"""Finds in one pass, with RE2, that a text cannot hold a secret: most lines of a driver are plain, and many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

try:
    import re2
except ImportError:
    # Slower, and the same: every text is looked at closely.
    re2 = None


class Prefilter:
    """What a text must match before it is worth to look closer; without look-around, which RE2 has not."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._pattern: Any = (re2 or re).compile(expression)

    def __call__(self, text: str) -> bool:
        """Whether the text may match."""
        # As bytes, in which RE2 has no characters to count. Surrogates, which UTF-8 has not, become "?".
        return re2 is None or self._pattern.search(text.encode(errors="replace")) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the text matches."""
        # Bytes where their places are those of the characters, for the same reason.
        readable = text.encode(errors="replace")
        is_ascii = len(readable) == len(text)
        found = self._pattern.finditer(readable if is_ascii and re2 else readable.decode())
        return (match.span() for match in found)
