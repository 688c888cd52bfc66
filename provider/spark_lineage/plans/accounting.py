"""Accounts for the leaves and writes of an execution: each is named, ignored by a rule that has a name, or left over.

The accounts come from ``sparkPlanInfo``, from the RDDs of the jobs and from the progress of queries, none of which the
reader of plans looks at: what it overlooks, or names wrongly, is left over here and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from spark_lineage.merge.accounting import PlanPart, left_over
from spark_lineage.merge.observed import Observed
from spark_lineage.plans.accounting_rules import (
    COMMANDS,
    INDEXES,
    LEAVES,
    MAINTENANCE,
    MEMORY_SINKS,
    RDDS,
    RELATIONS,
    SINKS,
    WRITES,
)
from spark_lineage.plans.event_log_lines import ExecutionStart, PlanInfo, Rdd

_EXECUTE = "Execute "
_EXISTING_RDD = "Scan ExistingRDD"
_LOCATION = re.compile(r"(?P<index>\w+)\((?P<count>\d+) paths\)\[(?P<paths>.*)\]", re.DOTALL)
_CUT_PATHS = ", ..."
_HIVE = re.compile(r"Scan hive (?P<table>\S+)")
_JDBC = re.compile(r"Scan JDBCRelation\((?P<table>.*)\) \[numPartitions=\d+\]\s*", re.DOTALL)
_V2_SCAN = re.compile(r"BatchScan (?P<table>.+)", re.DOTALL)
_STREAM_SCAN = re.compile(r"(?:MicroBatch|Continuous|RealTimeStream)Scan\b.*?\bclass (?P<class>[\w.$]+)", re.DOTALL)
_PROCEDURE = re.compile(r"\b(?P<name>\w+Procedure)\b")
# A class with its package, or what stands for one as the writer of a stream.
_CLASS = re.compile(r"(?:\b\w+[.$]|\bwriter: )+(?P<name>[A-Za-z]\w*)")
_JDBC_SCAN = "Scan JDBCRelation"
_JDBC_QUERY = f"{_JDBC_SCAN}(("
_LOOP = "UnionLoop"
_CALL = "Call"
_LOCAL_ROWS = "LocalTableScan"
_COLUMN = re.compile(r"([^\s,\[(]+)#\d+")
# An RDD of Delta's log, by the name that Delta gives it or by its columns.
_DELTA_LOG_RDD = re.compile(r"Scan ExistingRDD Delta \w.*_delta_log\b|Scan ExistingRDD\[txn#\d+,add#\d+,remove#\d+")
_DELTA_LOG_SCANS = {"Scan json", "Scan parquet"}
# The source of a MERGE, which an execution before it has read.
_MERGE_SOURCE = "Scan ExistingRDD mergeMaterializedSource"
_CHECKPOINTS = frozenset({"LocalCheckpointRDD", "ReliableCheckpointRDD"})
# Iceberg's rewrite_data_files (RewriteDataFilesSparkAction).
_REWRITING = re.compile(r"Rewriting \d+ files \(")


class Accounts:
    """The accounts of one application, and what its streams keep in the memory of the driver."""

    def __init__(self) -> None:
        self._in_memory: set[frozenset[str]] = set()
        self._directory = ""

    def configure(self, working_directory: str) -> None:
        """Take in the directory that the driver ran in, in which relative paths of RDDs are."""
        self._directory = working_directory

    def open(self, event: ExecutionStart, around: Account | None, *, is_batch: bool) -> Account:
        """Return the account of an execution that starts.

        :param around: the account of the root execution that it runs inside of, if it is known
        :param is_batch: whether it is the micro-batch of a streaming query, or runs inside of one
        """
        is_kept = _REWRITING.match(event.description) is not None
        account = Account(self._in_memory, self._directory, around, is_batch=is_batch, is_kept=is_kept)
        if event.sparkPlanInfo is not None:
            account.add(event.sparkPlanInfo)
        return account


class Account:
    """The leaves and writes of one execution, as far as no rule ignores them."""

    def __init__(
        self, in_memory: set[frozenset[str]], directory: str, around: Account | None, *, is_batch: bool, is_kept: bool
    ) -> None:
        self.command = ""
        self.is_writing: bool = around is not None and around.is_writing
        self._in_memory = in_memory
        self._directory = directory
        self._is_inside_batch = is_batch and around is not None
        self._is_kept = is_kept or (around is not None and around.command in MAINTENANCE)
        self._parts: set[PlanPart] = set()
        self._scans: set[str] = set()
        self._has_rdd = False
        self._roots: set[tuple[str, str]] = set()

    def add(self, info: PlanInfo) -> None:
        """Account for a plan, or for what it has become (``SparkListenerSQLAdaptiveExecutionUpdate``)."""
        nodes = list(_walk(info))
        # Parents come first: whether the rows are written is known when the leaves are looked at.
        for node in nodes:
            name = _class_name(node)
            if name in WRITES:
                self.command = self.command or name
                self._write(node, nodes)
            elif name in COMMANDS:
                self.command = self.command or name
            elif node.nodeName.startswith(_EXECUTE):
                self._parts.add(PlanPart(name, is_write=True))
            elif not node.children:
                self._leaf(node)

    def ran(self, rdds: Iterable[Rdd]) -> None:
        """Note what RDDs a job of the execution begins with."""
        if self._has_rdd:
            self._roots.update((_rdd_name(rdd), _scope(rdd)) for rdd in rdds if not rdd.parents)

    def remaining(
        self, inputs: Iterable[Observed], outputs: Iterable[Observed], sink: str = ""
    ) -> tuple[PlanPart, ...]:
        """Return the leaves and writes that neither a rule ignores nor the reader of the plan names, sorted.

        :param sink: the description of the sink of the query that it is a batch of
        """
        if self._is_kept:
            return ()
        parts = [*self._parts, *self._rdd_parts()]
        if sink and not _is_ignored_sink(sink):
            parts.append(PlanPart(_sink_name(sink), is_write=True))
        named = [one for one in inputs if one.dataset.namespace]
        written = [one for one in outputs if one.dataset.namespace]
        return tuple(sorted(left_over(parts, named, written)))

    def _write(self, node: PlanInfo, nodes: list[PlanInfo]) -> None:
        classes = {match["name"] for match in _CLASS.finditer(node.described)}
        if classes.isdisjoint(SINKS):
            self.is_writing = True
            self._parts.add(PlanPart(node.nodeName.removeprefix(_EXECUTE), is_write=True))
        elif not classes.isdisjoint(MEMORY_SINKS):
            self._in_memory.add(frozenset(name for each in nodes for name in _columns(each)))

    def _leaf(self, node: PlanInfo) -> None:
        name = " ".join(node.nodeName.split())
        if name == _LOCAL_ROWS and self.is_writing and self._is_in_memory(node):
            self._parts.add(PlanPart(f"{_LOCAL_ROWS} of a memory sink", is_nameless=True))
        if name.removeprefix("Scan ") in LEAVES or not name:
            # A plan that could not be made has no name: its execution failed before anything was read.
            return
        located = _LOCATION.fullmatch(node.metadata.location)
        if located is not None:
            self._scans.add(name)
            if located["index"] not in INDEXES:
                self._parts.add(PlanPart(name, *_paths(located)))
            return
        if name.startswith(_EXISTING_RDD) or (name.startswith("Scan") and "[obj#" in node.described):
            is_delta_log = _DELTA_LOG_RDD.match(node.described) is not None
            self._scans |= _DELTA_LOG_SCANS if is_delta_log else set()
            is_delta = is_delta_log or name.startswith(_MERGE_SOURCE)
            # Rows inside of a micro-batch are those that its query was given.
            self._has_rdd |= not (is_delta or self._is_inside_batch)
            return
        self._scans.add(name)
        stream = _STREAM_SCAN.match(node.described)
        if stream is not None:
            relation = _last(stream["class"])
            if relation not in RELATIONS:
                self._parts.add(PlanPart(f"{name.partition('[')[0]} {relation}"))
            return
        if name == _LOOP:
            # It hides the scans of its plan, and runs them as executions or as jobs of its own.
            self._parts.add(PlanPart(name, count=0))
            return
        if name.startswith(_JDBC_QUERY):
            self._parts.add(PlanPart(f"{_JDBC_SCAN} of a query"))
            return
        table = next((match["table"] for each in (_HIVE, _JDBC, _V2_SCAN) if (match := each.fullmatch(name))), "")
        name = f"{_JDBC_SCAN}({table})" if name.startswith(_JDBC_SCAN) and table else name
        self._parts.add(PlanPart(name, (table,) if table else ()))

    def _is_in_memory(self, node: PlanInfo) -> bool:
        """Whether rows may be those that a stream has kept: a sink in memory has their columns."""
        columns = _columns(node)
        return bool(columns) and any(columns <= kept for kept in self._in_memory)

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._directory}/{path}"

    def _rdd_parts(self) -> Iterator[PlanPart]:
        """Return what the RDDs of the program read, which a plan has as ``Scan ExistingRDD``."""
        for name, scope in sorted(self._roots):
            if name in RDDS or scope in self._scans:
                continue
            if name in _CHECKPOINTS:
                if self.is_writing:
                    yield PlanPart(f"{_EXISTING_RDD} of a checkpoint: its columns", is_nameless=True)
            elif re.fullmatch(r"\w+RDD", name) is None:
                paths = (path.strip() for path in name.split(","))
                yield PlanPart(_EXISTING_RDD, tuple(path if ":" in path else self._absolute(path) for path in paths))
            else:
                yield PlanPart(_EXISTING_RDD)


def _walk(info: PlanInfo) -> Iterator[PlanInfo]:
    yield info
    for child in info.children:
        yield from _walk(child)


def _paths(located: re.Match[str]) -> tuple[tuple[str, ...], int]:
    """Return the paths of a scan, and how many it has: the list may be cut."""
    count, text = int(located["count"]), located["paths"]
    if count == 1:
        return (text,), 1
    paths = tuple(path for path in text.removesuffix(_CUT_PATHS).split(", ") if path)
    # A path that holds a comma makes more of them; nobody can know which belong together.
    return (paths, count) if len(paths) <= count else ((), 1)


def _columns(node: PlanInfo) -> set[str]:
    return set(_COLUMN.findall(node.described))


def _class_name(node: PlanInfo) -> str:
    """Return the class of a command or write: ``AppendData`` of ``AppendData db.t``, of CALL that of its procedure."""
    name = node.nodeName.removeprefix(_EXECUTE).removesuffix("$").partition(" ")[0]
    match = _PROCEDURE.search(node.described) if name == _CALL else None
    return match["name"] if match else name


def _last(name: str) -> str:
    """Return the last part of a class's name: ``RateStreamTable`` of ``….RateStreamTable$$anon$1``."""
    named = [part for part in re.split(r"[.$]+", name) if part and part != "anon" and not part.isdigit()]
    return named[-1] if named else name


def _is_ignored_sink(sink: str) -> bool:
    return any(name in sink for name in SINKS)


def _sink_name(sink: str) -> str:
    return _last(re.split(r"[\[@(]", sink, maxsplit=1)[0])


def _rdd_name(rdd: Rdd) -> str:
    return rdd.name or ""


def _scope(rdd: Rdd) -> str:
    """Return the name of the operator that made an RDD."""
    try:
        name = json.loads(rdd.scope or "{}").get("name", "")
    except ValueError:
        return ""
    return " ".join(str(name).split())
