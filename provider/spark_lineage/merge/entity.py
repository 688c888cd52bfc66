"""One physical dataset during the task: what was read from it, written to it, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add

from msgspec import structs

from spark_lineage.merge.lineage import (
    AttemptReason,
    Catalog,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    Transformation,
)
from spark_lineage.merge.observed import Observed, combine, join_one
from spark_lineage.naming.identity import DatasetName

# States of a lifecycle facet after which nothing of the former content is left.
_REPLACING = frozenset({"CREATE", "OVERWRITE", "TRUNCATE"})

# An edge whose source is the physical dataset rather than a name, for names change: (column, source, field, how).
SourceEdge = tuple[str | None, "Entity | DatasetName", str, Transformation]


class Entity:
    """A dataset through all its names.

    ``read`` joins what runs read from it before the task wrote it, ``glimpsed`` what only schema reading named.
    """

    def __init__(self) -> None:
        self.names: set[DatasetName] = set()
        self.symlinks: set[Symlink] = set()
        self.absorbed_by: Entity | None = None

        self.read: Observed | None = None
        self.read_name: DatasetName | None = None
        self.glimpsed: Observed | None = None

        self.is_written = False
        self.is_dropped = False
        self.is_own = False
        self.is_only_created = False
        self.is_renamed = False
        self.is_unconfirmed = False
        self.first_written = float("inf")
        self.last_written = float("-inf")
        self.last_lifecycle: str | None = None
        self.attempt: AttemptReason | None = None

        self.schema: tuple[SchemaField, ...] = ()
        self.storage: Storage | None = None
        self.catalog: Catalog | None = None
        self.version: str | None = None
        self.statistics: Statistics | None = None
        self.is_counted = True
        self.lifecycle: str | None = None
        self.previous_name: DatasetName | None = None
        self.edges: set[SourceEdge] = set()

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

    def is_there(self, write: Observed) -> bool:
        """Whether a CREATE TABLE that made nothing found this dataset there already (IF NOT EXISTS)."""
        return "CREATE" in write.lifecycles and write.is_empty and (self.is_written or self.read is not None)

    def add_name(self, observed: Observed) -> None:
        """Learn another name of it."""
        self.names.add(observed.dataset)
        self.symlinks |= observed.symlinks

    def add_read(self, read: Observed, *, is_schema_reading: bool) -> None:
        """Learn of a read. What the task had written before is not what it was given (M6)."""
        if self.is_only_created and _has_content(read.statistics):
            # Nobody filled it in this task, so CREATE TABLE IF NOT EXISTS found it there.
            self.is_written = self.is_own = self.is_only_created = False
            self.lifecycle = None
        if self.is_written:
            self.is_unconfirmed = False
        elif is_schema_reading:
            self.glimpsed = _joined(self.glimpsed, read)
        else:
            self.read = _joined(self.read, read)
            self.read_name = self.read_name or read.dataset

    def add_attempt(self, reason: AttemptReason, *, is_destroyed: bool) -> None:
        """Learn of a write that left nothing; of an overwrite, the former content may be gone as well."""
        self.attempt = reason
        if is_destroyed:
            self.is_written = False
            self.statistics = None
            self.is_counted = True
            self.edges.clear()

    def add_write(
        self,
        write: Observed,
        *,
        started: float,
        ended: float,
        edges: Iterable[SourceEdge],
        is_unconfirmed: bool,
        is_ctas: bool,
    ) -> None:
        """Learn of a write that happened (M5, M7, M9)."""
        lifecycle = max(write.lifecycles, default=None)
        # CREATE TABLE AS SELECT is two runs: the outer one says CREATE and repeats what the inner one, which lies
        # within it, has already told.
        is_repeated = lifecycle == "CREATE" and started <= self.last_written <= ended
        if is_repeated and is_ctas and self.last_lifecycle != "OVERWRITE":
            # saveAsTable appended to a table that was there; for a new one the inner run overwrites.
            lifecycle = None
        if lifecycle in _REPLACING and not is_repeated:
            self.statistics = None
            self.is_counted = True
            self.edges.clear()
        if not is_repeated or self.statistics is None:
            self.statistics = combine(self.statistics, write.statistics, add)
            # A write of data that gave no numbers makes the sum of the others wrong; DDL writes no data.
            is_unknown = write.statistics is None and (bool(write.edges) or is_unconfirmed)
            self.is_counted = self.is_counted and not is_unknown
        self.edges.update(edges)
        is_first = not self.is_written or (is_repeated and started <= self.first_written)
        is_new = lifecycle == "CREATE" and is_first and self.read is None
        self.is_own = self.is_own or is_new
        self.is_only_created = is_new and write.is_empty and not is_unconfirmed
        self.is_written = True
        self.is_unconfirmed = is_unconfirmed
        self.attempt = None
        self.first_written = min(self.first_written, ended)
        self.last_written = ended
        self.last_lifecycle = lifecycle
        self._describe(write)
        self.lifecycle = lifecycle or self.lifecycle

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
        self.read_name = self.read_name or other.read_name
        self.glimpsed = _joined(self.glimpsed, other.glimpsed)
        self.edges |= other.edges
        self.is_counted = self.is_counted and other.is_counted
        later, earlier = (other, self) if other.last_written > self.last_written else (self, other)
        self.statistics = later.statistics or earlier.statistics
        self.schema = later.schema or earlier.schema
        self.storage = later.storage or earlier.storage
        self.catalog = later.catalog or earlier.catalog
        self.version = later.version or earlier.version
        self.lifecycle = later.lifecycle or earlier.lifecycle
        self.previous_name = self.previous_name or other.previous_name
        self.attempt = later.attempt or earlier.attempt
        self.is_unconfirmed = later.is_unconfirmed
        self.last_lifecycle = later.last_lifecycle
        self.first_written = min(self.first_written, other.first_written)
        self.is_written = self.is_written or other.is_written
        self.is_own = self.is_own or other.is_own
        self.is_only_created = self.is_only_created and other.is_only_created
        self.is_renamed = self.is_renamed or other.is_renamed
        self.last_written = later.last_written

    def _describe(self, written: Observed) -> None:
        self.schema = written.schema or self.schema
        self.storage = written.storage or self.storage
        self.catalog = written.catalog or self.catalog
        self.version = written.version or self.version


def _has_content(statistics: Statistics | None) -> bool:
    return statistics is not None and bool(statistics.row_count or statistics.size)


def _joined(known: Observed | None, new: Observed | None) -> Observed | None:
    if known is None or new is None:
        return new if known is None else known
    # Two names of one dataset: the fold keeps facets, whose names are told by the entity.
    return join_one(known, structs.replace(new, dataset=known.dataset))
