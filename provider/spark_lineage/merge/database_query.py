"""What a query that Spark has a database run may mean: a reading for each kind of database.

A plan has the text of such a query, and no database, since Spark redacts its URL.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from spark_lineage.merge.lineage import Transformation
from spark_lineage.merge.observed import Edge
from spark_lineage.naming.identity import DatasetName

DECIDES = Transformation("INDIRECT", "UNKNOWN")
"""How the conditions of a query decide, until they are known: as a column without a name."""
_SEPARATOR = "\x1f"


class QueryTable(Struct, frozen=True, order=True, gc=False):
    """A table of a query, as it is written there without quotes, and as the database calls it."""

    written: str
    folded: str

    @property
    def dataset(self) -> DatasetName:
        """What stands for it until its database is known."""
        return DatasetName("", self.written)


class QueryReading(Struct, frozen=True, gc=False):
    """What a query reads, in the dialect of databases whose namespaces have these schemes; without any, in others.

    ``edges`` lead from the columns of its result to those of its tables, and from None what decides on its rows.
    ``unread`` lists what is not certain, ``functions`` has the names of functions that stand as tables.
    """

    schemes: tuple[str, ...]
    tables: tuple[QueryTable, ...] = ()
    edges: frozenset[Edge] = frozenset()
    unread: tuple[str, ...] = ()
    functions: frozenset[str] = frozenset()


class DatabaseQuery(Struct, frozen=True, gc=False):
    """A query that a database runs for Spark, and what it may mean; the last reading is for other databases."""

    dataset: DatasetName
    readings: tuple[QueryReading, ...]

    def reading(self, namespace: str) -> QueryReading:
        """Return what it means in a database."""
        scheme = namespace.partition(":")[0]
        return next((each for each in self.readings if scheme in each.schemes), self.readings[-1])


def query_dataset(sql: str, columns: Iterable[str]) -> DatasetName:
    """Return what stands for the result of a query, of which Spark reads these columns."""
    return DatasetName("", _SEPARATOR.join((sql.replace(_SEPARATOR, " "), *columns)))


def query_of(dataset: DatasetName) -> tuple[str, tuple[str, ...]] | None:
    """Return the text and the columns of a query that a dataset stands for, None for any other dataset."""
    sql, separator, columns = dataset.name.partition(_SEPARATOR)
    return None if dataset.namespace or not separator else (sql, tuple(columns.split(_SEPARATOR)))
