"""Cuts the lists of a plan's marked text into their elements.

No name holds a separator there, but literals may: Spark prints them without quotes. A list that states its size is cut
into so many elements, each of which must read as an expression; what can be cut in two ways is not cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from spark_lineage.merge.lineage import SchemaField
from spark_lineage.plans.expressions import is_expression
from spark_lineage.plans.names import ATTRIBUTE, ATTRIBUTE_NAME, shown

PURE_LIST = rf"\[(?:{ATTRIBUTE}(?:, {ATTRIBUTE})*)?\]"
"""A list of nothing but known attributes."""
_LAST = re.compile(rf"(?P<name>{ATTRIBUTE_NAME})#(?P<id>\d+)L?\Z")
_UNKNOWN_END = re.compile(r"(?<![\ue000-\ue101])#\d+L?, ")
_UNKNOWN = re.compile(r"(?P<text>.*)#(?P<id>\d+)L?", re.DOTALL)
_ATTRIBUTE = re.compile(ATTRIBUTE)
UNKNOWN_NAME = ""
_AS = " AS "
_AS_AT = re.compile(_AS)
_ALIAS = re.compile(rf"{_AS}{ATTRIBUTE}|{ATTRIBUTE}{_AS}[^\s,()]*#\d")
_IN_SET = " INSET "
# A field of a struct, whose name may hold anything too.
_FIELD = re.compile(rf"{ATTRIBUTE}\.")
_COLUMN = re.compile(
    r"(?:StructField|ColumnImpl)\((?P<name>.+?),(?P<type>[A-Z]\w*Type(?:\(\d[\d,]*\))?(?=,)|[A-Z]\w*Type(?=\())"
    r"(?P<is_nested>\()?",
    re.DOTALL,
)
_WITHIN = {"array": ("_element",), "map": ("key", "value")}
_STRUCTURE = re.compile(r"[`,()\[\]{}]")
_OPENING = "([{"
# A list with odd literals is cut at no more commas.
_COMMAS_MAX = 200


class Defined(NamedTuple):
    """One element of an operator's output: an attribute, and the expression that it is an alias of, if it is one."""

    id: int
    name: str
    expression: str | None


def arguments(text: str, quote: str = "`") -> list[str]:
    """Split at the commas that are outside of all brackets, and outside of what is quoted there.

    :param quote: empty for the inside of a list: its names stand unquoted, and may hold a back quote
    """
    parts: list[str] = []
    depth, start, is_quoted = 0, 0, False
    for match in _STRUCTURE.finditer(text):
        character = match[0]
        if character == "`":
            is_quoted = character == quote and not depth and not is_quoted
        elif is_quoted:
            continue
        elif character == ",":
            if not depth:
                parts.append(text[start : match.start()].strip())
                start = match.end()
        elif character in _OPENING:
            depth += 1
        elif depth:
            depth -= 1
    return [*parts, text[start:].strip()]


def _is_balanced(text: str) -> bool:
    """Whether each bracket is closed: else one is text of a literal, and so may be a comma."""
    depth = 0
    for match in _STRUCTURE.finditer(text):
        if match[0] not in "`,":
            depth += 1 if match[0] in _OPENING else -1
            if depth < 0:
                return False
    return not depth


def elements(text: str, size: int | None = None) -> list[str]:
    """Split ``[a#1, f(b#2, c#3) AS d#4]`` at the commas outside of all brackets; other text has no elements.

    A list that does not have the size that it states, and is not cut into so many expressions in one way, has none.
    """
    inner = _inner(text)
    if not inner:
        return []
    parts = [part for part in arguments(inner, quote="") if part]
    if size is None or (len(parts) == size and _is_balanced(inner)):
        return parts
    return _cut(inner, size, _is_value) or []


def outputs(text: str, size: int | None = None) -> list[Defined] | None:
    """Return the attributes and aliases of a list, None where it can be read in no way, or in two."""
    inner = _inner(text)
    if not inner:
        return None if inner is None or size else []
    parts = [defined(part) for part in arguments(inner, quote="")]
    found = [part for part in parts if part is not None]
    is_balanced = _is_balanced(inner)
    if len(found) == len(parts) and size in (None, len(parts)) and is_balanced:
        return found
    if size is None and is_balanced:
        size = len(found)
    cut = _cut(inner, size, _is_output)
    return [one for part in cut if (one := defined(part))] if cut else None


def _is_value(element: str) -> bool:
    """Whether a text may be an expression: a literal, or the list of literals of ``INSET``, may hold anything."""
    before, is_set, literals = element.partition(_IN_SET)
    if is_set and is_expression(before):
        return not _ATTRIBUTE.search(literals)
    if field := _FIELD.match(element):
        return not _ATTRIBUTE.search(element, field.end())
    # A literal that looks as the end of an attribute may be one whose name is not known.
    return is_expression(element) or not (_ATTRIBUTE.search(element) or _UNKNOWN_END.search(element))


def _is_output(element: str) -> bool:
    one = defined(element)
    return one is not None and (one.expression is None or _is_value(one.expression))


def defined(element: str) -> Defined | None:
    """Read ``name#12`` or ``expression AS name#13``; None for anything else."""
    if known := _LAST.search(element):
        identity, name, before = int(known["id"]), shown(known["name"]), element[: known.start()]
        if not before:
            return Defined(identity, name, None)
        # No alias stands in an expression: it is text of a literal, and so may be all that looks as an attribute.
        is_alias = before.endswith(_AS) and not _ALIAS.search(before)
        return Defined(identity, name, before.removesuffix(_AS)) if is_alias else None
    # No operator lists the aliases of a plan's root.
    unknown = _UNKNOWN.fullmatch(element)
    if unknown is None:
        return None
    text, identity = unknown["text"], int(unknown["id"])
    # An expression may end behind all attributes, outside of all brackets.
    start = max((match.end() for match in _ATTRIBUTE.finditer(text)), default=0)
    ends = (match.start() for match in _AS_AT.finditer(text, start))
    places = [end for end in ends if _is_value(text[:end])]
    if not places:
        return None if _ATTRIBUTE.search(text) else Defined(identity, text, None)
    before = text[: places[0]]
    # A literal may hold what looks as the beginning of an alias, but not right behind an attribute, and behind a
    # bracket only where the rest is balanced. All readings use the same attributes: only the name is not known.
    name = text[places[0] + len(_AS) :]
    is_closed = before.endswith((")", " END")) and _is_balanced(name)
    is_certain = len(places) == 1 or is_closed or _LAST.search(before) is not None
    return Defined(identity, name if is_certain else UNKNOWN_NAME, before)


def attributes(text: str) -> list[Defined]:
    """Return the elements of a list that are attributes or aliases."""
    return outputs(text) or [each for element in elements(text) if (each := defined(element))]


def columns_in(text: str) -> Iterator[SchemaField]:
    """Return each column of the ``StructField(a,IntegerType,true)`` and ``ColumnImpl(a,…)`` in a text, as the listener.

    A type that holds others has them as its fields: an array its ``_element``, a map its ``key`` and ``value``.
    """
    end = 0
    for match in _COLUMN.finditer(text):
        if match.start() >= end:
            inner = to_closing(text[match.end() :]) if match["is_nested"] else ""
            end = match.end() + len(inner)
            kind = match["type"].replace("Type", "", 1).lower()
            within = zip(_WITHIN.get(kind, ()), arguments(inner, quote=""), strict=False)
            inside = inner if kind == "struct" else " ".join(f"StructField({name},{each},)" for name, each in within)
            yield SchemaField(match["name"], kind, fields=tuple(columns_in(inside)))


def to_closing(text: str) -> str:
    """Return what is before the bracket that closes one that was opened before this text."""
    depth = 1
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return text[:position]
    return text


def _inner(text: str) -> str | None:
    text = text.strip()
    return text[1:-1] if text.startswith("[") and text.endswith("]") else None


def _cut(text: str, size: int | None, is_element: Callable[[str], bool]) -> list[str] | None:
    """Return the only way to cut a text at commas into so many elements, None where there is none, or another.

    :param size: how many elements, None where that is not known
    """
    ends = [match.start() for match in re.finditer(", ", text)][: _COMMAS_MAX + 1]
    if not (size or 1) - 1 <= len(ends) <= _COMMAS_MAX:
        return None
    # Cuts are kept by where the next element begins, and how many are before it.
    found: dict[tuple[int, int], list[tuple[str, ...]]] = {(0, 0): [()]}
    for end in (*ends, len(text)):
        for (start, count), ways in list(found.items()):
            if start <= end and (size is None or count < size) and is_element(text[start:end]):
                there = found.setdefault((end + 2, count + 1 if size else 0), [])
                there += [(*path, text[start:end]) for path in ways][: 2 - len(there)]
    ways = found.get((len(text) + 2, size or 0), [])
    return list(ways[0]) if len(ways) == 1 else None
