"""What evidence beyond the listener says of one SQL execution: Spark's event log, as values that can be joined."""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct

from spark_lineage.merge.accounting import PlanPart
from spark_lineage.merge.lineage import (
    Application,
    ChangeType,
    ColumnChange,
    ObjectType,
    ParentRun,
    PartitionChange,
    Repair,
    SchemaField,
    Transformation,
)
from spark_lineage.merge.observed import Edge, Observed, join, join_fields
from spark_lineage.naming.identity import DatasetName

DECIDES = Transformation("INDIRECT", "UNKNOWN")
"""How the conditions of a query decide, until they are known: as a column without a name."""
_SEPARATOR = "\x1f"


class QueryTable(Struct, frozen=True, order=True, gc=False):
    """A table of a query, as it is written there without quotes, and as the database calls it."""

    written: str
    folded: str

    @property
    def dataset(self) -> DatasetName:
        """What stands for it until its database is known."""
        return DatasetName("", self.written)


class QueryReading(Struct, frozen=True, gc=False):
    """What a query reads, in the dialect of databases whose namespaces have these schemes; without any, in others.

    ``edges`` lead from the columns of its result to those of its tables, and from None what decides on its rows.
    ``unread`` lists what is not certain, ``functions`` has the names of functions that stand as tables.
    """

    schemes: tuple[str, ...]
    tables: tuple[QueryTable, ...] = ()
    edges: frozenset[Edge] = frozenset()
    unread: tuple[str, ...] = ()
    functions: frozenset[str] = frozenset()


class DatabaseQuery(Struct, frozen=True, gc=False):
    """A query that a database runs for Spark, and what it may mean; the last reading is for other databases."""

    dataset: DatasetName
    readings: tuple[QueryReading, ...]

    def reading(self, namespace: str) -> QueryReading:
        """Return what it means in a database."""
        scheme = namespace.partition(":")[0]
        return next((each for each in self.readings if scheme in each.schemes), self.readings[-1])


def query_dataset(sql: str, columns: Iterable[str]) -> DatasetName:
    """Return what stands for the result of a query, of which Spark reads these columns."""
    return DatasetName("", _SEPARATOR.join((sql.replace(_SEPARATOR, " "), *columns)))


def query_of(dataset: DatasetName) -> tuple[str, tuple[str, ...]] | None:
    """Return the text and the columns of a query that a dataset stands for, None for any other dataset."""
    sql, separator, columns = dataset.name.partition(_SEPARATOR)
    return None if dataset.namespace or not separator else (sql, tuple(columns.split(_SEPARATOR)))


FILES_UNREAD = ": its files"
"""How the unread part ends that stands for files of which the log names none, and the listener their directory."""


class CatalogStatement(Struct, frozen=True, gc=False):
    """What a command says that it does to the catalog: ``name`` and ``new_name`` as the plan has them (``cat.db.t``).

    ``columns`` and ``properties`` are those that it changes (``comment`` among them), ``schema`` the columns and
    ``partitioned_by`` the columns and transforms of a CREATE, ``unset_properties``, ``partitions`` and ``repair`` as a
    ``CatalogChange`` has them.
    ``is_conditional`` means IF [NOT] EXISTS or CREATE OR REPLACE (None: not known), ``is_cascading`` DROP DATABASE
    CASCADE, ``has_unnamed_columns`` that an ALTER renames or drops columns that it does not name.
    """

    change: ChangeType
    object_type: ObjectType
    name: str
    new_name: str = ""
    columns: tuple[ColumnChange, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    is_conditional: bool | None = False
    is_cascading: bool = False
    partitioned_by: tuple[str, ...] = ()
    has_unnamed_columns: bool = False
    unset_properties: tuple[str, ...] = ()
    partitions: tuple[PartitionChange, ...] = ()
    repair: Repair = ""
    schema: tuple[SchemaField, ...] = ()


def logged_run_id(application_id: str, started_millis: int) -> str:
    """Return the run id of an application, or of an attempt of it, whose event log names none."""
    return str(uuid5(NAMESPACE_URL, f"spark:{application_id}@{started_millis}"))


class LoggedApplication(Struct, frozen=True, gc=False):
    """A Spark application as its event log describes it; times are epoch seconds, ``ended`` is None without an end.

    Its names, its run id and ``parent`` are those of ``spark.openlineage.*`` where it was submitted with such
    properties. Only ``ended`` says whether it has ended. ``attempt_id`` is empty where a manager knows no attempts.
    """

    application: Application
    started: float
    ended: float | None = None
    parent: ParentRun | None = None
    attempt_id: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The key of an attempt of an application: no other has it."""
        return self.application.application_id or "", self.attempt_id


class Execution(Struct, frozen=True, gc=False):
    """One SQL execution of a Spark application (``SparkListenerSQLExecutionStart`` and ``...End``).

    ``started`` and ``ended`` (None: not logged) are epoch seconds with Spark's milliseconds, which the listener's
    START and COMPLETE repeat. ``is_failed`` is None where it is not known; ``error`` is why, without secrets.
    ``has_jobs``: a SparkJob ran for it. ``command`` is the simple class name of the command at the root, empty for
    a query. ``mode`` is its save mode (``Append``, ``Overwrite``, ``Ignore``, ``ErrorIfExists``), ``partition`` the
    static partition that it writes (``("day=1",)``), ``constants`` the columns that have one value in all rows that
    it writes, ``partitioned_by`` all columns by which it partitions. ``is_partial``: an overwrite replaces some
    partitions or rows only. ``is_merge``: it writes what a MERGE made. ``query_id`` is the streaming query that it
    is a batch of, ``output_mode`` that of it.

    ``inputs`` and ``outputs`` are what its plan reads and writes, with the edges that the plan names. ``is_whole``: the
    plan was understood from root to leaves; ``unread`` names the operators and commands that no rule reads, and what
    RDDs read that name none, ``unnamed`` are the leaves and writes of the plan that no dataset of ``inputs`` and
    ``outputs`` stands for. ``has_rdds``: rows that it reads came through RDDs of the program. ``queries`` are those
    among the inputs that a database ran.
    ``statement`` is what it does to the catalog, ``feeds`` are Delta's tables whose change feed it reads. The job of an
    RDD has a negative ``execution_id``, and inputs alone; its ``command`` is the method that saves files, if it does.
    ``target_versions`` are those of a table of Delta of which a write to it looked up the state before.
    Each attempt of an application (``attempt_id``) counts its executions from 0.
    """

    application_id: str
    execution_id: int
    root_execution_id: int
    started: float
    ended: float | None = None
    is_failed: bool | None = None
    has_jobs: bool = False
    command: str = ""
    mode: str = ""
    is_partial: bool = False
    partition: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    is_merge: bool = False
    query_id: str = ""
    output_mode: str = ""
    inputs: tuple[Observed, ...] = ()
    outputs: tuple[Observed, ...] = ()
    is_whole: bool = False
    unread: tuple[str, ...] = ()
    has_rdds: bool = False
    unnamed: tuple[PlanPart, ...] = ()
    statement: CatalogStatement | None = None
    attempt_id: str = ""
    queries: tuple[DatabaseQuery, ...] = ()
    error: str = ""
    feeds: frozenset[DatasetName] = frozenset()
    target_versions: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, int]:
        """Its key: no other execution has it."""
        return self.application_id, self.attempt_id, self.execution_id

    @property
    def root_key(self) -> tuple[str, str, int]:
        """The key of the execution that it is part of, its own where it is part of none."""
        return self.application_id, self.attempt_id, self.root_execution_id

    @property
    def unread_files(self) -> tuple[str, ...]:
        """The scans of RDDs of which the log does not name the files."""
        return tuple(part for part in self.unread if part.endswith(FILES_UNREAD))

    @property
    def job_name(self) -> str:
        """Its command as the listener writes it: ``MergeIntoCommand`` is ``execute_merge_into_command``."""
        name = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", self.command)
        return f"execute_{name.lstrip('_')}" if name else ""


PUSHED_JOIN = "Scan: a join of its source"
"""What is counted of a database that joins by itself, as one scan whose text has no table for a column."""
NO_EXECUTION = Execution("", 0, 0, 0.0)
"""What is known of a run that is in no event log."""


def unnamed(name: str, columns: Iterable[str] = ()) -> DatasetName:
    """Return what stands for a dataset until the listener names it: a table's name, or the columns of a relation.

    Spark redacts the URL of a database, and prints of a logical relation its format and columns alone.
    """
    return DatasetName("", name or f"({', '.join(columns)})")


_HIDDEN = "(a table with "
_SOURCE = re.compile(r"\(source (?P<number>-?\d+) of a stream\)")
_TOPIC = re.compile(r"\(topic (?P<topic>.*)\)", re.DOTALL)


def kafka_topic(topic: str) -> DatasetName:
    """Return what stands for a topic of Kafka until the listener, or the user, names its brokers."""
    return DatasetName("", f"(topic {topic})")


def topic_of(name: DatasetName) -> str | None:
    """Return the topic that a name stands for, None for other names."""
    match = None if name.namespace else _TOPIC.fullmatch(name.name)
    return match["topic"] if match else None


def stream_source(number: int) -> DatasetName:
    """Return what stands for a source of a stream, a leaf of its plan, until the query's progress names its topics."""
    return DatasetName("", f"(source {number} of a stream)")


def stream_number(name: DatasetName) -> int | None:
    """Return the number of the leaf that a name stands for, None for other names."""
    match = None if name.namespace else _SOURCE.fullmatch(name.name)
    return int(match["number"]) if match else None


def hidden_table(columns: Iterable[str]) -> DatasetName:
    """Return what stands for a table that a plan reads without a word of it but some of its columns."""
    return DatasetName("", f"{_HIDDEN}{', '.join(columns)})")


def is_hidden(name: DatasetName) -> bool:
    """Whether a name stands for a table that the plan does not name."""
    return not name.namespace and name.name.startswith(_HIDDEN)


def unnamed_part(name: DatasetName) -> str:
    """Return what is counted of a plan where no evidence has the true name for a name, empty for other names."""
    if (topic := topic_of(name)) is not None:
        return f"{topic}: its brokers"
    if is_hidden(name):
        return "a scan: its table"
    return "a stream: its topics" if stream_number(name) is not None else ""


def join_executions(left: Execution, right: Execution) -> Execution:
    """Return what two observations of one execution say together, in any order."""
    # The same text means the same in both.
    queries = {query.dataset: query for query in (*left.queries, *right.queries)}
    return join_fields(
        left,
        right,
        root_execution_id=min(left.root_execution_id, right.root_execution_id),
        started=min(left.started, right.started),
        inputs=join(left.inputs, right.inputs),
        outputs=join(left.outputs, right.outputs),
        is_whole=left.is_whole and right.is_whole,
        unread=tuple(sorted({*left.unread, *right.unread})) if left != right else left.unread,
        queries=tuple(queries[dataset] for dataset in sorted(queries)),
        unnamed=tuple(sorted({*left.unnamed, *right.unnamed})),
    )
