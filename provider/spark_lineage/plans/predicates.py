"""Parses the expressions that scans print of what they hand to their source, which have names in place of ids.

There are three spellings. Predicates of v2 (``V2ExpressionSQLBuilder``) quote a name that is no word, and literals:
``SUM(`Amount, EUR`)``, ``DEPOT = 'it''s'``. Filters of v1 (``org.apache.spark.sql.sources``) do not:
``EqualTo(Amount, EUR,1)``; nor do those of Iceberg (``Spark3Util.describe``): ``Amount, EUR = 1, kind = 'it's'``.
A text without a certain reading raises ``UnreadableError``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from spark_lineage.plans.names import hidden

_PART = r"(?:`(?:[^`]|``)+`|[A-Za-z0-9_]+)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_FIRST_PART = re.compile(r"`((?:[^`]|``)+)`|([A-Za-z0-9_]+)")


class UnreadableError(ValueError):
    """An expression has no certain reading."""


def first_part(name: str) -> str:
    """Return the column that a quoted name with its fields begins with: ``a b`` of ``` `a b`.c```."""
    match = _FIRST_PART.match(name)
    if match is None:
        raise UnreadableError(name)
    return (match[1] or match[2]).replace("``", "`")


# These are for filters of v1.
_CHILDREN = {"And": 2, "Or": 2, "Not": 1}
_WITHOUT_VALUE, _CONSTANT = frozenset({"IsNull", "IsNotNull"}), frozenset({"AlwaysTrue", "AlwaysFalse"})
_LIST_OF_VALUES = "In"
_KINDS = "|".join((
    *_CHILDREN, *_WITHOUT_VALUE, *_CONSTANT, _LIST_OF_VALUES, "EqualTo", "EqualNullSafe", "GreaterThan",
    "GreaterThanOrEqual", "LessThan", "LessThanOrEqual", "StringContains", "StringEndsWith", "StringStartsWith",
))  # fmt: skip
_FILTER = re.compile(rf"(?P<kind>{_KINDS})\((?P<given>.*)\)", re.DOTALL)
_NEXT_FILTER = re.compile(rf", (?=\*?(?:{_KINDS})\()")
_NEXT_CHILD = re.compile(rf",(?=(?:{_KINDS})\()")
_IS_NOT_NULL = re.compile(r"\*?IsNotNull\((?P<name>.*)\)", re.DOTALL)
_VALUES = re.compile(r", \[.*\]", re.DOTALL)


def filters_of(text: str) -> list[str]:
    """Return the filters of a list of v1: ``[IsNotNull(a b), *EqualTo(a b,1, 2)]``."""
    text = text.strip()
    return _NEXT_FILTER.split(text[1:-1]) if text.startswith("[") and text != "[]" else []


def not_null(filters: Iterable[str]) -> set[str]:
    """Return the columns that filters want not to be null, which Spark adds for those that a comparison needs."""
    found = (match["name"] for each in filters if (match := _IS_NOT_NULL.fullmatch(each)))
    return {name for name in found if not _NEXT_FILTER.search(name)}


def columns_of_filter(text: str, known: Collection[str]) -> set[str]:
    """Return the columns of a filter of v1: ``And(EqualTo(a,1),IsNotNull(b))``.

    A name is quoted, one of the columns ``known``, or a word whose value holds no comma.
    """
    match = _FILTER.fullmatch(text)
    kind, given = (match["kind"], match["given"]) if match else ("", "")
    if not kind or _NEXT_FILTER.search(given):
        raise UnreadableError(text)
    if kind in _CONSTANT:
        return set()
    if kind in _CHILDREN:
        return _columns_of_children(given, _CHILDREN[kind], known)
    if kind in _WITHOUT_VALUE:
        return {first_part(given) if _NAME.fullmatch(given) else given}
    names = {name for name in known if given.startswith(f"{name},")}
    word = _NAME.match(given)
    value = given[word.end() :] if word else ""
    if not names and word and (_VALUES.fullmatch(value) if kind == _LIST_OF_VALUES else value.rfind(",") == 0):
        names = {first_part(word[0])}
    if len(names) != 1 or (kind != _LIST_OF_VALUES and value.startswith(", ") and names.isdisjoint(known)):
        raise UnreadableError(text)
    return names


def _columns_of_children(text: str, count: int, known: Collection[str]) -> set[str]:
    if count == 1:
        return columns_of_filter(text, known)
    readings: set[frozenset[str]] = set()
    for comma in _NEXT_CHILD.finditer(text):
        with suppress(UnreadableError):
            children = (text[: comma.start()], text[comma.end() :])
            readings.add(frozenset().union(*(columns_of_filter(child, known) for child in children)))
    if len(readings) != 1:
        raise UnreadableError(text)
    return set(readings.pop())


# These are for predicates of v2.
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w`.]))|(?P<text>'(?:[^']|'')*')"
    rf"|(?P<function>[A-Za-z_]\w*)\(|(?P<name>{_PART}(?:\.{_PART})*)|(?P<symbol><=>|<>|<=|>=|!=|\|\||[-+*/%=<>&|^~(),]))"
)
# Words before an operand: `COUNT(DISTINCT a)`, `NOT (a)`, `TRIM(BOTH 'x' FROM a)`.
_BEFORE = frozenset({"CASE", "NOT", "DISTINCT", "DATE", "TIMESTAMP", "INTERVAL", "BOTH", "LEADING", "TRAILING"})
_CONSTANTS = frozenset({"NULL", "TRUE", "FALSE"})
# Words between two operands, and behind one.
_BETWEEN = frozenset({"AND", "OR", "WHEN", "THEN", "ELSE", "IN", "LIKE", "ESCAPE", "FROM"})
_BEHIND = frozenset({"END", "IS", "NOT", "NULL", "TRUE", "FALSE", "ASC", "DESC", "NULLS", "FIRST", "LAST"})
_FIELD_OF = "EXTRACT"


class V2Expressions:
    """The expressions of a list of v2, as marked text of catalyst: its columns have ids, and literals no text.

    ``columns`` are the columns by these ids, ``texts`` the expressions in their order: ``[SUM(a * 2), COUNT(*)]`` is
    ``sum(a#0 * 2)`` and ``count(*)``. Operands and operators take turns, so that a column may be called
    ``END`` or ``year``.
    """

    def __init__(self, text: str) -> None:
        if not (text.startswith("[") and text.endswith("]")):
            raise UnreadableError(text)
        self._tokens = list(_tokens(text[1:-1]))
        self._position = 0
        self._open: list[str] = []
        self._printed: list[str] = []
        self.columns: list[str] = []
        self.texts: list[str] = []
        while self._tokens:
            self._read_operand()
            while self._position < len(self._tokens) and self._read_operator():
                self._read_operand()
            if self._open:
                raise UnreadableError(text)
            self.texts.append(" ".join(self._printed))
            self._printed = []
            if self._position == len(self._tokens):
                break
            # The comma that parts it from the next one.
            self._position += 1

    def _next(self, ahead: int = 0) -> tuple[str, str]:
        place = self._position + ahead
        return self._tokens[place] if place < len(self._tokens) else ("", "")

    def _take(self) -> tuple[str, str]:
        token = self._next()
        self._position += 1
        return token

    def _print(self, text: str) -> None:
        self._printed.append(text)

    def _read_operand(self) -> None:
        """Read what stands before an operator: signs, brackets that open, and a literal or a column."""
        kind, text = self._take()
        while self._begins(kind, text):
            if kind == "function" and self._next() == ("symbol", ")"):
                return
            kind, text = self._take()
        word = text.upper()
        if kind in {"number", "text"} or (kind, text) == ("symbol", "*") or (kind == "name" and word in _CONSTANTS):
            self._print("literal" if kind == "text" else text)
        elif kind == "name" and self._open[-1:] == [_FIELD_OF] and self._next()[1].upper() == "FROM":
            self._print("literal")
        elif kind == "name":
            name = first_part(text)
            self._print(f"{hidden(name)}#{len(self.columns)}")
            self.columns.append(name)
        else:
            raise UnreadableError(text)

    def _begins(self, kind: str, text: str) -> bool:
        """Whether an operand begins here that goes on with the next token."""
        word = text.upper()
        if kind == "function" or (kind, text) == ("symbol", "("):
            self._open.append(word.removesuffix("("))
            self._print(f"{text.lower().removesuffix('(')}(")
        elif kind == "name" and word in _BEFORE and self._is_operand(*self._next()):
            self._print(word)
            if word == "CASE":
                self._open.append(word)
                self._position += self._next()[1].upper() == "WHEN"
                self._print("WHEN")
        elif kind == "symbol" and text in {"-", "+", "~"}:
            self._print(text)
        else:
            return False
        return True

    @staticmethod
    def _is_operand(kind: str, text: str) -> bool:
        if kind == "name":
            return text.upper() == "WHEN" or text.upper() not in _BETWEEN | _BEHIND
        return kind in {"number", "text", "function"} or (kind, text) == ("symbol", "(")

    def _read_operator(self) -> bool:
        """Read what stands behind an operand; whether another one follows."""
        while self._position < len(self._tokens):
            kind, text = self._next()
            word = text.upper()
            if (kind, text) == ("symbol", ",") and not self._open:
                return False
            self._position += 1
            if (kind, text) == ("symbol", ")") and self._open[-1:] not in ([], ["CASE"]):
                self._open.pop()
                self._print(")")
            elif kind == "name" and word == "AS" and self._open[-1:] == ["CAST"]:
                self._skip_type()
            elif kind == "name" and word == "END" and self._open[-1:] == ["CASE"]:
                self._open.pop()
                self._print(word)
            elif kind == "name" and word in _BEHIND - {"END"}:
                self._print(word)
            elif (kind == "name" and word in _BETWEEN) or (kind == "symbol" and text not in {"(", ")"}):
                self._print(word)
                return True
            else:
                raise UnreadableError(text)
        return False

    def _skip_type(self) -> None:
        depth = 0
        while (token := self._next()) != ("", ""):
            if token == ("symbol", ")") and not depth:
                return
            depth += (token[0] == "function" or token == ("symbol", "(")) - (token == ("symbol", ")"))
            self._position += 1


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise UnreadableError(text)
        yield match.lastgroup, match[match.lastgroup]
        position = match.end()


# These are for filters of Iceberg.
_WITHOUT_LITERAL = re.compile(r" IS (?:NOT )?NULL")
_COMPARED = re.compile(r" (?:<=|>=|!=|<|>|=|(?:NOT )?LIKE) ")
_LIST = re.compile(r" (?:NOT )?IN \(")
_OF_NAN = re.compile(r"(?:is|not)_nan\(")
_FIELD = re.compile(r"(?:\.\w+)+")
_BARE_LITERAL = re.compile(r"[^\s,()']+")
_TRUTHS = ("true", "false")
_STEPS_MAX = 10_000


def columns_of_iceberg(text: str, known: Collection[str]) -> set[str]:
    """Return the columns of Iceberg's filters: ``day IS NOT NULL, (id < 3 OR kind IN ('a', 'b'))``.

    ``known`` are the columns that the scan gives out, which has all those of its filters. Literals that hold a quote
    are read where no other reading is.
    """
    for has_quotes in (False, True):
        readings = {
            frozenset(found)
            for found, end in _Filters(text, known, has_quotes=has_quotes).several(0)
            if end == len(text)
        }
        if len(readings) == 1:
            return set(readings.pop())
    raise UnreadableError(text)


class _Filters:
    """A descent into a text with all readings that it allows: each gives the columns that it names, and its end."""

    def __init__(self, text: str, known: Collection[str], *, has_quotes: bool) -> None:
        self._text = text
        self._known = frozenset(known)
        self._has_quotes = has_quotes
        self._steps = 0

    def several(self, start: int) -> Iterator[tuple[set[str], int]]:
        for found, end in self._filter(start):
            yield found, end
            if self._text.startswith(", ", end):
                yield from ((found | more, last) for more, last in self.several(end + 2))

    def _filter(self, start: int) -> Iterator[tuple[set[str], int]]:
        self._steps += 1
        if self._steps > _STEPS_MAX:
            raise UnreadableError(self._text)
        text = self._text
        yield from ((set(), start + len(truth)) for truth in _TRUTHS if text.startswith(truth, start))
        if text.startswith("NOT (", start):
            yield from self._closed(self._filter(start + len("NOT (")))
        if text.startswith("(", start):
            yield from self._closed(self._pair(start + 1))
        if of_nan := _OF_NAN.match(text, start):
            yield from self._closed(self._name(of_nan.end()))
        for names, end in self._name(start):
            if alone := _WITHOUT_LITERAL.match(text, end):
                yield names, alone.end()
            if compared := _COMPARED.match(text, end):
                yield from ((names, last) for last in self._literals(compared.end()))
            if several := _LIST.match(text, end):
                yield from self._closed((names, last) for last in self._list(several.end()))

    def _pair(self, start: int) -> Iterator[tuple[set[str], int]]:
        for left, end in self._filter(start):
            for word in (" AND ", " OR "):
                if self._text.startswith(word, end):
                    yield from ((left | right, last) for right, last in self._filter(end + len(word)))

    def _closed(self, readings: Iterator[tuple[set[str], int]]) -> Iterator[tuple[set[str], int]]:
        return ((found, end + 1) for found, end in readings if self._text.startswith(")", end))

    def _name(self, start: int) -> Iterator[tuple[set[str], int]]:
        """Return the columns that may stand here, each alone or with a field of it."""
        for name in self._known:
            if self._text.startswith(name, start):
                end = start + len(name)
                yield {name}, end
                if field := _FIELD.match(self._text, end):
                    yield {name}, field.end()

    def _literals(self, start: int) -> Iterator[int]:
        """Return where a literal may end: at its first quote, or at any where it may hold quotes."""
        if bare := _BARE_LITERAL.match(self._text, start):
            yield bare.end()
        end = self._text.find("'", start + 1) if self._text.startswith("'", start) else -1
        while end >= 0:
            yield end + 1
            end = self._text.find("'", end + 1) if self._has_quotes else -1

    def _list(self, start: int) -> Iterator[int]:
        for end in self._literals(start):
            yield end
            if self._text.startswith(", ", end):
                yield from self._list(end + 2)
