"""Keeps what the task did to the catalog, in order (M11): from lifecycle facets, and from what commands say."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from spark_lineage.merge.bindings import Bindings, place_of
from spark_lineage.merge.entity import Entity, WriteRun
from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import CatalogChange, ChangeType, ColumnChange, SchemaField, Write
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import RunState, utc
from spark_lineage.naming.identity import DatasetName, is_path_namespace

_OF_LIFECYCLE: dict[str, ChangeType] = {
    "CREATE": "CREATE",
    "OVERWRITE": "OVERWRITE",
    "TRUNCATE": "TRUNCATE",
    "ALTER": "ALTER",
}


class CatalogJournal:
    """The changes so far; a file that is in no catalog is none."""

    def __init__(self) -> None:
        self.changes: list[CatalogChange] = []

    def write(
        self, run: RunState, write: Observed, entity: Entity, told: WriteRun, statement: CatalogStatement | None
    ) -> None:
        """Keep what a write that is about to be added to its entity changes."""
        lifecycle = max(write.lifecycles, default="")
        name = _catalog_name(entity, write.dataset)
        if name is None and statement is not None and statement.object_type == "TABLE":
            name = _split(statement.name, 2)[1]
        change = _OF_LIFECYCLE.get(lifecycle)
        if change is None or name is None or (change == "CREATE" and told.is_appending):
            return
        if told.is_outer and told.started <= entity.last_written <= told.ended:
            if told.is_inner_right and entity.last_lifecycle != "OVERWRITE":
                return
            # What the command's inner run did to the table is part of its creation.
            if entity.read is not None or entity.first_written < told.started:
                change = "OVERWRITE"
            self.changes = [one for one in self.changes if not (one.name == name and one.time >= utc(told.started))]
        columns: tuple[ColumnChange, ...] = ()
        if change == "ALTER":
            columns = _difference(entity.known_schema, write.schema)
            entity.change_columns(columns)
            columns = (statement.columns if statement is not None else ()) or columns
        self.changes.append(
            CatalogChange(
                change,
                "TABLE",
                write.dataset,
                name,
                utc(run.last),
                columns=columns,
                schema=write.schema,
                properties=statement.properties if statement is not None else (),
                is_certain=change != "CREATE" or statement is None or not statement.is_conditional,
            )
        )

    def rename(self, run: RunState, renamed: Observed, entity: Entity, statement: CatalogStatement | None) -> None:
        """Keep a RENAME; the entity still has its former name."""
        old, new = (statement.name, statement.new_name) if statement is not None else ("", "")
        name = _symlinked(renamed) or _split(new, 2)[1] or renamed.dataset.name
        former = entity.table_name or _split(old, 2)[1] or entity.name.name
        self.changes.append(
            CatalogChange(
                "RENAME", "TABLE", renamed.dataset, name, utc(run.last), previous_name=former, schema=renamed.schema
            )
        )

    def drop(
        self, run: RunState, dropped: Observed, found: Sequence[Entity], statement: CatalogStatement | None
    ) -> None:
        """Keep a DROP; where the task never saw the table, Spark says the same of one that was not there."""
        name = _symlinked(dropped) or dropped.dataset.name
        dataset = min((entity.name for entity in found), default=place_of(dropped))
        is_view = any(one.name == name and one.object_type == "VIEW" for one in self.changes)
        self.changes.append(
            CatalogChange(
                "DROP",
                statement.object_type if statement is not None else "VIEW" if is_view else "TABLE",
                dataset,
                name,
                utc(run.last),
                is_certain=bool(found) or is_view or (statement is not None and not statement.is_conditional),
            )
        )

    def command(self, run: RunState, statement: CatalogStatement, bindings: Bindings) -> list[Entity]:
        """Keep what a command did to a view, a database, or a table that no output of its run names.

        :return: the tables that it dropped
        """
        table = bindings.table(statement.name) if statement.object_type == "TABLE" else None
        if table is not None and statement.change in {"DROP", "TRUNCATE"}:
            return self._empty(run, statement, table)
        dropped: list[Entity] = []
        if statement.object_type == "DATABASE" and statement.change == "DROP" and statement.is_cascading:
            dropped = bindings.in_database(_last_part(statement.name))
            for entity in dropped:
                self.drop(run, Observed(entity.name, symlinks=frozenset(entity.symlinks)), [entity], None)
        depth = 1 if statement.object_type == "DATABASE" else 2
        catalog, name = _split(statement.name, depth)
        is_new = statement.change == "OVERWRITE" and not any(
            one.object_type == "VIEW" and one.name == name for one in self.changes
        )
        change = CatalogChange(
            # OR REPLACE of a view that the task never saw makes it, as far as anybody knows.
            "CREATE" if is_new else statement.change,
            statement.object_type,
            DatasetName(catalog or "spark_catalog", _split(statement.new_name, depth)[1] or name),
            _split(statement.new_name, depth)[1] or name,
            utc(run.last),
            previous_name=name if statement.new_name else None,
            columns=statement.columns,
            properties=statement.properties,
            is_certain=not statement.is_conditional,
        )
        self.changes.append(change)
        return dropped

    def _empty(self, run: RunState, statement: CatalogStatement, table: Entity) -> list[Entity]:
        """Keep the end of a table that the task knows, or of its content."""
        if statement.change == "DROP":
            self.drop(run, Observed(table.name, symlinks=frozenset(table.symlinks)), [table], statement)
            return [table]
        name = table.table_name or statement.name
        self.changes.append(CatalogChange("TRUNCATE", "TABLE", table.name, name, utc(run.last), schema=table.schema))
        told = WriteRun(run.first, run.last, Write("TRUNCATE"))
        table.add_write(Observed(table.name, lifecycles=frozenset({"TRUNCATE"})), told, {}, set())
        return []


def _split(name: str, depth: int) -> tuple[str, str]:
    """Split the name of a database (depth 1) or table (2) from its catalog, if it names one."""
    parts = name.split(".")
    return ".".join(parts[:-depth]), ".".join(parts[-depth:])


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _catalog_name(entity: Entity, dataset: DatasetName) -> str | None:
    return entity.table_name or (None if is_path_namespace(dataset.namespace) else dataset.name)


def _symlinked(observed: Observed) -> str | None:
    return min((link.name for link in observed.symlinks if link.type == "TABLE"), default=None)


def _difference(old: Sequence[SchemaField], new: Sequence[SchemaField]) -> tuple[ColumnChange, ...]:
    """Give what an ALTER changed, by column name; a column that lost only its name was renamed."""
    if not old or not new:
        return ()
    before, after = {field.name: field for field in old}, {field.name: field for field in new}
    if len(old) == len(new):
        gone = [position for position, field in enumerate(old) if field.name not in after]
        come = [position for position, field in enumerate(new) if field.name not in before]
        if gone == come and all(structs.replace(old[at], name=new[at].name) == new[at] for at in gone):
            return tuple(ColumnChange(old[at], new[at]) for at in gone) + _retyped(old, after)
    dropped = tuple(ColumnChange(field, None) for field in old if field.name not in after)
    added = tuple(ColumnChange(None, field) for field in new if field.name not in before)
    return dropped + added + _retyped(old, after)


def _retyped(old: Sequence[SchemaField], after: dict[str, SchemaField]) -> tuple[ColumnChange, ...]:
    return tuple(
        ColumnChange(field, after[field.name]) for field in old if field.name in after and after[field.name] != field
    )
