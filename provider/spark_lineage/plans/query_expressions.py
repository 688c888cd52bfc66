"""Reads the expressions of a SQL query: which columns their values are made from, and which decide on the values.

A function makes its value from all of its arguments. Import this module only for a query: it needs ``sqlglot``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from sqlglot import exp

from spark_lineage.merge.lineage import Transformation
from spark_lineage.plans.expressions import AGGREGATION, CONDITIONAL, TRANSFORMATION, WINDOW
from spark_lineage.plans.query_dialects import listed
from spark_lineage.plans.query_names import Level, Names, Relation
from spark_lineage.plans.scope import NOTHING, Sources, through

SORTED = Transformation("INDIRECT", "SORT")
_MASKED = Transformation("DIRECT", "TRANSFORMATION", masking=True)
_COUNTED = Transformation("DIRECT", "AGGREGATION", masking=True)
_MASKING = re.compile(r"(?i)crc32|hash|hashbytes|mask|md5(?:_digest)?|(?:ora|standard)_hash|sha\d*|xxhash64")
_WITH_UNITS = re.compile(r"(?i).*(?:date|time|trunc|last_?day|extract)")
_UNITS = listed("""
    CENTURY DAY DAYOFWEEK DAYOFYEAR DAYS DD DECADE DOW DOY DW DY EPOCH HH HOUR HOURS ISODOW ISOWEEK ISOYEAR ISO_WEEK
    JULIAN MI MICROSECOND MICROSECONDS MILLENNIUM MILLISECOND MILLISECONDS MINUTE MINUTES MM MONTH MONTHS MS
    NANOSECOND NS QQ QUARTER SECOND SECONDS SS TIMEZONE TIMEZONE_HOUR TIMEZONE_MINUTE TZ WEEK WEEKDAY WEEKS WK WW YEAR
    YEARS YY YYYY DAY_HOUR DAY_MICROSECOND DAY_MINUTE DAY_SECOND HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND
    MINUTE_MICROSECOND MINUTE_SECOND SECOND_MICROSECOND YEAR_MONTH
    """)
# These functions of a window pass on values of other rows.
_OFFSETS = (exp.Lag, exp.Lead, exp.NthValue)


class Expressions(Names, ABC):
    """Reads expressions in one dialect."""

    @abstractmethod
    def query(self, node: exp.Expr, level: Level) -> Relation:
        """Return the columns of a query inside of another."""

    def made(self, node: exp.Expr, level: Level) -> Sources:
        """Return the columns that an expression is made from, and those that decide on its value."""
        rule = next((rule for kinds, rule in _RULES if isinstance(node, kinds)), None)
        return rule(self, node, level) if rule else self.made_of_all(node.iter_expressions(), level, TRANSFORMATION)

    def made_of_all(self, nodes: Iterable[exp.Expr], level: Level, how: Transformation) -> Sources:
        """Return what several expressions are made from, in one way."""
        return through((self.made(node, level) for node in nodes), how)


def _strange(reader: Expressions, node: exp.Expr, _level: Level) -> Sources:
    return reader.count(node.key.upper())


def _filtered(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    return reader.made(node.this, level) | through([reader.made(node.expression.this, level)], CONDITIONAL)


def _word(reader: Expressions, node: exp.Expr, _level: Level) -> Sources:
    return NOTHING if node.name.upper() in _UNITS else reader.count(f"the word {node.name}")


def _choice(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    values, conditions = _branches(node)
    decided = (through([reader.made(condition, level)], CONDITIONAL) for condition in conditions)
    return reader.made_of_all(values, level, TRANSFORMATION).union(*decided)


def _function(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    name = node.name if isinstance(node, exp.Anonymous) else node.key
    children = list(node.iter_expressions())
    if _WITH_UNITS.match(name) and any(map(_is_unit, children)):
        return reader.count(f"the unit of {name.upper()}")
    if isinstance(node, exp.Count):
        return reader.made_of_all((child for child in children if not _is_star(child)), level, _COUNTED)
    is_masking = _MASKING.fullmatch(name)
    is_aggregate = isinstance(node, exp.AggFunc) and not isinstance(node, _OFFSETS)
    how = AGGREGATION if is_aggregate else _MASKED if is_masking else TRANSFORMATION
    return reader.made_of_all(children, level, how)


def _window(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    made = NOTHING if isinstance(node.this, exp.Identifier) else reader.made(node.this, level)
    keys = [*(node.args.get("partition_by") or ()), *_present(node, "order")]
    # sqlglot takes DENSE_RANK in Oracle's `KEEP (DENSE_RANK FIRST ORDER BY …)` for the name of a window.
    if (alias := node.args.get("alias")) and node.args.get("over") != "KEEP":
        name = reader.dialect.key(reader.dialect.name(alias))
        definition = next((each.windows[name] for each in level.outwards() if name in each.windows), None)
        if definition is None or definition is node:
            return reader.count("a window without a definition")
        made |= _window(reader, definition, level)
    ordered = (each for key in keys for each in (key.expressions if isinstance(key, exp.Order) else [key]))
    return made | reader.made_of_all(ordered, level, WINDOW)


def _value_in_order(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    """``string_agg(value, ',' ORDER BY key)``: the key makes no value."""
    made = reader.made(node.this, level) if node.args.get("this") else NOTHING
    return made | reader.made_of_all(node.expressions, level, SORTED)


def _within_group(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    """``LISTAGG(value) WITHIN GROUP (ORDER BY key)``; ``PERCENTILE_CONT(0.5)`` takes its value from the order."""
    made, order = reader.made(node.this, level), node.expression.expressions
    return made | reader.made_of_all(order, level, SORTED if made else AGGREGATION)


def _member(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    """``schema.function(value)`` or ``(record).field``."""
    owner, member = node.this, node.expression
    if not isinstance(member, exp.Func):
        return through([reader.made(owner, level)], TRANSFORMATION)
    names = list(owner.find_all(exp.Identifier)) if isinstance(owner, exp.Dot | exp.Identifier) else []
    if names:
        first = reader.dialect.key(reader.dialect.name(names[0]))
        is_column = any(source[-1:] == (first,) for each in level.outwards() for source, _ in each.sources)
        made = reader.count("a method of a column") if is_column else NOTHING
    else:
        made = through([reader.made(owner, level)], TRANSFORMATION)
    return made | reader.made(member, level)


def _exists(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    """Return what decides whether a subquery has rows; what it gives out does not."""
    query = node.this
    if isinstance(query, exp.Select) and not any(query.args.get(key) for key in ("having", "distinct", "qualify")):
        query = query.copy()
        query.set("expressions", [exp.Literal.number(1)])
    return reader.query(query, level).deciding


def _value(reader: Expressions, node: exp.Expr, level: Level) -> Sources:
    """Return what a subquery's columns are made from; what decides on its rows decides on its value."""
    relation = reader.query(node, level)
    if relation.rest:
        reader.count("a star in a subquery")
    return relation.sources | relation.deciding


def _branches(node: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return the values that an expression chooses from, and what it chooses by."""
    match node:
        case exp.Case():
            ifs = node.args["ifs"]
            values = [*(branch.args["true"] for branch in ifs), *_present(node, "default")]
            return values, [*_present(node, "this"), *(branch.this for branch in ifs)]
        case exp.DecodeCase():
            subject, *pairs = node.expressions
            # An argument alone behind the pairs is for all other values.
            rest = pairs[-1:] if len(pairs) % 2 else []
            return [*pairs[1::2], *rest], [subject, *pairs[: len(pairs) - len(rest) : 2]]
        case exp.Coalesce():
            return [node.this, *node.expressions], [node.this, *node.expressions]
    return _present(node, "true", "false"), _present(node, "this")


def _present(node: exp.Expr, *keys: str) -> list[exp.Expr]:
    return [node.args[key] for key in keys if node.args.get(key) is not None]


def _is_unit(node: exp.Expr) -> bool:
    is_bare = isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)
    return is_bare and not node.this.args.get("quoted") and node.name.upper() in _UNITS


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


_Rule = Callable[[Expressions, exp.Expr, Level], Sources]
# The first that fits is taken: a class may be of several kinds.
_RULES: tuple[tuple[tuple[type, ...], _Rule], ...] = (
    ((exp.Column,), Expressions.column),
    ((exp.DataType, exp.Identifier, exp.Literal, exp.Parameter, exp.Placeholder), lambda *_: NOTHING),
    # Names in them may be those of elements, of parameters or of new columns.
    ((exp.JSONTable, exp.Lambda, exp.MatchRecognize, exp.Pivot, exp.XMLElement, exp.XMLTable), _strange),
    ((exp.Star, exp.Table), _strange),
    ((exp.Alias, exp.Collate, exp.Ordered, exp.Paren), lambda reader, node, level: reader.made(node.this, level)),
    # `name => value`
    (
        (exp.Kwarg, exp.PropertyEQ),
        lambda reader, node, level: reader.made_of_all([node.expression], level, TRANSFORMATION),
    ),
    ((exp.Exists,), _exists),
    ((exp.Query,), _value),
    ((exp.Filter,), _filtered),
    ((exp.Window,), _window),
    ((exp.Order,), _value_in_order),
    ((exp.WithinGroup,), _within_group),
    ((exp.Dot,), _member),
    ((exp.Case, exp.Coalesce, exp.DecodeCase, exp.If, exp.Nvl2), _choice),
    ((exp.Func,), _function),
    ((exp.Var,), _word),
)
