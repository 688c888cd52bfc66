"""Finds the names of attributes in the text of a plan, and spells them so that no separator occurs in them.

Spark prints an attribute as ``name#12`` (``#12L`` for a bigint) without quotes, and a name may hold ``, ``, `` AS ``,
``#1`` or ``(``. Lists that hold nothing but attributes state their size, so they give the name of each id; an id has
one name in a whole application. In marked text the letters of a known name are private characters of Unicode, so that
the text can be cut at its separators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

# The attributes of an application that are remembered: those of a stream are new in each micro-batch.
_REMEMBERED_MAX = 100_000
_WITHIN_WORD = re.compile(r"\w\w")
_ID = re.compile(r"#(\d+)L?")
_END = re.compile(r"#(\d+)L?(?=, |\Z)")
# This stands for the rest of a list that is cut.
_MORE = re.compile(r", \.\.\. \d+ more fields\Z")
# A name begins with the first of these; a letter is one of 256 bytes.
_BEGIN, _FIRST, _LAST = "\ue100", 0xE000, 0xE0FF
SUBQUERY = "\ue101"
"""With this begins the name of a field of a scalar subquery, empty where its value is no struct."""
NAME = f"[{_BEGIN}{SUBQUERY}][{chr(_FIRST)}-{chr(_LAST)}]*"
ATTRIBUTE_NAME = f"{_BEGIN}[{chr(_FIRST)}-{chr(_LAST)}]*"
ATTRIBUTE = rf"{ATTRIBUTE_NAME}#\d+L?"
"""An attribute in marked text."""
_MARKED = re.compile(NAME)
UNKNOWN = re.compile(rf"(?<![{chr(_FIRST)}-{SUBQUERY})])#(\d+)L?")
"""The id of an attribute in marked text whose name is not known; of a call, and of its result, it is none."""
_SUBQUERY = re.compile(
    r"(?P<is_value>Subquery )?\b(?:scalar-)?subquery#(?P<id>\d+)(?:, \[id=#\d+\](?P<has_field>\.)?)?"
)


class Attribute(NamedTuple):
    """An attribute of a plan."""

    id: int
    name: str


@lru_cache(maxsize=4096)
def hidden(name: str) -> str:
    """Return a name in private characters."""
    return _BEGIN + "".join(chr(_FIRST + byte) for byte in name.encode(errors="surrogatepass"))


@lru_cache(maxsize=4096)
def shown(spelled: str) -> str:
    """Return the name that private characters spell."""
    return bytes(ord(letter) - _FIRST for letter in spelled[1:]).decode(errors="surrogatepass")


def plain(marked: str) -> str:
    """Return marked text with its names as Spark printed them; of a subquery the name of its field alone."""
    return _MARKED.sub(lambda match: shown(match[0]), marked)


class Names:
    """The names of attributes by their ids, which the plans of an application have shown so far."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, ...]] = {}

    def learn(
        self,
        listed: str,
        size: int | None,
        schema: str = "",
        *,
        is_relation: bool = False,
        has_gaps: bool | None = True,
    ) -> bool:
        """Take in a list of attributes (``[a#1, b#2L]``) of a stated size, and return whether it was understood.

        :param schema: the columns that a source states that it reads (``struct<a:int,b:string>``)
        :param is_relation: whether it is certainly a list of attributes, all of them new
        :param has_gaps: whether their ids may not count up, None where that is possible and rare
        """
        found = self._cut(listed, size, schema, is_relation=is_relation, has_gaps=has_gaps)
        for attribute in found or ():
            self.add(attribute)
        return found is not None

    def add(self, attribute: Attribute) -> None:
        """Take in one attribute."""
        names = self._names.get(attribute.id, ())
        if attribute.name not in names and not any(name.lower() == attribute.name.lower() for name in names):
            self._names.pop(attribute.id, None)
            self._names[attribute.id] = tuple(sorted((*names, attribute.name), key=len, reverse=True))
            if len(self._names) > _REMEMBERED_MAX:
                del self._names[next(iter(self._names))]

    def _cut(
        self, listed: str, size: int | None, schema: str, *, is_relation: bool, has_gaps: bool | None
    ) -> list[Attribute] | None:
        text, is_cut = _MORE.subn("", listed[1:-1])
        ends = list(_END.finditer(text))
        if is_cut:
            size = len(ends)
        if size is not None and len(ends) > size:
            # A name may hold what looks as the end of an attribute.
            spans = [(start, end) for start, end, _ in self._attributes(text)]
            ends = [one for one in ends if not any(start <= one.start() and one.end() < end for start, end in spans)]
        if not (listed.startswith("[") and listed.endswith("]")) or (text and not ends):
            return None
        if size is None:
            ends = self._possible(text, ends) if is_relation else ends
            # The columns that one operator makes are numbered in order, those of a relation without a gap.
            if has_gaps is False or any(int(before[1]) >= int(after[1]) for before, after in pairwise(ends)):
                ends = [] if has_gaps else _consecutive(ends)
                if text and not ends:
                    return None
        if size is None or len(ends) == size:
            starts = [0, *(end.end() + 2 for end in ends[:-1])]
            return [
                Attribute(int(end[1]), text[start : end.start()]) for start, end in zip(starts, ends, strict=bool(ends))
            ]
        if len(ends) < size:
            return None
        ways = _ways(text, ends, size, self._is_attribute)
        if len(ways) > 1 and schema:
            ways = _ways(text, ends, size, lambda one: self._is_attribute(one) and _is_of(schema, one))
        return ways[0] if len(ways) == 1 else None

    def _possible(self, text: str, ends: Iterable[re.Match[str]]) -> list[re.Match[str]]:
        """Return the ends without those of an attribute that is known by another name: these are parts of names."""
        found: list[re.Match[str]] = []
        start = 0
        for end in ends:
            if self._is_attribute(Attribute(int(end[1]), text[start : end.start()])):
                found.append(end)
                start = end.end() + 2
        return found

    def _is_attribute(self, one: Attribute) -> bool:
        names = self._names.get(one.id)
        return names is None or any(name.lower() == one.name.lower() for name in names)

    def learn_from(self, text: str, columns: Collection[str]) -> None:
        """Take in the unknown attributes of a marked text, as far as they have the names of known columns."""
        for match in UNKNOWN.finditer(text):
            before = text[: match.start()]
            fitting = [name for name in columns if before.lower().endswith(name.lower()) and name]
            if fitting:
                name = max(fitting, key=len)
                self.add(Attribute(int(match[1]), before[-len(name) :]))

    def marked(self, text: str, fields: Mapping[int, Collection[str]] = {}) -> str:
        """Return a text with all known names in private characters; of two that overlap the one that ends last.

        :param fields: by the id of a subquery the names of the fields of its value
        """
        if "#" not in text:
            return text
        found: list[tuple[int, int, str]] = list(self._attributes(text))
        if "subquery#" in text and (subqueries := list(_subqueries(text, fields))):
            found = sorted(found + subqueries, key=lambda one: (one[1], -one[0]))
        pieces: list[str] = []
        begin = len(text)
        # A name that holds other names ends behind them.
        for start, end, spelled in reversed(found):
            if end <= begin:
                pieces += (text[end:begin], spelled)
                begin = start
        return "".join((text[:begin], *reversed(pieces)))

    def _attributes(self, text: str) -> Iterator[tuple[int, int, str]]:
        for match in _ID.finditer(text):
            end = match.start()
            for name in self._names.get(int(match[1]), ()):
                start = end - len(name)
                # The analyzer keeps the spelling of a query: `ID#1` is `id#1`.
                is_there = text.startswith(name, start) or text[start:end].lower() == name.lower()
                if start >= 0 and is_there and not (start and _WITHIN_WORD.match(text, start - 1)):
                    yield start, match.end(), hidden(text[start:end]) + match[0]
                    break


def _consecutive(ends: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the ends whose ids count up to that of the last one: others are parts of names.

    There are none if another end has one of these ids.
    """
    found = ends[-1:]
    for end in reversed(ends[:-1]):
        if int(end[1]) == int(found[-1][1]) - 1:
            found.append(end)
    ids = [end[1] for end in ends]
    return [] if any(ids.count(end[1]) > 1 for end in found) else found[::-1]


def _subqueries(text: str, fields: Mapping[int, Collection[str]]) -> Iterator[tuple[int, int, str]]:
    for match in _SUBQUERY.finditer(text):
        identity, end, name = int(match["id"]), match.end(), ""
        if match["has_field"]:
            # Spark merges several subqueries into one, whose value is a struct.
            fitting = [each for each in fields.get(identity, ()) if text.startswith(each, end)]
            name = max(fitting, key=len, default="")
            end += len(name)
        spelled = hidden(name)
        if match["is_value"]:
            spelled = spelled.replace(_BEGIN, SUBQUERY, 1)
        yield match.start(), end, f"{spelled}#{identity}"


def _is_of(schema: str, one: Attribute) -> bool:
    return f"<{one.name}:" in schema or f",{one.name}:" in schema


def _ways(
    text: str, ends: Iterable[re.Match[str]], size: int, is_attribute: Callable[[Attribute], bool]
) -> list[list[Attribute]]:
    """Return up to two ways to cut a text into so many attributes."""
    # Cuts are kept by where the next attribute begins, and how many are before it.
    found: dict[tuple[int, int], list[list[Attribute]]] = {(0, 0): [[]]}
    for end in ends:
        for (start, count), ways in list(found.items()):
            one = Attribute(int(end[1]), text[start : end.start()])
            if start <= end.start() and count < size and is_attribute(one):
                there = found.setdefault((end.end() + 2, count + 1), [])
                there += [[*path, one] for path in ways][: 2 - len(there)]
    return found.get((len(text) + 2, size), [])
