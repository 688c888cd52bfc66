"""Reads the clauses of a SQL query: its tables and subqueries, the columns that it gives out, what decides on its rows.

A clause that is not known here is counted. Import this module only for a query: it needs ``sqlglot``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from spark_lineage.merge.execution import unnamed
from spark_lineage.merge.lineage import Transformation
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.expressions import GROUPED, TRANSFORMATION
from spark_lineage.plans.query_dialects import Dialect, listed
from spark_lineage.plans.query_expressions import SORTED, Expressions
from spark_lineage.plans.query_names import PLAIN, Common, Level, Relation, Source
from spark_lineage.plans.scope import NOTHING, Sources, through

_FILTERED = Transformation("INDIRECT", "FILTER")
_JOINED = Transformation("INDIRECT", "JOIN")

# The parts of a query that are read here, or that decide neither on its columns nor on its rows.
_SELECT = listed("""
    connect distinct expressions from_ group having hint joins limit locks offset operation_modifiers options order
    qualify sample where windows with_
""")
_SET_OPERATION = listed("distinct expression from_ limit locks offset order this with_")
_SUBQUERY = listed("alias limit offset order sample this with_")
_TABLE = listed("alias catalog db hints indexed joins only partition sample system_time this version when")
_LATERAL = listed("alias cross_apply this outer view")
_JOIN = listed("hint kind method on side this using")
_JOIN_KINDS = frozenset({"", "CROSS", "INNER", "OUTER", "STRAIGHT", "STRAIGHT_JOIN"})
_COMMON = listed("alias materialized this")
_GROUP = listed("cube expressions grouping_sets rollup")
# They have one row, which holds nothing.
_ROWS = frozenset({"dual", "sys.dual", "sysibm.sysdummy1"})
_MAX_STEPS = 8


class Clauses(Expressions):
    """Reads one statement in one dialect; ``tables`` and ``functions`` are what stands in its FROM."""

    def __init__(self, dialect: Dialect, text: str, proven: Iterable[tuple[DatasetName, str]] = ()) -> None:
        super().__init__(dialect, proven)
        self.tables: dict[DatasetName, str] = {}
        self.functions: set[str] = set()
        self.reuses_alias = False
        self._text = text

    def query(self, node: exp.Expr, level: Level | None = None) -> Relation:
        """Return the columns of a query; ``level`` is that of the query around it, whose names it may use."""
        inner = Level(level, level.named if level else {})
        if with_ := node.args.get("with_"):
            inner.named = self._common(with_, level, inner.named)
        match node:
            case exp.Select():
                return self._select(node, inner)
            case exp.SetOperation():
                return self._set_operation(node, inner)
            case exp.Subquery():
                self._expect(node, _SUBQUERY)
                relation = self.query(node.this, Level(level, inner.named))
                return self._ordered(node, relation, inner)
            case exp.Values():
                return self._values(node, inner)
        self.count(node.key.upper())
        return Relation(rest=[None])

    def _values(self, node: exp.Expr, level: Level) -> Relation:
        """Return the columns of ``VALUES``, whose names the database makes up."""
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
        columns = [NOTHING.union(*(self.made(value, level) for value in column)) for column in zip(*rows, strict=True)]
        return Relation([(None, made) for made in columns])

    def _expect(self, node: exp.Expr, known: frozenset[str]) -> None:
        for key, value in node.args.items():
            if value and key not in known:
                self.count(key.strip("_").upper())

    def _common(self, with_: exp.Expr, outer: Level | None, named: Mapping[str, Common]) -> dict[str, Common]:
        found = dict(named)
        for node in with_.expressions:
            self._expect(node, _COMMON)
            is_recursive = bool(with_.args.get("recursive")) or not self.dialect.needs_recursive
            name = self.dialect.key(self.dialect.name(node.args["alias"].this))
            found[name] = Common(node, outer, dict(found), is_recursive)
        return found

    def _read_common(self, name: str, common: Common) -> Relation:
        """Return the columns of a common table expression; of a recursive one those of its anchor and its steps."""
        if common.relation is not None:
            return common.relation
        node, alias = common.node.this, common.node.args["alias"]
        outer = Level(common.outer, common.named)
        if not (common.is_recursive and isinstance(node, exp.SetOperation)):
            common.relation = self._renamed(self.query(node, outer), alias)
            return common.relation
        itself = Common(common.node, common.outer, common.named, is_recursive=True)
        outer.named = {**common.named, name: itself}
        itself.relation = self._renamed(self.query(node.this, Level(common.outer, common.named)), alias)
        for _ in range(_MAX_STEPS):
            relation = self._renamed(self.query(node, outer), alias)
            if relation == itself.relation:
                break
            itself.relation = relation
        else:
            self.count("a recursive query")
        common.relation = itself.relation
        return common.relation

    def _renamed(self, relation: Relation, alias: exp.Expr | None) -> Relation:
        """Return columns under the names that an alias lists for the first of them."""
        names = [self.dialect.name(each) for each in (alias.args.get("columns") or () if alias else ())]
        if not names:
            return relation
        if relation.rest or len(names) > len(relation.columns):
            self.count("names of columns by their place")
            return Relation(rest=[None], deciding=relation.deciding)
        known = [(name, made) for name, (_, made) in zip(names, relation.columns, strict=False)]
        return Relation([*known, *relation.columns[len(names) :]], [], relation.deciding, relation.order)

    def _select(self, node: exp.Expr, level: Level) -> Relation:
        self._expect(node, _SELECT)
        if from_ := node.args.get("from_"):
            self._add_source(from_.this, level)
        for join in node.args.get("joins") or ():
            self._join(join, level)
        for window in node.args.get("windows") or ():
            level.windows[self.dialect.key(self.dialect.name(window.this))] = window
        relation = Relation()
        aliases = {each.alias.casefold() for each in node.expressions if isinstance(each, exp.Alias)}
        self.reuses_alias |= any(
            not each.table and each.name.casefold() in aliases for each in node.find_all(exp.Column)
        )
        for projection in node.expressions:
            self._project(projection, level, relation)
        self._decide_on_rows(node, level, relation)
        relation = self._ordered(node, relation, level)
        relation.deciding |= level.deciding
        return relation

    def _add_source(self, node: exp.Expr, level: Level) -> None:
        """Add what stands in FROM; a derived table sees its neighbours only if it is LATERAL."""
        names: tuple[str, ...] = ()
        match node:
            case exp.Subquery() if isinstance(node.this, exp.Table) and not node.args.get("alias"):
                self._expect(node, _SUBQUERY)
                self._add_source(node.this, level)
                return
            case exp.Table():
                names, relation = self._table(node, level)
            case exp.Lateral() if isinstance(node.this, exp.Subquery):
                self._expect(node, _LATERAL)
                relation = self.query(node.this, level)
            case exp.Subquery() | exp.Values():
                relation = self.query(node, Level(level.outer, level.named))
            case _:
                relation = self._function_of_rows(node.this or node)
        if alias := node.args.get("alias"):
            relation = self._renamed(relation, alias)
            names = (self.dialect.key(self.dialect.name(alias.this)),) if alias.this else ()
        if node.args.get("pivots"):
            names, relation = (), Relation(rest=[None], deciding=relation.deciding)
        level.sources.append((names, relation))
        level.deciding |= relation.deciding
        for join in node.args.get("joins") or () if isinstance(node, exp.Table) else ():
            self._join(join, level)

    def _function_of_rows(self, function: object) -> Relation:
        if isinstance(function, exp.Func):
            name, _, _ = function.sql(self.dialect.parser).partition("(")
            self.functions.add(name.rpartition(".")[2].casefold())
        self.count("a table function")
        return Relation(rest=[None])

    def _table(self, node: exp.Expr, level: Level) -> Source:
        """Return a table with the parts of its name, or a common table expression."""
        self._expect(node, _TABLE)
        if isinstance(node.this, exp.Func) or not node.this:
            return (), self._function_of_rows(node.this)
        parts = tuple(node.args[key] for key in ("catalog", "db", "this") if node.args.get(key))
        # SQL Server's database..table is in the schema of the user.
        is_partial = bool(node.args.get("catalog")) and not node.args.get("db")
        if is_partial or not all(isinstance(part, exp.Identifier) and self._is_name(part) for part in parts):
            self.count("a table without a plain name")
            return (), Relation(rest=[None])
        names = tuple(self.dialect.key(self.dialect.name(part)) for part in parts)
        if len(names) == 1 and names[0] in level.named:
            return names, self._read_common(names[0], level.named[names[0]])
        if ".".join(names).casefold() in _ROWS:
            return names, Relation()
        table = unnamed(".".join(part.this for part in parts))
        self.tables[table] = ".".join(self.dialect.name(part) for part in parts)
        return names, Relation(rest=[table])

    def _is_name(self, part: exp.Expr) -> bool:
        written = str(part.this)
        if part.args.get("temporary") or not written:
            return False
        if not part.args.get("quoted"):
            return bool(PLAIN.fullmatch(written))
        # MySQL knows texts in double quotes, and no names.
        return self.dialect.quote != "`" or f"`{written.replace('`', '``')}`" in self._text

    def _join(self, join: exp.Expr, level: Level) -> None:
        self._expect(join, _JOIN)
        for kind in (join.args.get("kind") or "", join.args.get("method") or ""):
            if kind not in _JOIN_KINDS:
                self.count(f"{kind} JOIN")
        before = len(level.sources)
        self._add_source(join.this, level)
        if on := join.args.get("on"):
            self._decide(on, level, _JOINED)
        side = join.args.get("side") or ""
        for identifier in join.args.get("using") or ():
            name = self.dialect.name(identifier)
            known = [made for merged, made in level.merged if self.dialect.key(merged) == self.dialect.key(name)]
            left = known[-1] if known else self._of_side(name, level.sources[:before])
            right = self._of_side(name, level.sources[before:])
            level.deciding |= through([left, right], _JOINED)
            both = through([left, right], TRANSFORMATION)
            value = both if side == "FULL" else right if side == "RIGHT" else left
            level.merged = [each for each in level.merged if self.dialect.key(each[0]) != self.dialect.key(name)]
            level.merged.append((name, value))

    def _of_side(self, name: str, sources: list[Source]) -> Sources:
        """Return a column of USING on one side of its join."""
        found = self.among(name, sources)
        return self.count(f"the table of {name}") if found is None else found

    def _project(self, node: exp.Expr, level: Level, relation: Relation) -> None:
        """Add what a SELECT gives out by one of its expressions."""
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            self._project_star(node, level, relation)
            return
        if isinstance(node, exp.Aliases):
            self.count("several names of a column")
        made, name = self.made(node, level), None
        if isinstance(node, exp.Alias):
            name = self.dialect.name(node.args["alias"])
            if not node.find(exp.AggFunc):
                level.given.append((name, made))
        elif isinstance(node, exp.Column):
            name = self.dialect.name(node.this)
        relation.columns.append((name, made))

    def _project_star(self, node: exp.Expr, level: Level, relation: Relation) -> None:
        is_whole = isinstance(node, exp.Star)
        if any((node if is_whole else node.this).args.values()):
            self.count("a star with exceptions")
        merged: frozenset[str] = frozenset()
        sources: list[Source] = level.sources
        if not is_whole:
            source = self.qualified(node, level)
            sources = [((), Relation(rest=[None]))] if source is None else [source]
        elif level.merged:
            relation.columns += level.merged
            merged = frozenset(self.dialect.key(name) for name, _ in level.merged)
        for _, each in sources:
            relation.columns += [given for given in each.columns if self.dialect.key(given[0] or "") not in merged]
            relation.rest += each.rest
            relation.order |= each.order

    def _decide_on_rows(self, node: exp.Expr, level: Level, relation: Relation) -> None:
        """Note what WHERE, GROUP BY, HAVING and DISTINCT of a SELECT decide by."""
        for key in ("where", "qualify"):
            if condition := node.args.get(key):
                self._decide(condition.this, level, _FILTERED)
        if connect := node.args.get("connect"):
            for condition in filter(None, (connect.args.get("start"), connect.args.get("connect"))):
                self._decide(condition, level, _FILTERED)
        if self._takes_first(node):
            level.deciding |= NOTHING.union(*(each.order for _, each in level.sources))
        if group := node.args.get("group"):
            self._expect(group, _GROUP)
            keys = (each for value in group.args.values() if isinstance(value, list) for each in value)
            level.deciding |= through((self._grouped(key, level, relation) for key in keys), GROUPED)
        if having := node.args.get("having"):
            merged, named = level.merged, [(name, made) for name, made in relation.columns if name]
            level.merged = [*merged, *named] if self.dialect.has_aliases_in_having else merged
            self._decide(having.this, level, _FILTERED)
            level.merged = merged
        if distinct := node.args.get("distinct"):
            if on := distinct.args.get("on"):
                self._decide(on, level, GROUPED)
            else:
                self._decide_by_all(relation, level)

    def _takes_first(self, node: exp.Expr) -> bool:
        """Whether a condition on Oracle's ROWNUM takes the first of the rows that a subquery sorts."""
        where = node.args.get("where")
        return where is not None and any(each.name.upper() == "ROWNUM" for each in where.find_all(exp.Column))

    def _decide_by_all(self, relation: Relation, level: Level) -> None:
        if relation.rest:
            self.count("DISTINCT of a star")
        level.deciding |= through([relation.sources], GROUPED)

    def _decide(self, node: exp.Expr, level: Level, how: Transformation) -> None:
        level.deciding |= through([self.made(node, level)], how)

    def _grouped(self, key: exp.Expr, level: Level, relation: Relation) -> Sources:
        """Return what a key of GROUP BY is made from; it may be the place or the alias of a column given out."""
        if isinstance(key, exp.Literal):
            return self._at_place(key, relation)
        if isinstance(key, exp.Column) and not key.table and isinstance(key.this, exp.Identifier):
            name = self.dialect.key(self.dialect.name(key.this))
            given = [made for alias, made in level.given if self.dialect.key(alias) == name]
            if len(given) == 1:
                return given[0]
        return self.made(key, level)

    def _at_place(self, key: exp.Expr, relation: Relation) -> Sources:
        place = int(key.this) - 1 if key.this.isdigit() else -1
        if relation.rest or not 0 <= place < len(relation.columns):
            return NOTHING if key.args.get("is_string") else self.count("a column by its place")
        return relation.columns[place][1]

    def _ordered(self, node: exp.Expr, relation: Relation, level: Level) -> Relation:
        """Return a query's columns with its order, which decides on the rows where only the first are taken."""
        if not (order := node.args.get("order")):
            return relation
        distinct = node.args.get("distinct")
        picks = isinstance(distinct, exp.Expr) and bool(distinct.args.get("on"))
        is_deciding = picks or bool(node.args.get("limit") or node.args.get("offset"))
        unread = dict(self.unread)
        keys = (each.this if isinstance(each, exp.Ordered) else each for each in order.expressions)
        found = through((self._sorted(key, level, relation) for key in keys), SORTED)
        if not is_deciding:
            # It means nothing in a subquery.
            self.unread = unread
        relation.order |= found
        relation.deciding |= found if is_deciding else NOTHING
        return relation

    def _sorted(self, key: exp.Expr, level: Level, relation: Relation) -> Sources:
        """Return what a key of ORDER BY is made from; a column given out goes before all others of its name."""
        if isinstance(key, exp.Literal):
            return self._at_place(key, relation)
        if isinstance(key, exp.Column) and not key.table and isinstance(key.this, exp.Identifier):
            found = self.among(self.dialect.name(key.this), [((), Relation(relation.columns))])
            if found is not None:
                return found
        return self.made(key, level)

    def _set_operation(self, node: exp.Expr, level: Level) -> Relation:
        self._expect(node, _SET_OPERATION)
        around = Level(level.outer, level.named)
        left, right = (self.query(node.args[key], around) for key in ("this", "expression"))
        relation = Relation([], list(left.rest), left.deciding | right.deciding)
        is_by_place = not (left.rest or right.rest) and len(left.columns) == len(right.columns)
        is_union = isinstance(node, exp.Union)
        if not is_by_place:
            self.count("columns of a union by their place" if is_union else "columns of two queries by their place")
        for place, (name, made) in enumerate(left.columns):
            other = right.columns[place][1] if is_union and is_by_place else NOTHING
            relation.columns.append((name, made | other))
        if not is_union or node.args.get("distinct"):
            relation.deciding |= through([left.sources, right.sources], GROUPED if is_union else _JOINED)
        return self._ordered(node, relation, level)
