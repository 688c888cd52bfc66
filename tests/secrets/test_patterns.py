"""The patterns of secrets match the same on all versions of Python that are supported."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from spark_lineage.secrets import redaction, secret_keys

with warnings.catch_warnings():
    # The parser of the standard library has no public name.
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

PATTERNS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": pattern
    for module in (redaction, secret_keys)
    for name, pattern in vars(module).items()
    if isinstance(pattern, re.Pattern)
}


def nodes(parsed: Any) -> Iterator[tuple[str, Any]]:
    """Return the operations of a parsed pattern, and of all that it holds."""
    if isinstance(parsed, sre_parse.SubPattern):
        for operation, argument in parsed:
            yield str(operation), argument
            yield from nodes(argument)
    elif isinstance(parsed, (tuple, list)):
        for each in parsed:
            yield from nodes(each)


@pytest.mark.parametrize("name", PATTERNS)
def test_possessive_group_holds_no_lookahead(name: str) -> None:
    """CPython before 3.11.5 matches it wrong (python/cpython#106052), and a secret stays."""
    parsed = sre_parse.parse(PATTERNS[name].pattern, PATTERNS[name].flags & ~re.DEBUG)
    groups = [argument for operation, argument in nodes(parsed) if operation == "POSSESSIVE_REPEAT"]
    assert [kind for kind, _ in nodes(groups) if kind.startswith("ASSERT")] == []
