"""One physical dataset during the task: what was read from it, written to it, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import add

from msgspec import Struct, structs

from spark_lineage.merge.lineage import (
    AttemptReason,
    Catalog,
    ColumnChange,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    Transformation,
    Write,
)
from spark_lineage.merge.observed import Observed, combine, join_one
from spark_lineage.naming.identity import DatasetName

# States of a lifecycle facet after which nothing of the former content is left.
_REPLACING = frozenset({"CREATE", "OVERWRITE", "TRUNCATE"})
# States that leave the content alone.
_METADATA = frozenset({"ALTER", "RENAME"})

# By output column (None: the dataset as a whole) what it was made from. A source is what an entity held before the
# task, rather than a name, for names change.
Source = tuple["Entity", str, Transformation]
Sources = dict[str | None, set[Source]]


class WriteRun(Struct, frozen=True):
    """What the run of a write tells besides the dataset: epoch seconds, and how the write is to be understood.

    ``partition`` is the static partition that it was for (``("day=1",)``), ``partitioned_by`` all columns by which it
    partitions, ``is_partial`` whether an overwrite leaves other partitions or rows. ``is_outer`` marks a command that
    repeats what a run within it has told (CREATE TABLE AS SELECT is two runs), ``is_inner_right`` one whose inner run
    knows better whether the table was made anew (saveAsTable), ``is_certain`` one that has no condition and is about
    the table's own place, ``is_doubtful`` one that the task may have failed in.
    """

    started: float
    ended: float
    write: Write | None
    partition: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    is_partial: bool = False
    is_unconfirmed: bool = False
    is_appending: bool = False
    is_outer: bool = False
    is_inner_right: bool = False
    is_certain: bool = False
    is_doubtful: bool = False


class Content(Struct):
    """What writes put into a dataset, and what from; ``is_counted`` is false where a number is missing."""

    statistics: Statistics | None = None
    is_counted: bool = True
    sources: Sources = {}
    fed_by: set[Entity] = set()
    writes: tuple[Write, ...] = ()

    def add(self, other: Content) -> None:
        """Add what a further write put in (M7, M9)."""
        self.statistics = combine(self.statistics, other.statistics, add)
        self.is_counted = self.is_counted and other.is_counted
        for column, sources in other.sources.items():
            self.sources.setdefault(column, set()).update(sources)
        self.fed_by |= other.fed_by
        self.writes = tuple(dict.fromkeys((*self.writes, *other.writes)))


class Entity:
    """A dataset through all its names.

    ``read`` joins what runs read from it before the task wrote it, ``glimpsed`` what only schema reading named.
    ``content`` is what the task wrote; ``is_filled`` tells whether it did.
    """

    def __init__(self) -> None:
        self.names: set[DatasetName] = set()
        self.symlinks: set[Symlink] = set()
        self.absorbed_by: Entity | None = None

        self.read: Observed | None = None
        self.read_name: DatasetName | None = None
        self.glimpsed: Observed | None = None

        self.is_read_declared = False
        self.is_observed = False
        self.is_written = False
        self.is_filled = False
        self.is_replaced = False
        self.is_dropped = False
        self.is_own = False
        self.is_only_created = False
        self.is_renamed = False
        self.is_unconfirmed = False
        self.is_doubtful = False
        self.first_written = float("inf")
        self.last_written = float("-inf")
        self.last_lifecycle: str | None = None
        self.attempt: AttemptReason | None = None

        self.schema: tuple[SchemaField, ...] = ()
        self.storage: Storage | None = None
        self.catalog: Catalog | None = None
        self.version: str | None = None
        self.lifecycle: str | None = None
        self.previous_name: DatasetName | None = None
        self.content = Content()
        self.parts: dict[tuple[str, ...], Content] = {}
        self._last_content = Content()

    @property
    def name(self) -> DatasetName:
        """Its last name: the first of the equal ones, so that it depends on no order."""
        return min(self.names)

    @property
    def current(self) -> Entity:
        """The entity that stands for this one after two turned out to be one dataset."""
        return self if self.absorbed_by is None else self.absorbed_by.current

    @property
    def input_name(self) -> DatasetName:
        """What it was called when it was read."""
        return self.read_name if self.is_renamed and self.read_name is not None else self.name

    @property
    def last_name(self) -> DatasetName:
        """What the task's lineage calls it: by its last name if it is left behind, else by what it was read under."""
        return self.name if self.is_written and not self.is_dropped else self.input_name

    @property
    def is_left(self) -> bool:
        """Whether the task leaves it behind; a write that it may have failed in has to be read again for that."""
        return self.is_written and not self.is_dropped and not (self.is_doubtful and self.is_unconfirmed)

    @property
    def has_former(self) -> bool:
        """Whether it holds content that the task was given: its columns are then sources of their own."""
        return self.read is not None and not self.is_replaced

    @property
    def known_schema(self) -> tuple[SchemaField, ...]:
        """Its columns, as far as the task has seen them until now."""
        return self.schema or (self.read.schema if self.read is not None else ())

    @property
    def table_name(self) -> str | None:
        """What the catalog calls it, None for what is in no catalog."""
        return min((link.name for link in self.symlinks if link.type == "TABLE"), default=None)

    @property
    def is_seen(self) -> bool:
        """Whether the task read it or wrote it, rather than trying to."""
        return self.read is not None or self.is_written

    def is_there(self, write: Observed) -> bool:
        """Whether a CREATE TABLE that made nothing found this dataset there already (IF NOT EXISTS)."""
        return "CREATE" in write.lifecycles and write.is_empty and self.is_seen

    def sources_of(self, column: str) -> Iterable[Source]:
        """Return what a column was made from by the task; Spark's column names differ in case only by mistake."""
        sources = self.content.sources
        if column in sources:
            return sources[column]
        folded = column.casefold()
        return next((found for name, found in sources.items() if name is not None and name.casefold() == folded), ())

    def add_name(self, observed: Observed) -> None:
        """Learn another name of it."""
        self.names.add(observed.dataset)
        self.symlinks |= observed.symlinks

    def add_read(self, read: Observed, *, is_schema_reading: bool, is_streaming: bool) -> None:
        """Learn of a read. What the task had written before is not what it was given (M6)."""
        if self.is_only_created and _may_have_content(read.statistics):
            # Nobody filled it in this task, so CREATE TABLE IF NOT EXISTS found it there.
            self.is_written = self.is_own = self.is_only_created = self.is_filled = self.is_replaced = False
            self.lifecycle = None
        if self.is_filled:
            self.is_unconfirmed = False
        elif is_schema_reading:
            self.glimpsed = _joined(self.glimpsed, read)
        else:
            self.read = _added(self.read, read) if is_streaming else _joined(self.read, read)
            self.read_name = self.read_name or read.dataset

    def add_attempt(self, reason: AttemptReason, *, is_destroyed: bool) -> None:
        """Learn of a write that left nothing; of an overwrite, the former content may be gone as well."""
        self.attempt = reason
        if is_destroyed:
            self.is_written = False
            self.parts.clear()
            self.content = Content()

    def add_write(
        self, write: Observed, run: WriteRun, sources: Mapping[str | None, set[Source]], fed_by: set[Entity]
    ) -> None:
        """Learn of a write that happened (M5, M7, M9)."""
        lifecycle = max(write.lifecycles, default=None)
        is_repeated = run.is_outer and run.started <= self.last_written <= run.ended
        if is_repeated and run.is_inner_right:
            # saveAsTable appended to a table that was there; for a new one the inner run overwrites, in every mode.
            lifecycle = lifecycle if self.last_lifecycle == "OVERWRITE" else None
        elif run.is_appending and lifecycle == "CREATE":
            lifecycle = None
        if lifecycle in _REPLACING:
            self._replace(run, is_repeated=is_repeated)
        if not is_repeated:
            # A write of data that gave no numbers makes the sum of the others wrong; DDL writes no data.
            is_counted = write.statistics is not None or not (write.edges or run.is_unconfirmed)
            self._last_content = Content(
                write.statistics,
                is_counted,
                {column: set(found) for column, found in sources.items()},
                set(fed_by),
                (run.write,) if run.write is not None else (),
            )
            self.parts.setdefault(run.partition, Content()).add(self._last_content)
        else:
            self._add_repetition(write, run, sources, fed_by, is_new=lifecycle is not None)
        self._sum_up()
        is_first = not self.is_written or (is_repeated and run.started <= self.first_written)
        is_new = lifecycle == "CREATE" and is_first and self.read is None
        self.is_own = self.is_own or is_new
        self.is_only_created = is_new and write.is_empty and not (run.is_unconfirmed or run.is_certain)
        self.is_filled = self.is_filled or lifecycle not in _METADATA
        self.is_written = True
        self.is_unconfirmed = run.is_unconfirmed
        self.is_doubtful = run.is_doubtful
        self.attempt = "unfinished" if run.is_doubtful else None
        self.first_written = min(self.first_written, run.ended)
        self.last_written = run.ended
        self.last_lifecycle = lifecycle
        self._describe(write)
        self.lifecycle = lifecycle or self.lifecycle

    def add_declared(self, write: Observed, sources: Sources, fed_by: set[Entity]) -> None:
        """Learn what is declared about content that Spark was seen to write: it adds edges, and fills gaps."""
        statistics = write.statistics if self.content.statistics is None else None
        self.parts.setdefault((), Content()).add(Content(statistics, sources=sources, fed_by=fed_by))
        self._sum_up()
        self.is_unconfirmed = False
        self.schema = self.schema or write.schema
        self.storage = self.storage or write.storage
        self.catalog = self.catalog or write.catalog
        self.version = self.version or write.version

    def change_columns(self, changes: Iterable[ColumnChange]) -> None:
        """Learn that columns have other names, or are gone: what they were made from goes along."""
        for part in self.parts.values():
            for change in changes:
                sources = part.sources.pop(change.old.name, None) if change.old is not None else None
                if sources is not None and change.new is not None:
                    part.sources[change.new.name] = sources
        self._sum_up()

    def add_rename(self, renamed: Observed, *, previous: DatasetName, ended: float) -> None:
        """Learn its new name; what it is called after the task is what counts (M1)."""
        self.is_renamed = True
        self.names = {renamed.dataset}
        self.symlinks = set(renamed.symlinks)
        self.is_written = True
        self.last_written = ended
        self.attempt = None
        self._describe(renamed)
        if not self.is_own:
            # For what the task itself created the former name was temporary.
            self.lifecycle = "RENAME"
            self.previous_name = self.previous_name or previous

    def absorb(self, other: Entity) -> None:
        """Take over another entity that turned out to be the same dataset."""
        other.absorbed_by = self
        self.names |= other.names
        self.symlinks |= other.symlinks
        self.read = _joined(self.read, other.read)
        self.glimpsed = _joined(self.glimpsed, other.glimpsed)
        self.read_name = min(filter(None, (self.read_name, other.read_name)), default=None)
        later, earlier = (other, self) if other.last_written > self.last_written else (self, other)
        if later.content.statistics is not None:
            # Two tellings of one content are no two contents.
            for part in earlier.parts.values():
                part.statistics = None
        for partition, part in other.parts.items():
            self.parts.setdefault(partition, Content()).add(part)
        self._sum_up()
        self.schema = later.schema or earlier.schema
        self.storage = later.storage or earlier.storage
        self.catalog = later.catalog or earlier.catalog
        self.version = later.version or earlier.version
        self.lifecycle = later.lifecycle or earlier.lifecycle
        self.previous_name = self.previous_name or other.previous_name
        self.attempt = later.attempt or earlier.attempt
        self.is_unconfirmed = later.is_unconfirmed
        self.is_doubtful = later.is_doubtful
        self.last_lifecycle = later.last_lifecycle
        self.first_written = min(self.first_written, other.first_written)
        self.is_written = self.is_written or other.is_written
        self.is_read_declared = self.is_read_declared or other.is_read_declared
        self.is_observed = self.is_observed or other.is_observed
        self.is_filled = self.is_filled or other.is_filled
        self.is_replaced = self.is_replaced or other.is_replaced
        self.is_own = self.is_own or other.is_own
        self.is_only_created = self.is_only_created and other.is_only_created
        self.is_renamed = self.is_renamed or other.is_renamed
        self.last_written = later.last_written

    def _replace(self, run: WriteRun, *, is_repeated: bool) -> None:
        """Forget what an overwrite took away: all, or the partition that it names; an unnamed one is not known."""
        if run.is_partial:
            for partition in [
                key for key in self.parts if run.partition and key[: len(run.partition)] == run.partition
            ]:
                del self.parts[partition]
            return
        self.is_replaced = True
        self.parts.clear()
        if is_repeated:
            self.parts[run.partition] = Content()
            self.parts[run.partition].add(self._last_content)

    def _sum_up(self) -> None:
        self.content = Content()
        for part in self.parts.values():
            self.content.add(part)

    def _add_repetition(
        self,
        write: Observed,
        run: WriteRun,
        sources: Mapping[str | None, set[Source]],
        fed_by: set[Entity],
        *,
        is_new: bool,
    ) -> None:
        """Fill what the inner run of a command left open with what the outer one says of the same write."""
        content = self.parts.setdefault(run.partition, Content())
        if content.statistics is None:
            content.statistics = write.statistics
            content.is_counted = content.is_counted or write.statistics is not None
        if not content.sources:
            content.sources = {column: set(found) for column, found in sources.items()}
        content.fed_by = content.fed_by or set(fed_by)
        if is_new and run.write is not None:
            content.writes = (run.write,)

    def _describe(self, written: Observed) -> None:
        # A plan tells the names of columns alone.
        is_typed = any(field.type is not None for field in written.schema)
        self.schema = written.schema if is_typed or not self.schema else self.schema
        self.storage = written.storage or self.storage
        self.catalog = written.catalog or self.catalog
        self.version = written.version or self.version


def _may_have_content(statistics: Statistics | None) -> bool:
    """Whether a read found something; of some tables (Hive's own formats) it is not told what was found."""
    return statistics is None or bool(statistics.row_count or statistics.size)


def _joined(known: Observed | None, new: Observed | None) -> Observed | None:
    if known is None or new is None:
        return new if known is None else known
    # Two names of one dataset: the fold keeps facets, whose names are told by the entity.
    return join_one(known, structs.replace(new, dataset=known.dataset))


def _added(known: Observed | None, batch: Observed) -> Observed | None:
    """Return a stream's reads together: each micro-batch reads what is new (M9)."""
    joined = _joined(known, batch)
    if known is None or joined is None:
        return joined
    return structs.replace(joined, statistics=combine(known.statistics, batch.statistics, add))
