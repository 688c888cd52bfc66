"""Accounts for the leaves and writes of an execution: each is named, ignored by a rule that has a name, or left over.

The accounts come from ``sparkPlanInfo`` and from the progress of queries, neither of which the reader of plans looks
at: what it overlooks, or names wrongly, is left over here and counted. Rows of RDDs are accounted for by their jobs
(``rdds``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from spark_lineage.merge.accounting import OF_PROGRAM, PlanPart, left_over
from spark_lineage.merge.observed import Observed
from spark_lineage.plans.accounting_rules import (
    COMMANDS,
    HIDDEN,
    INDEXES,
    LEAVES,
    MAINTENANCE,
    MEMORY_SINKS,
    METADATA_SCAN,
    RELATIONS,
    SINKS,
    WRITES,
)
from spark_lineage.plans.event_log_lines import ExecutionStart, PlanInfo

EXISTING_RDD = "Scan ExistingRDD"
LOCAL_ROWS = "LocalTableScan"

_LOCATION = re.compile(r"(?P<index>\w+)\((?P<count>\d+) paths\)\[(?P<paths>.*)\]", re.DOTALL)
_CUT_PATHS = ", ..."
_HIVE = re.compile(r"Scan hive (?P<table>\S+)")
_JDBC_SCAN = "Scan JDBCRelation"
_JDBC = re.compile(rf"{_JDBC_SCAN}\((?P<table>.*)\) \[numPartitions=\d+\]", re.DOTALL)
_V2_SCAN = re.compile(r"BatchScan (?P<table>.+)", re.DOTALL)
# The changelog of an Iceberg table, whose scan is called after a table that is none.
_CHANGELOG = re.compile(r"BatchScan .+\.changes\[.*\] (?P<table>\S+) \[fromSnapshotId=.*", re.DOTALL)
# A v2 scan whose source has Spark read as before (``V1ScanWrapper``).
_WRAPPED = re.compile(r"Scan .+ from v2 scan (?P<table>.+)", re.DOTALL)
_MOST_LETTERS = 100
# Files as a v2 source reads them (``FileTable.name``).
_V2_FILES = re.compile(r"BatchScan \w+ (?P<paths>[a-z][a-z0-9+.-]*:/.+)", re.DOTALL)
_HASH = re.compile(r"@[0-9a-f]{3,}\b")
_STREAM_SCAN = re.compile(
    r"(?P<node>(?:MicroBatch|Continuous|RealTimeStream)Scan)\b.*?\bclass (?P<class>[\w.$]+)", re.DOTALL
)
_LOOP = "UnionLoop"
_DELTA_LOG_RDD = re.compile(r"Scan ExistingRDD Delta \w.*_delta_log\b|Scan ExistingRDD\[txn#\d+,add#\d+,remove#\d+")
# The source of a MERGE, which an execution before it has read.
_MERGE_SOURCE = "Scan ExistingRDD mergeMaterializedSource"
# The answer of a source to aggregates that Spark has pushed down, such as Iceberg's from the statistics of its files.
_AGGREGATE = r"(?:count|min|max|sum)\([^#]*\)#\d+L?"
_AGGREGATES = re.compile(rf"{LOCAL_ROWS} \[{_AGGREGATE}(?:, {_AGGREGATE})*\]", re.DOTALL)
PUSHED_AGGREGATES = PlanPart(f"{LOCAL_ROWS} of aggregates", "input")
# Spark reads this in place of relations that can give no row (``PropagateEmptyRelation``): their columns are left.
_EMPTIED = re.compile(rf"{LOCAL_ROWS} <empty>, \[.+\]", re.DOTALL)
# Methods that give the rows of a query, or their number, to the program; a script in SQL is one as well.
_COLLECTING = re.compile(
    r"(?:approxQuantile|collect\w*|corr|count|cov|crosstab|first|freqItems|head|isEmpty|sql|tail|take\w*|toLocalIterator\w*"
    r"|toPandas\w*) at "
    # A client that is remote gets the rows of each query, or prints them.
    r"|Spark Connect - (?!.*\bshow_string \{).*\broot \{",
    re.DOTALL,
)
_SETTING = "SetVariable"
# Executions by which Delta reads and writes its own log inside of a command.
_OF_DELTA = re.compile(r"Delta: |\$anonfun\$|toDataset\$")
# The scan of rows that a program makes as objects has such a column.
_OBJECTS = "[obj#"


def name_of(node: PlanInfo) -> str:
    """Return the name of a node, without the spaces that some scans have in it and the address of an object."""
    return _HASH.sub("", " ".join(node.nodeName.split()))


def is_of_rdd(node: PlanInfo) -> bool:
    """Whether a leaf gives out the rows of an RDD of the program: its jobs have what the RDD reads."""
    is_rdd = node.nodeName.startswith(EXISTING_RDD) or (node.nodeName.startswith("Scan") and _OBJECTS in node.described)
    return is_rdd and not node.nodeName.startswith(_MERGE_SOURCE)


def is_of_delta_log(node: PlanInfo) -> bool:
    """Whether a leaf gives out what Delta has read of its own log, to find the files of a table."""
    located = _LOCATION.fullmatch(node.metadata.location)
    if located is not None:
        return located["index"] in INDEXES
    return node.nodeName.startswith(EXISTING_RDD) and _DELTA_LOG_RDD.match(node.described) is not None


def leaf_part(node: PlanInfo) -> PlanPart | None:
    """Return what a leaf needs, None for one that a rule ignores."""
    name = name_of(node)
    # A plan that could not be made has no name: its execution failed before anything was read.
    if name == LOCAL_ROWS and _AGGREGATES.fullmatch(node.described):
        return PUSHED_AGGREGATES
    is_ignored = not name or name.removeprefix("Scan ") in LEAVES or METADATA_SCAN.fullmatch(name) is not None
    if is_ignored or is_of_delta_log(node) or name.startswith(EXISTING_RDD):
        return None
    if located := _LOCATION.fullmatch(node.metadata.location):
        return PlanPart(name, "input", *_paths(located))
    return _without_location(node, name)


def _without_location(node: PlanInfo, name: str) -> PlanPart | None:
    if stream := _STREAM_SCAN.match(node.described):
        relation = last_part(stream["class"])
        return None if relation in RELATIONS else PlanPart(f"{stream['node']} {relation}", "input")
    if name == _LOOP:
        # It hides the scans of its plan, and runs them as executions or as jobs of its own.
        return PlanPart(name, "any input")
    if name.startswith(f"{_JDBC_SCAN}(("):
        return PlanPart(f"{_JDBC_SCAN} of a query", "input")
    if files := _V2_FILES.fullmatch(name):
        return PlanPart(name, "input", tuple(files["paths"].split(",")))
    scans = (_HIVE, _JDBC, _V2_SCAN, _WRAPPED)
    table = next((match["table"] for each in scans if (match := each.fullmatch(name))), "")
    if changelog := _CHANGELOG.fullmatch(node.described):
        table = changelog["table"]
    name = f"{_JDBC_SCAN}({table})" if name.startswith(_JDBC_SCAN) and table else name
    # Some relations print all of their options.
    name = name if len(name) <= _MOST_LETTERS else f"{name[:_MOST_LETTERS]}…"
    return PlanPart(name, "input", (table,) if table else ())


def last_part(name: str) -> str:
    """Return the last part of the name of a class: ``RateStreamTable`` of ``….RateStreamTable$$anon$1``."""
    named = [part for part in re.split(r"[.$]+", name) if part and part != "anon" and not part.isdigit()]
    return named[-1] if named else name


def _paths(located: re.Match[str]) -> tuple[tuple[str, ...], int]:
    """Return the paths of a scan, and how many it has: the list may be cut."""
    count, text = int(located["count"]), located["paths"]
    if count == 1:
        return (text,), 1
    paths = tuple(path for path in text.removesuffix(_CUT_PATHS).split(", ") if path)
    # A path that holds a comma makes more of them; nobody can know which belong together.
    return (paths, count) if len(paths) <= count else ((), 1)


_EXECUTE = "Execute "
_CALL = "Call"
_PROCEDURE = re.compile(r"\b(?P<name>\w+Procedure)\b")
# A class with its package, or what stands for one as the writer of a stream.
_CLASS = re.compile(r"(?:\b\w+[.$]|\bwriter: )+(?P<name>[A-Za-z]\w*)")
_COLUMN = re.compile(r"([^\s,\[(]+)#\d+")
# The state of a Delta table with the statistics of its files, and the number of rows among these.
_DELTA_TABLE = re.compile(r" with Stats #\d+ - (?P<table>.+)/_delta_log\Z")
_COUNTED = "numRecords"
REWRITING = re.compile(r"Rewriting \d+ files \(")
"""The description of executions of Iceberg's rewrite_data_files (RewriteDataFilesSparkAction)."""


class Accounts:
    """The accounts of one application, with what is behind the rows that a plan has as its own.

    Streams keep rows in the memory of the driver. Delta answers aggregates from its log, by executions inside of the
    query that come before it.
    """

    def __init__(self) -> None:
        self._in_memory: set[frozenset[str]] = set()
        self._answers: dict[int, set[str]] = {}
        self.has_collected = False
        """Whether a query of a dataset has given rows to the program, which may write what it makes of them."""

    def open(self, event: ExecutionStart, around: Account | None, *, is_batch: bool) -> Account:
        """Return the account of an execution that starts.

        :param around: the account of the root execution that it runs inside of, if it is known
        :param is_batch: whether it is the micro-batch of a streaming query, or runs inside of one
        """
        account = Account(self._in_memory, around, is_batch=is_batch)
        account.is_kept |= REWRITING.match(event.description) is not None
        if event.sparkPlanInfo is not None:
            account.is_blank = not event.sparkPlanInfo.nodeName
            account.add(event.sparkPlanInfo)
        if not (is_batch or _OF_DELTA.match(event.description)):
            account.begin(is_after_query=self.has_collected)
        is_query = around is None and account.command in {"", _SETTING} and not account.is_writing
        account.is_collecting = is_query and _COLLECTING.match(event.description) is not None
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
        self.is_collecting = False
        # Each relation of the plan's own rows is noted by whether it is empty.
        self._local_rows: set[bool] = set()
        self._has_rdd = self._has_delta_log = False
        self._has_values = self._is_emptied = self._is_after_query = False

    @property
    def is_of_delta_log(self) -> bool:
        """Whether it reads nothing but the log of a Delta table."""
        return self._has_delta_log and not (self._parts or self._has_rdd or self.command)

    def add(self, info: PlanInfo) -> None:
        """Account for a plan, or for what it has become (``SparkListenerSQLAdaptiveExecutionUpdate``)."""
        nodes = list(info.walk())
        # Parents come first: whether the rows are written is known when the leaves are looked at.
        for node in nodes:
            name = _class_name(node.nodeName)
            is_command = name in WRITES or name in COMMANDS or node.nodeName.startswith(_EXECUTE)
            if node.children and not is_command:
                continue
            # The plan that a plan becomes has mostly the same leaves.
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

    def begin(self, *, is_after_query: bool) -> None:
        """Note which rows are in the plan that an execution starts with, before any row is read.

        :param is_after_query: whether a query has given rows to the program before
        """
        self._is_after_query = is_after_query
        self._is_emptied = True in self._local_rows
        self._has_values = False in self._local_rows and PUSHED_AGGREGATES not in self._parts

    def answer(self, tables: Collection[str]) -> None:
        """Account for the tables whose logs have answered a part of the plan, which has the answer as its own rows."""
        if self._local_rows and tables:
            self._has_values = False
            self._parts.discard(PUSHED_AGGREGATES)
            self._parts.update(PlanPart(f"{LOCAL_ROWS} of a Delta log", "input", (table,)) for table in tables)

    def remaining(
        self,
        inputs: Iterable[Observed],
        outputs: Iterable[Observed],
        sink: str = "",
        *,
        is_failed: bool | None = None,
        has_values: bool = True,
    ) -> tuple[PlanPart, ...]:
        """Return the parts that neither a rule ignores nor the reader of the plan names, sorted.

        :param sink: the description of the sink of the query that it is a batch of
        :param has_values: whether an RDD of the program, if there is one, may hold what a query has given before
        """
        if self.is_kept:
            return ()
        parts = list(self._parts)
        if self.is_writing and not is_failed:
            parts += self._of_driver(has_values=self._has_values or (self._has_rdd and has_values))
        if self.is_blank and is_failed is False:
            parts.append(PlanPart("a plan without nodes", "nothing"))
        has_write = any(part.needs == "output" for part in parts)
        if sink and not (has_write or any(name in sink for name in SINKS)):
            parts.append(PlanPart(last_part(re.split(r"[\[@(]", sink, maxsplit=1)[0]), "output"))
        written = [one for one in outputs if one.dataset.namespace]
        return tuple(sorted(left_over(parts, list(inputs), written)))

    def _of_driver(self, *, has_values: bool) -> Iterator[PlanPart]:
        """Account for rows that are written and that no scan gives: those of no row, and those of the program."""
        if self._is_emptied:
            yield PlanPart(f"{LOCAL_ROWS} without rows: what it stands for", "input")
        if self._is_after_query and has_values and not any(part.name.startswith(LOCAL_ROWS) for part in self._parts):
            yield OF_PROGRAM

    def _write(self, node: PlanInfo, nodes: list[PlanInfo]) -> None:
        classes = {match["name"] for match in _CLASS.finditer(node.described)}
        if classes.isdisjoint(SINKS):
            self.is_writing = True
            self._parts.add(PlanPart(node.nodeName.removeprefix(_EXECUTE), "output"))
        elif not classes.isdisjoint(MEMORY_SINKS):
            self._in_memory.add(frozenset(name for each in nodes for name in _columns(each)))

    def _leaf(self, node: PlanInfo, nodes: list[PlanInfo]) -> None:
        part = leaf_part(node)
        if node.nodeName == LOCAL_ROWS:
            self._local_rows.add(_EMPTIED.fullmatch(node.described) is not None)
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
