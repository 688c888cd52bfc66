"""Takes apart the names that commands give to tables, views and databases: ``catalog.database.table``."""

from __future__ import annotations

from spark_lineage.naming.identity import DatasetName

SESSION_CATALOG = "spark_catalog"
DATABASE_PARTS, TABLE_PARTS = 1, 2


def split_name(name: str, parts: int) -> tuple[str, str]:
    """Split the name of a database or table from its catalog, if it names one: it then has more than so many parts."""
    catalog, _, rest = name.partition(".")
    return (catalog, rest) if name.count(".") >= parts else ("", name)


def table_name(name: str) -> str:
    """Return the name of a table without its catalog."""
    return split_name(name, TABLE_PARTS)[1]


def object_name(name: str, parts: int, catalog: str = SESSION_CATALOG) -> DatasetName:
    """Return the name of a view or a database, in the catalog that it names or else in this one."""
    named, rest = split_name(name, parts)
    return DatasetName(named or catalog, rest)
