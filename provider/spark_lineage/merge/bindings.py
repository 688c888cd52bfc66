"""Which dataset a name means at a moment of the replay: symlinks make names one, RENAME and DROP end them (M1)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.entity import Entity
from spark_lineage.merge.observed import Observed, tables
from spark_lineage.naming.identity import DatasetName, Shape, directories_above, is_path_namespace, storage_type


class Bindings:
    """The datasets of a task by the names that they have now; ``entities`` are all there ever were."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self._by_name: dict[DatasetName, Entity] = {}

    def find(self, observed: Observed) -> Entity:
        """Return the entity that has one of these names now; symlinks make entities one."""
        known = self._known(observed.names)
        if not known:
            known = [Entity()]
            self.entities += known
        entity, *others = known
        for other in others:
            entity.absorb(other)
            self.entities.remove(other)
            self._by_name.update({name: entity for name, one in self._by_name.items() if one is other})
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
        return next((entity for entity in self._known(directories_above(name)) if entity.is_written), None)

    def bind(self, observed: Observed, entity: Entity) -> None:
        """Give an entity the names of a dataset."""
        self._by_name.update(dict.fromkeys(observed.names, entity))

    def forget(self, entity: Entity) -> None:
        """Take all names from an entity."""
        self._by_name = {name: known for name, known in self._by_name.items() if known is not entity}

    def dropped(self, observed: Observed) -> list[Entity]:
        """Return what a DROP means: by its table name, for its path is wrong outside of the default database."""
        links = observed.tables
        names = [link.dataset for link in links] or [observed.dataset]
        if links and not any(name in self._by_name for name in names):
            # The namespace of the symlink is then the database's folder where others have the warehouse's.
            names = [
                name
                for name in self._by_name
                if any(name.name == link.name and _is_above(name.namespace, link.namespace) for link in links)
            ]
        # The tables of a database with a place of its own have no symlinks but in their DROP.
        return self._known(names or [place_of(observed)])

    def table(self, name: str) -> Entity | None:
        """Return the table that a command names, perhaps without its database; Spark's catalogs ignore case."""
        wanted = name.casefold().split(".")[-2:]
        for entity in self.entities:
            names = [link.name.casefold().split(".") for link in tables(entity.symlinks)]
            if not entity.is_dropped and any(parts[-len(wanted) :] == wanted for parts in names):
                return entity
        return None

    def has_table(self, observed: Observed) -> bool:
        """Whether the task has seen a table of this name, and not just its files."""
        names = [link.dataset for link in observed.tables]
        if not names and not is_path_namespace(observed.dataset.namespace):
            names = [observed.dataset]
        return any(entity.is_seen for entity in self._known(names))

    def in_database(self, database: str) -> list[Entity]:
        """Return the tables of a database that the task knows of."""
        return self._known(
            name
            for name, entity in self._by_name.items()
            if name.name.rpartition(".")[0] == database and name in [link.dataset for link in tables(entity.symlinks)]
        )

    def _known(self, names: Iterable[DatasetName]) -> list[Entity]:
        """Return the entities of these names, each once."""
        return list(dict.fromkeys(entity for name in names if (entity := self._by_name.get(name))))


def place_of(dropped: Observed) -> DatasetName:
    """Return where a dropped table was: in the folder that is its symlink's namespace, and not in that again."""
    for link in dropped.tables:
        scheme, _, folder = link.namespace.partition(":")
        if is_path_namespace(link.namespace):
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
    for link in tables(table.symlinks):
        database, _, old = link.name.rpartition(".")
        links.append(structs.replace(link, name=f"{database}.{new}" if database else new))
        folder, _, last = table.name.name.rpartition("/")
        # That of an external table, which is elsewhere than in the folder of its database or the warehouse, stays.
        if last == old and folder.rpartition("/")[2] in {f"{database}.db", link.namespace.rpartition("/")[2]}:
            place = DatasetName(table.name.namespace, f"{folder}/{new}")
    return Observed(place, symlinks=frozenset(links), schema=table.known_schema)


def _is_above(namespace: str, below: str) -> bool:
    return below == namespace or below.startswith(namespace.rstrip("/") + "/")
