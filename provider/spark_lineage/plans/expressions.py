"""Reads the expressions of a plan's text: which attributes, by their ids, one is made from, and in which way.

An attribute is written ``name#12`` (``#12L`` for a bigint), a new one ``expression AS name#13L``. Literals stand
unquoted, so what is read is what the ids say; an id that no operator below gives out is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from spark_lineage.merge.lineage import Transformation

IDENTITY = Transformation("DIRECT", "IDENTITY")
TRANSFORMATION = Transformation("DIRECT", "TRANSFORMATION")
AGGREGATION = Transformation("DIRECT", "AGGREGATION")
CONDITIONAL = Transformation("INDIRECT", "CONDITIONAL")
WINDOW = Transformation("INDIRECT", "WINDOW")
GROUPED = Transformation("INDIRECT", "GROUP_BY")

# What hides the value that it is given, as the listener has it (``MaskingExpressionDependencyVisitor``).
_MASKING = frozenset({"crc32", "hash", "hive-hash", "mask", "md5", "sha", "sha1", "sha2", "xxhash64", "count"})
_ATTRIBUTE = re.compile(r"(?P<name>.*)#(?P<id>\d+)L?", re.DOTALL)
_TOKEN = re.compile(
    r"#(?P<id>\d+)L?|(?P<function>[\w$-]*) ?\((?P<named>)|(?P<close>\))|\b(?P<word>CASE|WHEN|THEN|ELSE|END)\b"
)
_OPENING, _CLOSING = "([{", ")]}"


class Reference(NamedTuple):
    """An attribute that an expression uses, and how."""

    id: int
    how: Transformation


class Defined(NamedTuple):
    """One element of an operator's output: an attribute, and the expression that it is an alias of, if it is one."""

    id: int
    name: str
    expression: str | None


def defined(element: str) -> Defined | None:
    """Read ``name#12`` or ``expression AS name#13``; None for anything else."""
    expression, alias, attribute = element.rpartition(" AS ")
    match = _ATTRIBUTE.fullmatch(attribute)
    if match is None:
        return None
    return Defined(int(match["id"]), match["name"], expression if alias else None)


def elements(text: str) -> list[str]:
    """Split ``[a#1, f(b#2, c#3) AS d#4]`` at the commas outside of all brackets; what is no list has no elements."""
    text = text.strip()
    if not text.startswith("[") or not text.endswith("]"):
        return []
    return [part for part in arguments(text[1:-1]) if part]


def arguments(text: str) -> list[str]:
    """Split at the commas that are outside of all brackets and back quotes."""
    parts: list[str] = []
    depth, start, is_quoted = 0, 0, False
    for position, character in enumerate(text):
        if character == "`":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth = max(depth - 1, 0)
        elif character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return parts


def references(expression: str, names: Mapping[int, str]) -> Iterator[Reference]:
    """Return the attributes that an expression uses; ``names`` are those that operators below give out.

    Conditions of ``if`` and ``CASE`` are INDIRECT, as are the partitions and orders of a window. ``coalesce`` both
    passes on and decides.
    """
    expression = _unwrapped(_NULL_STAYS.sub("", expression).strip())
    if (whole := _ATTRIBUTE.fullmatch(expression)) and names.get(int(whole["id"])) == whole["name"]:
        yield Reference(int(whole["id"]), IDENTITY)
        return
    enclosing: list[str] = []
    for token in _TOKEN.finditer(expression):
        if token["id"] is None:
            _step(token, enclosing)
        elif _is_named(expression, token.start(), names.get(int(token["id"]))):
            yield Reference(int(token["id"]), _how(enclosing))
            if "coalesce" in enclosing:
                yield Reference(int(token["id"]), CONDITIONAL)


def _is_named(expression: str, end: int, name: str | None) -> bool:
    """Whether a name stands before an id: those of plans, and texts of the program, look like ids of attributes."""
    return name is not None and expression[max(end - len(name), 0) : end].lower() == name.lower()


def _step(token: re.Match[str], enclosing: list[str]) -> None:
    """Go into or out of a function, or on to the next phase of a ``CASE``."""
    is_case = bool(enclosing) and enclosing[-1] in _PHASES
    if token["named"] is not None:
        enclosing.append(token["function"])
    elif token["word"] == "CASE":
        enclosing.append("CASE")
    elif token["close"] or token["word"] == "END":
        if enclosing and (is_case or token["close"]):
            enclosing.pop()
    elif is_case:
        enclosing[-1] = token["word"]


_PHASES = frozenset({"CASE", "WHEN", "THEN", "ELSE"})
# FILTER (WHERE …) behind an aggregate decides which values it takes.
_CONDITIONS = frozenset({"if", "WHEN", "FILTER"})
# Their arguments are what their window is ordered by.
_ORDERED_BY = frozenset({"windowspecdefinition", "rank", "dense_rank", "percent_rank"})
# A struct that is null stays null, where it is made anew field by field.
_NULL_STAYS = re.compile(r"\bif \(isnull\([^()]*\)\) null else ")


def _how(enclosing: Collection[str]) -> Transformation:
    if not _ORDERED_BY.isdisjoint(enclosing):
        return WINDOW
    if not _CONDITIONS.isdisjoint(enclosing):
        return CONDITIONAL
    if not _MASKING.isdisjoint(enclosing):
        return Transformation("DIRECT", "TRANSFORMATION", masking=True)
    return TRANSFORMATION


def _unwrapped(expression: str) -> str:
    """Without what makes no difference to the value: ``knownfloatingpointnormalized(...)`` stays, ``(a#1)`` goes."""
    while expression.startswith("(") and expression.endswith(")") and len(arguments(expression)) == 1:
        inner = expression[1:-1]
        if "(" in inner or ")" in inner:
            break
        expression = inner.strip()
    return expression
