"""Keeps what the task did to the catalog, in order (M11): from lifecycle facets, and from what commands say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from spark_lineage.merge.bindings import Bindings, place_of
from spark_lineage.merge.entity import Entity, WriteRun
from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import Catalog, CatalogChange, ChangeType, ColumnChange, ObjectType, SchemaField, Write
from spark_lineage.merge.object_names import (
    DATABASE_PARTS,
    SESSION_CATALOG,
    TABLE_PARTS,
    object_name,
    split_name,
    table_name,
)
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import RunState, utc
from spark_lineage.naming.identity import DatasetName, is_path_namespace

_OF_LIFECYCLE: dict[str, ChangeType] = {
    "CREATE": "CREATE",
    "OVERWRITE": "OVERWRITE",
    "TRUNCATE": "TRUNCATE",
    "ALTER": "ALTER",
}
# What the listener calls Spark's own catalog, by the name "default".
_HIVE = "hive"


class CatalogJournal:
    """The changes so far; a file that is in no catalog is none."""

    def __init__(self) -> None:
        self.changes: list[CatalogChange] = []
        self._presence = Presence()

    def write(
        self, run: RunState, write: Observed, entity: Entity, told: WriteRun, statement: CatalogStatement | None
    ) -> None:
        """Keep what a write that is about to be added to its entity changes."""
        if told.partitioned_by and statement is None and _symlinked(write):
            self._partition(write.dataset, told.partitioned_by)
        lifecycle = max(write.lifecycles, default="")
        name = _catalog_name(entity, write.dataset)
        if name is None and statement is not None and statement.object_type == "TABLE":
            name = table_name(statement.name)
        change = _OF_LIFECYCLE.get(lifecycle)
        is_repeated = told.is_outer and told.started <= entity.last_written <= told.ended
        is_added = change == "CREATE" and told.is_appending and not (is_repeated and told.is_inner_right)
        if change is None or name is None or is_added:
            return
        is_new = is_repeated or not write.is_empty or self._presence.of("TABLE", write.dataset) is False
        if is_repeated:
            if told.is_inner_right and entity.last_lifecycle != "OVERWRITE":
                return
            # What the command's inner run did to the table is part of its creation.
            if entity.read is not None or entity.first_written < told.started:
                change = "OVERWRITE"
            self.changes = [one for one in self.changes if not (one.name == name and one.time >= utc(told.started))]
        columns: tuple[ColumnChange, ...] = ()
        if change == "ALTER":
            columns = column_changes(entity.known_schema, write.schema)
            stated = statement.columns if statement is not None else ()
            entity.change_columns(columns or stated)
            columns = stated or columns
        self._keep(
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
                is_ignored=is_ignored(
                    change, is_there=False if is_new else None, is_conditional=_is_conditional(statement)
                ),
                partitioned_by=(statement.partitioned_by or told.partitioned_by) if statement is not None else (),
            ),
            statement,
            write.catalog,
        )
        self._presence.learn("TABLE", _names(write.dataset, statement), is_there=True)

    def found(
        self, run: RunState, write: Observed, entity: Entity, statement: CatalogStatement, *, is_there: bool | None
    ) -> None:
        """Keep a CREATE TABLE IF NOT EXISTS that made nothing, as far as its run tells.

        :param is_there: whether the table was there, None where it may be that only its files were
        """
        name = _catalog_name(entity, write.dataset) or table_name(statement.name)
        change = CatalogChange("CREATE", "TABLE", write.dataset, name, utc(run.last), schema=write.schema)
        self._keep(structs.replace(change, is_certain=False, is_ignored=is_there), statement, write.catalog)
        self._presence.learn("TABLE", _names(write.dataset, statement), is_there=True)

    def rename(self, run: RunState, renamed: Observed, entity: Entity, statement: CatalogStatement | None) -> None:
        """Keep a RENAME; the entity still has its former name."""
        old, new = (statement.name, statement.new_name) if statement is not None else ("", "")
        name = _symlinked(renamed) or table_name(new) or renamed.dataset.name
        former = entity.table_name or table_name(old) or entity.name.name
        self._keep(
            CatalogChange(
                "RENAME", "TABLE", renamed.dataset, name, utc(run.last), previous_name=former, schema=renamed.schema
            ),
            statement,
            renamed.catalog or entity.catalog,
        )
        known = object_name(old or former, TABLE_PARTS)
        self._presence.learn("TABLE", entity.names | {known}, is_there=False)
        now = object_name(name, TABLE_PARTS, known.namespace)
        self._presence.learn("TABLE", [renamed.dataset, now], is_there=True)

    def drop(
        self, run: RunState, dropped: Observed, found: Sequence[Entity], statement: CatalogStatement | None
    ) -> None:
        """Keep a DROP; where the task never saw the table, Spark says the same of one that was not there."""
        name = _symlinked(dropped) or dropped.dataset.name
        dataset = min((entity.name for entity in found), default=place_of(dropped))
        is_view = any(one.name == name and one.object_type == "VIEW" for one in self.changes)
        object_type = statement.object_type if statement is not None else "VIEW" if is_view else "TABLE"
        named = object_name(statement.name if statement is not None else name, TABLE_PARTS)
        known = named if object_type == "VIEW" else dataset
        # Without its catalog the name may be that of another table; with it, the table may be in another place.
        is_qualified = statement is not None and split_name(statement.name, TABLE_PARTS)[0] != ""
        was_there = (
            any(entity.is_seen for entity in found)
            or (is_qualified and self._presence.of(object_type, named))
            or self._presence.of(object_type, known)
        )
        last = next((entity for entity in found if entity.name == dataset), None)
        self._keep(
            CatalogChange(
                "DROP",
                object_type,
                dataset,
                name,
                utc(run.last),
                schema=last.known_schema if last is not None else (),
                is_certain=bool(found) or is_view or (statement is not None and not statement.is_conditional),
                is_ignored=is_ignored("DROP", is_there=was_there, is_conditional=_is_conditional(statement)),
            ),
            statement,
            dropped.catalog or (last.catalog if last is not None else None),
        )
        gone = {named, known}.union(*(entity.names for entity in found))
        self._presence.learn(object_type, gone, is_there=False)

    def command(self, run: RunState, statement: CatalogStatement, bindings: Bindings) -> list[Entity]:
        """Keep what a command did to a view, a database, or a table that no output of its run names.

        :return: the tables that it dropped
        """
        table = bindings.table(statement.name) if statement.object_type == "TABLE" else None
        if table is not None and statement.change in {"DROP", "TRUNCATE"}:
            return self._empty(run, statement, table)
        dropped: list[Entity] = []
        if statement.object_type == "DATABASE" and statement.change == "DROP" and statement.is_cascading:
            dropped = bindings.in_database(object_name(statement.name, DATABASE_PARTS).name)
            for entity in dropped:
                self.drop(run, Observed(entity.name, symlinks=frozenset(entity.symlinks)), [entity], None)
            self._drop_views(run, object_name(statement.name, DATABASE_PARTS))
        parts = DATABASE_PARTS if statement.object_type == "DATABASE" else TABLE_PARTS
        known = object_name(statement.name, parts)
        renamed = object_name(statement.new_name, parts, known.namespace) if statement.new_name else known
        is_new = statement.change == "OVERWRITE" and not any(
            one.object_type == "VIEW" and one.name == known.name for one in self.changes
        )
        change = CatalogChange(
            # OR REPLACE of a view that the task never saw makes it, as far as anybody knows.
            "CREATE" if is_new else statement.change,
            statement.object_type,
            renamed,
            renamed.name,
            utc(run.last),
            previous_name=known.name if statement.new_name else None,
            columns=statement.columns,
            properties=statement.properties,
            partitioned_by=statement.partitioned_by,
            is_certain=not statement.is_conditional,
            is_ignored=is_ignored(
                statement.change,
                is_there=self._is_there(statement, known, bindings),
                is_conditional=statement.is_conditional,
            ),
        )
        self._keep(change, statement)
        self._presence.learn(statement.object_type, [known], is_there=False)
        self._presence.learn(statement.object_type, [renamed], is_there=statement.change != "DROP")
        return dropped

    def _keep(
        self, change: CatalogChange, statement: CatalogStatement | None = None, listened: Catalog | None = None
    ) -> None:
        """Keep a change with the name of its catalog: as the listener or the command tells it, or did before."""
        parts = DATABASE_PARTS if change.object_type == "DATABASE" else TABLE_PARTS
        catalog = split_name(statement.name, parts)[0] if statement is not None else ""
        if listened is not None and listened.framework != _HIVE:
            catalog = listened.name
        before = (one.catalog for one in reversed(self.changes) if one.dataset == change.dataset and one.catalog)
        self.changes.append(structs.replace(change, catalog=catalog or next(before, "")))

    def _partition(self, dataset: DatasetName, columns: tuple[str, ...]) -> None:
        """Complete the CREATE of a table by what a write into it tells: that of Spark's own catalog tells nothing."""
        for index in reversed(range(len(self.changes))):
            created = self.changes[index]
            if created.change == "CREATE" and created.dataset == dataset and not created.is_ignored:
                if not created.partitioned_by:
                    self.changes[index] = structs.replace(created, partitioned_by=columns)
                return

    def _drop_views(self, run: RunState, database: DatasetName) -> None:
        """Keep that the views of a database go with it, as far as the task knows them."""
        inside = f"{database.name.casefold()}."
        views = {one.dataset: None for one in self.changes if one.object_type == "VIEW"}
        for view in views:
            is_inside = view.namespace == database.namespace and view.name.casefold().startswith(inside)
            if is_inside and self._presence.of("VIEW", view):
                self._keep(CatalogChange("DROP", "VIEW", view, view.name, utc(run.last)))
                self._presence.learn("VIEW", [view], is_there=False)

    def _is_there(self, statement: CatalogStatement, known: DatasetName, bindings: Bindings) -> bool | None:
        """Whether what a command is about is there; a database is, where the task has seen a table of it."""
        is_there = self._presence.of(statement.object_type, known)
        if is_there is None and statement.object_type == "DATABASE" and known.namespace == SESSION_CATALOG:
            return any(table.is_seen for table in bindings.in_database(known.name)) or None
        return is_there

    def _empty(self, run: RunState, statement: CatalogStatement, table: Entity) -> list[Entity]:
        """Keep the end of a table that the task knows, or of its content."""
        if statement.change == "DROP":
            self.drop(run, Observed(table.name, symlinks=frozenset(table.symlinks)), [table], statement)
            return [table]
        name = table.table_name or statement.name
        change = CatalogChange("TRUNCATE", "TABLE", table.name, name, utc(run.last), schema=table.schema)
        self._keep(change, statement, table.catalog)
        told = WriteRun(run.first, run.last, Write("TRUNCATE"))
        table.add_write(Observed(table.name, lifecycles=frozenset({"TRUNCATE"})), told, {}, set())
        return []


def _names(dataset: DatasetName, statement: CatalogStatement | None) -> set[DatasetName]:
    """Return what a table is known by: its place, and the name that a command gives it."""
    return {dataset} if statement is None else {dataset, object_name(statement.name, TABLE_PARTS)}


def _is_conditional(statement: CatalogStatement | None) -> bool | None:
    return None if statement is None else statement.is_conditional


def _catalog_name(entity: Entity, dataset: DatasetName) -> str | None:
    return entity.table_name or (None if is_path_namespace(dataset.namespace) else dataset.name)


def _symlinked(observed: Observed) -> str | None:
    return min((link.name for link in observed.symlinks if link.type == "TABLE"), default=None)


def column_changes(old: Sequence[SchemaField], new: Sequence[SchemaField]) -> tuple[ColumnChange, ...]:
    """Return what an ALTER changed, by column name; a column that lost only its name was renamed."""
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


def _retyped(old: Sequence[SchemaField], after: Mapping[str, SchemaField]) -> tuple[ColumnChange, ...]:
    return tuple(
        ColumnChange(field, after[field.name]) for field in old if field.name in after and after[field.name] != field
    )


class Presence:
    """Tables, views and databases that the task has made or dropped, as they are now; of all else it knows nothing.

    A table is known by its dataset, for two catalogs may have tables of one name, and by the name that a command gives
    it; views and databases, which are no datasets, by the name that they have in their catalog.
    """

    def __init__(self) -> None:
        self._is_there: dict[tuple[ObjectType, DatasetName], bool] = {}

    def learn(self, object_type: ObjectType, names: Iterable[DatasetName], *, is_there: bool) -> None:
        """Learn what became of something with these names."""
        for name in names:
            self._is_there[object_type, _folded(object_type, name)] = is_there

    def of(self, object_type: ObjectType, name: DatasetName) -> bool | None:
        """Whether it is there, None where the task has neither made nor dropped it."""
        return self._is_there.get((object_type, _folded(object_type, name)))


def is_ignored(change: ChangeType, *, is_there: bool | None, is_conditional: bool | None) -> bool | None:
    """Whether a CREATE or DROP that succeeded was passed over because of its IF [NOT] EXISTS; None: nobody can know.

    :param is_there: whether it was there before, None where no evidence tells
    :param is_conditional: whether it had such a condition, None where no evidence tells
    """
    if change not in {"CREATE", "DROP"} or is_conditional is False:
        return False
    if is_there is None:
        return None
    return is_there if change == "CREATE" else not is_there


def _folded(object_type: ObjectType, name: DatasetName) -> DatasetName:
    """Return a name to compare by: Spark's catalogs do not tell upper from lower case, where paths do."""
    is_place = object_type == "TABLE" and name.namespace != SESSION_CATALOG
    return name if is_place else DatasetName(name.namespace, name.name.casefold())
