"""What a listener of catalogs is: told of each table, view or database that was created, altered, renamed or dropped.

After Flink's FLIP-294. ``[spark_lineage] catalog_modification_listeners`` names listeners by class path. The event
types are those of :mod:`spark_lineage.notify.catalog_events`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from spark_lineage.listeners.listener import TaskListener
from spark_lineage.notify.catalog_events import (
    AlterDatabaseEvent,
    AlterTableEvent,
    AlterViewEvent,
    CatalogModificationEvent,
    CreateDatabaseEvent,
    CreateTableEvent,
    CreateViewEvent,
    DatabaseModificationEvent,
    DropDatabaseEvent,
    DropTableEvent,
    DropViewEvent,
    RenameDatabaseEvent,
    RenameTableEvent,
    RenameViewEvent,
    TableModificationEvent,
    ViewModificationEvent,
)
from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.events import TaskRun

__all__ = [
    "AlterDatabaseEvent",
    "AlterTableEvent",
    "AlterViewEvent",
    "CatalogModificationEvent",
    "CatalogModificationListener",
    "CatalogModificationListenerFactory",
    "CreateDatabaseEvent",
    "CreateTableEvent",
    "CreateViewEvent",
    "DatabaseModificationEvent",
    "DropDatabaseEvent",
    "DropTableEvent",
    "DropViewEvent",
    "ListenerContext",
    "RenameDatabaseEvent",
    "RenameTableEvent",
    "RenameViewEvent",
    "TableModificationEvent",
    "TaskRun",
    "ViewModificationEvent",
]


class CatalogModificationListener(TaskListener):
    """Is told what one try of one task did to catalogs, by a thread of its own (see :class:`TaskListener`)."""

    @abstractmethod
    def on_event(self, event: CatalogModificationEvent) -> None:
        """Take an event: one of the twelve types, in the order in which the changes happened."""


class CatalogModificationListenerFactory(Protocol):
    """Makes listeners: a class of this shape is made without arguments, once for each try of a task."""

    def create_listener(self, context: ListenerContext) -> CatalogModificationListener:
        """Make the listener of one try of a task."""
        ...
