"""Reads the expressions of a SQL query: which columns their values are made from, and which decide on the values.

A function makes its value from all of its arguments. Import this module only for a query: it needs ``sqlglot``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable

from sqlglot import exp

from spark_lineage.merge.lineage import Transformation
from spark_lineage.plans.query_names import Level, Names, Relation
from spark_lineage.plans.scope import AGGREGATION, CONDITIONAL, NOTHING, TRANSFORMATION, WINDOW, Sources, through

SORTED = Transformation("INDIRECT", "SORT")
_MASKED = Transformation("DIRECT", "TRANSFORMATION", masking=True)
_COUNTED = Transformation("DIRECT", "AGGREGATION", masking=True)
_MASKING = re.compile(r"(?i)crc32|hash|hashbytes|mask|md5(?:_digest)?|(?:ora|standard)_hash|sha\d*|xxhash64")
_WITH_UNITS = re.compile(r"(?i).*(?:date|time|trunc|last_?day|extract)")
_UNITS = frozenset(
    "CENTURY D DAY DAYOFWEEK DAYOFYEAR DAYS DD DECADE DOW DOY DW DY EPOCH HH HOUR HOURS ISODOW ISOWEEK ISOYEAR ISO_WEEK"
    " JULIAN M MI MICROSECOND MICROSECONDS MILLENNIUM MILLISECOND MILLISECONDS MINUTE MINUTES MM MONTH MONTHS MS N"
    " NANOSECOND NS Q QQ QUARTER S SECOND SECONDS SS TIMEZONE TIMEZONE_HOUR TIMEZONE_MINUTE TZ W WEEK WEEKDAY WEEKS WK"
    " WW Y YEAR YEARS YY YYYY DAY_HOUR DAY_MICROSECOND DAY_MINUTE DAY_SECOND HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND"
    " MINUTE_MICROSECOND MINUTE_SECOND SECOND_MICROSECOND YEAR_MONTH".split()
)
# Of the functions of a window these pass values of other rows on.
_OFFSETS = (exp.Lag, exp.Lead, exp.NthValue)
# They hold no column.
_SIMPLE = (exp.DataType, exp.Identifier, exp.Literal, exp.Parameter, exp.Placeholder, exp.SessionParameter)
# Names in them may be those of elements, of parameters or of new columns.
_STRANGE = (exp.JSONTable, exp.Lambda, exp.MatchRecognize, exp.Pivot, exp.XMLElement, exp.XMLTable)


class Expressions(Names, ABC):
    """Reads expressions in one dialect."""

    @abstractmethod
    def query(self, node: exp.Expression, level: Level) -> Relation:
        """Return the columns of a query inside of another."""

    def made(self, node: exp.Expression, level: Level) -> Sources:
        """Return the columns that an expression is made from, and those that decide on its value."""
        match node:
            case exp.Column():
                return self.column(node, level)
            case exp.Paren() | exp.Alias() | exp.Ordered() | exp.Collate():
                return self.made(node.this, level)
            case exp.Kwarg() | exp.PropertyEQ():
                return through([self.made(node.expression, level)], TRANSFORMATION)
            case exp.Exists():
                return self._exists(node.this, level)
            case exp.Query():
                return self._value(node, level)
            case exp.Filter():
                return self.made(node.this, level) | self._condition(node.expression.this, level)
            case exp.Window():
                return self._window(node, level)
            case exp.Order():
                return self._value_in_order(node, level)
            case exp.WithinGroup():
                return self._within_group(node, level)
            case exp.Dot():
                return self._member(node, level)
            case exp.Func() | exp.Case():
                return self._function(node, level)
            case exp.Var():
                return NOTHING if node.name.upper() in _UNITS else self.count(f"the word {node.name}")
            case exp.Star() | exp.Table():
                return self.count("a star in an expression")
        if isinstance(node, _SIMPLE):
            return NOTHING
        if isinstance(node, _STRANGE):
            return self.count(node.key.upper())
        return self._all(node.iter_expressions(), level, TRANSFORMATION)

    def _all(self, nodes: Iterable[exp.Expression], level: Level, how: Transformation) -> Sources:
        return through((self.made(node, level) for node in nodes), how)

    def _condition(self, node: exp.Expression, level: Level) -> Sources:
        return through([self.made(node, level)], CONDITIONAL)

    def _function(self, node: exp.Expression, level: Level) -> Sources:
        match node:
            case exp.Case():
                values, conditions = self._branches(node)
            case exp.If() | exp.Nvl2():
                values, conditions = _present(node, "true", "false"), _present(node, "this")
            case exp.DecodeCase():
                subject, *pairs = node.expressions
                # What comes alone behind the pairs is for all other values.
                values = [*pairs[1::2], *(pairs[-1:] if len(pairs) % 2 else [])]
                conditions = [subject, *pairs[: len(pairs) // 2 * 2 : 2]]
            case exp.Coalesce():
                values = conditions = [node.this, *node.expressions]
            case _:
                return self._plain_function(node, level)
        decided = (self._condition(condition, level) for condition in conditions)
        return self._all(values, level, TRANSFORMATION).union(*decided)

    @staticmethod
    def _branches(node: exp.Expression) -> tuple[list[exp.Expression], list[exp.Expression]]:
        branches = node.args["ifs"]
        values = [*(branch.args["true"] for branch in branches), *_present(node, "default")]
        return values, [*_present(node, "this"), *(branch.this for branch in branches)]

    def _plain_function(self, node: exp.Expression, level: Level) -> Sources:
        name = node.name if isinstance(node, exp.Anonymous) else node.key
        children = list(node.iter_expressions())
        if isinstance(node, _STRANGE):
            return self.count(node.key.upper())
        if _WITH_UNITS.match(name) and any(map(_is_unit, children)):
            return self.count(f"the unit of {name.upper()}")
        if isinstance(node, exp.Count):
            return self._all((child for child in children if not _is_star(child)), level, _COUNTED)
        is_masking = _MASKING.fullmatch(name)
        is_aggregate = isinstance(node, exp.AggFunc) and not isinstance(node, _OFFSETS)
        how = AGGREGATION if is_aggregate else _MASKED if is_masking else TRANSFORMATION
        return self._all(children, level, how)

    def _window(self, node: exp.Expression, level: Level) -> Sources:
        made = NOTHING if isinstance(node.this, exp.Identifier) else self.made(node.this, level)
        keys = [*(node.args.get("partition_by") or ()), *_present(node, "order")]
        if alias := node.args.get("alias"):
            name = self.dialect.key(self.dialect.name(alias))
            definition = next((each.windows[name] for each in level.outwards() if name in each.windows), None)
            if definition is None or definition is node:
                return self.count("a window without a definition")
            made |= self._window(definition, level)
        ordered = (each for key in keys for each in (key.expressions if isinstance(key, exp.Order) else [key]))
        return made | self._all(ordered, level, WINDOW)

    def _value_in_order(self, node: exp.Expression, level: Level) -> Sources:
        """``string_agg(value, ',' ORDER BY key)``: the key makes no value."""
        made = self.made(node.this, level) if node.args.get("this") else NOTHING
        return made | self._all(node.expressions, level, SORTED)

    def _within_group(self, node: exp.Expression, level: Level) -> Sources:
        """``LISTAGG(value) WITHIN GROUP (ORDER BY key)``; ``PERCENTILE_CONT(0.5)`` takes its value from the order."""
        made, order = self.made(node.this, level), node.expression.expressions
        return made | self._all(order, level, SORTED if made else AGGREGATION)

    def _member(self, node: exp.Expression, level: Level) -> Sources:
        """``schema.function(value)`` or ``(record).field``."""
        owner, member = node.this, node.expression
        if not isinstance(member, exp.Func):
            return through([self.made(owner, level)], TRANSFORMATION)
        names = list(owner.find_all(exp.Identifier)) if isinstance(owner, exp.Dot | exp.Identifier) else []
        if names:
            first = self.dialect.key(self.dialect.name(names[0]))
            is_column = any(source[-1:] == (first,) for each in level.outwards() for source, _ in each.sources)
            made = self.count("a method of a column") if is_column else NOTHING
        else:
            made = through([self.made(owner, level)], TRANSFORMATION)
        return made | self.made(member, level)

    def _exists(self, node: exp.Expression, level: Level) -> Sources:
        """Return what decides whether a subquery has rows; what it gives out does not."""
        if isinstance(node, exp.Select) and not any(node.args.get(key) for key in ("having", "distinct", "qualify")):
            node = node.copy()
            node.set("expressions", [exp.Literal.number(1)])
        relation = self.query(node, level)
        return relation.deciding

    def _value(self, node: exp.Expression, level: Level) -> Sources:
        """Return what a subquery's columns are made from; what decides on its rows decides on its value."""
        relation = self.query(node, level)
        if relation.rest:
            self.count("a star in a subquery")
        return relation.sources | relation.deciding


def _present(node: exp.Expression, *keys: str) -> list[exp.Expression]:
    return [node.args[key] for key in keys if node.args.get(key) is not None]


def _is_unit(node: exp.Expression) -> bool:
    is_bare = isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)
    return is_bare and not node.this.args.get("quoted") and node.name.upper() in _UNITS


def _is_star(node: exp.Expression) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
