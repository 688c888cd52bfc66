"""Reads what Hudi's SQL commands write (``org.apache.spark.sql.hudi.command``)."""

from __future__ import annotations

import re
from dataclasses import replace

from spark_lineage.merge.lineage import IDENTITY
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.plan import Node
from spark_lineage.plans.rows import without_steering
from spark_lineage.plans.scope import Column, Scope, Traced, attributes
from spark_lineage.plans.tables import Tables, scanned

INSERT, UPDATE, DELETE, MERGE = (
    "InsertIntoHoodieTableCommand",
    "UpdateHoodieTableCommand",
    "DeleteHoodieTableCommand",
    "MergeIntoHoodieTableCommand",
)
# What Hudi adds to each table (HoodieRecord.HOODIE_META_COLUMNS).
_STEERING = "_hoodie_"
_RELATION = re.compile(r"Relation (?P<table>[^\s\[]+)\[(?P<columns>[^\]]*)\]")
_STATIC = re.compile(r"[\[ ](?P<column>[^=\[\], ]+)=Some\(")
# What the job of a commit is called, with the name of the table alone (SparkRDDWriteClient.commitStats).
_COMMIT = re.compile(r"SparkRDDWriteClient:Committing stats: (?P<table>\S+)")
_ASSIGNMENT = re.compile(r"\bassignment\((?P<column>[^#(),]+)#(?P<id>\d+)L?, ")
_CLAUSES = re.compile(r"\[(?:delete|update|insert)action\(")
_CONDITION = re.compile(r"\b(?:delete|update|insert)action\(Some\(")


def inserted_target(_node: Node, text: str, tables: Tables) -> Observed | None:
    """``Relation spark_catalog.db.t[id#1,v#2] …Relation@1f, [day=Some(1)], false``; the last tells of OVERWRITE."""
    match = _RELATION.match(text)
    return tables.named(match["table"]) if match else None


def is_partial(text: str, mode: str) -> bool:
    """Whether an INSERT OVERWRITE leaves partitions; ``mode`` is the session's ``partitionOverwriteMode``."""
    return bool(_STATIC.search(text)) or mode.lower() == "dynamic"


def changed_target(node: Node, _text: str, tables: Tables) -> Observed | None:
    """UPDATE and DELETE: what the rows are read from that they are given."""
    given = {attribute.id for attribute in attributes(node.fields.get("Input", ""))}
    leaves = (leaf for leaf in node.walk() if not leaf.children)
    read = (leaf for leaf in leaves if any(each.id in given for each in attributes(leaf.fields.get("Output", ""))))
    return next(filter(None, (scanned(leaf, tables) for leaf in read)), None)


def committed_target(description: str, tables: Tables) -> Observed | None:
    """Return the table that a job commits to, by its description, if the log has named just one of that name."""
    match = _COMMIT.match(description)
    return tables.the_only(match["table"]) if match else None


def written(name: str, text: str, target: Observed | None, traced: Traced) -> Traced:
    """Return the columns that a command with a query writes, ``traced`` being those of the query."""
    if name == INSERT:
        return _aligned(text, without_steering(traced))
    if name == UPDATE and target is not None:
        return _updated(without_steering(traced), target.dataset)
    if name == DELETE:
        # The columns are those that find the rows which it takes away.
        return Traced(dataset_wide=without_steering(traced).dataset_wide, unread=traced.unread)
    return traced


def _aligned(text: str, traced: Traced) -> Traced:
    """Return the columns of an INSERT by the table's names; they are in its order where their own are others."""
    match = _RELATION.match(text)
    static = set(_STATIC.findall(text))
    told = attributes(f"[{match['columns']}]") if match else []
    expected = [one.name for one in told if not one.name.startswith(_STEERING) and one.name not in static]
    if not expected or {column.name for column in traced.columns} == set(expected):
        return traced
    named = zip(traced.columns, expected, strict=False)
    return replace(traced, columns=tuple(replace(column, name=name) for column, name in named))


def _updated(traced: Traced, target: DatasetName) -> Traced:
    """Return the columns of an UPDATE: the rows that it leaves keep theirs."""
    columns = (replace(column, sources=column.sources | {(target, column.name, IDENTITY)}) for column in traced.columns)
    return replace(traced, columns=tuple(columns))


def merged(text: str, target: DatasetName) -> Traced:
    """Read a MERGE, whose plan names the table's columns where it assigns to them, and nothing of its source.

    ``MergeIntoTable (id#4 = id#1), [updateaction(Some((op#2 = x)), assignment(v#5, v#3))], [insertaction(None, …)]``
    """
    scope = Scope()
    assignments = list(_ASSIGNMENT.finditer(text))
    for match in assignments:
        scope.define(int(match["id"]), match["column"], ((target, match["column"], IDENTITY),))
    scope.decide(_CLAUSES.split(text, maxsplit=1)[0], "JOIN")
    for match in _CONDITION.finditer(text):
        scope.decide(_to_closing(text[match.end() :]), "FILTER")
    columns = (
        Column(
            int(match["id"]),
            match["column"],
            scope.made_from(_to_closing(text[match.end() :])) | {(target, match["column"], IDENTITY)},
        )
        for match in assignments
    )
    return Traced(tuple(columns), scope.decisions, is_cut=True)


def _to_closing(text: str) -> str:
    """Return what is before the bracket that closes one that was opened before this text."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return text[:position]
    return text
