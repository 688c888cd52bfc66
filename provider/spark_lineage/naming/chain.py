"""How a dataset gets its one name: an ordered chain of resolvers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

from spark_lineage.naming.identity import DatasetName

# Names that are kept with their answers. A task has hundreds; an archive has more, in events that lie close together.
_MEMORY = 65_536


class Resolver(Protocol):
    """Gives a dataset a better name, by its name alone; returns its own names unchanged, and never raises."""

    def resolve(self, name: DatasetName) -> DatasetName:
        """Return the better name, or the same one."""


class Naming:
    """Names datasets by a chain of resolvers, and remembers the answers: ``name(namespace, name) -> DatasetName``.

    It can be sent to another process; what it remembers stays behind.
    """

    name: Callable[[str, str], DatasetName]

    def __init__(self, resolvers: Iterable[Resolver]) -> None:
        """Take the resolvers in the order in which they are asked, each with the answer of the one before."""
        self.resolvers = tuple(resolvers)
        # Held as an attribute because a call of the cache itself is several times cheaper than a method around it.
        self.name = lru_cache(_MEMORY)(self._resolve)

    def _resolve(self, namespace: str, name: str) -> DatasetName:
        dataset = DatasetName(namespace, name)
        for resolver in self.resolvers:
            dataset = resolver.resolve(dataset)
        return dataset

    def __reduce__(self) -> tuple[type[Naming], tuple[tuple[Resolver, ...]]]:
        return Naming, (self.resolvers,)
