"""Reads the expressions of a plan's marked text: which attributes they use, and how.

Literals stand unquoted, and may hold brackets and key words. So each bracket and key word is first taken as a part of
the expression, and as text of a literal where the whole does not work out otherwise: an automaton with a stack, that
goes back. No literal holds an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.plans.names import ATTRIBUTE_NAME, NAME

TRANSFORMATION = Transformation("DIRECT", "TRANSFORMATION")
AGGREGATION = Transformation("DIRECT", "AGGREGATION")
CONDITIONAL = Transformation("INDIRECT", "CONDITIONAL")
WINDOW = Transformation("INDIRECT", "WINDOW")
GROUPED = Transformation("INDIRECT", "GROUP_BY")
_MASKED = Transformation("DIRECT", "TRANSFORMATION", masking=True)

# These functions hide their argument, as the listener has it (``MaskingExpressionDependencyVisitor``).
_MASKING = frozenset({"crc32", "hash", "hive-hash", "mask", "md5", "sha", "sha1", "sha2", "xxhash64", "count"})
# The conditions of `if (…) … else …`, of `CASE WHEN … THEN …`, and of an aggregate: `FILTER (WHERE …)`.
_IF, _WHEN = "if", "WHEN"
_CONDITIONS = frozenset({_IF, _WHEN, "FILTER"})
# The value of an `if`, which ends with `else`.
_VALUE = "then"
# Their arguments are what their window is ordered by.
_ORDERED_BY = frozenset({"windowspecdefinition", "rank", "dense_rank", "percent_rank"})
_COALESCE = "coalesce"
# These words may follow in a phase of a CASE.
_NEXT = {_WHEN: ("THEN",), "THEN": (_WHEN, "ELSE", "END"), "ELSE": ("END",), _VALUE: ("else",)}
# A struct that is null stays null, where it is made anew field by field.
_NULL_STAYS = re.compile(r"\bif \(isnull\([^()]*\)\) null else ")
_WHOLE = re.compile(rf"(?:\((?=.*\)))?{ATTRIBUTE_NAME}#(?P<id>\d+)L?\)?")
_TOKEN = re.compile(
    rf"{NAME}#(?P<id>\d+)L?|(?P<opening>\bif \(|\bFILTER \((?=WHERE )|[\w$-]*\()|(?P<closing>\))|(?P<comma>, )"
    r"|(?P<case>\bCASE WHEN )|(?P<word> (?:WHEN|THEN|ELSE|else)(?= )| END\b)"
)
# An expression of which more states were tried is read as far as its brackets go.
_STATES_MIN, _STATES_A_TOKEN = 2000, 20

# A stack has the open brackets, innermost first; uses are the attributes, last first, each with its stack.
_Stack = tuple[str, "_Stack"] | None
_Uses = tuple[int, _Stack, "_Uses"] | None


class _State(NamedTuple):
    """Which token is next, what is open and used before it, and whether the last token is text of a literal."""

    place: int
    stack: _Stack
    uses: _Uses
    is_literal: bool


def references(expression: str) -> Iterator[tuple[int, Transformation]]:
    """Return the ids of the attributes that an expression uses, and how.

    Conditions of ``if`` and ``CASE`` are INDIRECT, as are the partitions and orders of a window. ``coalesce`` both
    passes on and decides.
    """
    expression = _NULL_STAYS.sub("", expression).strip()
    if whole := _WHOLE.fullmatch(expression):
        yield int(whole["id"]), IDENTITY
        return
    tokens = list(_TOKEN.finditer(expression))
    is_read, uses = _read(tokens, is_element=True)
    if not is_read:
        is_read, uses = _read(tokens, is_element=False)
    if not is_read:
        uses = _scanned(tokens)
    while uses is not None:
        identity, stack, uses = uses
        enclosing = _enclosing(stack)
        yield identity, _how(enclosing)
        if _COALESCE in enclosing:
            yield identity, CONDITIONAL


def is_expression(text: str) -> bool:
    """Whether a text may be one element of a list: its brackets are balanced, and no comma is outside of them."""
    return _read(list(_TOKEN.finditer(text)), is_element=True)[0]


def _read(tokens: list[re.Match[str]], *, is_element: bool) -> tuple[bool, _Uses]:
    """Return whether there is a reading, and the attributes that the first one uses.

    :param is_element: whether no comma may be outside of all brackets
    """
    states = [_State(0, None, None, is_literal=False)]
    seen: set[tuple[int, _Stack, bool]] = set()
    limit = _STATES_MIN + _STATES_A_TOKEN * len(tokens)
    while states and len(seen) < limit:
        state = states.pop()
        if state.place == len(tokens):
            if state.stack is None:
                return True, state.uses
        elif (key := (state.place, state.stack, state.is_literal)) not in seen:
            seen.add(key)
            # The last is tried first.
            states += _following(tokens, state, is_element=is_element)
    return False, None


def _following(tokens: list[re.Match[str]], state: _State, *, is_element: bool) -> Iterator[_State]:
    """Return what may be behind the next token: first where it is text of a literal, then where it is structure."""
    place, stack, uses, is_literal = state
    token, top = tokens[place], stack[0] if stack else ""
    between = token.string[tokens[place - 1].end() : token.start()] if place else " "
    is_adjacent = not between
    # No attribute or bracket of the expression stands right behind a literal: an operator or a comma is between them.
    is_of_literal = is_literal and not between.strip()
    if token["id"] is not None:
        if not is_of_literal:
            yield _State(place + 1, stack, (int(token["id"]), stack, uses), is_literal=False)
    elif token["comma"]:
        if stack is not None or not is_element:
            yield _State(place + 1, stack, uses, is_literal=False)
    elif token["closing"]:
        if not is_adjacent or is_literal or tokens[place - 1]["comma"] or tokens[place - 1]["opening"]:
            yield _State(place + 1, stack, uses, is_literal=True)
        if stack is not None and top not in _NEXT:
            is_condition = top == _IF
            if not is_condition or token.string.startswith(" ", token.end()):
                yield _State(place + 1, (_VALUE, stack[1]) if is_condition else stack[1], uses, is_literal=False)
    else:
        yield _State(place + 1, stack, uses, is_literal=True)
        if not (is_of_literal and token["opening"]) and (opened := _opened(token, stack, top)):
            yield _State(place + 1, opened[0], uses, is_literal=False)


def _opened(token: re.Match[str], stack: _Stack, top: str) -> tuple[_Stack] | None:
    """Return what is open behind a bracket or a word that is a part of the expression, None where it can be none."""
    if token["opening"]:
        return ((token["opening"].rstrip("( "), stack),)
    if token["case"]:
        return ((_WHEN, stack),)
    word = token["word"].strip()
    if stack is None or word not in _NEXT.get(top, ()):
        return None
    return (stack[1] if word in {"END", "else"} else (word, stack[1]),)


def _scanned(tokens: list[re.Match[str]]) -> _Uses:
    """Return the attributes of what has no reading, with what is open by the brackets alone."""
    stack: _Stack = None
    uses: _Uses = None
    for token in tokens:
        if token["id"] is not None:
            uses = (int(token["id"]), stack, uses)
        elif token["opening"] or token["case"]:
            stack = (token["opening"].rstrip("( ") if token["opening"] else _WHEN, stack)
        elif token["closing"] and stack:
            stack = stack[1]
        elif token["word"] and (opened := _opened(token, stack, stack[0] if stack else "")):
            stack = opened[0]
    return uses


def _enclosing(stack: _Stack) -> set[str]:
    enclosing: set[str] = set()
    while stack is not None:
        name, stack = stack
        enclosing.add(name)
    return enclosing


def _how(enclosing: set[str]) -> Transformation:
    if not _ORDERED_BY.isdisjoint(enclosing):
        return WINDOW
    if not _CONDITIONS.isdisjoint(enclosing):
        return CONDITIONAL
    return TRANSFORMATION if _MASKING.isdisjoint(enclosing) else _MASKED
