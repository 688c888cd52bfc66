"""Reads what changes rows of a table: UPDATE, DELETE and MERGE of Delta and of Hudi, and Hudi's INSERT.

The plans of ``org.apache.spark.sql.delta.commands`` and ``org.apache.spark.sql.hudi.command`` hold expressions as
arguments. What they change is the table itself: where rows keep the value of a column, it comes from that column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.lists import arguments, attributes, columns_in, elements, to_closing
from spark_lineage.plans.names import ATTRIBUTE_NAME, NAME, UNKNOWN, Attribute, Names, hidden, plain, shown
from spark_lineage.plans.plan import Plan
from spark_lineage.plans.predicates import UnreadableError, V2Expressions
from spark_lineage.plans.scope import NOTHING, UNTRACED, Column, Scope, Sources, Traced
from spark_lineage.plans.tables import IDENTIFIER

HUDI_INSERT, HUDI_UPDATE, HUDI_DELETE, HUDI_MERGE = (
    "InsertIntoHoodieTableCommand",
    "UpdateHoodieTableCommand",
    "DeleteHoodieTableCommand",
    "MergeIntoHoodieTableCommand",
)
_DELTA_WRITE = "WriteDelta"
_REWRITES = frozenset({"ReplaceData", _DELTA_WRITE})
_ATTRIBUTE = re.compile(rf"(?P<name>{ATTRIBUTE_NAME})#(?P<id>\d+)L?")
# Spark's, Iceberg's and Hudi's metadata columns (HoodieRecord.HOODIE_META_COLUMNS).
_STEERING = re.compile(r"__row_\w+|_file|_pos|_spec_id|_partition|_deleted|_hoodie_\w+")
_HUDI = "_hoodie_"
# A clause of a MERGE, where its actions begin, a column that it sets; and behind the clauses the table's new schema.
_CLAUSE = re.compile(r"(?<=[\[ ])(?:Update|Insert|Delete)(?= \[|[\],])")
_ACTIONS = "actions: ["
_SET = re.compile(r"`((?:[^`]|``)+)` = ")
_SCHEMA, _EVOLVING = ", StructType(", ", true"
_FILTER = Transformation("INDIRECT", "FILTER")
# The target of an UPDATE ends here, Delta[version=1, file:/data/t], behind which a metastore's table has its name.
_TARGET = re.compile(rf"\], (?:{IDENTIFIER.pattern}, (?:[\w.$]+, )?)?\[")

HUDI_RELATION = re.compile(r"Relation (?P<table>[^\s\[]+)\[(?P<columns>[^\]]*)\]")
HUDI_STATIC = re.compile(r"[\[ ](?P<column>[^=\[\], ]+)=Some\(")
_HUDI_ASSIGNMENT = re.compile(rf"\bassignment\((?P<column>{NAME}|[^#(),]+)#(?P<id>\d+)L?, ")
_HUDI_CLAUSES = re.compile(r"\[(?:delete|update|insert)action\(")
_HUDI_CONDITION = re.compile(r"\b(?:delete|update|insert)action\(Some\(")


def _update(plan: Plan, target: DatasetName) -> Traced:
    """``target, [new values in the order of the columns], condition``."""
    scope = _table_scope(plan, target)
    given = plan.arguments_of("UpdateCommand")
    behind = _TARGET.search(given)
    text = given[behind.end() :] if behind else ""
    whole = arguments(f"[{text}")[0]
    if len(elements(whole)) == len(scope.output):
        ends = [len(whole) - 2]
    else:
        ends = [match.start() for match in re.finditer(r"\](?=, |\Z)", text)]
    is_cut = any(node.is_cut for node in plan.walk())
    found = [(elements(f"[{text[:end]}]", None if is_cut else len(scope.output)), text[end + 1 :]) for end in ends]
    fitting = found[:1] if is_cut else [one for one in found if len(one[0]) == len(scope.output)]
    # A literal may look as the end of the list does.
    values, condition = fitting[0] if len(fitting) == 1 else ([], text)
    conditions = [condition] if condition else []
    if not values:
        return replace(_traced((), scope, conditions, "FILTER"), unread=("UpdateCommand: its columns",))
    columns = (
        Column(identity, scope.names[identity], scope.made_from(value))
        for identity, value in zip(scope.output, values, strict=False)
    )
    return _traced([_kept(each, target) for each in columns] if conditions else columns, scope, conditions, "FILTER")


def _delete(plan: Plan, target: DatasetName) -> Traced:
    scope = _table_scope(plan, target)
    columns = [Column(identity, scope.names[identity], scope.sources[identity]) for identity in scope.output]
    return _traced(columns, scope, arguments(plan.arguments_of("DeleteCommand")), "FILTER")


def _delete_files(plan: Plan, target: DatasetName) -> Traced:
    """``table, [at < 1, `a b` = 'c'], …``, with names in place of attributes; the plan names no other columns."""
    conditions = plain("".join(arguments(plan.arguments_of("DeleteFromTable"))[1:2]))
    try:
        columns = V2Expressions(conditions).columns
    except UnreadableError:
        return Traced(unread=("DeleteFromTable: its condition",))
    return Traced((), frozenset((target, column, _FILTER) for column in columns))


ROW_COMMANDS: dict[str, Callable[[Plan, DatasetName], Traced]] = {
    "UpdateCommand": _update,
    "DeleteCommand": _delete,
    "RestoreTableCommand": lambda _plan, _target: UNTRACED,
    "DeleteFromTable": _delete_files,
}


def merged(text: str, target: DatasetName, source: Traced, names: Names, inside: Sequence[Traced] = ()) -> Traced:
    """Read a MERGE of Delta: ``source, target, table, condition, [matched clauses], [not matched clauses], ...``.

    ``source`` are the columns that the execution gave out that read the source, ``inside`` all executions inside of the
    command: what they know counts for it, since Spark gives no id twice. Without any, attributes of no column of the
    source are the target's, if it has a column of that name.
    """
    scope = Scope()
    scope.dataset_wide |= source.dataset_wide
    # A column that is set may be called as an attribute looks.
    text = _SET.sub(lambda match: f"`{hidden(plain(match[1]))}` = ", names.marked(text))
    own = {_set_column(column) for column in _SET.findall(text)}.union(field.name for field in columns_in(text))
    inner = [*(column for traced in inside for column in traced.known), *source.columns]
    names.learn_from(text, own.union(column.name for column in inner))
    text = names.marked(text)
    is_evolving = text.endswith(_EVOLVING)
    conditions, actions = _clauses(text.partition(_SCHEMA)[0])
    for column in inner:
        scope.define(column.id, column.name, column.sources)
    described, _, _ = text.partition(_SCHEMA)
    is_unread = bool(inside) and UNKNOWN.search(described) is not None
    for attribute in _ATTRIBUTE.finditer(described):
        identity, name = int(attribute["id"]), shown(attribute["name"])
        if identity in scope.names:
            continue
        # A view gives columns new ids, which the optimizer takes away again.
        found = {column.sources for column in inner if column.name == name and _is_of_source(column, target)}
        if inside and len(found) == 1:
            scope.define(identity, name, *found)
        elif name in own and not inside:
            scope.define(identity, name, ((target, name, IDENTITY),))
        else:
            is_unread |= bool(inside)
    values: dict[str, Sources] = {} if actions else dict.fromkeys(_rewritten(target, inside), NOTHING)
    for name, value in actions:
        values[name] = values.get(name, NOTHING) | scope.made_from(value)
    # Where the table's schema may evolve, a column that no execution reads of it may be new.
    former = {name for found in scope.sources.values() for dataset, name, _ in found if dataset == target}
    columns = (
        _kept(column, target) if not is_evolving or column.name in former else column
        for column in (Column(0, name, sources) for name, sources in values.items())
    )
    unread = ("MergeIntoCommand: columns of its source",) if is_unread else ()
    return replace(_traced(columns, scope, conditions, "JOIN"), unread=unread)


def _is_of_source(column: Column, target: DatasetName) -> bool:
    """Whether a column comes from somewhere, and not from the table that a MERGE changes."""
    return bool(column.sources) and all(dataset != target for dataset, _, _ in column.sources)


def _rewritten(target: DatasetName, inside: Iterable[Traced]) -> list[str]:
    """Return the columns of a table whose files an execution inside of a MERGE writes anew, without some rows."""
    rows = [
        [column.name for column in traced.columns]
        for traced in inside
        if all(any(each[:2] == (target, column.name) for each in column.sources) for column in traced.columns)
    ]
    return max(rows, key=len, default=[])


def _clauses(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return what the rows of a MERGE are matched by, with the conditions of its clauses; and columns with values.

    ``…, (id#4 = id#1), [Update [condition: (x#1 > 2), actions: [`a` = x#1, …]], Delete [condition: …]], [Insert […]]``:
    a text may hold brackets, so that clauses and columns are found by what they begin with.
    """
    starts = [match.start() for match in _CLAUSE.finditer(text)]
    head = text[: starts[0]] if starts else text
    conditions = [arguments(head.removesuffix("["))[-2:][0]]
    actions: list[tuple[str, str]] = []
    for start, end in pairwise([*starts, len(text)]):
        condition, _, values = text[start:end].partition(_ACTIONS)
        conditions.append(condition)
        _, *found = _SET.split(values)
        actions += zip(map(_set_column, found[::2]), (value.rstrip("], [") for value in found[1::2]), strict=True)
    return conditions, actions


def _set_column(quoted: str) -> str:
    """Return the column that an action sets; a part of its name may look like an attribute."""
    return plain(quoted).replace("``", "`")


def hudi_merged(text: str, target: DatasetName) -> Traced:
    """Read a MERGE of Hudi, whose plan names the table's columns where it assigns to them, and nothing of its source.

    ``MergeIntoTable (id#4 = id#1), [updateaction(Some((op#2 = x)), assignment(v#5, v#3))], [insertaction(None, …)]``
    """
    scope, names = Scope(), Names()
    for match in _HUDI_ASSIGNMENT.finditer(text):
        names.add(Attribute(int(match["id"]), plain(match["column"])))
    text = names.marked(text)
    assignments = [(int(match["id"]), plain(match["column"]), match.end()) for match in _HUDI_ASSIGNMENT.finditer(text)]
    for identity, column, _ in assignments:
        scope.define(identity, column, ((target, column, IDENTITY),))
    scope.decide(_HUDI_CLAUSES.split(text, maxsplit=1)[0], "JOIN")
    conditions = [to_closing(text[match.end() :]) for match in _HUDI_CONDITION.finditer(text)]
    columns = [
        _kept(Column(identity, column, scope.made_from(to_closing(text[end:]))), target)
        for identity, column, end in assignments
    ]
    return replace(_traced(columns, scope, conditions, "FILTER"), is_cut=True)


def _table_scope(plan: Plan, target: DatasetName) -> Scope:
    scope = Scope()
    for part in arguments(plan.arguments_of("LogicalRelation")):
        # A list that can be cut in several ways has no columns.
        for attribute in () if UNKNOWN.search(part) else attributes(part):
            scope.give_out([attribute], {(target, attribute.name, IDENTITY)})
    return scope


def _kept(column: Column, target: DatasetName) -> Column:
    """Add that rows may keep their value."""
    return replace(column, sources=column.sources | {(target, column.name, IDENTITY)})


def _traced(columns: Iterable[Column], scope: Scope, conditions: Iterable[str], subtype: str) -> Traced:
    for condition in conditions:
        scope.decide(condition, subtype)
    return Traced(tuple(columns), scope.decisions)


def written(name: str, text: str, target: Observed | None, traced: Traced) -> Traced:
    """Return the columns that a command with a query writes, ``traced`` being those of the query."""
    if name not in {*_REWRITES, HUDI_INSERT, HUDI_UPDATE, HUDI_DELETE}:
        return traced
    traced = _without_steering(traced)
    if name == HUDI_INSERT:
        return _aligned(text, traced)
    if name in {HUDI_UPDATE, _DELTA_WRITE} and target is not None:
        # Rows that the command leaves keep their values.
        return replace(traced, columns=tuple(_kept(column, target.dataset) for column in traced.columns))
    if name == HUDI_DELETE:
        # The columns are those that find the rows which it takes away.
        return Traced(dataset_wide=traced.dataset_wide, unread=traced.unread)
    return traced


def _without_steering(traced: Traced) -> Traced:
    def kept(sources: Sources) -> Sources:
        return frozenset(source for source in sources if not _STEERING.fullmatch(source[1]))

    traced = traced.with_sources(kept)
    return replace(traced, columns=tuple(each for each in traced.columns if not _STEERING.fullmatch(each.name)))


def _aligned(text: str, traced: Traced) -> Traced:
    """Return the columns of an INSERT by the table's names; they are in its order where their own are others."""
    match = HUDI_RELATION.match(text)
    named = [one.name for one in attributes(f"[{match['columns']}]")] if match else []
    static = HUDI_STATIC.findall(text)
    expected = [name for name in named if not name.startswith(_HUDI) and name not in static]
    if not expected or {column.name for column in traced.columns} == set(expected):
        return traced
    pairs = zip(traced.columns, expected, strict=False)
    return replace(traced, columns=tuple(replace(column, name=name) for column, name in pairs))
