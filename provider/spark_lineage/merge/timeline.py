"""Replays the runs in the order of their times: which datasets went in, and which were left (M1, M5, M6)."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator

from spark_lineage.merge.entity import Entity, SourceEdge
from spark_lineage.merge.lineage import TaskState
from spark_lineage.merge.noise import is_schema_reading
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.outcome import CTAS_COMMAND, is_destroyed, is_unconfirmed, is_unwritten, run_outcome
from spark_lineage.merge.state import LineageState, RunState
from spark_lineage.naming.identity import DatasetName, directories_above

_READ, _WRITE = 0, 1


class Timeline:
    """The datasets of a task by the names that they have at a moment of the replay; ``entities`` are all there were."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self._by_name: dict[DatasetName, Entity] = {}

    def replay(self, state: LineageState, task_state: TaskState) -> None:
        """Replay all runs of a state."""
        for run, action in _actions(state):
            if action == _WRITE:
                self._write(run, state, task_state)
            else:
                self._read(run)

    def _read(self, run: RunState) -> None:
        for read in run.content.inputs:
            if read.dataset not in self._by_name and (whole := self._written_around(read.dataset)):
                # A file or a partition of what the task itself wrote.
                whole.is_unconfirmed = False
            else:
                self._find(read).add_read(read, is_schema_reading=is_schema_reading(run.content, read))

    def _write(self, run: RunState, state: LineageState, task_state: TaskState) -> None:
        outcome = run_outcome(run, state)
        is_effective = outcome == "succeeded" or (outcome == "open" and task_state == "COMPLETE")
        for write in run.content.outputs:
            if "DROP" in write.lifecycles:
                if is_effective:
                    self._drop(write)
            elif not is_effective:
                self._find(write).add_attempt(
                    "failed" if outcome == "failed" else "unfinished", is_destroyed=is_destroyed(run, write)
                )
            elif outcome == "succeeded" and is_unwritten(run, write):
                entity = self._find(write)
                if not run.first <= entity.last_written <= run.last:
                    entity.add_attempt("not written", is_destroyed=False)
            elif write.previous_name is not None:
                self._rename(write, write.previous_name, run.last)
            else:
                self._add_write(run, write)

    def _add_write(self, run: RunState, write: Observed) -> None:
        entity = self._find(write)
        unconfirmed = is_unconfirmed(run, write)
        if unconfirmed or not entity.is_there(write):
            entity.add_write(
                write,
                started=run.first,
                ended=run.last,
                edges=list(self._edges(write)),
                is_unconfirmed=unconfirmed,
                is_ctas=CTAS_COMMAND in run.content.job_name,
            )

    def _edges(self, write: Observed) -> Iterator[SourceEdge]:
        for column, name, field, how in write.edges:
            yield column, self._by_name.get(name) or self._written_around(name) or name, field, how

    def _written_around(self, name: DatasetName) -> Entity | None:
        """Give what the task has written that this path lies in."""
        for directory in directories_above(name):
            entity = self._by_name.get(directory)
            if entity is not None and entity.is_written:
                return entity
        return None

    def _find(self, observed: Observed) -> Entity:
        """Give the entity that has one of these names now; symlinks make entities one (M1)."""
        known = {id(entity): entity for name in observed.names if (entity := self._by_name.get(name))}
        if known:
            entity, *others = known.values()
            for other in others:
                entity.absorb(other)
                self.entities.remove(other)
                self._rebind(other, entity)
        else:
            entity = Entity()
            self.entities.append(entity)
        entity.add_name(observed)
        self._bind(observed, entity)
        return entity

    def _rename(self, renamed: Observed, previous: DatasetName, ended: float) -> None:
        entity = self._find(Observed(previous))
        self._forget(entity)
        entity.add_rename(renamed, previous=previous, ended=ended)
        self._bind(renamed, entity)

    def _drop(self, dropped: Observed) -> None:
        """Drop what the table name means; the path of a DROP is wrong for tables outside of the default database."""
        found = {id(entity): entity for name in self._names_of_dropped(dropped) if (entity := self._by_name.get(name))}
        for entity in found.values():
            entity.is_dropped = True
            self._forget(entity)

    def _names_of_dropped(self, dropped: Observed) -> list[DatasetName]:
        exact = [link.dataset for link in dropped.symlinks if link.type == "TABLE"]
        if not exact:
            return [dropped.dataset]
        if any(name in self._by_name for name in exact):
            return exact
        # The namespace of the symlink is then the database's folder where others have the warehouse's.
        return [
            name
            for name in self._by_name
            if any(name.name == table.name and _is_above(name.namespace, table.namespace) for table in exact)
        ]

    def _bind(self, observed: Observed, entity: Entity) -> None:
        for name in observed.names:
            self._by_name[name] = entity

    def _forget(self, entity: Entity) -> None:
        for name in [name for name, known in self._by_name.items() if known is entity]:
            del self._by_name[name]

    def _rebind(self, old: Entity, new: Entity) -> None:
        for name, entity in self._by_name.items():
            if entity is old:
                self._by_name[name] = new


def _actions(state: LineageState) -> Iterator[tuple[RunState, int]]:
    """Give reads and writes in order: a run reads when it starts and has written when it ends.

    Of two at the same millisecond the run with the lower id comes first: run ids are UUIDv7, which grow with time.
    Between two writes all runs that read the same are one, so that this takes memory for what was written alone.
    """
    writes = sorted((run.last, run_id) for run_id, run in state.runs.items() if run.content.outputs)
    reads: dict[tuple[int, int], tuple[float, str]] = {}
    for run_id, run in state.runs.items():
        if run.content.inputs:
            moment = (run.first, run_id)
            key = (bisect(writes, moment), id(run.content))
            if key not in reads or moment < reads[key]:
                reads[key] = moment
    actions = [(*moment, _WRITE) for moment in writes] + [(*moment, _READ) for moment in reads.values()]
    for _, run_id, kind in sorted(actions):
        yield state.runs[run_id], kind


def _is_above(namespace: str, below: str) -> bool:
    return below == namespace or below.startswith(namespace.rstrip("/") + "/")
