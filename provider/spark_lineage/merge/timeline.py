"""Replays the runs in the order of their times: which datasets went in, and which were left (M1, M5 to M8, M11)."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator
from functools import cache, cached_property
from itertools import chain

from msgspec import structs

from spark_lineage.merge.catalog import (
    Bindings,
    CatalogJournal,
    is_at,
    is_external,
    new_location,
    place_of,
    under_new_name,
)
from spark_lineage.merge.correction import LEAVING, with_columns_left, written_partition
from spark_lineage.merge.entity import Entity, Sources, WriteRun
from spark_lineage.merge.evidence import Evidence
from spark_lineage.merge.execution import CatalogStatement, Execution
from spark_lineage.merge.file_reading import is_schema_reading
from spark_lineage.merge.lineage import AttemptReason, SchemaField, TaskState
from spark_lineage.merge.observed import Observed, compose, in_partition, indirect, lacks, table_name, with_changes
from spark_lineage.merge.outcome import (
    CTAS_COMMAND,
    RESULT,
    RunOutcome,
    has_statistics,
    is_appending,
    is_declaration,
    is_destroyed,
    is_of_catalog,
    is_outer,
    is_unconfirmed,
    is_unwritten,
    run_outcome,
    write_of,
)
from spark_lineage.merge.state import STARTED, LineageState
from spark_lineage.naming.identity import DatasetName, directories_above

# Actions of one millisecond happen in this order.
_ENDING, _READING, _AT_ONCE = 0, 1, 2


class _Read:
    """A dataset, or a partition of it, that a write comes from: what the task put in, and whether it was given more."""

    def __init__(self, entity: Entity, partition: str, versions: Collection[str]) -> None:
        self.entity = entity
        state = entity.state_of(versions)
        self.content = state.content_of(partition)
        self.has_former = entity.has_former(partition, state)


class Timeline:
    """The replay of one task; ``entities`` are its datasets, ``touched`` what each run read and wrote."""

    def __init__(self, state: LineageState, evidence: Evidence, task_state: TaskState, *, is_each: bool) -> None:
        """Replay all runs; those that read the same are taken together, unless ``touched`` is wanted (``is_each``)."""
        self.touched: dict[str, tuple[list[Entity], list[Entity]]] = {}
        self.unseen: list[str] = []
        """The names of what may have been written: the ends of their runs are lost."""
        self.journal = CatalogJournal()
        self._state = state
        self._evidence = evidence
        self._task_state = task_state
        self._bindings = Bindings()
        self.entities = self._bindings.entities
        self._read_by: dict[tuple[int, int], tuple[Observed, ...]] = {}
        for run_id, action in self._actions(is_each=is_each):
            (self._read if action == _READING else self._write)(run_id)

    def _read(self, run_id: str) -> None:
        content = self._evidence.content(run_id)
        execution = self._evidence.execution(run_id)
        logged = {one.dataset.whole for one in execution.inputs}
        seen = {one.dataset.whole for one in execution.inputs if one.versions}
        # A run that is part of a micro-batch reads the same as that.
        is_batch = content.is_streaming and run_id not in self._evidence.roots
        query = (execution.query_id or content.job_name) if is_batch else ""
        entities = []
        for read in self._reads(run_id):
            self.journal.locate(read)
            if whole := self._bindings.written_around(read.dataset):
                # A file or a partition of what the task itself wrote.
                whole.is_unconfirmed = False
                entities.append(whole)
                continue
            entity = self._bindings.find(read)
            # A stream writes to the place of a table that a command has made, and this read names both.
            entity.is_made = entity.is_made or (entity.is_written and self.journal.has_made(read))
            is_noise = is_schema_reading(content, read)
            entity.is_read_declared |= content.is_declared
            entity.is_read_logged |= read.dataset.whole in logged
            is_seen = read.dataset.whole in seen
            entity.add_read(read, is_schema_reading=is_noise, query=query, is_seen=is_seen)
            entities += [] if is_noise else [entity]
        self.touched[run_id] = (entities, [])

    def _reads(self, run_id: str) -> tuple[Observed, ...]:
        """Return what a run read: what it names as inputs, and what else its column lineage comes from."""
        content, inputs = self._evidence.content(run_id), self._evidence.inputs(run_id)
        if not content.outputs:
            return inputs
        key = (id(content), id(inputs))
        if key not in self._read_by:
            columns: dict[DatasetName, set[str]] = {}
            for _, name, field, _ in chain.from_iterable(output.edges for output in content.outputs):
                columns.setdefault(name, set()).add(field)
            if not content.is_streaming:
                # A stream reads what its directory has.
                inputs = _by_path(inputs, columns.keys())
            named = {name for read in inputs for name in read.names}
            self._read_by[key] = inputs + tuple(
                Observed(name, schema=tuple(map(SchemaField, sorted(columns[name]))))
                for name in sorted(columns)
                # The listener names files in edges whose directory is the input.
                if named.isdisjoint((name, *directories_above(name)))
            )
        return self._read_by[key]

    def _write(self, run_id: str) -> None:
        run, statement = self._evidence.runs[run_id], self._evidence.execution(run_id).statement
        outcome = run_outcome(run, self._state)
        is_effective = outcome == "succeeded" or (outcome == "open" and self._task_state == "COMPLETE")
        # A view is no dataset, though the listener gives it a place.
        is_of_view = statement is not None and statement.object_type == "VIEW"
        content = self._evidence.content(run_id)
        outputs = () if is_of_view or RESULT in content.job_name else content.outputs
        if is_effective and statement is not None and (location := new_location(statement)):
            outputs = self._at_new_place(outputs, statement, location)
        written = []
        for write in outputs:
            if "DROP" in write.lifecycles:
                if is_effective:
                    found = self._bindings.dropped(write) or self._bindings.declared(statement)
                    self.journal.drop(run, write, found, statement)
                    self._forget(found, place_of(write))
            elif is_effective:
                written.append(self._write_one(run_id, outcome, write))
            elif outcome == "open" and self._state.has_lost_ends:
                self.unseen.append(write.dataset.name)
            else:
                entity = self._bindings.find(write)
                # The end of a declared write may have been seen.
                if not (run.content.is_declared and (entity.is_written or entity.attempt)):
                    # If all that was written is the inner run of this command, its catalog may have refused it later.
                    is_whole = run.first <= entity.first_written <= run.last and is_outer(run)
                    reason: AttemptReason = "failed" if outcome == "failed" else "unfinished"
                    error = self._evidence.execution(run_id).error
                    is_gone, partition = is_destroyed(run, write) or is_whole, write.dataset.partition
                    entity.add_attempt(reason, is_destroyed=is_gone, partition=partition, error=error)
                    written.append(entity)
        if is_effective and statement is not None and not outputs:
            written += self._command(run_id, outcome, statement)
        inputs, _ = self.touched.get(run_id, ([], []))
        self.touched[run_id] = (inputs, written)

    def _at_new_place(
        self, outputs: tuple[Observed, ...], statement: CatalogStatement, location: str
    ) -> tuple[Observed, ...]:
        """Return the outputs of a command that moves a table; what was there before stays in its directory.

        The listener names the former place, too.
        """
        former = self._bindings.table(statement.name)
        moved = tuple(one for one in outputs if is_at(one.dataset, location))
        if outputs and not moved:
            # The files of a table of Iceberg stay where they are.
            return outputs
        if former is not None:
            is_managed = former.is_managed or not is_external(former)
            self._bindings.unname(former, is_moved=True)
            for one in moved:
                self._bindings.find(one).is_managed = is_managed
        return moved

    def _command(self, run_id: str, outcome: RunOutcome, statement: CatalogStatement) -> list[Entity]:
        """Do what a command says of itself where its run names no output, and return what it wrote."""
        table = self._bindings.table(statement.name) if statement.object_type == "TABLE" else None
        if table is not None and statement.change == "RENAME":
            # It had another name again, or had gone, when the listener looked it up.
            return [self._rename(run_id, under_new_name(table, statement.new_name), table.name)]
        if table is not None and statement.change == "ALTER":
            altered = Observed(table.name, lifecycles=frozenset({"ALTER"}))
            return [self._write_one(run_id, outcome, altered)]
        if table is not None and statement.change == "TRUNCATE":
            emptied = Observed(table.name, schema=table.described.schema, lifecycles=frozenset({"TRUNCATE"}))
            partition = written_partition(self._evidence.execution(run_id))
            return [self._write_one(run_id, outcome, in_partition(emptied, partition))]
        self._forget(self.journal.command(self._evidence.runs[run_id], statement, self._bindings))
        if table is None and statement.columns:
            self._bindings.change_columns(statement)
        return []

    def _write_one(self, run_id: str, outcome: RunOutcome, write: Observed) -> Entity:
        if write.previous_name is not None:
            return self._rename(run_id, write, write.previous_name)
        run, execution = self._evidence.runs[run_id], self._evidence.execution(run_id)
        statement, is_declared = execution.statement, run.content.is_declared
        is_conditional = statement is not None and statement.is_conditional
        is_table = self._bindings.has_table(write)
        entity = self._bindings.find(write)
        write = self._with_left(write, execution, entity)
        self._bindings.declare(statement, entity)
        is_told = entity.is_within(run) or self._is_of_inner(run_id, write, entity)
        if outcome == "succeeded" and is_unwritten(run, write, execution):
            if not is_told:
                entity.add_attempt("not written", is_destroyed=False)
                if statement is not None and is_conditional:
                    self.journal.found(run, write, entity, statement, is_there=True)
            return entity
        if is_declared and (entity.is_observed or (outcome == "open" and entity.attempt)):
            if entity.is_written:
                sources, fed_by = self._origin(run_id, write)
                # The DAG does not say which inlets fed which outlets.
                is_vague = outcome == "open" and bool(entity.content.fed_by)
                entity.add_declared(write, sources, set() if is_vague else fed_by)
            return entity
        unconfirmed = is_unconfirmed(run, write, execution)
        # The task may have failed in it: the listener says COMPLETE also of a write that tasks broke. A source that
        # never gives statistics is believed.
        doubtful = unconfirmed and self._task_state != "COMPLETE" and has_statistics(run)
        if doubtful and entity.is_written and not is_told:
            # The content of before is left, unless this write took that away.
            entity.add_attempt("unfinished", is_destroyed=is_destroyed(run, write))
            return entity
        entity.is_observed |= not is_declared
        entity.is_of_catalog |= is_of_catalog(run, write)
        is_ddl = "CREATE" in write.lifecycles and write.is_empty and not execution.has_rdds
        # CREATE TABLE … LOCATION makes a table of what may lie there.
        is_placed = is_ddl and is_external(entity)
        entity.is_made = entity.is_made or is_placed or self.journal.has_made(write)
        entity.is_placed |= entity.is_made and is_external(entity)
        if "ALTER" in write.lifecycles and statement is not None:
            entity.is_moved |= bool(new_location(statement))
            write = _altered(write, entity, statement)
        if not unconfirmed and is_ddl and entity.is_seen:
            self._find_there(run_id, write, entity, is_table=is_table)
            return entity
        is_replacing = self.journal.is_replacing(run, write, entity, statement)
        # OR REPLACE of a table that was not there.
        made = frozenset({"CREATE"}) if is_replacing is False else write.lifecycles
        write = structs.replace(write, lifecycles=made)
        how = WriteRun(
            run,
            write_of(run.content, write, execution),
            execution,
            is_unconfirmed=unconfirmed,
            is_doubtful=doubtful,
            is_appending=is_appending(run, execution, is_known=entity.is_filled),
            is_repeated=is_told and ("CREATE" in write.lifecycles or is_outer(run)),
            is_inner_right=CTAS_COMMAND in run.content.job_name,
            is_certain=statement is not None and not is_conditional and table_name(entity.symlinks) is not None,
            is_declaration=is_declaration(run, write, execution),
            is_replacing=is_replacing,
            is_placed=is_placed,
            read_versions=self._versions(run_id).get(write.dataset.whole, execution.target_versions),
        )
        self.journal.write(write, entity, how)
        made_by = statement.partitioned_by if statement is not None else ()
        entity.partition_keys = execution.partitioned_by or made_by or entity.partition_keys
        entity.add_write(write, how, *self._origin(run_id, write))
        return entity

    def _is_of_inner(self, run_id: str, write: Observed, entity: Entity) -> bool:
        """Whether the run within an outer command has written this; where its START is lost, their inputs show it."""
        run = self._evidence.runs[run_id]
        if run.seen & STARTED or not is_outer(run) or not entity.is_written:
            return False
        _, fed_by = self._origin(run_id, write)
        return bool(fed_by) and fed_by <= entity.content.fed_by

    def _with_left(self, write: Observed, execution: Execution, entity: Entity) -> Observed:
        """Return a write with the columns of rows that its command leaves, where its run does not name them."""
        if execution.command not in LEAVING or write.schema:
            return write
        return with_columns_left(write, entity.known_schema or self._columns.get(write.dataset, ()))

    @cached_property
    def _columns(self) -> dict[DatasetName, tuple[SchemaField, ...]]:
        """The columns of datasets that runs have written, as one of the runs names them."""
        written = (one for run_id in sorted(self._evidence.runs) for one in self._evidence.content(run_id).outputs)
        return {one.dataset.whole: one.schema for one in written if one.schema}

    def _find_there(self, run_id: str, write: Observed, entity: Entity, *, is_table: bool) -> None:
        """Learn of a CREATE TABLE whose dataset was there: over files, or of what was a table already."""
        run, statement = self._evidence.runs[run_id], self._evidence.execution(run_id).statement
        if statement is not None and not statement.is_conditional:
            self.journal.command(run, statement, self._bindings)
            self.journal.complete(write)
        elif statement is not None and not entity.is_within(run):
            self.journal.found(run, write, entity, statement, is_there=is_table or None)

    def _origin(self, run_id: str, write: Observed) -> tuple[Sources, set[Entity]]:
        """Return where columns (M7) and data (M8) come from, through what the task made back to what it was given."""
        inputs = [read.dataset for read in self._evidence.inputs(run_id)]
        sources: Sources = {}
        # A hundred thousand edges come from a few datasets.
        versions = self._versions(run_id)

        @cache
        def source_of(name: DatasetName) -> _Read:
            return _Read(self._source(name, inputs), name.partition, versions.get(name.whole, ()))

        for column, name, field, how in write.edges:
            source = source_of(name)
            found = sources.setdefault(column, set())
            made = source.content.sources_of(field, source.entity.known_schema)
            found.update((former, at, compose(how, inner)) for former, at, inner in made)
            if source.has_former and (before := source.entity.former_name(field)) is not None:
                found.add((source.entity, before, how))
        through = {source_of(edge[1]) for edge in write.edges}
        through.update(source_of(name) for name in inputs if self._bindings.known(name) is not None)
        for source in through:
            for former, field, how in source.content.sources.get(None, ()):
                sources.setdefault(None, set()).add((former, field, indirect(how)))
        fed_by = {source.entity for source in through if source.has_former}
        fed_by = fed_by.union(*(source.content.fed_by for source in through))
        return {column: found for column, found in sources.items() if found}, fed_by

    def _versions(self, run_id: str) -> dict[DatasetName, frozenset[str]]:
        return {read.dataset.whole: read.versions for read in self._evidence.inputs(run_id)}

    def _source(self, name: DatasetName, inputs: list[DatasetName]) -> Entity:
        """Return what an edge comes from: what has this name, or the input that is a directory around it."""
        if known := self._bindings.known(name):
            return known
        wholes = [one.whole for one in inputs]
        around = next((directory for directory in directories_above(name) if directory in wholes), name)
        return self._bindings.find(Observed(around))

    def _rename(self, run_id: str, renamed: Observed, previous: DatasetName) -> Entity:
        run, statement = self._evidence.runs[run_id], self._evidence.execution(run_id).statement
        # The event has the wrong table where the new name is given without its database.
        table = self._bindings.table(statement.name) if statement is not None else None
        entity = table or self._bindings.find(Observed(previous))
        self._bindings.forget(entity)
        self._bindings.undeclare(entity)
        self.journal.rename(run, renamed, entity, statement)
        entity.add_rename(renamed, previous=previous, ended=run.last)
        self._bindings.bind(renamed, entity)
        return entity

    def _forget(self, entities: Iterable[Entity], place: DatasetName | None = None) -> None:
        """Drop tables; ``place`` is where the listener says that one was, by the folder of its database."""
        for entity in entities:
            if entity.is_managed or place in entity.names or not is_external(entity):
                self._bindings.undeclare(entity)
                self._bindings.forget(entity)
                entity.is_dropped = True
            else:
                self._bindings.unname(entity, is_moved=False)

    def _actions(self, *, is_each: bool) -> Iterator[tuple[str, int]]:
        """Return reads and writes in order: a run reads when it starts and has written when it ends.

        Within one millisecond the writes that began before come first, of these the one that began later, as it lies
        within the other; then what is read, then the writes of runs without a length. Else run ids decide, which are
        UUIDv7 and grow with time. Between two writes all runs that read the same are one, so that this takes memory for
        what was written alone; but each micro-batch reads something else.
        """
        runs = self._evidence.runs
        writes = sorted(
            (run.last, _ENDING if run.first < run.last else _AT_ONCE, -run.first, run_id)
            for run_id, run in runs.items()
            if run.content.outputs or self._evidence.execution(run_id).statement is not None
        )
        reads: dict[tuple[int, object], tuple[float, int, float, str]] = {}
        for run_id, run in runs.items():
            content = run.content
            if content.inputs or content.outputs:
                moment = (run.first, _READING, 0.0, run_id)
                is_alone = is_each or content.is_streaming or bool(content.outputs)
                key = (bisect(writes, moment), run_id if is_alone else id(content))
                reads[key] = min(moment, reads.get(key, moment))
        for _, kind, _, run_id in sorted((*writes, *reads.values())):
            yield run_id, kind


def _by_path(inputs: tuple[Observed, ...], sources: Collection[DatasetName]) -> tuple[Observed, ...]:
    """Return the paths that column lineage names where the listener names the directory around several."""
    found: list[Observed] = []
    for read in inputs:
        is_source = read.dataset in sources
        within = (name for name in sources if name.whole != read.dataset and read.dataset in directories_above(name))
        inside = [] if is_source else sorted(within)
        found += [structs.replace(read, dataset=name, statistics=None) for name in inside] or [read]
    return tuple(found)


def _altered(write: Observed, entity: Entity, statement: CatalogStatement) -> Observed:
    """Return what an ALTER left with the columns that it has then, where the listener has those of before, or none."""
    if write.schema and not lacks(write.schema, statement.columns):
        return write
    return structs.replace(write, schema=with_changes(write.schema or entity.known_schema, statement.columns))
