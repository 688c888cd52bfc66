"""Events about catalogs: tables, views and databases that were created, altered, renamed or dropped.

After Flink's FLIP-294, which has one event type for each. ``TRUNCATE`` and ``OVERWRITE`` are no such event: they change
what is in a table, which the lineage of the task says, and not the catalog. An ``OVERWRITE`` of a view, which has no
content, is an alteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from spark_lineage.merge.lineage import CatalogChange, ColumnChange, SchemaField
from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.storage import StorageIdentifier, storage_identifier
from spark_lineage.notify.events import Event, TaskRun
from spark_lineage.notify.redacted_lineage import redact_lineage


class CatalogModificationEvent(Event, frozen=True, kw_only=True):
    """One change of a catalog that has happened, at ``time``.

    ``name`` is what the catalog calls the object (``db.table``, ``db``), ``catalog`` and ``database`` say where it is,
    and are empty where that is unknown. ``dataset`` is its dataset as the task's lineage has it, ``storage`` what
    that physically is, None for views, databases, and what has no known form. ``is_ignored`` is true where nothing
    changed, for a CREATE found it there already or a DROP found nothing (``IF [NOT] EXISTS``), None where that is
    unknown. ``is_certain`` is false where it may not have happened.
    """

    name: str
    dataset: DatasetName
    catalog: str = ""
    database: str = ""
    storage: StorageIdentifier | None = None
    is_ignored: bool | None = False
    is_certain: bool = True


class TableModificationEvent(CatalogModificationEvent, frozen=True, kw_only=True):
    """One change of a table."""


class CreateTableEvent(TableModificationEvent, frozen=True, kw_only=True):
    """A table was made; ``schema`` and ``properties`` (comment among them) as far as they are known.

    ``partitioned_by`` has columns, and transforms such as ``days(at)``; empty, too, where that is unknown.
    """

    schema: tuple[SchemaField, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}


class AlterTableEvent(TableModificationEvent, frozen=True, kw_only=True):
    """A table has other ``columns`` or ``properties`` (those that changed); ``schema`` has all columns after it."""

    columns: tuple[ColumnChange, ...] = ()
    schema: tuple[SchemaField, ...] = ()
    properties: Mapping[str, str] = {}


class RenameTableEvent(TableModificationEvent, frozen=True, kw_only=True):
    """A table has another name; ``previous_name`` is what the catalog called it."""

    previous_name: str


class DropTableEvent(TableModificationEvent, frozen=True, kw_only=True):
    """A table is gone; ``schema`` has its last columns, as far as they are known."""

    schema: tuple[SchemaField, ...] = ()


class ViewModificationEvent(CatalogModificationEvent, frozen=True, kw_only=True):
    """One change of a view that lasts; temporary ones are in no catalog."""


class CreateViewEvent(ViewModificationEvent, frozen=True, kw_only=True):
    """A view was made; ``properties`` (comment among them) as far as they are known."""

    schema: tuple[SchemaField, ...] = ()
    properties: Mapping[str, str] = {}


class AlterViewEvent(ViewModificationEvent, frozen=True, kw_only=True):
    """A view has another query (``ALTER VIEW … AS``, ``CREATE OR REPLACE VIEW``) or other ``properties``."""

    columns: tuple[ColumnChange, ...] = ()
    schema: tuple[SchemaField, ...] = ()
    properties: Mapping[str, str] = {}


class RenameViewEvent(ViewModificationEvent, frozen=True, kw_only=True):
    """A view has another name; ``previous_name`` is what the catalog called it."""

    previous_name: str


class DropViewEvent(ViewModificationEvent, frozen=True, kw_only=True):
    """A view is gone."""


class DatabaseModificationEvent(CatalogModificationEvent, frozen=True, kw_only=True):
    """One change of a database."""


class CreateDatabaseEvent(DatabaseModificationEvent, frozen=True, kw_only=True):
    """A database was made."""

    properties: Mapping[str, str] = {}


class AlterDatabaseEvent(DatabaseModificationEvent, frozen=True, kw_only=True):
    """A database has other ``properties``, those that changed."""

    properties: Mapping[str, str] = {}


class RenameDatabaseEvent(DatabaseModificationEvent, frozen=True, kw_only=True):
    """A database has another name. No SQL of Spark says so today: listeners need not wait for this one."""

    previous_name: str


class DropDatabaseEvent(DatabaseModificationEvent, frozen=True, kw_only=True):
    """A database is gone; the tables and views that went with it, as far as they are known, have events before it."""


_TYPES: Mapping[tuple[str, str], type[CatalogModificationEvent]] = {
    ("CREATE", "TABLE"): CreateTableEvent,
    ("ALTER", "TABLE"): AlterTableEvent,
    ("RENAME", "TABLE"): RenameTableEvent,
    ("DROP", "TABLE"): DropTableEvent,
    ("CREATE", "VIEW"): CreateViewEvent,
    ("ALTER", "VIEW"): AlterViewEvent,
    ("OVERWRITE", "VIEW"): AlterViewEvent,
    ("RENAME", "VIEW"): RenameViewEvent,
    ("DROP", "VIEW"): DropViewEvent,
    ("CREATE", "DATABASE"): CreateDatabaseEvent,
    ("ALTER", "DATABASE"): AlterDatabaseEvent,
    ("RENAME", "DATABASE"): RenameDatabaseEvent,
    ("DROP", "DATABASE"): DropDatabaseEvent,
}


def catalog_events(
    task: TaskRun, changes: Iterable[CatalogChange], *, application_ids: tuple[str, ...] = ()
) -> Iterator[CatalogModificationEvent]:
    """The events of a task's changes of catalogs (``TaskLineage.catalog_changes``), in order, without secrets."""
    for change in map(redact_lineage, changes):
        kind = _TYPES.get((change.change, change.object_type))
        if kind is not None:
            known = {name: getattr(change, name) for name in kind.__struct_fields__ if hasattr(change, name)}
            if "properties" in known:
                known["properties"] = dict(change.properties)
            if "previous_name" in known:
                known["previous_name"] = change.previous_name or ""
            yield kind(**known, task=task, application_ids=application_ids, storage=storage_identifier(change.dataset))
