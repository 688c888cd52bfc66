"""Reads what changes rows of a Delta table: UPDATE, DELETE and MERGE (``org.apache.spark.sql.delta.commands``).

Their plans hold expressions as arguments. What they change is the table itself: where rows keep the value of a column,
it comes from that column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from spark_lineage.merge.lineage import IDENTITY, Transformation
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.plan import Plan, arguments, elements
from spark_lineage.plans.scope import NOTHING, UNTRACED, Column, Scope, Sources, Traced, attributes

_ATTRIBUTE = re.compile(r"(?P<name>[\w.]+)#(?P<id>\d+)L?")
# Spark's, Iceberg's and Hudi's metadata columns.
_STEERING = re.compile(r"__row_\w+|_file|_pos|_spec_id|_partition|_deleted|_hoodie_\w+")
# Update [condition: (x#1 > 2), actions: [`a` = x#1, ...]]; a DELETE without a condition is but its name.
_CLAUSE = re.compile(r"(?:Update|Insert|Delete)(?: \[(?P<told>.*)\])?\s*", re.DOTALL)
_IS_CLAUSES = re.compile(r"\[(?:Update|Insert|Delete)\b")
_CONDITION = re.compile(r"(?P<column>[A-Za-z_][\w.]*) (?:<|>|=|!|IN|IS|LIKE|STARTS)")
_CONDITION_OF_CLAUSE = "condition: "
_ACTION = re.compile(r"`(?P<column>(?:[^`]|``)+)` = (?P<value>.*)", re.DOTALL)
_FILTER = Transformation("INDIRECT", "FILTER")


def arguments_of(plan: Plan, name: str) -> str:
    """Return the arguments of the first node of a name, empty without one."""
    return next((node.fields.get("Arguments", "") for node in plan.walk() if node.name == name), "")


def _update(plan: Plan, target: DatasetName) -> Traced:
    """``target, [new values in the order of the columns], condition``."""
    scope = _table_scope(plan, target)
    parts = arguments(arguments_of(plan, "UpdateCommand"))
    # The first part is the target, which is in brackets too: Delta[version=1, file:/data/t].
    at = next((position for position, part in enumerate(parts) if part.startswith("[")), len(parts))
    values = elements(parts[at]) if at < len(parts) else []
    conditions = parts[at + 1 :]
    columns = [
        Column(
            identity,
            scope.names[identity],
            scope.made_from(value) | (scope.sources[identity] if conditions else NOTHING),
        )
        for identity, value in zip(scope.output, values, strict=False)
    ]
    return _traced(columns, scope, conditions, "FILTER")


def _delete(plan: Plan, target: DatasetName) -> Traced:
    scope = _table_scope(plan, target)
    columns = [Column(identity, scope.names[identity], scope.sources[identity]) for identity in scope.output]
    return _traced(columns, scope, arguments(arguments_of(plan, "DeleteCommand")), "FILTER")


def _delete_files(plan: Plan, target: DatasetName) -> Traced:
    """``table, [at < 1, shop = a], …``, with names in place of attributes; of the columns the plan tells no more."""
    conditions = " ".join(arguments(arguments_of(plan, "DeleteFromTable"))[1:2])
    named = frozenset((target, match["column"], _FILTER) for match in _CONDITION.finditer(conditions))
    return Traced((), named)


ROW_COMMANDS: dict[str, Callable[[Plan, DatasetName], Traced]] = {
    "UpdateCommand": _update,
    "DeleteCommand": _delete,
    "RestoreTableCommand": lambda _plan, _target: UNTRACED,
    "DeleteFromTable": _delete_files,
}


def without_steering(traced: Traced) -> Traced:
    """Leave out of a rewrite (``ReplaceData``) the columns that steer it."""

    def kept(sources: Sources) -> Sources:
        return frozenset(source for source in sources if not _STEERING.fullmatch(source[1]))

    traced = traced.with_sources(kept)
    return replace(traced, columns=tuple(each for each in traced.columns if not _STEERING.fullmatch(each.name)))


def merged(text: str, target: DatasetName, source: Traced) -> Traced:
    """Read a MERGE: ``source, target, table, condition, [matched clauses], [not matched clauses], ...``.

    ``source`` are the columns that the execution gave out that read the source; attributes of no column of it are the
    target's, if it has a column of that name: where the source was not found, they may be its.
    """
    scope = Scope()
    for column in source.columns:
        scope.define(column.id, column.name, column.sources)
    scope.dataset_wide |= source.dataset_wide
    parts = arguments(text)
    first = next((position for position, part in enumerate(parts) if _IS_CLAUSES.match(part)), 0)
    told = [each for part in parts[first:] if _IS_CLAUSES.match(part) for each in _clauses(part)]
    # A clause sets all columns of the table; one that deletes tells none.
    own = {column for each in told for column, _ in _actions(each)}
    for attribute in _ATTRIBUTE.finditer(text):
        identity, name = int(attribute["id"]), attribute["name"]
        if identity not in scope.names and (name in own or not own):
            scope.define(identity, name, ((target, name, IDENTITY),))
    columns = [
        Column(0, column, scope.made_from(value) | {(target, column, IDENTITY)})
        for each in told
        for column, value in _actions(each)
    ]
    # What the rows are matched by is before the first list of clauses.
    conditions = [*parts[first - 1 : first], *(each for each in told if each.startswith(_CONDITION_OF_CLAUSE))]
    return _traced(columns, scope, conditions, "JOIN")


def _clauses(part: str) -> Iterable[str]:
    """Return what the clauses of a list say: ``condition: (op#3 = D)``, ``actions: [`id` = id#1, `v` = v#2]``."""
    for clause in elements(part):
        if (match := _CLAUSE.fullmatch(clause)) and match["told"]:
            yield from arguments(match["told"])


def _actions(told: str) -> Iterable[tuple[str, str]]:
    """Return the columns that a clause sets, and what it sets them to."""
    for action in elements(told.removeprefix("actions: ")):
        if match := _ACTION.fullmatch(action):
            yield match["column"].replace("``", "`"), match["value"]


def _table_scope(plan: Plan, target: DatasetName) -> Scope:
    """The columns of the table whose rows change."""
    scope = Scope()
    for part in arguments(arguments_of(plan, "LogicalRelation")):
        for attribute in attributes(part):
            scope.give_out([attribute], {(target, attribute.name, IDENTITY)})
    return scope


def _traced(columns: Iterable[Column], scope: Scope, conditions: Iterable[str], subtype: str) -> Traced:
    for condition in conditions:
        scope.decide(condition, subtype)
    return Traced(tuple(columns), scope.decisions)
