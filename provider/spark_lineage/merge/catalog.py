"""The catalog during the replay: what a name means at a moment (M1), and what the task did to the catalog (M11).

Symlinks make names one, RENAME and DROP end them. Changes come from lifecycle facets, and from what commands say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import structs

from spark_lineage.merge.entity import Entity, WriteRun
from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import Catalog, CatalogChange, ChangeType, ColumnChange, ObjectType
from spark_lineage.merge.observed import Observed, column_changes, of_schema, table_name, tables
from spark_lineage.merge.state import RunState, utc
from spark_lineage.naming.identity import DatasetName, directories_above, has_objects, is_path_namespace

_CHANGES: Mapping[str, ChangeType] = {one: one for one in ("CREATE", "OVERWRITE", "TRUNCATE", "ALTER")}
_SESSION_CATALOG = "spark_catalog"
# The listener calls Spark's own catalog so, by the name "default".
_HIVE = "hive"
# A table that is named by its format and path: spark_catalog.delta./data/t.
_PATH_TABLE = re.compile(r"(?:\w+\.)?\w+\.(?P<path>(?:[A-Za-z][\w+.-]*:)?/.*)", re.DOTALL)
_SCHEME = re.compile(r"\A[A-Za-z][\w+.-]*:(?://)?")
# A name has so many parts without its catalog.
_PARTS: Mapping[ObjectType, int] = {"DATABASE": 1, "VIEW": 2, "TABLE": 2}
_What = tuple[ChangeType, ObjectType, DatasetName, str]
_FIRST_OF_DELTA = frozenset({"0"})
# A part of the listener's names of jobs that replace a table, or make one (CREATE OR REPLACE).
_REPLACE = "replace_table"
# In the place of what no command says.
_UNSAID = CatalogStatement("CREATE", "TABLE", "", is_conditional=None)


class Bindings:
    """The datasets of a task by the names that they have now; ``entities`` are all there ever were."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self._by_name: dict[DatasetName, Entity] = {}
        # The names of tables that were given another place.
        self._moved: set[DatasetName] = set()
        # Commands give tables these databases and names, which no symlink has for a table with a place.
        self._by_command: dict[tuple[str, ...], Entity] = {}
        # These changes of columns are of tables that the task has not seen yet.
        self._changes: dict[tuple[str, ...], list[ColumnChange]] = {}

    def find(self, observed: Observed) -> Entity:
        """Return the entity that has one of these names now; symlinks make entities one."""
        known = self._known(observed.names)
        if not known:
            known = [Entity()]
            known[0].is_moved = not self._moved.isdisjoint(observed.names)
            self.entities += known
            for link in observed.tables if self._changes else ():
                known[0].change_columns(self._changes.pop(_short(link.name), ()))
        entity, *others = known
        for other in others:
            entity.absorb(other)
            self.entities.remove(other)
            self._by_name.update({name: entity for name, one in self._by_name.items() if one is other})
        entity.names.add(observed.dataset.whole)
        entity.symlinks |= observed.symlinks
        self.bind(observed, entity)
        return entity

    def known(self, name: DatasetName) -> Entity | None:
        """Return what a name means: the dataset of that name, or what the task has written that the path lies in."""
        return self._by_name.get(name.whole) or self.written_around(name)

    def written_around(self, name: DatasetName) -> Entity | None:
        """Return what the task has written that this path, which means no dataset of its own, lies in."""
        name = name.whole
        above = () if name in self._by_name else self._known(directories_above(name))
        return next((entity for entity in above if entity.is_written), None)

    def bind(self, observed: Observed, entity: Entity) -> None:
        """Give an entity the names of a dataset."""
        self._by_name.update(dict.fromkeys(observed.names, entity))

    def declare(self, statement: CatalogStatement | None, entity: Entity) -> None:
        """Note what table a command made or moved, if it did."""
        if statement is None or statement.object_type != "TABLE":
            return
        if statement.change in {"CREATE", "OVERWRITE"} or new_location(statement):
            self._by_command[_short(statement.name)] = entity

    def change_columns(self, statement: CatalogStatement) -> None:
        """Note changes of columns of a table that the task has not seen yet."""
        self._changes.setdefault(_short(statement.name), []).extend(statement.columns)

    def declared(self, statement: CatalogStatement | None) -> list[Entity]:
        """Return the table that a command names, where nothing but the command that made it has its name."""
        known = self._by_command.get(_short(statement.name)) if statement is not None else None
        return [] if known is None or table_name(known.current.symlinks) is not None else [known.current]

    def undeclare(self, entity: Entity) -> None:
        """Take the names from a table that commands gave it."""
        self._by_command = {name: known for name, known in self._by_command.items() if known.current is not entity}

    def unname(self, entity: Entity, *, is_moved: bool) -> None:
        """Take the names of a table from what stays in its directory.

        :param is_moved: whether the names are now those of another place; else the table was dropped
        """
        self.undeclare(entity)
        for link in tables(entity.symlinks):
            self._by_name.pop(link.dataset, None)
            entity.symlinks.discard(link)
            if is_moved:
                self._moved.add(link.dataset)

    def forget(self, entity: Entity) -> None:
        """Take all names from an entity."""
        self._by_name = {name: known for name, known in self._by_name.items() if known is not entity}

    def dropped(self, observed: Observed) -> list[Entity]:
        """Return what a DROP means: by its table name, for its path is wrong outside of the default database."""
        links = observed.tables
        names = [link.dataset for link in links] or [observed.dataset]
        if links and not any(name in self._by_name for name in names):
            # The namespace of the symlink is then the database's folder where others have the warehouse's.
            folders = {(link.name, f"{link.namespace}/") for link in links}
            names = [
                one
                for one in self._by_name
                if any(
                    one.name == name and below.startswith(f"{one.namespace.rstrip('/')}/") for name, below in folders
                )
            ]
        if not names and self._moved.isdisjoint(link.dataset for link in links):
            # The tables of a database with a place of its own have no symlinks but in their DROP.
            names = [place_of(observed)]
        return self._known(names)

    def table(self, name: str) -> Entity | None:
        """Return the table that a command names, perhaps without its database; Spark's catalogs ignore case."""
        if path := _PATH_TABLE.fullmatch(name):
            return next((entity for known, entity in self._by_name.items() if is_at(known, path["path"])), None)
        wanted = _short(name)
        if (declared := self._by_command.get(wanted)) is not None and not declared.current.is_dropped:
            return declared.current
        for entity in self.entities:
            names = [link.name.casefold().split(".") for link in tables(entity.symlinks)]
            if not entity.is_dropped and any(tuple(parts[-len(wanted) :]) == wanted for parts in names):
                return entity
        return None

    def has_table(self, observed: Observed) -> bool:
        """Whether the task has seen a table of this name, and not just its files."""
        alone = [] if is_path_namespace(observed.dataset.namespace) else [observed.dataset]
        return any(entity.is_seen for entity in self._known([link.dataset for link in observed.tables] or alone))

    def in_database(self, database: DatasetName) -> list[Entity]:
        """Return the tables of a database, by its name in its catalog, that the task has read or written."""
        return [
            entity
            for entity in dict.fromkeys(self._by_name.values())
            if entity.is_seen
            and _catalog_of(entity.described.catalog) in {None, database.namespace}
            and any(
                link.dataset in self._by_name and link.name.rpartition(".")[0] == database.name
                for link in tables(entity.symlinks)
            )
        ]

    def _known(self, names: Iterable[DatasetName]) -> list[Entity]:
        return list(dict.fromkeys(entity for name in names if (entity := self._by_name.get(name))))


def _short(name: str) -> tuple[str, ...]:
    """Return database and name of a table as commands have it; Spark's catalogs ignore case."""
    return tuple(name.casefold().split(".")[-2:])


def is_external(table: Entity) -> bool:
    """Whether a table lies outside of the folders in which its catalog puts tables: DROP takes away its name alone."""
    links, name = tables(table.symlinks), table.name
    folders = [link.namespace for link in links if is_path_namespace(link.namespace)]
    if not is_path_namespace(name.namespace) or len(folders) < len(links):
        return False
    databases = {f"{link.name.rpartition('.')[0]}.db" for link in links}
    above = {f"{one.namespace}:{one.name}".replace(":///", ":/") for one in directories_above(name)}
    is_in_database = next(directories_above(name), name).name.rpartition("/")[2] in databases
    return not is_in_database and above.isdisjoint(folders)


def new_location(statement: CatalogStatement) -> str:
    """Return the place that a command gives a table, empty where it gives none."""
    is_of_table = (statement.change, statement.object_type) == ("ALTER", "TABLE")
    return dict(statement.properties).get("location", "") if is_of_table else ""


def is_at(name: DatasetName, path: str) -> bool:
    """Whether a dataset is at a path as a command has it, whatever its scheme (``s3a``)."""
    _, _, store = name.namespace.partition("://")
    here = f"{store}/{name.name.strip('/')}"
    return is_path_namespace(name.namespace) and here == _SCHEME.sub("", path).rstrip("/")


def place_of(dropped: Observed) -> DatasetName:
    """Return where a dropped table was: in the folder that is its symlink's namespace, and not in that again."""
    for link in dropped.tables:
        scheme, _, folder = link.namespace.partition(":")
        if is_path_namespace(link.namespace):
            table = link.name.rpartition(".")[2]
            if not folder.startswith("//"):
                return DatasetName(scheme, f"{folder.rstrip('/')}/{table}")
            store, slash, path = folder[2:].partition("/")
            return DatasetName(
                f"{scheme}://{store}", f"{'' if has_objects(scheme) else slash}{path.rstrip('/')}/{table}"
            )
    return dropped.dataset


def under_new_name(table: Entity, new_name: str) -> Observed:
    """Return a table as a RENAME leaves it: its database is the same, and a folder that Spark made has its new name."""
    # Spark's catalog writes names in lower case; the command may give one without the database.
    new = new_name.rpartition(".")[2].lower()
    place, links = table.name, []
    if not is_path_namespace(place.namespace):
        above = place.name.rpartition(".")
        place = structs.replace(place, name="".join((*above[:2], new_name.rpartition(".")[2])))
    for link in tables(table.symlinks):
        database, _, old = link.name.rpartition(".")
        links.append(structs.replace(link, name=f"{database}.{new}" if database else new))
        folder, _, last = table.name.name.rpartition("/")
        # The place of an external table, which is not in the folder of its database or the warehouse, stays.
        if last == old and folder.rpartition("/")[2] in {f"{database}.db", link.namespace.rpartition("/")[2]}:
            place = DatasetName(table.name.namespace, f"{folder}/{new}")
    return Observed(place, symlinks=frozenset(links), schema=table.known_schema)


class CatalogJournal:
    """The changes so far; a file that is in no catalog is none."""

    def __init__(self) -> None:
        self.changes: list[CatalogChange] = []
        # A table is known by its dataset, for two catalogs may have tables of one name, and by the name that a command
        # gives it; views and databases, which are no datasets, by their names in their catalogs.
        self._is_there: dict[tuple[ObjectType, DatasetName], bool] = {}

    def write(self, write: Observed, entity: Entity, how: WriteRun) -> None:
        """Keep what a write that is about to be added to its entity changes."""
        run, said, partitioned_by = how.run, how.execution.statement or _UNSAID, how.execution.partitioned_by
        write = structs.replace(write, dataset=write.dataset.whole)
        self.locate(write)
        if partitioned_by and said is _UNSAID and write.tables:
            self._partition(write.dataset, partitioned_by)
        name = _catalog_name(entity, write.dataset) or (
            _split_name("TABLE", said.name)[1] if said.object_type == "TABLE" else ""
        )
        change = _CHANGES.get(max(write.lifecycles, default=""))
        is_repeated = how.is_repeated
        is_inner_right = is_repeated and how.is_inner_right
        is_added = change == "CREATE" and how.is_appending and not is_inner_right
        if change is None or not name or is_added or (is_inner_right and entity.last_lifecycle != "OVERWRITE"):
            return
        if is_repeated and (entity.read is not None or entity.first_written < run.first):
            change = "OVERWRITE"
        if is_repeated:
            # The change that the command's inner run made to the table is part of its creation.
            self.changes = [one for one in self.changes if one.name != name or one.time < utc(run.first)]
        columns: tuple[ColumnChange, ...] = ()
        if change == "ALTER":
            changes = (column_changes(former, write.schema) for former in (entity.known_schema, write.former))
            columns = of_schema(said.columns, entity.known_schema) or next(filter(None, changes), ())
            entity.change_columns(columns)
        is_new = is_repeated or not write.is_empty or self.presence("TABLE", write.dataset) is False
        self._keep(
            (change, "TABLE", write.dataset, name),
            run,
            said,
            write.catalog,
            columns=columns,
            schema=write.schema,
            properties=said.properties,
            is_certain=_is_certain(change, said, how),
            is_ignored=is_ignored(change, is_there=False if is_new else None, is_conditional=said.is_conditional),
            partitioned_by=said.partitioned_by or (() if said is _UNSAID else partitioned_by),
        )
        self._learn("TABLE", _names(write.dataset, said), is_there=True)

    def is_replacing(
        self, run: RunState, write: Observed, entity: Entity, statement: CatalogStatement | None
    ) -> bool | None:
        """Whether a table that a command makes or replaces was there before it; None: not known.

        The run within a command that replaces a table of Iceberg has named the version of before.
        """
        was_seen = entity.read is not None or entity.first_written < run.first
        said = statement or CatalogStatement("OVERWRITE", "TABLE", "", is_conditional=_REPLACE in run.content.job_name)
        is_making = statement is not None or said.is_conditional
        if "OVERWRITE" not in write.lifecycles or was_seen or not is_making:
            return True
        if said.change == "CREATE" or write.versions == _FIRST_OF_DELTA:
            return False
        if not said.is_conditional or (write.versions and not entity.described.versions <= write.versions):
            return True
        names = {write.dataset, _in_catalog(write, table_name(write.symlinks) or "")}
        before = [one.change for one in self.changes if one.dataset in names and one.time < utc(run.first)]
        return False if before[-1:] == ["DROP"] else None

    def found(
        self, run: RunState, write: Observed, entity: Entity, statement: CatalogStatement, *, is_there: bool | None
    ) -> None:
        """Keep a CREATE TABLE IF NOT EXISTS that made nothing; ``is_there`` is None if only its files may have been."""
        name = _catalog_name(entity, write.dataset) or _split_name("TABLE", statement.name)[1]
        is_there = is_there or self.presence("TABLE", _object_name("TABLE", statement.name)) or None
        what: _What = ("CREATE", "TABLE", write.dataset, name)
        self._keep(what, run, statement, write.catalog, schema=write.schema, is_certain=False, is_ignored=is_there)
        self._learn("TABLE", _names(write.dataset, statement), is_there=True)

    def has_made(self, table: Observed) -> bool:
        """Whether a command of the task has made a table, by its name or its place."""
        names = {_short(link.name) for link in table.tables}
        if not is_path_namespace(table.dataset.namespace):
            names.add(_short(table.dataset.name))
        return any(
            one.dataset == table.dataset.whole or _short(one.name) in names
            for one in self.changes
            if (one.change, one.object_type) == ("CREATE", "TABLE") and not one.is_ignored
        )

    def locate(self, observed: Observed) -> None:
        """Complete the CREATE of a table whose command names no place, once a read or write of the table does."""
        names = {_object_name("TABLE", link.name) for link in observed.tables}
        for index, one in reversed([*enumerate(self.changes)] if names else []):
            if one.object_type == "TABLE" and one.dataset in names:
                if one.change == "DROP":
                    return
                self.changes[index] = structs.replace(one, dataset=observed.dataset.whole)
                if one.change == "ALTER" and "location" in dict(one.properties):
                    return

    def complete(self, made: Observed) -> None:
        """Complete the last change, of a table that a command made of what lies there."""
        self.changes[-1] = structs.replace(self.changes[-1], dataset=made.dataset.whole, schema=made.schema)

    def rename(self, run: RunState, renamed: Observed, entity: Entity, statement: CatalogStatement | None) -> None:
        """Keep a RENAME; the entity still has its former name."""
        said = statement or _UNSAID
        name = table_name(renamed.symlinks) or _split_name("TABLE", said.new_name)[1] or renamed.dataset.name
        former = table_name(entity.symlinks) or _split_name("TABLE", said.name)[1] or entity.name.name
        catalog = renamed.catalog or entity.described.catalog
        what: _What = ("RENAME", "TABLE", renamed.dataset, name)
        self._keep(what, run, said, catalog, previous_name=former, schema=renamed.schema)
        known = _object_name("TABLE", said.name or former)
        self._learn("TABLE", entity.names | {known}, is_there=False)
        now = _object_name("TABLE", name, known.namespace)
        self._learn("TABLE", [renamed.dataset, now], is_there=True)

    def drop(
        self, run: RunState, dropped: Observed, found: Sequence[Entity], statement: CatalogStatement | None
    ) -> None:
        """Keep a DROP; where the task never saw the table, Spark says the same of one that was not there."""
        said = statement or _UNSAID
        name = table_name(dropped.symlinks) or _split_name("TABLE", said.name)[1] or dropped.dataset.name
        place = min((entity.name for entity in found), default=place_of(dropped))
        is_view = any(one.name == name and one.object_type == "VIEW" for one in self.changes)
        object_type: ObjectType = "VIEW" if is_view and said is _UNSAID else said.object_type
        named = _object_name("TABLE", said.name or name)
        known = named if object_type == "VIEW" else place
        missing = _in_catalog(dropped, said.name or name)
        # Without its catalog the name may be that of another table; with it, the table may be in another place.
        is_qualified = _split_name("TABLE", said.name)[0] != ""
        of = self.presence
        is_seen = any(entity.is_seen for entity in found)
        # The listener names the path of a table of Iceberg as it is.
        by_place = (of(object_type, known), of(object_type, dropped.dataset))
        was_there = (
            is_seen
            or (is_qualified and of(object_type, named))
            or next((one for one in by_place if one is not None), None)
        )
        last = next((entity for entity in found if entity.name == place), None)
        ignored = is_ignored("DROP", is_there=was_there, is_conditional=said.is_conditional)
        self._keep(
            # The listener names a path by the folder of the database alone, wherever the table was.
            ("DROP", object_type, known if found or not is_path_namespace(known.namespace) else missing, name),
            run,
            said,
            dropped.catalog or (last.described.catalog if last is not None else None),
            schema=last.known_schema if last is not None else (),
            is_certain=bool(found) or is_view or ignored is False,
            is_ignored=ignored,
        )
        self._learn(object_type, {named, known}.union(*(entity.names for entity in found)), is_there=False)

    def command(self, run: RunState, statement: CatalogStatement, bindings: Bindings) -> list[Entity]:
        """Keep what a command did to a view, a database, or a table that no output of its run names.

        :return: the tables that it dropped
        """
        object_type, change = statement.object_type, statement.change
        table = bindings.table(statement.name) if object_type == "TABLE" else None
        if table is not None and change == "DROP":
            self.drop(run, Observed(table.name, symlinks=frozenset(table.symlinks)), [table], statement)
            return [table]
        known = _object_name(object_type, statement.name)
        dropped: list[Entity] = []
        if object_type == "DATABASE" and change == "DROP" and statement.is_cascading:
            dropped = bindings.in_database(known)
            for entity in dropped:
                self.drop(run, Observed(entity.name, symlinks=frozenset(entity.symlinks)), [entity], None)
            self._drop_inside(run, known, bindings, dropped)
        renamed = _object_name(object_type, statement.new_name, known.namespace) if statement.new_name else known
        is_there = self.presence(object_type, known)
        if is_there is None and object_type == "DATABASE" and known.namespace == _SESSION_CATALOG:
            # A database is there where the task has seen a table of it.
            is_there = bool(bindings.in_database(known)) or None
        is_replaced: bool | None = any(one.object_type == "VIEW" and one.name == known.name for one in self.changes)
        if object_type == "TABLE":
            is_replaced = is_there if table is None or not table.is_seen else True
        # OR REPLACE of a view that the task never saw makes it, as far as anybody knows.
        is_new = change == "OVERWRITE" and is_replaced is False
        before = (one.schema for one in reversed(self.changes) if one.dataset == renamed and one.schema)
        ignored = is_ignored(change, is_there=is_there, is_conditional=statement.is_conditional)
        is_known = is_replaced is not None if change == "OVERWRITE" else ignored is False
        self._keep(
            ("CREATE" if is_new else change, object_type, renamed, renamed.name),
            run,
            statement,
            previous_name=known.name if statement.new_name else None,
            columns=of_schema(statement.columns, next(before, ())),
            properties=statement.properties,
            partitioned_by=statement.partitioned_by,
            is_certain=not statement.is_conditional or is_known,
            is_ignored=ignored,
        )
        self._learn(object_type, [known], is_there=False)
        self._learn(object_type, [renamed], is_there=change != "DROP")
        return dropped

    def presence(self, object_type: ObjectType, name: DatasetName) -> bool | None:
        """Whether a table, view or database is there now, None where the task has neither made nor dropped it."""
        return self._is_there.get((object_type, _folded(object_type, name)))

    def _learn(self, object_type: ObjectType, names: Iterable[DatasetName], *, is_there: bool) -> None:
        self._is_there |= dict.fromkeys(((object_type, _folded(object_type, name)) for name in names), is_there)

    def _keep(
        self,
        what: _What,
        run: RunState,
        said: CatalogStatement = _UNSAID,
        listened: Catalog | None = None,
        **details: Any,
    ) -> None:
        """Keep a change with the name of its catalog: as the listener or the command has it, or one before."""
        _, object_type, dataset, _ = what
        catalog = _split_name(object_type, said.name)[0]
        if listened is not None:
            catalog = (catalog or _SESSION_CATALOG) if listened.framework == _HIVE else listened.name
        before = (one.catalog for one in reversed(self.changes) if one.dataset == dataset and one.catalog)
        details["catalog"] = catalog or next(before, "")
        if not details.get("schema") and details.get("is_ignored") is False:
            details["schema"] = said.schema
        details |= {each: getattr(said, each) for each in ("unset_properties", "partitions", "repair")}
        self.changes.append(CatalogChange(*what, utc(run.last), **details))

    def _partition(self, dataset: DatasetName, columns: tuple[str, ...]) -> None:
        """Complete the CREATE of a table by the columns that a write into it names; Spark's own catalog names none."""
        for index, one in reversed([*enumerate(self.changes)]):
            if one.change == "CREATE" and one.dataset == dataset and not one.is_ignored:
                self.changes[index] = structs.replace(one, partitioned_by=one.partitioned_by or columns)
                return

    def _drop_inside(self, run: RunState, database: DatasetName, bindings: Bindings, dropped: list[Entity]) -> None:
        """Keep that views, and tables whose names only commands have, go with their database; add the tables."""
        for object_type, catalog, name in dict.fromkeys(
            (one.object_type, one.catalog, one.name) for one in self.changes
        ):
            known = DatasetName(catalog or _SESSION_CATALOG, name)
            is_inside = name.casefold().startswith(f"{database.name.casefold()}.")
            if known.namespace != database.namespace or not is_inside or not self.presence(object_type, known):
                continue
            table = bindings.table(name) if object_type == "TABLE" else None
            if table in dropped:
                continue
            if table is None:
                self._keep(("DROP", object_type, known, name), run)
                self._learn(object_type, [known], is_there=False)
                continue
            said = CatalogStatement("DROP", "TABLE", f"{known.namespace}.{name}")
            self.drop(run, Observed(table.name, symlinks=frozenset(table.symlinks)), [table], said)
            dropped.append(table)
        made = (one for one in self.changes if one.object_type == "DATABASE" and one.dataset == database)
        location = dict(chain.from_iterable(one.properties for one in made)).get("location", "")
        for table in dropped:
            table.is_managed |= any(location and is_at(one, location) for one in directories_above(table.name))


def _is_certain(change: ChangeType, said: CatalogStatement, how: WriteRun) -> bool:
    if (change, said.change) == ("CREATE", "OVERWRITE"):
        # Mode "overwrite" makes a table, and replaces one.
        return how.is_replacing is False
    if how.is_repeated and how.is_inner_right:
        return True
    if change == "OVERWRITE":
        return how.is_replacing is not None
    is_decided = change not in {"CREATE", "ALTER"} or (change == "CREATE" and how.is_replacing is False)
    return is_decided or not said.is_conditional


def is_ignored(change: ChangeType, *, is_there: bool | None, is_conditional: bool | None) -> bool | None:
    """Whether a command that succeeded was passed over because of its IF [NOT] EXISTS; None: unknown.

    ``is_there`` says whether what a CREATE or DROP is about was there before, ``is_conditional`` whether the command
    had such a condition; None: not known. Of the partitions or properties of an ALTER nobody knows which were there.
    """
    if change == "ALTER" and is_conditional:
        return None
    if change not in {"CREATE", "DROP"} or is_conditional is False:
        return False
    if is_there is None:
        return None
    return is_there if change == "CREATE" else not is_there


def _names(dataset: DatasetName, said: CatalogStatement) -> set[DatasetName]:
    """Return what a table is known by: its place, and the name that a command gives it."""
    return {dataset, _object_name("TABLE", said.name)} if said.name else {dataset}


def _catalog_name(entity: Entity, dataset: DatasetName) -> str | None:
    return table_name(entity.symlinks) or (None if is_path_namespace(dataset.namespace) else dataset.name)


def _split_name(object_type: ObjectType, name: str) -> tuple[str, str]:
    """Split a name (``catalog.database.table``) from its catalog, if it has one."""
    catalog, _, rest = name.partition(".")
    return (catalog, rest) if name.count(".") >= _PARTS[object_type] else ("", name)


def _object_name(object_type: ObjectType, name: str, catalog: str = _SESSION_CATALOG) -> DatasetName:
    """Return a name in the catalog that it begins with, or else in this one."""
    named, rest = _split_name(object_type, name)
    return DatasetName(named or catalog, rest)


def _in_catalog(table: Observed, name: str) -> DatasetName:
    """Return a table by its name in its catalog."""
    return _object_name("TABLE", name, _catalog_of(table.catalog) or _SESSION_CATALOG)


def _catalog_of(catalog: Catalog | None) -> str | None:
    """Return Spark's name for a catalog that the listener describes, if it does."""
    if catalog is None:
        return None
    return _SESSION_CATALOG if catalog.framework == _HIVE else catalog.name


def _folded(object_type: ObjectType, name: DatasetName) -> DatasetName:
    """Return a name to compare by: Spark's catalogs ignore case, paths do not."""
    is_place = object_type == "TABLE" and name.namespace != _SESSION_CATALOG
    return name if is_place else DatasetName(name.namespace, name.name.casefold())
