"""One physical dataset during the task: what was read from it, what was written to it, and whether it remains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import add

from msgspec import Struct, structs

from spark_lineage.merge.execution import NO_EXECUTION, Execution
from spark_lineage.merge.lineage import (
    AttemptReason,
    ColumnChange,
    SchemaField,
    Statistics,
    Subscription,
    Symlink,
    Transformation,
    Write,
)
from spark_lineage.merge.observed import Observed, combine, join_one, table_name
from spark_lineage.merge.partitions import are_apart, is_of_branch, is_whole, is_within, joined, without_branch
from spark_lineage.merge.state import RunState
from spark_lineage.naming.identity import DatasetName

# By output column (None: the dataset as a whole) what it was made from. A source is what an entity held before the
# task, rather than a name, for names change.
Source = tuple["Entity", str, Transformation]
Sources = dict[str | None, set[Source]]


class Content(Struct):
    """What writes put into a dataset, and what from; ``is_counted`` is false where a number is missing."""

    statistics: Statistics | None = None
    is_counted: bool = True
    sources: Sources = {}
    fed_by: set[Entity] = set()
    writes: tuple[Write, ...] = ()

    def sources_of(self, column: str, schema: Iterable[SchemaField] = ()) -> Iterable[Source]:
        """Return what a column was made from by the task; names differ in case by mistake, unless a schema has both."""
        if column in self.sources or not self.sources:
            return self.sources.get(column, ())
        folded = column.casefold()
        if sum(field.name.casefold() == folded for field in schema) > 1:
            return ()
        return next((found for name, found in self.sources.items() if name and name.casefold() == folded), ())

    def copy(self) -> Content:
        """Return the same, which further writes do not change."""
        return structs.replace(self, sources=dict(self.sources), fed_by=set(self.fed_by))

    def fill(self, outer: Content) -> None:
        """Fill what the inner run of a command left open with what the outer one has."""
        if self.statistics is None:
            self.statistics = outer.statistics
            self.is_counted = self.is_counted or outer.statistics is not None
        self.sources = self.sources or outer.sources
        self.fed_by = self.fed_by or outer.fed_by
        self.writes = outer.writes or self.writes

    def add(self, other: Content) -> None:
        """Add what a further write put in (M7, M9)."""
        self.statistics = combine(self.statistics, other.statistics, add)
        self.is_counted = self.is_counted and other.is_counted
        for column, sources in other.sources.items():
            self.sources[column] = self.sources[column] | sources if column in self.sources else sources
        self.fed_by |= other.fed_by
        self.writes = tuple(dict.fromkeys((*self.writes, *other.writes)))


class State(Struct, frozen=True):
    """What the task had put into a dataset at one time, by static partition, and what it had replaced.

    ``overwriting`` is what its last write put in, if that may have replaced all, as its condition is not known.
    """

    parts: dict[str, Content] = {}
    is_replaced: bool = False
    replaced_parts: frozenset[str] = frozenset()
    overwriting: Content | None = None

    def content_of(self, partition: str) -> Content:
        """Return what the task had put into a partition."""
        found = [part for key, part in self.parts.items() if not are_apart(key, partition)]
        if len(found) == 1:
            return found[0]
        content = Content(sources={}, fed_by=set())
        for part in found:
            content.add(part)
        return content


def is_more(found: Statistics | None, put_in: Statistics | None) -> bool | None:
    """Return whether more bytes and files were found than were put in, None where that is not known.

    The listener may have an estimate of the bytes that are read.
    """
    if found is None or put_in is None or found.size is None or put_in.size is None:
        return None
    return found.size > put_in.size and (found.file_count or float("inf")) > (put_in.file_count or 0)


def is_all(found: Statistics | None, put_in: Statistics | None) -> bool | None:
    """Return whether a write put in all of the bytes that were found, None where that is not known."""
    if found is None or put_in is None or found.size is None or put_in.size is None or found.size < put_in.size:
        return None
    return found.size == put_in.size


# Nothing of the former content is left after these states of a lifecycle facet.
_REPLACING = frozenset({"CREATE", "OVERWRITE", "TRUNCATE"})
# Fewer have the versions that Delta counts than the ids of Iceberg's snapshots, which are random.
_SNAPSHOT_DIGITS = 12
# A command that overwrites rows by a condition, which no plan prints: it may be any.
_BY_CONDITION = "OverwriteByExpression"
# It makes an earlier version of a Delta table the current one, which is the version that it reads.
RESTORE = "RestoreTableCommand"
# These states leave the content alone.
_METADATA = frozenset({"ALTER", "RENAME"})
_NOTHING = Observed(DatasetName("", ""))
# Two entities that are one dataset become one: these are united, then those of either, then those of the later one.
_UNITED = (
    *("names", "symlinks", "read_parts", "read_versions", "filled_parts", "replaced_parts", "_former_names"),
    *("former_versions", "written_versions", "_unknown_versions", "_states", "_present"),
)
_OF_EITHER = (
    *("is_written", "is_read_declared", "is_read_logged", "is_observed"),
    *("is_filled", "is_replaced", "is_own", "is_renamed", "has_rows"),
    *("is_made", "is_placed", "is_moved", "is_managed", "is_of_catalog"),
    *("lifecycle", "attempt", "attempt_error", "has_others_versions", "has_unknown_rest", "_is_added_to"),
    *("subscription", "partition_keys"),
)
_OF_LATER = (
    *("is_unconfirmed", "is_doubtful", "last_lifecycle", "last_written"),
    *("_last_versions", "_overwriting", "may_have_left"),
)


class WriteRun(Struct, frozen=True):
    """How a write is to be understood.

    ``is_repeated``: a run within it has written the same (CREATE TABLE AS SELECT is two runs), ``is_inner_right``: that
    knows better whether the table was made anew (saveAsTable). ``is_certain``: it has no condition and is about the
    table's own place. ``is_doubtful``: the task may have failed in it.
    ``is_declaration``: it touches no row. ``is_replacing``: the table was there (None: not known). ``is_placed``: it
    makes a table at a place of the user's, where files may be. ``read_versions`` are those of the table that it read
    itself.
    """

    run: RunState
    write: Write | None
    execution: Execution = NO_EXECUTION
    is_unconfirmed: bool = False
    is_appending: bool = False
    is_repeated: bool = False
    is_inner_right: bool = False
    is_certain: bool = False
    is_doubtful: bool = False
    is_declaration: bool = False
    is_replacing: bool | None = True
    is_placed: bool = False
    read_versions: Collection[str] = ()


@dataclass(eq=False)
class Entity:
    """A dataset through all its names.

    ``read`` joins what runs read from it before the task wrote it, ``glimpsed`` what only schema reading named.
    ``described`` has the facets of its writes, ``content`` is what they put in, ``parts`` that by static partition.
    """

    names: set[DatasetName] = field(default_factory=set)
    symlinks: set[Symlink] = field(default_factory=set)
    previous_name: DatasetName | None = None
    absorbed_by: Entity | None = None
    # The task read this before it wrote the dataset, of these partitions and by this name.
    read: Observed | None = None
    read_parts: set[str] = field(default_factory=set)
    read_name: DatasetName | None = None
    read_versions: dict[str, None] = field(default_factory=dict)
    is_read_declared: bool = False
    is_read_logged: bool = False
    glimpsed: Observed | None = None
    _streamed: dict[str, Statistics | None] = field(default_factory=dict)
    # The task read this of its own rows.
    own_read: Observed | None = None
    # The first read of a topic has this.
    subscription: Subscription | None = None
    partition_keys: tuple[str, ...] = ()
    # A command made the table, or gave it this place, of which nobody knows what it had.
    is_made: bool = False
    is_placed: bool = False
    is_moved: bool = False
    # A DROP takes away what is in it, though it lies apart from its catalog's folders.
    is_managed: bool = False
    is_of_catalog: bool = False
    is_observed: bool = False
    is_own: bool = False
    is_only_created: bool = False
    is_written: bool = False
    has_rows: bool = False
    is_filled: bool = False
    is_replaced: bool = False
    is_dropped: bool = False
    is_renamed: bool = False
    is_unconfirmed: bool = False
    is_doubtful: bool = False
    first_written: float = float("inf")
    last_written: float = float("-inf")
    write_count: int = 0
    # A write added to what may have been there; the log has the numbers of all writes.
    _is_added_to: bool = False
    _is_measured: bool = True
    lifecycle: str | None = None
    last_lifecycle: str | None = None
    attempt: AttemptReason | None = None
    attempt_error: str = ""
    described: Observed = _NOTHING
    content: Content = field(default_factory=Content)
    parts: dict[str, Content] = field(default_factory=dict)
    # The partitions that the task wrote, and of these those that it replaced.
    filled_parts: set[str] = field(default_factory=set)
    replaced_parts: set[str] = field(default_factory=set)
    _last_content: Content = field(default_factory=Content)
    # The last write put this in, if it overwrote by an unknown condition, and may have left rows.
    _overwriting: Content | None = None
    may_have_left: bool = False
    has_unknown_rest: bool = False
    # The versions of before the task, those that it wrote, "" for an unknown one, and of these those of its last write.
    former_versions: set[str] = field(default_factory=set)
    written_versions: set[str] = field(default_factory=set)
    _last_versions: set[str] = field(default_factory=set)
    # The versions since the last write, those of which it is not known that it made them, and what others have.
    _present: set[str] = field(default_factory=set)
    _unknown_versions: set[str] = field(default_factory=set)
    _states: dict[str, State] = field(default_factory=dict)
    has_others_versions: bool = False
    # The present name of a column has the one from before the task, None for a column that the task added.
    _former_names: dict[str, str | None] = field(default_factory=dict)

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
        return (
            self.is_written and self.has_rows and not self.is_dropped and not (self.is_doubtful and self.is_unconfirmed)
        )

    def has_former(self, partition: str, state: State) -> bool:
        """Whether a partition of it held content that the task was given: its columns are then their own sources."""
        is_gone = state.is_replaced or (state.replaced_parts and is_within(partition, state.replaced_parts))
        if self.read is None or is_gone:
            return False
        # A branch begins with what main has.
        return partition in self.read_parts or any(
            not are_apart(without_branch(partition), without_branch(read)) for read in self.read_parts
        )

    def _is_own_content(self, partition: str, read: Observed, state: State) -> bool:
        """Whether the task itself wrote what a read of a partition of it found (M6).

        What was there, as no command made it, holds more than the rows that the task has put in.
        """
        if not self.is_filled or self.is_own:
            return self.is_filled
        if not state.parts or state.is_replaced:
            return bool(state.parts)
        if self._holds_more(read, state.content_of(partition)):
            return is_within(partition, (filled for filled in self.filled_parts if not is_whole(filled)))
        return not all(are_apart(partition, filled) for filled in self.filled_parts)

    def _holds_more(self, read: Observed, content: Content) -> bool:
        """Whether it was there before the task wrote it: it is a table, or more was read than the task had written."""
        if self.is_of_catalog or table_name(self.symlinks) is not None:
            if not (self.is_made or self.is_moved):
                return True
            if not self.is_placed:
                return False
        if not self._is_added_to:
            return False
        if self._is_measured and content.is_counted:
            has_more = is_more(read.statistics, content.statistics)
            if has_more is not None:
                return has_more
        # Delta counts its versions from 0.
        return bool(read.versions) and _are_counted(read.versions) and max(map(int, read.versions)) >= self.write_count

    def state_of(self, versions: Collection[str]) -> State:
        """Return the state that versions of it have, of time travel, or the present one where that is not known.

        Delta counts its versions; a snapshot of Iceberg that the task did not make is another's.
        """
        present = State(self.parts, self.is_replaced, frozenset(self.replaced_parts))
        found = [self._state(version) for version in versions] or [present]
        states = [present if state is None else state for state in found]
        if all(state == states[0] for state in states):
            return states[0]
        parts: dict[str, Content] = {}
        for key, part in (pair for state in states for pair in state.parts.items()):
            parts.setdefault(key, Content(sources={}, fed_by=set())).add(part)
        replaced = frozenset.intersection(*(state.replaced_parts for state in states))
        return State(parts, all(state.is_replaced for state in states), replaced)

    def _state(self, version: str) -> State | None:
        """Return the state that a version has, None for the present one and where that is not known."""
        written = self.written_versions
        if written and version in self.former_versions:
            return State()
        if version in self._present | self._states.keys() or not written or "" in written:
            return self._states.get(version)
        earlier = [each for each in written if int(each) < int(version)] if _are_counted((version, *written)) else []
        return self._states.get(max(earlier, key=int)) if earlier else State()

    def _note_versions(self, versions: frozenset[str], partition: str, state: State, *, is_seen: bool) -> None:
        """Note the versions that a read found, and whether it is known what they have."""
        # The log does not say to which branch the task wrote.
        is_apart = not is_of_branch(partition) and all(are_apart(partition, filled) for filled in self.filled_parts)
        unknown = {version for version in versions - self._present if self._state(version) is None}
        if not self.is_filled:
            self.former_versions |= versions
        elif not is_apart and state.parts:
            self._unknown_versions |= unknown
            # A dataset that the task made has the versions of its writes.
            self.has_others_versions |= len(self._unknown_versions) > (self.write_count if self.is_own else 1)
        elif any(map(is_of_branch, self.filled_parts)):
            # A branch that the task has written may be main by now.
            self.has_others_versions |= not versions <= self.former_versions | self.written_versions
        self._present |= unknown if is_seen else set()

    def _settle(self, partition: str, read: Observed) -> None:
        """Learn what an overwrite by a condition left: nothing, if a read of all rows found the bytes that it wrote."""
        found = read.statistics if is_whole(partition) else None
        for version, state in self._states.items():
            if version in read.versions and (written := state.overwriting) is not None:
                has_all = is_all(found, written.statistics)
                self.has_unknown_rest |= has_all is None
                self._states[version] = State({"": written.copy()}, is_replaced=True) if has_all else state
        written = self._overwriting
        if written is None or self.is_replaced or not all(self._state(version) is None for version in read.versions):
            return
        self.may_have_left |= table_name(self.symlinks) is not None and not (self.is_own or self.is_made)
        has_all = is_all(found, written.statistics)
        self.has_unknown_rest |= self.may_have_left and has_all is None
        self.may_have_left = self.may_have_left and has_all is None
        if has_all:
            self.is_replaced, self.parts = True, {"": written.copy()}
            self._sum_up()

    @property
    def known_schema(self) -> tuple[SchemaField, ...]:
        """Its columns, as far as the task has seen them until now."""
        return self.described.schema or (self.read.schema if self.read is not None else ())

    @property
    def is_seen(self) -> bool:
        """Whether the task read it or wrote it, rather than trying to."""
        return self.read is not None or self.is_written

    def is_within(self, run: RunState) -> bool:
        """Whether it was last written in the time of a run."""
        return run.first <= self.last_written <= run.last

    def add_read(self, read: Observed, *, is_schema_reading: bool, query: str, is_seen: bool = False) -> None:
        """Add a read. What the task had written before is no input (M6).

        :param query: the streaming query of which this is a micro-batch, if it is one
        :param is_seen: whether the log names the versions that were read
        """
        found = read.statistics
        # For some tables (Hive's own formats) Spark does not say what was found.
        if self.is_only_created and (found is None or found.row_count or found.size):
            # The task did not fill it, so CREATE TABLE IF NOT EXISTS found it there.
            self.is_written = self.is_own = self.is_only_created = self.is_filled = self.is_replaced = False
            self.filled_parts.clear()
            self.lifecycle = None
        partition, read = read.dataset.partition, structs.replace(read, dataset=read.dataset.whole)
        has_overwritten = self._overwriting or any(state.overwriting for state in self._states.values())
        if has_overwritten and not is_schema_reading:
            self._settle(partition, read)
        state = self.state_of(read.versions)
        if read.versions:
            self._note_versions(read.versions, partition, state, is_seen=is_seen)
        if self._is_own_content(partition, read, state):
            self.is_unconfirmed = False
            if read.versions:
                self.own_read = _joined(self.own_read, read)
        elif is_schema_reading:
            self.glimpsed = _joined(self.glimpsed, read)
        else:
            self.read_parts.add(partition)
            self.read_versions |= dict.fromkeys(sorted(read.versions))
            if self._former_names:
                before = ((field, self.former_name(field.name)) for field in read.schema)
                schema = tuple(structs.replace(field, name=name) for field, name in before if name is not None)
                read = structs.replace(read, schema=schema)
            if query and read.statistics is not None:
                # Each micro-batch reads what is new, another query the same again (M9).
                self._streamed[query] = combine(self._streamed.get(query), read.statistics, add)
                read = structs.replace(read, statistics=self._streamed[query])
            self.subscription = self.subscription or read.subscription
            self.partition_keys = self.partition_keys or read.partition_keys
            self.read = _joined(self.read, read)
            self.read_name = self.read_name or read.dataset

    def add_attempt(self, reason: AttemptReason, *, is_destroyed: bool, partition: str = "", error: str = "") -> None:
        """Add a write that left nothing; of an overwrite, the former content may be gone as well, of its partition."""
        self.attempt, self.attempt_error = reason, error
        if is_destroyed:
            within = (partition,) if partition else self.parts
            self.parts = {key: part for key, part in self.parts.items() if not is_within(key, within)}
            self.is_written = bool(self.parts)
            self._sum_up()

    def add_write(self, write: Observed, how: WriteRun, sources: Sources, fed_by: set[Entity]) -> None:
        """Add a write that succeeded (M5, M7, M9)."""
        lifecycle = max(write.lifecycles, default=None)
        is_repeated = how.is_repeated
        if is_repeated and how.is_inner_right:
            # saveAsTable appended to a table that was there; for a new one the inner run overwrites, in every mode.
            lifecycle = lifecycle if self.last_lifecycle == "OVERWRITE" else None
        elif how.is_appending and lifecycle == "CREATE":
            lifecycle = None
        partition, write = write.dataset.partition, structs.replace(write, dataset=write.dataset.whole)
        versions = write.versions or {"" if how.execution.command == RESTORE else _next(how.read_versions)}
        if not is_repeated:
            self._begin_write(how, lifecycle, versions)
        if lifecycle in _REPLACING and not how.is_placed:
            self._replace(how.execution, partition, is_repeated=is_repeated)
        # All rows that are written may be of one partition, whatever they replace.
        partition = joined(partition, *how.execution.constants)
        is_by_condition = lifecycle == "OVERWRITE" and how.execution.command.startswith(_BY_CONDITION) and not partition
        # A write of data that gave no numbers makes the sum of the others wrong; DDL writes no data.
        is_counted = write.statistics is not None or not (write.edges or fed_by or how.is_unconfirmed)
        writes = (how.write,) if how.write is not None else ()
        new = Content(write.statistics, is_counted, sources, fed_by, writes)
        if is_by_condition and not is_repeated:
            self._doubt_former(new)
        part = self.parts.setdefault(partition, Content())
        if not is_repeated:
            self._last_content = new
            part.add(new)
        else:
            part.fill(new if lifecycle is not None else structs.replace(new, writes=()))
        self._sum_up()
        is_first = not self.is_written or (is_repeated and how.run.first <= self.first_written)
        # A save to a path succeeds in this mode where nothing was.
        is_saved = how.execution.mode == "ErrorIfExists" and is_whole(partition)
        is_new = (lifecycle == "CREATE" or is_saved) and is_first and self.read is None
        self.is_own = self.is_own or (is_new and not how.is_placed)
        if lifecycle not in _METADATA:
            # Rows of an RDD are data, though they have neither edges nor numbers.
            is_data = not write.is_empty or how.execution.has_rdds or is_saved
            self.is_only_created = is_new and not (is_data or how.is_unconfirmed or how.is_certain)
            self.is_filled = True
            self.filled_parts.add(partition)
            if not is_repeated:
                self.write_count += 1
                self._overwriting = self._last_content.copy() if is_by_condition else None
            self._add_versions({*versions}, is_repeated=is_repeated)
        self.is_written = True
        self.has_rows = self.has_rows or not how.is_declaration
        self.is_unconfirmed, self.is_doubtful = how.is_unconfirmed, how.is_doubtful
        self.attempt = "unfinished" if how.is_doubtful else None
        self.first_written, self.last_written = min(self.first_written, how.run.last), how.run.last
        self.last_lifecycle = lifecycle
        self.lifecycle = lifecycle or self.lifecycle
        if not is_repeated or write.versions:
            # A version that nothing names is not the one of before.
            self.described = structs.replace(self.described, versions=write.versions)
        self._describe(write, is_replacing=lifecycle in _REPLACING and not (partition or how.execution.is_partial))

    def add_declared(self, write: Observed, sources: Sources, fed_by: set[Entity]) -> None:
        """Add what is declared about content that Spark was seen to write: it adds edges, and fills gaps."""
        statistics = write.statistics if self.content.statistics is None else None
        self.parts.setdefault("", Content()).add(Content(statistics, sources=sources, fed_by=fed_by))
        self._sum_up()
        self.is_unconfirmed = False
        self.described = _filled(self.described, write)

    def change_columns(self, changes: Collection[ColumnChange]) -> None:
        """Add, rename or drop columns, with their sources; what was read before keeps the name that it had then."""
        changed = {change.old.name.casefold(): change.new for change in changes if change.old is not None}
        for part in self.parts.values():
            part.sources = dict(_with_new_names(part.sources, changed))
        self._sum_up()
        for one in changes:
            if one.new is not None:
                before = self.former_name(one.old.name) if one.old is not None else None
                self._former_names[one.new.name.casefold()] = before

    def former_name(self, column: str) -> str | None:
        """Return what a column was called before the task, None for one that the task has added."""
        return self._former_names.get(column.casefold(), column)

    def add_rename(self, renamed: Observed, *, previous: DatasetName, ended: float) -> None:
        """Learn its new name; what it is called after the task is what counts (M1)."""
        self.is_renamed = self.is_written = True
        self.names, self.symlinks = {renamed.dataset}, set(renamed.symlinks)
        self.last_written = ended
        self.attempt = None
        self._describe(renamed)
        if not self.is_own:
            # The former name of a table that the task itself created was temporary.
            self.lifecycle = "RENAME"
            self.previous_name = self.previous_name or previous

    def absorb(self, other: Entity) -> None:
        """Take over another entity that turned out to be the same dataset."""
        other.absorbed_by = self
        for name in _UNITED:
            setattr(self, name, getattr(self, name) | getattr(other, name))
        for name in ("read", "glimpsed", "own_read"):
            setattr(self, name, _joined(getattr(self, name), getattr(other, name)))
        self.read_name = min(filter(None, (self.read_name, other.read_name)), default=None)
        later, earlier = (other, self) if other.last_written > self.last_written else (self, other)
        if later.content.statistics is not None:
            # Two observations of one content are no two contents.
            for part in earlier.parts.values():
                part.statistics = None
        for partition, part in other.parts.items():
            self.parts.setdefault(partition, Content()).add(part)
        self._sum_up()
        self.described = _filled(later.described, earlier.described)
        self.previous_name = self.previous_name or other.previous_name
        self.write_count += other.write_count
        self._is_measured &= other._is_measured
        queries = self._streamed.keys() | other._streamed.keys()
        self._streamed = {each: combine(self._streamed.get(each), other._streamed.get(each), add) for each in queries}
        self.is_only_created = self.is_only_created and other.is_only_created
        self.first_written = min(self.first_written, other.first_written)
        for name in _OF_EITHER:
            setattr(self, name, getattr(later, name) or getattr(earlier, name))
        for name in _OF_LATER:
            setattr(self, name, getattr(later, name))

    def _replace(self, execution: Execution, partition: str, *, is_repeated: bool) -> None:
        """Forget what an overwrite took away: all, or the partition that it names; an unnamed one is not known."""
        if partition:
            self.parts = {key: part for key, part in self.parts.items() if not is_within(key, (partition,))}
            self.replaced_parts.add(partition)
        elif not execution.is_partial:
            self.is_replaced, self.may_have_left = True, False
            self.parts.clear()
            if is_repeated:
                self.parts[partition] = Content()
                self.parts[partition].add(self._last_content)

    def _begin_write(self, how: WriteRun, lifecycle: str | None, versions: Collection[str]) -> None:
        """Note what the versions until now have; a RESTORE takes back what the task has written since one of them."""
        if lifecycle not in _METADATA:
            parts = {key: structs.replace(part.copy(), statistics=None, writes=()) for key, part in self.parts.items()}
            state = State(parts, self.is_replaced, frozenset(self.replaced_parts), self._overwriting)
            last = next(reversed(self._states.values()), None)
            # The batches of a stream share what they have.
            self._states |= dict.fromkeys(self._present, state if last is None or last != state else last)
            self._unknown_versions.clear()
            self._present = {*versions} - {""} - self._states.keys()
            self._is_added_to |= how.execution.mode == "Append" or how.execution.is_partial
            # The listener mixes up the numbers of writes in threads.
            self._is_measured &= how.is_placed or any(one.statistics is not None for one in how.execution.outputs)
        if how.execution.command == RESTORE and how.read_versions:
            restored = self.state_of(how.read_versions)
            self.parts = {key: part.copy() for key, part in restored.parts.items()}
            self.is_replaced, self.replaced_parts = restored.is_replaced, {*restored.replaced_parts}

    def _doubt_former(self, new: Content) -> None:
        """Count no rows of before an overwrite by a condition: nobody knows which of them it left.

        :param new: what it put in; sources that this has as well do not matter
        """
        former = Content(sources={}, fed_by=set())
        for part in self.parts.values():
            former.add(part)
            part.is_counted = not part.statistics
        lost = (sources - new.sources.get(column, set()) for column, sources in former.sources.items())
        self.may_have_left |= any(lost) or not former.fed_by <= new.fed_by

    def _add_versions(self, versions: set[str], *, is_repeated: bool) -> None:
        """Add the versions of a write; the run within a command that replaces a table may name that of before."""
        if is_repeated and "" in versions:
            return
        if is_repeated:
            self.written_versions -= self._last_versions
            self._present = (self._present - self._last_versions) | (versions - self._states.keys())
        self._last_versions = versions - self.written_versions
        self.written_versions |= self._last_versions

    def _sum_up(self) -> None:
        if len(self.parts) == 1:
            (self.content,) = self.parts.values()
            return
        self.content = Content()
        for part in self.parts.values():
            self.content.add(part)

    def _describe(self, written: Observed, *, is_replacing: bool = False) -> None:
        # A plan has the names of columns alone; a change of columns has all.
        is_newer = "ALTER" in written.lifecycles or any(field.type is not None for field in written.schema)
        is_newer |= is_replacing and _names(written.schema) != _names(self.described.schema) and bool(written.schema)
        schema = written.schema if is_newer or not self.described.schema else self.described.schema
        self.described = structs.replace(_filled(written, self.described), schema=schema)


def _next(versions: Collection[str]) -> str:
    """Return the least version of Delta that a write makes of a table that it has read, empty where none was read."""
    return str(max(map(int, versions)) + 1) if versions and _are_counted(versions) else ""


def _are_counted(versions: Collection[str]) -> bool:
    """Whether versions are numbers that grow, as Delta's, and no ids."""
    return all(version.isdigit() and len(version) < _SNAPSHOT_DIGITS for version in versions)


def _filled(first: Observed, other: Observed) -> Observed:
    """Return the facets of the first, or where it has none, those of the other."""
    return Observed(
        first.dataset,
        schema=first.schema or other.schema,
        storage=first.storage or other.storage,
        catalog=first.catalog or other.catalog,
        versions=first.versions or other.versions,
    )


def _names(schema: Iterable[SchemaField]) -> set[str]:
    return {field.name.casefold() for field in schema}


def _joined(known: Observed | None, new: Observed | None) -> Observed | None:
    # Two names of one dataset: the fold keeps facets, while the entity keeps the names.
    return join_one(known, structs.replace(new, dataset=known.dataset)) if known and new else known or new


def _with_new_names(
    sources: Sources, changed: Mapping[str, SchemaField | None]
) -> Iterator[tuple[str | None, set[Source]]]:
    """Return sources by the new names of their columns, without those of columns that are dropped."""
    for column, found in sources.items():
        if column is None or column.casefold() not in changed:
            yield column, found
        elif (new := changed[column.casefold()]) is not None:
            yield new.name, found
