"""What evidence beyond the listener says of one SQL execution: Spark's event log, as values that can be joined."""

from __future__ import annotations

from msgspec import Struct

from spark_lineage.merge.lineage import ChangeType, ColumnChange, ObjectType
from spark_lineage.merge.observed import Observed, greater, join


class CatalogStatement(Struct, frozen=True, gc=False):
    """What a command says that it does to the catalog: ``name`` and ``new_name`` as the plan has them (``cat.db.t``).

    ``columns`` are those that an ALTER names, ``properties`` what it sets (``comment`` among them), ``partitioned_by``
    the columns and transforms of a CREATE; ``is_conditional`` is true for IF EXISTS and IF NOT EXISTS,
    ``is_cascading`` for DROP DATABASE with all that is in it.
    """

    change: ChangeType
    object_type: ObjectType
    name: str
    new_name: str = ""
    columns: tuple[ColumnChange, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    is_conditional: bool = False
    is_cascading: bool = False
    partitioned_by: tuple[str, ...] = ()


class Execution(Struct, frozen=True, gc=False):
    """One SQL execution of a Spark application (``SparkListenerSQLExecutionStart`` and ``...End``).

    ``started`` and ``ended`` are epoch seconds with Spark's milliseconds, which the listener's START and COMPLETE
    repeat; ``ended`` is None where no end was logged. ``is_failed`` tells whether the end has an error message, None
    where that is not known. ``has_jobs`` tells whether a SparkJob ran for it. ``command`` is the simple class name of
    the command at the root (``InsertIntoHadoopFsRelationCommand``), empty for a query, ``is_merge`` whether it writes
    what a MERGE made; ``mode`` is the save mode that it names (``Append``, ``Overwrite``, ``Ignore``,
    ``ErrorIfExists``), ``partition`` the static partition that it writes (``("day=1",)``), ``partitioned_by`` all
    columns by which it partitions, ``is_partial`` whether an overwrite replaces some partitions or rows only.
    ``query_id`` is the streaming query that it is a batch of, ``output_mode`` the mode of that, empty if not known.

    ``inputs`` and ``outputs`` are what its plan reads and writes, with ``edges`` on outputs as far as the plan tells;
    ``is_whole`` tells that it was understood from root to leaves, ``unread`` names the operators and commands in it
    that no rule reads; ``statement`` is what it does to the catalog. The job of an RDD has a negative
    ``execution_id``, and inputs alone.
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
    partitioned_by: tuple[str, ...] = ()
    is_merge: bool = False
    query_id: str = ""
    output_mode: str = ""
    inputs: tuple[Observed, ...] = ()
    outputs: tuple[Observed, ...] = ()
    is_whole: bool = False
    unread: tuple[str, ...] = ()
    statement: CatalogStatement | None = None


def rdd_execution_id(job_id: int) -> int:
    """Return the number of the job of an RDD, which is no SQL execution: it is below that of each."""
    return -1 - job_id


def join_executions(left: Execution, right: Execution) -> Execution:
    """Return what two tellings of one execution say together, in any order."""
    if left == right:
        return left
    return Execution(
        application_id=left.application_id,
        execution_id=left.execution_id,
        root_execution_id=min(left.root_execution_id, right.root_execution_id),
        started=min(left.started, right.started),
        ended=greater(left.ended, right.ended),
        is_failed=greater(left.is_failed, right.is_failed),
        has_jobs=left.has_jobs or right.has_jobs,
        command=max(left.command, right.command),
        mode=max(left.mode, right.mode),
        is_partial=left.is_partial or right.is_partial,
        partition=max(left.partition, right.partition),
        partitioned_by=max(left.partitioned_by, right.partitioned_by),
        is_merge=left.is_merge or right.is_merge,
        query_id=max(left.query_id, right.query_id),
        output_mode=max(left.output_mode, right.output_mode),
        inputs=join(left.inputs, right.inputs),
        outputs=join(left.outputs, right.outputs),
        is_whole=left.is_whole and right.is_whole,
        unread=tuple(sorted({*left.unread, *right.unread})),
        statement=greater(left.statement, right.statement),
    )
