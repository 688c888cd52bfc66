"""What evidence tells of the things of catalogs at a moment of the replay: which are there, and which are not (M11)."""

from __future__ import annotations

from collections.abc import Iterable

from spark_lineage.merge.lineage import ChangeType, ObjectType
from spark_lineage.merge.object_names import SESSION_CATALOG
from spark_lineage.naming.identity import DatasetName


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
