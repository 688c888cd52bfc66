"""Names what the RDDs of an application read: by their own names and operators, and by the plans that run them.

``SparkListenerJobStart`` lists, for each stage, an RDD and all RDDs that it is made from without a shuffle; the stages
of a job include those that are skipped. The name of an RDD may be a path (``sc.textFile``), its scope the operator of a
plan (``Scan parquet spark_catalog.db.t``). The rows of ``df.rdd`` come from an ``SQLExecutionRDD``, below which the
operators are those of a plan that no event prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from spark_lineage.merge.execution import FILES_UNREAD
from spark_lineage.merge.observed import Observed
from spark_lineage.plans.event_log_lines import JobStart, Rdd
from spark_lineage.plans.plan import Node
from spark_lineage.plans.tables import Tables, scanned

# Operators above RDDs of the program (``RDDScanExec``, ``ExternalRDDScanExec``).
ROWS_OF_PROGRAM = frozenset({"Scan ExistingRDD", "Scan"})
# The datasets that a plan reads, by the name of their scan; None where two scans of a name read different ones.
Scans = Mapping[str, tuple[Observed, ...] | None]

_SCAN = re.compile(r"(?:File|Batch)?Scan (?!ExistingRDD|In-memory|OneRowRelation)\S")
_FILE_SCAN = re.compile(r"(?:File)?Scan (?P<format>[\w.]+) (?P<table>\S+)")
_JDBC_SCAN = "Scan JDBC"
# The RDD below a scan of a database, which generated code reads without an RDD that has the name of the scan.
_JDBC_RDD = "JDBCRDD"
_CHECKPOINT = re.compile(r"(?:Reliable|Local)CheckpointRDD")
# RDDs of values of the program (``sc.parallelize``), and of none.
_VALUES = re.compile(r"ParallelCollectionRDD|EmptyRDD")
_VALUE_METHODS = frozenset({"parallelize", "makeRDD", "range", "emptyRDD"})
# Delta keeps the state of a table, which it has read from the table's log, as an RDD of this name.
_DELTA_STATE = re.compile(r"Delta Table State .*/_delta_log")
_FILE_RDD = re.compile(r"(?:\w*Hadoop|FileScan|BinaryFile|WholeTextFile)RDD")
# The method that an RDD of a cache is made by: its rows are those of a plan as well.
_OF_CACHE = "mapPartitionsInternal"
# Methods that read only to learn a schema, unless they run an execution; of these the plan is known. A program over
# Spark Connect has no RDD of its own, and only its models read the rows of one.
_INFERRING = re.compile(
    r"(?:csv|json|xml|load|orc|parquet|avro|text|textFile|table|sql|createTable|createExternalTable) at "
    r"|Spark Connect - (?!.*\bml_command\b)",
    re.DOTALL,
)
# So many RDDs are remembered; the checkpoint of a forgotten RDD has an unknown source.
_REMEMBERED = 20_000
ROWS_UNREAD = ": its rows"


@dataclass(frozen=True)
class Rows:
    """Where rows come from: the datasets that are named, and by the id of an RDD those parts that name none."""

    reads: frozenset[Observed] = frozenset()
    unread: frozenset[tuple[int, str]] = frozenset()

    def __or__(self, other: Rows) -> Rows:
        """Return where rows come from that are made from both."""
        return Rows(self.reads | other.reads, self.unread | other.unread)

    @property
    def is_of_dataset(self) -> bool:
        """Whether any of them come from a dataset."""
        return bool(self.reads or self.unread)

    @property
    def parts(self) -> tuple[str, ...]:
        """What events call the parts that name no dataset."""
        return tuple(sorted({part for _, part in self.unread}))


NO_ROWS = Rows()


def scans_of(leaves: Iterable[Node], tables: Tables) -> tuple[tuple[Observed, ...], Scans]:
    """Return the datasets that the leaves of a plan read, all together and by the names of their scans."""
    reads: list[Observed] = []
    scans: dict[str, tuple[Observed, ...] | None] = {}
    for node in leaves:
        found = scanned(node, tables)
        reads += found
        for name in {node.name.strip(), _JDBC_RDD} if node.name.startswith(_JDBC_SCAN) else {node.name.strip()}:
            scans[name] = found if scans.get(name, found) == found else None
    return tuple(reads), scans


class RddRows:
    """The RDDs of one application, each with where its rows come from, as its jobs show."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[int, Rows] = {}
        self._counted: set[tuple[int, str]] = set()
        self.newest = -1
        """The last RDD that a job has run, by its id: all with smaller ones were there before that job."""

    def of_job(self, job: JobStart) -> Rows:
        """Return where the rows of a job come from that no execution runs, an RDD without a name in one job alone.

        A model that is trained reads the same rows in many jobs. Jobs that infer a schema, and those that plan a
        micro-batch, are Spark's own.
        """
        rdds = self._learn(job, {}, frozenset())
        rows = self._together(_lasts(rdds))
        is_of_spark = job.is_of_stream or any(_INFERRING.match(stage.name) for stage in job.stages)
        unread = frozenset() if is_of_spark else rows.unread - self._counted
        self._counted |= unread
        return Rows(rows.reads, unread)

    def of_execution(self, job: JobStart, scans: Scans, *, has_rows_of_program: bool) -> Rows:
        """Return where the rows of RDDs come from that a job of an execution reads, beside what its plan reads itself.

        :param scans: what the plan reads
        :param has_rows_of_program: whether the plan has an operator that reads an RDD of the program
        """
        if job.stage_infos is None and has_rows_of_program:
            return Rows(unread=frozenset({(-1 - job.id, f"Scan ExistingRDD{ROWS_UNREAD}")}))
        rows = self._of_program(job, scans)
        return rows if has_rows_of_program else Rows(rows.reads)

    def of_batch(self, job: JobStart, scans: Scans) -> tuple[Rows, bool]:
        """Return the files that RDDs of the program read in a job of a micro-batch, and whether others are read, too.

        A micro-batch gives its rows, which its plan names, to the executions inside of it as an RDD.
        """
        rows = self._of_program(job, scans)
        reads = frozenset(self._tables.at(path) for path in job.paths)
        return Rows(reads), bool(rows.unread or rows.reads - reads)

    def _of_program(self, job: JobStart, scans: Scans) -> Rows:
        own, entries = _regions({rdd.id: rdd for stage in job.stages for rdd in stage.rdds})
        self._learn(job, scans, own)
        return self._together(entries)

    def _learn(self, job: JobStart, scans: Scans, own: frozenset[int]) -> dict[int, Rdd]:
        """Note where the rows of each RDD of a job come from; ``own`` are RDDs of the plan that has the scans."""
        rdds = {rdd.id: rdd for stage in job.stages for rdd in stage.rdds}
        self.newest = max((self.newest, *rdds))
        # An RDD is made after those that it is made from.
        for identity in sorted(rdds):
            known = self._known.get(identity)
            if known is None or known.unread:
                self._known[identity] = self._rows(rdds[identity], scans if identity in own else {}, known)
        for identity in list(islice(self._known, max(len(self._known) - _REMEMBERED, 0))):
            del self._known[identity]
        return rdds

    def _together(self, identities: Iterable[int]) -> Rows:
        rows = NO_ROWS
        for identity in identities:
            rows |= self._known.get(identity, NO_ROWS)
        return rows

    def _rows(self, rdd: Rdd, scans: Scans, known: Rows | None) -> Rows:
        if _is_of_values(rdd):
            return NO_ROWS
        if rdd.is_named_by_path:
            return Rows(frozenset(self._tables.at(path) for path in rdd.paths))
        reads = self._scanned(rdd, scans)
        if reads:
            return Rows(frozenset(reads))
        if reads is None and rdd.parents:
            return self._rows_of_parents(rdd, known)
        return Rows(unread=frozenset({(rdd.id, _part(rdd))}))

    def _rows_of_parents(self, rdd: Rdd, known: Rows | None) -> Rows:
        parents = [self._known.get(parent) for parent in rdd.parents]
        if known is not None and None in parents:
            # It was cut off from its parents by a checkpoint since.
            return known
        missing = Rows(unread=frozenset({(rdd.id, f"ReliableCheckpointRDD{ROWS_UNREAD}")}))
        rows = NO_ROWS
        for parent in parents:
            rows |= missing if parent is None else parent
        return rows

    def _scanned(self, rdd: Rdd, scans: Scans) -> tuple[Observed, ...] | None:
        """Return what the scan reads that an RDD is of, None for one of no scan, empty for a scan without a name."""
        name = rdd.method.strip()
        if not _SCAN.match(name):
            # The rows of a scan that generated code reads.
            return scans.get(_JDBC_RDD) if rdd.name == _JDBC_RDD and not rdd.parents else None
        if name in scans:
            return scans[name] or ()
        if match := _FILE_SCAN.fullmatch(name):
            # Its place is known where a plan has named it; a catalog may have put it anywhere.
            table = self._tables.named(match["table"], is_own=False)
            return (table,) if table is not None else ()
        return scanned(Node(0, name), self._tables)


def newest_values(job: JobStart) -> int:
    """Return the id of the last RDD of a job that holds values of the program, -1 without one."""
    return max((rdd.id for stage in job.stages for rdd in stage.rdds if _is_of_values(rdd)), default=-1)


def _regions(rdds: Mapping[int, Rdd]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the RDDs of an execution's own plan, and those of the program that its plan reads."""
    own: set[int] = set()
    entries: set[int] = set()
    waiting = list(_plan_roots(rdds))
    while waiting:
        identity = waiting.pop()
        rdd = rdds.get(identity)
        if identity in own or rdd is None:
            continue
        if _is_of_plan(rdd):
            own.add(identity)
            waiting += rdd.parents
        elif rdd.name == _JDBC_RDD:
            own.add(identity)
        else:
            entries.add(identity)
    return frozenset(own), frozenset(entries - own)


def _plan_roots(rdds: Mapping[int, Rdd]) -> Iterator[int]:
    """Return where the plan of an execution begins: below the methods that run it, such as ``foreachPartition``."""
    for identity in _lasts(rdds):
        found = identity
        while not _is_of_plan(rdds[found]):
            parents = [parent for parent in rdds[found].parents if parent in rdds]
            if len(parents) != 1 or rdds[found].is_named_by_path:
                # No plan is below: these are the program's own.
                found = identity
                break
            (found,) = parents
        yield found


def _is_of_values(rdd: Rdd) -> bool:
    """Whether an RDD reads no dataset: values of the program, and what Delta keeps of its log."""
    name = rdd.name or ""
    is_made = not rdd.parents and bool(_VALUES.fullmatch(name) or rdd.method in _VALUE_METHODS)
    return is_made or _DELTA_STATE.fullmatch(name) is not None


def _is_of_plan(rdd: Rdd) -> bool:
    """Whether an operator of a plan has made an RDD, and no method of RDDs."""
    return rdd.method[:1].isupper() or rdd.method == _OF_CACHE


def _lasts(rdds: Mapping[int, Rdd]) -> list[int]:
    """Return the RDDs that no other of a job is made from."""
    parents = {parent for rdd in rdds.values() for parent in rdd.parents}
    return sorted(rdds.keys() - parents)


def _part(rdd: Rdd) -> str:
    """Return what an event calls an RDD that names no dataset."""
    name = rdd.name or ""
    scan = rdd.method.strip()
    if _SCAN.match(scan) and not scan.startswith((_JDBC_SCAN, "Batch")):
        return " ".join(scan.split()[:2]) + FILES_UNREAD
    if name == _JDBC_RDD or scan.startswith(_JDBC_SCAN):
        return f"{_JDBC_RDD}: its table"
    if _FILE_RDD.fullmatch(name):
        return name + FILES_UNREAD
    # A name that a program has given may be anything.
    return (name if re.fullmatch(r"[A-Za-z]+RDD", name) else "RDD") + ROWS_UNREAD
