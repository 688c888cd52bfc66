"""Which dataset a name means at a moment of the replay: symlinks make names one, RENAME and DROP end them (M1)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.entity import Entity
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace
from spark_lineage.naming.storage_types import Shape, storage_type


class Bindings:
    """The datasets of a task by the names that they have now; ``entities`` are all there ever were."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self._by_name: dict[DatasetName, Entity] = {}

    def find(self, observed: Observed) -> Entity:
        """Return the entity that has one of these names now; symlinks make entities one."""
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
        self.bind(observed, entity)
        return entity

    def known(self, name: DatasetName) -> Entity | None:
        """Return what a name means: the dataset of that name, or what the task has written that the path lies in."""
        return self._by_name.get(name) or self.written_around(name)

    def written_around(self, name: DatasetName) -> Entity | None:
        """Return what the task has written that this path, which means no dataset of its own, lies in."""
        if name in self._by_name:
            return None
        for directory in directories_above(name):
            entity = self._by_name.get(directory)
            if entity is not None and entity.is_written:
                return entity
        return None

    def bind(self, observed: Observed, entity: Entity) -> None:
        """Return an entity names."""
        for name in observed.names:
            self._by_name[name] = entity

    def forget(self, entity: Entity) -> None:
        """Take all names from an entity."""
        for name in [name for name, known in self._by_name.items() if known is entity]:
            del self._by_name[name]

    def dropped(self, observed: Observed) -> list[Entity]:
        """Return what a DROP means: by its table name, for its path is wrong outside of the default database."""
        tables = [link.dataset for link in observed.symlinks if link.type == "TABLE"]
        names = tables or [observed.dataset]
        if tables and not any(name in self._by_name for name in tables):
            # The namespace of the symlink is then the database's folder where others have the warehouse's.
            names = [
                name
                for name in self._by_name
                if any(name.name == table.name and _is_above(name.namespace, table.namespace) for table in tables)
            ]
        # The tables of a database with a place of its own have no symlinks but in their DROP.
        names = names or [place_of(observed)]
        return _distinct(entity for name in names if (entity := self._by_name.get(name)))

    def table(self, name: str) -> Entity | None:
        """Return the table that a command names; Spark's catalogs do not tell upper from lower case."""
        wanted = name.casefold().split(".")[-2:]
        return next(
            (
                entity
                for entity in self.entities
                if not entity.is_dropped
                and any(link.type == "TABLE" and _ends(link.name, wanted) for link in entity.symlinks)
            ),
            None,
        )

    def has_table(self, observed: Observed) -> bool:
        """Whether the task has seen a table of this name, and not just its files."""
        tables = [link.dataset for link in observed.symlinks if link.type == "TABLE"]
        if not tables and not is_path_namespace(observed.dataset.namespace):
            tables = [observed.dataset]
        return any(entity.is_seen for name in tables if (entity := self._by_name.get(name)))

    def in_database(self, database: str) -> list[Entity]:
        """Return the tables of a database that the task knows of."""
        return _distinct(
            entity
            for name, entity in self._by_name.items()
            if any(link.type == "TABLE" and link.dataset == name for link in entity.symlinks)
            and name.name.rpartition(".")[0] == database
        )

    def _rebind(self, old: Entity, new: Entity) -> None:
        for name, entity in self._by_name.items():
            if entity is old:
                self._by_name[name] = new


def place_of(dropped: Observed) -> DatasetName:
    """Return where a dropped table was: in the folder that is its symlink's namespace, and not in that again."""
    for link in sorted(dropped.symlinks):
        scheme, _, folder = link.namespace.partition(":")
        if link.type == "TABLE" and is_path_namespace(link.namespace):
            table = link.name.rpartition(".")[2]
            if not folder.startswith("//"):
                return DatasetName(scheme, f"{folder.rstrip('/')}/{table}")
            store, slash, path = folder[2:].partition("/")
            # The names of objects in a store have no slash at their beginning.
            kind = storage_type(scheme)
            first = "" if kind is not None and kind.shape is Shape.OBJECTS else slash
            return DatasetName(f"{scheme}://{store}", f"{first}{path.rstrip('/')}/{table}")
    return dropped.dataset


def under_new_name(table: Entity, new_name: str) -> Observed:
    """Return a table as a RENAME leaves it: its database is the same, and a folder that Spark made has its new name.

    :param new_name: as the command gives it, which may be without the database
    """
    # Spark's catalog writes it so.
    new = new_name.rpartition(".")[2].lower()
    place, links = table.name, []
    for link in sorted(link for link in table.symlinks if link.type == "TABLE"):
        database, _, old = link.name.rpartition(".")
        links.append(structs.replace(link, name=f"{database}.{new}" if database else new))
        folder, _, last = table.name.name.rpartition("/")
        # That of an external table, which is elsewhere than in the folder of its database or the warehouse, stays.
        if last == old and folder.rpartition("/")[2] in {f"{database}.db", link.namespace.rpartition("/")[2]}:
            place = DatasetName(table.name.namespace, f"{folder}/{new}")
    return Observed(place, symlinks=frozenset(links), schema=table.known_schema)


def _distinct(entities: Iterable[Entity]) -> list[Entity]:
    return list(dict.fromkeys(entities))


def _ends(name: str, wanted: list[str]) -> bool:
    """Whether a table has this name; one that is given without its database is in the current one, whatever that is."""
    return name.casefold().split(".")[-len(wanted) :] == wanted


def _is_above(namespace: str, below: str) -> bool:
    return below == namespace or below.startswith(namespace.rstrip("/") + "/")
