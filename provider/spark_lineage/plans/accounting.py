"""Accounts for the leaves and writes of an execution: each is named, ignored by a rule that has a name, or left over.

The accounts come from ``sparkPlanInfo`` and from the progress of queries, neither of which the reader of plans looks
at: what it overlooks, or names wrongly, is left over here and counted. Rows of RDDs are accounted for by their jobs
(``rdds``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from spark_lineage.merge.accounting import PlanPart, left_over
from spark_lineage.merge.observed import Observed
from spark_lineage.plans.accounting_rules import COMMANDS, HIDDEN, MAINTENANCE, MEMORY_SINKS, SINKS, WRITES
from spark_lineage.plans.event_log_lines import ExecutionStart, PlanInfo
from spark_lineage.plans.leaves import (
    LOCAL_ROWS,
    PUSHED_AGGREGATES,
    is_of_delta_log,
    is_of_rdd,
    last_part,
    leaf_part,
    walk,
)

_EXECUTE = "Execute "
_CALL = "Call"
_PROCEDURE = re.compile(r"\b(?P<name>\w+Procedure)\b")
# A class with its package, or what stands for one as the writer of a stream.
_CLASS = re.compile(r"(?:\b\w+[.$]|\bwriter: )+(?P<name>[A-Za-z]\w*)")
_COLUMN = re.compile(r"([^\s,\[(]+)#\d+")
# The state of a Delta table with the statistics of its files, and the number of rows among these.
_DELTA_TABLE = re.compile(r" with Stats #\d+ - (?P<table>.+)/_delta_log\Z")
_COUNTED = "numRecords"
# Iceberg's rewrite_data_files (RewriteDataFilesSparkAction).
_REWRITING = re.compile(r"Rewriting \d+ files \(")


class Accounts:
    """The accounts of one application, with what is behind the rows that a plan has as its own.

    Streams keep rows in the memory of the driver. Delta answers aggregates from its log, by executions inside of the
    query that come before it.
    """

    def __init__(self) -> None:
        self._in_memory: set[frozenset[str]] = set()
        self._answers: dict[int, set[str]] = {}

    def open(self, event: ExecutionStart, around: Account | None, *, is_batch: bool) -> Account:
        """Return the account of an execution that starts.

        :param around: the account of the root execution that it runs inside of, if it is known
        :param is_batch: whether it is the micro-batch of a streaming query, or runs inside of one
        """
        account = Account(self._in_memory, around, is_batch=is_batch)
        account.is_kept |= _REWRITING.match(event.description) is not None
        if event.sparkPlanInfo is not None:
            account.is_blank = not event.sparkPlanInfo.nodeName
            account.add(event.sparkPlanInfo)
        root_id = event.executionId if event.rootExecutionId is None else event.rootExecutionId
        if account.answering and root_id != event.executionId:
            self._answers.setdefault(root_id, set()).add(account.answering)
        account.answer(self._answers.pop(event.executionId, ()))
        return account


class Account:
    """The leaves and writes of one execution, as far as no rule ignores them.

    ``is_kept``: the execution rearranges rows or files of a table, and reads and writes nothing else. ``is_writing``:
    it writes its rows, or runs inside of one that does. ``is_blank``: Spark made no plan, as of an execution that
    failed before it had one. ``answering`` is the Delta table whose log it takes numbers of rows from, or the least and
    greatest values.
    """

    def __init__(self, in_memory: set[frozenset[str]], around: Account | None, *, is_batch: bool) -> None:
        self.command = ""
        self.is_kept: bool = around is not None and (around.is_kept or around.command in MAINTENANCE)
        self.answering = ""
        self.is_blank = False
        self._in_memory = in_memory
        self.is_writing: bool = around is not None and around.is_writing
        self._is_inside_batch = is_batch and around is not None
        self._parts: set[PlanPart] = set()
        self._seen: set[tuple[str, bytes, str]] = set()
        self._has_rdd = self._has_delta_log = self._has_local_rows = False

    @property
    def is_of_delta_log(self) -> bool:
        """Whether it reads nothing but the log of a Delta table."""
        return self._has_delta_log and not (self._parts or self._has_rdd or self.command)

    def add(self, info: PlanInfo) -> None:
        """Account for a plan, or for what it has become (``SparkListenerSQLAdaptiveExecutionUpdate``)."""
        nodes = list(walk(info))
        # Parents come first: whether the rows are written is known when the leaves are looked at.
        for node in nodes:
            name = _class_name(node.nodeName)
            is_command = name in WRITES or name in COMMANDS or node.nodeName.startswith(_EXECUTE)
            if node.children and not is_command:
                continue
            # What a plan becomes has mostly the same leaves.
            seen = (node.nodeName, bytes(node.simpleString), node.metadata.location)
            if seen in self._seen:
                continue
            self._seen.add(seen)
            self._add(name, node, nodes)

    def _add(self, name: str, node: PlanInfo, nodes: list[PlanInfo]) -> None:
        name = _called(node) if name == _CALL else name
        if name in WRITES:
            self.command = self.command or name
            self._write(node, nodes)
        elif name in COMMANDS:
            self.command = self.command or name
        elif node.nodeName.startswith(_EXECUTE):
            self._parts.add(PlanPart(name, "output"))
        elif not node.children:
            self._leaf(node, nodes)
        if name in HIDDEN and (not HIDDEN[name].sign or HIDDEN[name].sign in node.described):
            self._parts.add(PlanPart(f"{name}: {HIDDEN[name].part}", HIDDEN[name].needs))

    def answer(self, tables: Collection[str]) -> None:
        """Account for the tables whose logs have answered a part of the plan, which has the answer as its own rows."""
        if self._has_local_rows and tables:
            self._parts.discard(PUSHED_AGGREGATES)
            self._parts.update(PlanPart(f"{LOCAL_ROWS} of a Delta log", "input", (table,)) for table in tables)

    def remaining(
        self, inputs: Iterable[Observed], outputs: Iterable[Observed], sink: str = "", *, is_failed: bool | None = None
    ) -> tuple[PlanPart, ...]:
        """Return the parts that neither a rule ignores nor the reader of the plan names, sorted.

        :param sink: the description of the sink of the query that it is a batch of
        """
        if self.is_kept:
            return ()
        parts = list(self._parts)
        if self.is_blank and is_failed is False:
            parts.append(PlanPart("a plan without nodes", "nothing"))
        has_write = any(part.needs == "output" for part in parts)
        if sink and not (has_write or any(name in sink for name in SINKS)):
            parts.append(PlanPart(last_part(re.split(r"[\[@(]", sink, maxsplit=1)[0]), "output"))
        written = [one for one in outputs if one.dataset.namespace]
        return tuple(sorted(left_over(parts, list(inputs), written)))

    def _write(self, node: PlanInfo, nodes: list[PlanInfo]) -> None:
        classes = {match["name"] for match in _CLASS.finditer(node.described)}
        if classes.isdisjoint(SINKS):
            self.is_writing = True
            self._parts.add(PlanPart(node.nodeName.removeprefix(_EXECUTE), "output"))
        elif not classes.isdisjoint(MEMORY_SINKS):
            self._in_memory.add(frozenset(name for each in nodes for name in _columns(each)))

    def _leaf(self, node: PlanInfo, nodes: list[PlanInfo]) -> None:
        part = leaf_part(node)
        self._has_local_rows |= node.nodeName == LOCAL_ROWS
        if is_of_delta_log(node):
            self._has_delta_log = True
            table = _DELTA_TABLE.search(node.nodeName)
            if table is not None and any(_COUNTED in each.described for each in nodes):
                self.answering = table["table"]
        elif is_of_rdd(node):
            # Rows inside of a micro-batch are those that its query was given.
            self._has_rdd |= not self._is_inside_batch
        elif part is not None:
            self._parts.add(part)
        elif node.nodeName == LOCAL_ROWS and self.is_writing and self._is_in_memory(node):
            self._parts.add(PlanPart(f"{LOCAL_ROWS} of a memory sink", "nothing"))

    def _is_in_memory(self, node: PlanInfo) -> bool:
        """Whether rows may be those that a stream has kept: the plan of a sink in memory has a column of theirs.

        Operators such as aggregates do not print the names of all columns that they make.
        """
        columns = _columns(node)
        return any(not columns.isdisjoint(kept) for kept in self._in_memory)


def _columns(node: PlanInfo) -> set[str]:
    return set(_COLUMN.findall(node.described))


@lru_cache(maxsize=1024)
def _class_name(node: str) -> str:
    """Return the class of a command or write by the name of its node: ``AppendData`` of ``AppendData db.t``."""
    return node.removeprefix(_EXECUTE).removesuffix("$").partition(" ")[0]


def _called(node: PlanInfo) -> str:
    """Return the class of the procedure that is called."""
    match = _PROCEDURE.search(node.described)
    return match["name"] if match else _CALL
